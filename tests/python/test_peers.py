"""A failure of one process reaches the others; a late one is named."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed import peers
from meshfeed.cluster import uncaught
from meshfeed.stalls import Stalls
from tests.python.players import HANG, Memory, Players, cluster, heard, players, threads

ROOT = Path(__file__).resolve().parents[2]


def narrowed(records: int, odd: int | None = None) -> dict[str, Any]:
    """64-bit numbers, which are delivered as 32 bits; one of them may not fit."""
    n = np.arange(records, dtype=np.int64)
    if odd is not None:
        n[odd] = 1 << 40
    return {"n": n}


def narrow() -> mf.Layout:
    specs, fields = mf.P("data"), {"n": ("int32", ())}
    made = mf.layout({"data": 8}, specs, fields, batch_size=8, records=64, processes=4)
    document = json.loads(made.to_json())
    document["dataset"]["fields"] = {"n": {"shape": [], "dtype": "int64"}}
    return mf.Layout(json.dumps(document))


def unlike(job: Players) -> None:
    """Plays a fingerprint that saw no difference."""
    for loader in job.loaders:
        cluster(loader).state["dataset"] = "same"


def told(where: str, origin: mf.Error) -> str:
    """What the others hear of an error: who begins it, and where it was."""
    assert origin.op == "mf.Loader"
    return str(origin).replace("mf.Loader: ", f"mf.Loader: {where}: ", 1)


def test_overflow() -> None:
    """One process fails in step 2: it says so, and the others say where that was."""
    good = narrowed(64)
    with players(good, good, narrowed(64, odd=21), good, layout=narrow(), prefetch=0) as job:
        unlike(job)
        for _ in range(2):
            assert all(isinstance(batch, dict) for batch in job.step())
        with pytest.raises(mf.OutOfRangeError) as origin:
            next(iter(job.loaders[2]))
        heard(job, 2)
        for p in (0, 1, 3):
            with pytest.raises(mf.PeerError) as e:
                next(iter(job.loaders[p]))
            assert str(e.value) == told("process 2, at epoch 0, step 2", origin.value)
            assert isinstance(e.value, IndexError)
            assert isinstance(e.value, mf.OutOfRangeError)
            assert (e.value.process, e.value.epoch, e.value.step) == (2, 0, 2)
            assert e.value.code == mf.Code.OutOfRange
            assert job.loaders[p].state()["position"] == 16  # nothing was taken
        with pytest.raises(mf.OutOfRangeError):  # the origin tries its step again
            next(iter(job.loaders[2]))


def test_after_a_failure() -> None:
    """Where all go on elsewhere, nobody remembers it."""
    good = narrowed(64)
    with players(good, good, narrowed(64, odd=21), good, layout=narrow(), prefetch=0) as job:
        unlike(job)
        job.step()
        job.step()
        with pytest.raises(mf.OutOfRangeError):
            next(iter(job.loaders[2]))
        heard(job, 2)
        for loader in job.loaders:
            loader.seek(epoch=0, position=24)
        unlike(job)
        assert all(isinstance(batch, dict) for batch in job.step())


@pytest.mark.parametrize("kind", [ZeroDivisionError, RuntimeError, KeyError])
def test_other_errors(kind: type[Exception]) -> None:
    """What is no error of meshfeed arrives as the builtin that it is."""
    with players() as job:
        job.step()
        inspector: Any = job.loaders[3]._engine.cursor._make

        def fail(owner: Any) -> Any:
            raise kind("x")

        inspector.make = fail
        with pytest.raises(kind):
            next(iter(job.loaders[3]))
        heard(job, 3)
        with pytest.raises(mf.PeerError) as e:
            next(iter(job.loaders[0]))
        assert isinstance(e.value, kind)
        text = f"process 3, at epoch 0, step 1: {kind.__name__}: {kind('x')}"
        assert str(e.value) == f"mf.Loader: {text}"


def test_a_pass_fails_for_all() -> None:
    """A pass over an epoch tells and hears as the loader does."""
    good = narrowed(64)
    with players(good, narrowed(64, odd=2), good, good, layout=narrow(), prefetch=0) as job:
        for loader in job.loaders:
            loader.seek(epoch=1)
        unlike(job)
        passes = [loader.one_epoch() for loader in job.loaders]
        threads_of = [threading.Thread(target=next, args=(p, None)) for p in (passes[0], passes[2])]
        threads_of.append(threading.Thread(target=next, args=(passes[3], None)))
        for t in threads_of:
            t.start()
        with pytest.raises(mf.OutOfRangeError) as origin:
            next(passes[1])
        for t in threads_of:
            t.join()
        heard(job, 1)
        with pytest.raises(mf.PeerError) as e:
            next(passes[0])
        assert str(e.value) == told("process 1, at epoch 0, step 0", origin.value)
        for p in passes:
            p.close()


def test_leaving_is_no_failure() -> None:
    """One process has enough, and the others go on to the end."""
    with players(epochs=1) as job:
        job.step()
        gone = job.loaders.pop(1)
        gone.close()
        while (got := job.step())[0] is not None:
            assert all(isinstance(batch, dict) for batch in got)
        assert got == [None] * 3


def test_misuse_is_no_failure() -> None:
    """A loader used after its end fails alone."""
    with players() as job:
        job.step()
        job.loaders[1].close()
        with pytest.raises(mf.InvalidStateError):
            next(iter(job.loaders[1]))
        assert isinstance(next(iter(job.loaders[0])), dict)
        assert not any("/mail/0" in key for key in job.store.keys)


@pytest.mark.parametrize(
    "kind", [mf.InvalidStateError, mf.CancelledError, mf.ForkedError, mf.PeerError]
)
def test_no_failure_of_the_data(kind: type[mf.Error]) -> None:
    """What lies in the use of a loader, or was heard from others, is not told."""
    with players() as job:
        job.step()
        peers_of(job.loaders[0]).post(kind("x"), 0, 0)
        assert not any("/mail/" in key for key in job.store.keys)
        peers_of(job.loaders[0]).post(mf.ReadError("x"), 0, 0)
        assert sum("/mail/" in key for key in job.store.keys) == 3


def test_log_line(caplog: pytest.LogCaptureFixture) -> None:
    """Who cannot be woken has the origin in its log."""
    with players(name="train") as job:
        job.step()
        letter = peers._letter(mf.DataLossError("a file is cut", op="arrowio"), 1, 0, 7)
        peers_of(job.loaders[0])._receive(letter)
    want = "loader 'train': process 1, at epoch 0, step 7: arrowio: a file is cut (raised here by "
    want += "the next batch; a program that waits for other processes in a computation cannot be "
    assert [r.getMessage() for r in caplog.records] == [want + "woken)"]
    assert caplog.records[0].levelno == logging.WARNING


def peers_of(loader: mf.Loader) -> peers.Peers:
    return cluster(loader)._threads.peers


ABORT = """
import sys, threading
import meshfeed as mf
from meshfeed import peers
from meshfeed.cluster import uncaught
from tests.python.players import HANG, Players, cluster
peers.GRACE = 0.2
job = Players(on_peer_error=sys.argv[1], name="train")
for p in range(4):
    job.add()
job.step()
peers_of = cluster(job.loaders[0])._threads.peers
peers_of.post(mf.DataLossError("a file is cut", op="arrowio"), 0, 1)
cluster(job.loaders[1])._threads.peers._thread.join(HANG)
if sys.argv[2] == "stuck":
    threading.Event().wait(HANG if sys.argv[1] == "abort" else 0.5)
for loader in job.loaders[1:]:
    try:
        next(iter(loader))
    except mf.PeerError as e:
        print(e)
threading.Event().wait(1)
job.close()
"""


@pytest.mark.parametrize(
    ("mode", "program", "status"), [("abort", "stuck", 1), ("raise", "stuck", 0)]
)
def test_abort(mode: str, program: str, status: int) -> None:
    """A program that does not come back is ended, if that was asked for."""
    done = subprocess.run(
        [sys.executable, "-c", ABORT, mode, program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * HANG,
    )
    assert done.returncode == status, done.stderr
    ended = 'the program did not ask for a batch, so on_peer_error="abort" ends it'
    assert (ended in done.stderr) == (status == 1)


EXIT = """
import atexit
from tests.python.players import Players, threads
atexit.register(lambda: print(threads()))
job = Players(**{options})
for p in range(4):
    job.add()
job.step()
job.loaders[{forgotten}:] = []
print("stepped")
"""


@pytest.mark.parametrize("forgotten", [4, 2, 0])
def test_exit_without_close(forgotten: int) -> None:
    """A program may end with loaders open: their threads end before anything else does."""
    program = EXIT.format(options={"late_after": 3600.0}, forgotten=forgotten)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (done.returncode, done.stdout) == (0, "stepped\n[]\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_dead_store(caplog: pytest.LogCaptureFixture) -> None:
    """A store that fails in the middle of a run does not stop the batches, nor the close."""
    caplog.set_level(logging.DEBUG, "meshfeed")

    class Dead(Memory):
        dead = False

        def get(self, key: str, seconds: float) -> bytes | None:
            value = super().get(key, 0.05)
            if self.dead:
                raise ConnectionError("gone")
            return value

        def set(self, key: str, value: bytes) -> None:
            if self.dead:
                raise ConnectionError("gone")
            super().set(key, value)

    store = Dead()
    with players(coordinator=store, verify_replicas="off", name="train") as job:
        job.step()
        store.dead = True
        for loader in job.loaders:
            peers_of(loader)._thread.join(HANG)
        assert all(isinstance(batch, dict) for batch in job.step())
        peers_of(job.loaders[0]).post(mf.DataLossError("cut"), 0, 0)
    assert threads() == []
    told = [r.getMessage() for r in caplog.records]
    assert told[:4] == ["loader 'train': no longer hears of others: gone"] * 4
    assert told[4:] == ["loader 'train': the others could not be told of a failure: gone"]


# ---- exceptions of the program ----


class BoomError(ValueError):
    """What a program raises."""


class TornError(Exception):
    """One whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("torn")


def leave(loader: mf.Loader, error: BaseException) -> None:
    """Plays a program whose loop ends with an exception, which comes through as it is."""
    began = time.monotonic()
    with pytest.raises(type(error)) as raised, loader:
        raise error
    assert raised.value is error
    assert error.__context__ is None
    assert time.monotonic() - began < HANG


ENDS: list[tuple[BaseException, type[Exception], str]] = [
    (BoomError("the loss is nan"), ValueError, "BoomError: the loss is nan"),
    (KeyboardInterrupt(), Exception, "KeyboardInterrupt"),
    (SystemExit("out of budget"), Exception, "SystemExit: out of budget"),
    (SystemExit(3), Exception, "SystemExit: 3"),
    (StopIteration(7), Exception, "StopIteration: 7"),
    (UnicodeDecodeError("utf8", b"\xff", 0, 1, "odd"), Exception, "UnicodeDecodeError: 'utf8' co"),
    (ExceptionGroup("both", [BoomError()]), Exception, "ExceptionGroup: both (1 sub-exception)"),
    (FileNotFoundError(2, "none", "x.txt"), FileNotFoundError, "FileNotFoundError: [Errno 2] none"),
    (mf.InvalidStateError("the dataset is closed"), mf.InvalidStateError, "the dataset is closed"),
]


@pytest.mark.parametrize(("error", "kind", "text"), ENDS, ids=lambda v: type(v).__name__)
def test_the_program_fails(error: BaseException, kind: type[Exception], text: str) -> None:
    """An exception that ends the loop of one process ends every loop, none of them in silence."""
    with players(prefetch=0) as job:
        job.step()
        leave(job.loaders[2], error)
        heard(job, 2)
        for p in (0, 1, 3):
            with pytest.raises(mf.PeerError) as e:
                list(job.loaders[p])
            assert str(e.value).startswith(f"mf.Loader: process 2, at epoch 0, step 1: {text}")
            assert isinstance(e.value, kind)
            assert not isinstance(e.value, StopIteration)
            assert (e.value.process, e.value.epoch, e.value.step) == (2, 0, 1)
    for thread in threading.enumerate():  # after Ctrl-C nobody has waited for the end
        if thread.name.startswith("meshfeed"):
            thread.join(HANG)
    assert threads() == []
    assert job.store.keys == {}


def test_long_texts_are_cut() -> None:
    """Nobody wants a compiler's whole dump from another process."""
    with players() as job:
        job.step()
        leave(job.loaders[1], RuntimeError("x" * 100_000))
        heard(job, 1)
        with pytest.raises(mf.PeerError) as e:
            next(iter(job.loaders[0]))
        cut = "RuntimeError: " + "x" * (peers.LENGTH - len("RuntimeError: ") - 3) + "..."
        assert str(e.value) == f"mf.Loader: process 1, at epoch 0, step 1: {cut}"


@pytest.mark.parametrize(
    "error",
    [SystemExit(), SystemExit(0), GeneratorExit(), mf.PeerError("heard"), None],
    ids=lambda e: repr(e),
)
def test_an_end_in_good_order(error: BaseException | None) -> None:
    """A program that has enough, or has heard of another's failure, has not failed."""
    with players(epochs=1) as job:
        job.step()
        gone = job.loaders.pop(1)
        if error is None:
            with gone:
                pass
        else:
            leave(gone, error)
        assert not any("/mail/0" in key for key in job.store.keys)
        assert all(isinstance(batch, dict) for batch in job.step())


def test_one_failure_is_told_once() -> None:
    """What `next` has raised and told leaves the block, too; the first failure is the origin."""
    with players() as job:
        job.step()
        peers_of(job.loaders[0]).post(mf.ReadError("a disk is gone"), 0, 1)
        told = {key: value for key, value in job.store.keys.items() if "/mail/" in key}
        calls = job.store.calls
        leave(job.loaders[0], BoomError())
        assert told
        heard(job, 0)
        with pytest.raises(mf.PeerError, match="a disk is gone"):
            next(iter(job.loaders[1]))
        assert job.store.calls > calls  # it has left


def test_before_the_first_batch() -> None:
    """Nobody listens yet: the others are told by the agreement, in its time."""
    with players() as job:
        leave(job.loaders[1], BoomError())
        assert not any("/mail/" in key for key in job.store.keys)


def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's exception comes through in bounded time, whatever the store does."""
    monkeypatch.setattr("meshfeed.cluster.LEAVE", 0.05)
    stuck, go_on = threading.Event(), threading.Event()

    class Stuck(Memory):
        def set(self, key: str, value: bytes) -> None:
            if stuck.is_set():
                go_on.wait(HANG)
            super().set(key, value)

    with players(coordinator=Stuck(), verify_replicas="off") as job:
        job.step()
        stuck.set()
        began = time.monotonic()
        leave(job.loaders[0], BoomError("x"))
        assert time.monotonic() - began < 20 * 3 * 0.05
        go_on.set()


@pytest.mark.parametrize("broken", ["text", "thread", "store"])
def test_nothing_hides_the_exception(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while the others are told, the program gets its own exception."""

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with players(verify_replicas="off", late_after=0.3) as job:
        job.step()
        watcher = peers_of(job.loaders[0])._thread
        with monkeypatch.context() as patch:
            if broken == "store":
                patch.setattr(job.store, "set", fail)
            if broken == "thread":
                patch.setattr(threading.Thread, "start", fail)
            leave(job.loaders[0], TornError() if broken == "text" else BoomError())
        watcher.join(HANG)
        assert not watcher.is_alive()


def test_alone_nothing_is_told() -> None:
    """A loader without others does nothing when its block ends with an exception."""
    before = threads()
    ds = mf.from_arrays({"n": np.arange(8)})
    leave(mf.Loader(ds, batch_size=2), BoomError())
    assert threads() == before


def test_what_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter keeps what nobody caught; at a prompt the last exception ended nothing."""
    for name in ("ps1", "last_value"):
        monkeypatch.delattr(sys, name, raising=False)
    assert uncaught() is None
    boom = BoomError()
    monkeypatch.setattr(sys, "last_value", boom, raising=False)
    assert uncaught() is boom
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert uncaught() is None


# ---- stalls ----


def looks(job: Players, times: int = 2) -> None:
    """Has every process look as its watcher would."""
    for _ in range(times):
        for loader in job.loaders:
            stalls: Stalls = peers_of(loader)._stalls
            stalls.look()


def waited(loader: mf.Loader, seconds: float, *, inside: bool = False) -> None:
    """Plays that nothing has happened in a loader for some time."""
    progress = cluster(loader).progress
    progress.since -= seconds
    progress.inside = inside


@pytest.mark.parametrize(
    ("inside", "busy", "why"),
    [(False, 0.0, "consumer"), (True, 0.0, "read"), (True, 10.0, "gather")],
)
def test_stall(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    inside: bool,
    busy: float,
    why: str,
) -> None:
    """Who has not taken a step is named by those who have, with what it waits for."""
    clock = [0.0]
    monkeypatch.setattr("time.process_time", lambda: clock[0])
    with players(name="train") as job:
        job.step()
        for p in (0, 1, 3):
            next(iter(job.loaders[p]))
        for p, loader in enumerate(job.loaders):
            waited(loader, 40 + p, inside=p == 2 and inside)
        looks(job, 1)
        assert caplog.records == []  # the others need a moment to say where they are
        clock[0] += busy
        looks(job, 1)
        want = (
            "loader 'train': this process has had 2 batches and waits for {} s: process 2 has had "
        )
        want += "1 and waits for 42 s ({})"
        text = [re.sub(r"for 42\.\d s", "for 42 s", r.getMessage()) for r in caplog.records]
        assert text == [
            want.format(s, w) for s, w in [(40, "?"), (41, "?"), (43, why)]
        ] or text == [
            want.format(40, text[0].rpartition("(")[2][:-1]),
            want.format(41, text[0].rpartition("(")[2][:-1]),
            want.format(43, why),
        ]
        looks(job)
        assert len(caplog.records) == 3  # said once, until twice the time has passed
        next(iter(job.loaders[2]))
        for p in range(4):
            next(iter(job.loaders[p]))
        looks(job, 1)
        assert not any("/progress/" in key for key in job.store.keys)


def test_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    """Where all have had the same, it is not the loading that is slow."""
    with players() as job:
        job.step()
        for loader in job.loaders:
            waited(loader, 1000)
        looks(job, 3)
    assert caplog.records == []


def test_usual_is_not_late(caplog: pytest.LogCaptureFixture) -> None:
    """A step that takes as long as steps take is not late."""
    with players() as job:
        job.step()
        next(iter(job.loaders[0]))
        for loader in job.loaders:
            cluster(loader).progress.usual = 20.0
            waited(loader, 90)
        looks(job, 3)
    assert caplog.records == []


def test_silent(caplog: pytest.LogCaptureFixture) -> None:
    """A process that says nothing is named too."""
    with players(name="train") as job:
        job.step()
        for p in (0, 1):
            waited(job.loaders[p], 50)
        looks(job)
        assert caplog.records == []  # they may have become late a moment ago
        waited(job.loaders[0], 20)
        peers_of(job.loaders[0])._stalls.look()
    want = (
        "loader 'train': this process has had 1 batches and waits for 70 s: processes 2 and 3 do "
    )
    assert [r.getMessage() for r in caplog.records] == [want + "not answer"]


def test_stall_in_its_own_time(caplog: pytest.LogCaptureFixture) -> None:
    """The watchers look by themselves."""
    with players(name="train", late_after=0.2) as job:
        job.step()
        for p in (0, 1, 3):
            next(iter(job.loaders[p]))
        store = job.store
        store.until(lambda keys: sum("/progress/" in key for key in keys) == 4)
        looks(job, 2)
    assert any("process 2 has had 1 and waits for" in r.getMessage() for r in caplog.records)
