"""A failure of one process reaches the others."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._jobs import failures
from tests.python import ROOT
from tests.python.players import (
    HANG,
    Memory,
    Players,
    cluster,
    heard,
    peers_of,
    players,
    threads,
    until,
)


def narrowed(records: int, odd: int | None = None) -> dict[str, Any]:
    """Makes 64-bit numbers that are delivered as 32 bits; one of them may not fit."""
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


def equal_fingerprints(job: Players) -> None:
    """Replaces the fingerprints by equal ones."""
    for loader in job.loaders:
        cluster(loader).state["dataset"] = "same"


def told(where: str, origin: mf.Error) -> str:
    """Returns the text of an error in the other processes."""
    assert origin.op == "mf.Loader"
    return str(origin).replace("mf.Loader: ", f"mf.Loader: {where}: ", 1)


def test_overflow() -> None:
    """One process fails in step 2; the errors of the others say where."""
    good = narrowed(64)
    with players(good, good, narrowed(64, odd=21), good, layout=narrow(), prefetch=0) as job:
        equal_fingerprints(job)
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
            assert job.loaders[p].state()["position"] == 16  # no batch was taken
        with pytest.raises(mf.OutOfRangeError):  # its next call tries the step again
            next(iter(job.loaders[2]))


def test_after_a_failure() -> None:
    """After all processes have moved, the failure is forgotten."""
    good = narrowed(64)
    with players(good, good, narrowed(64, odd=21), good, layout=narrow(), prefetch=0) as job:
        equal_fingerprints(job)
        job.step()
        job.step()
        with pytest.raises(mf.OutOfRangeError):
            next(iter(job.loaders[2]))
        heard(job, 2)
        for loader in job.loaders:
            loader.seek(epoch=0, position=24)
        equal_fingerprints(job)
        assert all(isinstance(batch, dict) for batch in job.step())


@pytest.mark.parametrize("kind", [ZeroDivisionError, RuntimeError, KeyError])
def test_other_errors(kind: type[Exception]) -> None:
    """Another exception arrives as an instance of its builtin class."""
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
    """A pass of `one_epoch` reports and receives failures as the loader does."""
    good = narrowed(64)
    with players(good, narrowed(64, odd=2), good, good, layout=narrow(), prefetch=0) as job:
        for loader in job.loaders:
            loader.seek(epoch=1)
        equal_fingerprints(job)
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


def departed(job: Players, gone: int) -> None:
    """Waits until all others know that a process has departed."""
    until(lambda: all(p == gone or peers_of(each).departed for p, each in enumerate(job.loaders)))


@pytest.mark.parametrize("batches", [1, 2])
def test_leaving_in_order(batches: int) -> None:
    """The others raise an error at the first batch that the departed process did not take."""
    with players() as job:
        for _ in range(batches):
            job.step()
        job.loaders[1].close()
        departed(job, 1)
        many = "1 batch" if batches == 1 else "2 batches"
        text = f"mf.Loader: process 1 has closed the loader after {many}, and this process "
        text += "takes another; end the loops of all processes at the same batch"
        for p in (0, 2, 3):
            for _ in range(2):
                with pytest.raises(mf.PeerError) as e:
                    next(iter(job.loaders[p]))
                assert str(e.value) == text
                assert e.value.process == 1
            assert job.loaders[p].state()["position"] == 8 * batches  # no batch was taken


def test_leaving_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """After the last batch a departure is not an error."""
    with players(epochs=1) as job:
        while job.step()[0] is not None:
            pass
        job.loaders[1].close()
        departed(job, 1)
        assert [next(iter(job.loaders[p]), None) for p in (0, 2, 3)] == [None] * 3
    assert caplog.records == []


def test_a_departure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A departure is logged at once, without a call of `next`."""
    with players(name="train") as job:
        job.step()
        job.loaders[1].close()
        until(lambda: len(caplog.records) == 3)
    text = "loader 'train': process 1 has closed the loader after 1 batch, as many as this process;"
    text += " if this one waits in a step, end the loops of all processes after the same step"
    assert [r.getMessage() for r in caplog.records] == [text] * 3


def test_use_after_close_is_not_reported() -> None:
    """A closed loader that is used fails alone; the others only know of its departure."""
    with players() as job:
        job.step()
        job.loaders[1].close()
        departed(job, 1)
        with pytest.raises(mf.InvalidStateError):
            next(iter(job.loaders[1]))
        assert all(peers_of(job.loaders[p])._received is None for p in (0, 2, 3))


@pytest.mark.parametrize("kind", [mf.InvalidStateError, mf.CancelledError, mf.ForkedError])
def test_local_errors_are_not_reported(kind: type[mf.Error]) -> None:
    """Errors in the use of a loader are not reported."""
    with players() as job:
        job.step()
        cluster(job.loaders[0]).failed(kind("x"), 0, 0)
        assert not any("/mailbox/" in key for key in job.store.keys)
        cluster(job.loaders[0]).failed(mf.ReadError("x"), 0, 0)
        assert sum("/mailbox/" in key for key in job.store.keys) == 3


def test_an_error_about_another_loader_is_reported() -> None:
    """An evaluation in one process alone ends its program with a PeerError that no other has."""
    with players() as job:
        job.step()
        with mf.Loader(job.datasets[0], process=0, **(job.options | ALONE)) as evaluation:
            with pytest.raises(mf.PeerError) as origin:
                next(iter(evaluation))
        job.loaders[0].__exit__(type(origin.value), origin.value, None)
        heard(job, 0)
        for p in (1, 2, 3):
            with pytest.raises(mf.PeerError) as e:
                next(iter(job.loaders[p]))
            assert str(e.value) == told("process 0, at epoch 0, step 1", origin.value)
            assert isinstance(e.value, TimeoutError)
            assert not isinstance(e.value, mf.InternalError)


ALONE: dict[str, Any] = {"coordinator": Memory(), "name": "evaluation", "agree_timeout": 0.1}


def test_a_received_error_is_not_reported_again() -> None:
    """A program that ends with the error of another process, or of its departure, is silent."""
    with players() as job:
        job.step()
        job.loaders[3].close()
        departed(job, 3)
        with pytest.raises(mf.PeerError) as left:
            next(iter(job.loaders[1]))
        before = posted(job)
        cluster(job.loaders[1]).abandon(left.value)
        assert posted(job) == before
        peers_of(job.loaders[0]).report(mf.DataLossError("cut"), 0, 1)
        for p in (1, 2):
            peers_of(job.loaders[p])._thread.join(HANG)
        with pytest.raises(mf.DataLossError) as received:
            next(iter(job.loaders[2]))
        job.store.delete("meshfeed/0-3/0/0/mailbox")
        cluster(job.loaders[2]).abandon(received.value)
        assert posted(job) == {}


def posted(job: Players) -> dict[str, bytes]:
    return {key: value for key, value in job.store.keys.items() if "/mailbox/" in key}


def test_uneven_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The last process compares how many batches each has taken, if the main thread took them."""
    with players(name="train") as job:
        job.step()
        for loader in job.loaders:
            loader.seek(epoch=0, position=0)  # counts begin anew
        for _ in range(3):
            job.step()
        for p, loader in enumerate(job.loaders):
            cluster(loader).progress.exact = True
            cluster(loader).progress.batches -= p == 2
            loader.close()
    told = [r.getMessage() for r in caplog.records if "taken" in r.getMessage()]
    text = "loader 'train': processes 0, 1 and 3 have taken 3 batches, and process 2 has taken 2 "
    text += "batches: a step may have used different batches in these processes; take the same "
    assert told == [f"{text}number of batches in every process"]


def test_even_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The counts of threads that read ahead say nothing, nor do counts after a failure."""
    for failed in (False, True):
        with players() as job:
            job.step()
            for p, loader in enumerate(job.loaders):
                cluster(loader).progress.exact = failed
                cluster(loader).progress.batches += p == 2
            if failed:
                cluster(job.loaders[1]).abandon(KeyError())
                heard(job, 1)
    assert not any("taken" in r.getMessage() for r in caplog.records)


def test_log_line(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the origin, for a program that does not call `next` again."""
    with players(name="train") as job:
        job.step()
        message = failures.failure(mf.DataLossError("a file is cut", op="arrowio"), 1, 0, 7)
        peers_of(job.loaders[0])._note_failure(message)
    want = "loader 'train': process 1, at epoch 0, step 7: arrowio: a file is cut (raised here by "
    want += "the next batch; a program that waits for other processes in a computation cannot be "
    assert [r.getMessage() for r in caplog.records] == [want + "woken)"]
    assert caplog.records[0].levelno == logging.WARNING


def check_end(status: int, *program: str) -> None:
    """Runs a program and checks its exit status, and whether it prints why it was ended."""
    done = subprocess.run(
        [sys.executable, "-c", *program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * HANG,
    )
    assert done.returncode == status, done.stderr
    ended = "has not asked for a batch for 0.2 s and ends with status 113 (on_peer_error='"
    assert (ended in done.stderr) == (status == mf.EXIT_PEER_ERROR)


ABORT = """
import sys, threading
import meshfeed as mf
from meshfeed._jobs import peers
from tests.python.players import HANG, Players, cluster
peers.PATIENCE[sys.argv[1]] = HANG / 4 if sys.argv[2] == "forgets" else 0.2
job = Players(on_peer_error=sys.argv[1], name="train")
for p in range(4):
    job.add()
job.step()
peers_of = cluster(job.loaders[0]).peers
peers_of.report(mf.DataLossError("a file is cut", op="arrowio"), 0, 1)
others = [cluster(loader).peers for loader in job.loaders[1:]]
if sys.argv[2] == "forgets":
    while not all(each._received for each in others):
        threading.Event().wait(0.01)
    job.loaders.clear()
for each in others:
    each._thread.join(HANG)  # which ends the program, or has nothing to do any more
for loader in job.loaders[1:]:
    try:
        next(iter(loader))
    except mf.PeerError as e:
        print(e)
job.close()
"""


@pytest.mark.parametrize(
    ("mode", "program", "status"),
    [
        ("abort", "stuck", mf.EXIT_PEER_ERROR),
        ("abort", "forgets", 0),
        ("end", "stuck", mf.EXIT_PEER_ERROR),
        ("end", "forgets", 0),
        ("raise", "stuck", 0),
    ],
)
def test_abort(mode: str, program: str, status: int) -> None:
    """A program that does not call `next` again is ended, unless `on_peer_error` forbids it.

    A program that has forgotten its loader is not ended.
    """
    check_end(status, ABORT, mode, program)


REPORT_FAILURE = """
import sys, threading
import meshfeed as mf
from meshfeed._jobs import peers
from tests.python.jobs.corruptions import corrupt, last_bit
from tests.python.players import HANG, Players, cluster
peers.PATIENCE["abort"] = HANG / 4 if sys.argv[1] == "comes back" else 0.2
job = Players(on_peer_error="raise", name="train")
for p in range(4):
    job.add(on_peer_error="abort" if p == 2 else "raise")
corrupt(job.loaders[2], last_bit)
job.step()
finder = cluster(job.loaders[2]).peers
while finder._own is None:
    threading.Event().wait(0.01)
if sys.argv[1] == "comes back":
    try:
        next(iter(job.loaders[2]))
    except mf.DataLossError:
        pass
finder._thread.join(HANG)  # which ends the program, or has nothing to do any more
"""


@pytest.mark.parametrize(("program", "status"), [("stuck", mf.EXIT_PEER_ERROR), ("comes back", 0)])
def test_the_process_that_finds_a_difference_is_ended_too(program: str, status: int) -> None:
    """It may wait in a computation for processes that its report has ended."""
    check_end(status, REPORT_FAILURE, program)


LEFT = """
import logging, sys, threading
import meshfeed as mf
from meshfeed._jobs import peers
from tests.python.players import HANG, Players, cluster
peers.PATIENCE["end"] = HANG / 4 if sys.argv[1] == "comes back" else 0.2
peers.SOON = 0.0
lines = []
def keep(record):
    if "has closed the loader after" in record.getMessage():
        lines.append(record.getMessage())
    return True
logging.getLogger("meshfeed").addFilter(keep)
job = Players(on_peer_error="raise", name="train")
for p in range(4):
    job.add(on_peer_error="end" if p == 2 else "raise")
job.step()
waits = cluster(job.loaders[2])
waits.progress.exact = sys.argv[1] != "reads ahead"
waits.progress.batches += sys.argv[1] != "behind"
job.loaders[0].close()
while len(lines) < 3:
    threading.Event().wait(0.01)
ended = [line for line in lines if "and this process takes another" in line]
if sys.argv[1] == "stuck":
    waits.peers._thread.join(HANG)  # which ends the program
elif sys.argv[1] == "comes back":
    try:
        next(iter(job.loaders[2]))
    except mf.PeerError as e:
        assert waits.peers._raised.is_set() and len(ended) == 1
else:
    assert ended == []
job.close()
"""


@pytest.mark.parametrize(
    ("program", "status"),
    [("stuck", mf.EXIT_PEER_ERROR), ("comes back", 0), ("reads ahead", 0), ("behind", 0)],
)
def test_a_process_beyond_the_end_of_another_is_ended(program: str, status: int) -> None:
    """It may wait in a step for the process that left."""
    check_end(status, LEFT, program)


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
    """A program may end with open loaders: their threads end first."""
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


SLOW = """
import atexit, threading
from meshfeed._jobs import cluster, contents, worker
from tests.python.players import Players, threads

class Slow(contents.Contents):
    def __init__(self, of):
        worker.Worker.__init__(self, "meshfeed.slow", of)
        self._start()

    def _work(self):
        self.ended.wait()
        threading.Event().wait(0.5)  # a call of the store

atexit.register(lambda: print(threads()))
cluster.LEAVE = 0.01
job = Players(late_after=3600.0)
for p in range(4):
    job.add()
job.step()
here = job.loaders[0]._engine.cursor._cluster
here._workers.append(Slow(here.peers._keys))
"""


def test_exit_waits_for_a_comparison() -> None:
    """The exit waits for a thread that outlasts the end of its generation."""
    done = subprocess.run(
        [sys.executable, "-c", SLOW], cwd=ROOT, capture_output=True, text=True, timeout=HANG
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


HANGS = """
import functools, threading
from meshfeed._jobs import cluster
from tests.python.players import Memory, Players, plan

class Hung(Memory):
    hung = False
    def __getattribute__(self, name):
        if name in ("set", "get", "try_get", "delete", "list") and Hung.hung:
            threading.Event().wait()
        return super().__getattribute__(name)

cluster.EXIT = 0.5
jobs = [Players(coordinator=Hung(), layout=plan(processes=2)) for _ in range(8)]
for job in jobs:
    job.add()
    job.add()
"""

OPEN = """
for job in jobs:
    job.step()
Hung.hung = True
"""

WAITING = """
threading.Thread(target=lambda: next(iter(jobs[0].loaders[0])), daemon=True).start()
jobs[0].options["coordinator"].until(lambda keys: "meshfeed/0-1/0/0/terms" in keys)
Hung.hung = True
"""


@pytest.mark.parametrize(
    "program",
    [OPEN, f"{OPEN}raise ZeroDivisionError", WAITING],
    ids=["open", "failed", "waiting"],
)
def test_exit_while_the_store_hangs(program: str) -> None:
    """The exit waits for the store a bounded time, however many loaders are open."""
    done = subprocess.run(
        [sys.executable, "-c", HANGS + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG / 2,  # 16 loaders one after another would take longer
    )
    assert done.returncode == ("Zero" in program), done.stderr


class Weak(Memory):
    """A store that fails while it is `dead`."""

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


def test_dead_store(caplog: pytest.LogCaptureFixture) -> None:
    """A store that fails during a run stops neither batches nor close."""
    caplog.set_level(logging.DEBUG, "meshfeed")
    store = Weak()
    with players(coordinator=store, verify_replicas="off", name="train") as job:
        job.step()
        store.dead = True
        until(lambda: all(peers_of(loader).lost for loader in job.loaders))
        assert all(isinstance(batch, dict) for batch in job.step())
        peers_of(job.loaders[0]).report(mf.DataLossError("cut"), 0, 0)
    assert threads() == []
    told = [r.getMessage() for r in caplog.records]
    assert told[:4] == ["loader 'train': cannot hear of failures elsewhere: gone"] * 4
    assert told[4:] == ["loader 'train': a failure was not reported to others: gone"]


def test_a_store_that_comes_back() -> None:
    """A transient store error does not stop the watcher."""
    store = Weak()
    with players(coordinator=store, verify_replicas="off", late_after=0.1) as job:
        job.step()
        store.dead = True
        until(lambda: all(peers_of(loader).lost for loader in job.loaders))
        store.dead = False
        until(lambda: not any(peers_of(loader).lost for loader in job.loaders))
        peers_of(job.loaders[0]).report(mf.DataLossError("cut"), 0, 1)
        heard(job, 0)
        assert all(isinstance(e, mf.PeerError) for e in job.step()[1:])
    assert store.keys == {}


@pytest.mark.parametrize("odd", [0, 2])
def test_one_moves_alone(odd: int) -> None:
    """If its agreement times out, a process tells the others, which may wait for it."""
    with players(name="train") as job:
        job.step()
        job.loaders[odd].seek(epoch=0, position=32)
        impatient = cluster(job.loaders[odd])
        impatient._options = dataclasses.replace(impatient._options, agree_timeout=0.1)
        with pytest.raises(mf.PeerError) as e:
            next(iter(job.loaders[odd]))
        heard(job, odd)
        want = told(f"process {odd}, at epoch 0, step 4", e.value)
        for p in {0, 1, 2, 3} - {odd}:
            with pytest.raises(mf.PeerError) as theirs:
                next(iter(job.loaders[p]))
            assert str(theirs.value) == want


def test_all_fail_at_once() -> None:
    """If all processes fail at once, not every one writes to every mailbox."""

    class Counted(Memory):
        messages = 0

        def set(self, key: str, value: bytes) -> None:
            self.messages += "/mailbox/" in key
            super().set(key, value)

    store = Counted()
    with players(coordinator=store) as job:
        job.step()
        for p, loader in enumerate(job.loaders):
            peers_of(loader).report(mf.ReadError(f"no answer to {p}"), 0, 1)
        assert store.messages == 6  # of processes 0 and 1 to the others
        for p, loader in enumerate(job.loaders):
            peers_of(loader)._thread.join(HANG)
            message = peers_of(loader)._received
            assert message is not None
            assert message["process"] != p
