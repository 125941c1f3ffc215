"""Agreements that end early: by Ctrl-C, a close, the program's end, or a fork."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.players import ALIKE, DIFFER, HANG, Players, cluster, heard, players, together


def interrupted(job: Players, process: int, key: str) -> None:
    """Sends Ctrl-C to a process in its first agreement, after a key was set."""

    def interrupt() -> None:
        job.store.until(lambda keys: f"meshfeed/train.0-3/0/0/{key}" in keys)
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        next(iter(job.loaders[process]))
    thread.join()


def test_interrupt() -> None:
    """Ctrl-C ends the wait for others, and the loader goes on at its position."""
    with players(name="train") as job:
        interrupted(job, 0, "terms")
        assert all(isinstance(batch, dict) for batch in job.step())


@pytest.mark.parametrize("odd", [0, 2])
def test_interrupted_and_moved(odd: int) -> None:
    """Terms published before Ctrl-C count: no process goes on at another position."""
    with players(name="train") as job:
        got: dict[int, Any] = {}

        def take(p: int) -> None:
            try:
                got[p] = next(iter(job.loaders[p]))
            except mf.Error as e:
                got[p] = e

        early = [threading.Thread(target=take, args=(p,)) for p in ((1, 2) if odd == 0 else (0, 1))]
        for thread in early:
            thread.start()
        interrupted(job, odd, f"answer/{odd or 1}")  # others have read its terms
        job.loaders[odd].seek(epoch=0, position=32)
        if odd:  # the others agree on its old terms, and it has moved
            late = threading.Thread(target=take, args=(3,))
            late.start()
            for thread in [*early, late]:
                thread.join(HANG)
            assert [type(got[p]) for p in (0, 1, 3)] == [dict] * 3
            take(2)
            assert str(got[2]) == f"{DIFFER}position is 0 on process 0, 32 on process 2{ALIKE}"
        else:
            together([lambda: take(0), lambda: take(3)])
            for thread in early:
                thread.join(HANG)
            text = f"{DIFFER}position is 32 on process 0, 0 on processes 1, 2 and 3{ALIKE}"
            assert {str(e) for e in got.values()} == {text}
            job.loaders[0].seek(epoch=0, position=0)
            assert all(isinstance(batch, dict) for batch in job.step())


@pytest.mark.parametrize("odd", [0, 2])
def test_interrupted_and_gone(odd: int) -> None:
    """Ctrl-C ends a program that has answered: the others go on, and hear of the failure."""
    with players(name="train") as job:
        got: dict[int, Any] = {}

        def take(p: int) -> None:
            got[p] = next(iter(job.loaders[p]))

        def end() -> None:
            with job.loaders[odd]:
                if odd:
                    interrupted(job, odd, f"answer/{odd}")
                    raise KeyboardInterrupt
                next(iter(job.loaders[0]))

        if odd == 0:
            cluster(job.loaders[0])._start = ctrl_c  # type: ignore[assignment,method-assign]
        rest = [threading.Thread(target=take, args=(p,)) for p in range(4) if p != odd]
        for thread in rest if odd == 0 else rest[:2]:
            thread.start()
        with pytest.raises(KeyboardInterrupt):
            end()
        if odd:
            rest[2].start()
        for thread in rest:
            thread.join(HANG)
        heard(job, odd)
        for p in {0, 1, 2, 3} - {odd}:
            assert isinstance(got[p], dict)
            with pytest.raises(mf.PeerError) as e:
                next(iter(job.loaders[p]))
            where = f"process {odd}, at epoch 0, step 0"
            assert str(e.value) == f"mf.Loader: {where}: KeyboardInterrupt"


def ctrl_c(*_: object) -> None:
    raise KeyboardInterrupt


def test_closing_ends_the_wait_for_others() -> None:
    with players(name="train") as job:
        failed: list[Exception] = []

        def take() -> None:
            try:
                next(iter(job.loaders[0]))
            except mf.Error as e:
                failed.append(e)

        thread = threading.Thread(target=take)
        thread.start()
        job.store.until(lambda keys: "meshfeed/train.0-3/0/0/terms" in keys)
        began = time.monotonic()
        job.loaders[0].close()
        thread.join(HANG)
        assert time.monotonic() - began < HANG / 3
        (error,) = failed
        assert isinstance(error, mf.CancelledError)
        want = "mf.Loader: loader 'train' was closed while it waited for other processes"
        assert str(error) == want


def test_close_is_quick() -> None:
    """A process leaves while the others stay."""
    with players() as job:
        job.step()
        began = time.monotonic()
        job.loaders[1].close()
        assert time.monotonic() - began < HANG / 3
        together([loader.close for loader in job.loaders])
        assert job.store.keys == {}


def program(text: str) -> tuple[str, str]:
    """Runs a program with four players; returns its output and its errors."""
    begin = """
import multiprocessing, os, threading
from tests.python.players import HANG, Players, cluster, compared, threads
job = Players(name="train")
for p in range(4):
    job.add()
"""
    done = subprocess.run(
        [sys.executable, "-c", begin + text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG / 2,  # less than the agreement's timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_exit_ends_the_wait_for_others() -> None:
    """A program ends at once and silently while a thread of it waits for other processes."""
    text = """
threading.Thread(target=lambda: next(iter(job.loaders[0])), daemon=True).start()
job.store.until(lambda keys: "meshfeed/train.0-3/0/0/terms" in keys)
print("the end")
"""
    assert program(text) == ("the end\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_takes_no_part() -> None:
    """The child's end does not close its parent's loaders, and it does not wait."""
    out, _ = program("""
class Child(multiprocessing.get_context("fork").Process):
    def run(self):
        peers = cluster(job.loaders[1]).peers
        del job.loaders[1]
        os.write(1, b"forgot" * peers.ended.is_set())
        with job.loaders[0]:
            raise SystemExit(3)

job.step()
compared(job)  # or else a thread of the parent asks the store, too
def kept():
    return {key: value for key, value in job.store.keys.items() if "/barrier/" not in key}

before, calls = kept(), threads()
job.store.set = job.store.list = job.store.delete = lambda *_: os.write(1, b"asked")
child = Child()
child.start()
child.join()
print(child.exitcode, threads() == calls)
del job.store.set, job.store.list, job.store.delete
print(type(job.step()[0]).__name__)
compared(job)
print(kept() == before)
job.close()
print(job.store.keys)
""")
    assert out == "3 True\ndict\nTrue\n{}\n"
