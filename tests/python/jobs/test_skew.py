"""Processes that wait for each other must use the same batches; others may run apart."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import meshfeed as mf
from meshfeed._feed.feed import Feed
from meshfeed._jobs import barrier, peers, skew
from meshfeed._jobs.barrier import Decision
from tests.python.jobs.corruptions import SEED
from tests.python.players import HANG, Players, cluster, heard, peers_of, players, together, until
from tests.python.programs import run as run_program

Loop = Callable[[int, Iterator[Any]], None]
STEPS = 24


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the time until a process counts as waiting for others."""
    monkeypatch.setattr(skew, "PATIENT", 0.2)


class Steps:
    """Steps that wait for each other, as steps with a collective do."""

    def __init__(self, processes: int = 4) -> None:
        self._meet = threading.Barrier(processes)

    def __call__(self) -> None:
        self._meet.wait(HANG)


def run(job: Players, loop: Loop) -> list[Any]:
    """Runs a loop in every process; returns the errors that ended them."""
    got: list[Any] = [None] * len(job.loaders)

    def work(p: int) -> None:
        try:
            loop(p, iter(job.loaders[p]))
        except Exception as e:
            got[p] = e

    together([lambda p=p: work(p) for p in range(len(got))])  # type: ignore[misc]
    return got


LOOKS = """
import gc, sys, threading, weakref
from meshfeed._jobs.barrier import Consumer

class Node: pass

def garbage():
    for _ in range(5):
        node = Node()
        node.itself = node
        refs.append(weakref.ref(node, lambda _: sum(range(100))))

def frames(real=sys._current_frames):
    garbage()
    gc.set_threshold(1)  # the next allocation collects, if it may
    try:
        return real()
    finally:
        gc.set_threshold(700)

def look():
    consumer = Consumer()
    while looking:
        consumer.look(set())
        refs.clear()

refs, looking, sys._current_frames = [], True, frames
sys.setswitchinterval(1e-6)
looker = threading.Thread(target=look)
looker.start()
for _ in range(300):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
looking = False
looker.join()
print(gc.isenabled())
"""


def test_threads_start_while_another_looks_at_the_main_thread() -> None:
    assert run_program(LOOKS) == "True\n"


def some_go_on(keys: dict[str, bytes]) -> bool:
    """Returns whether the waiting processes may take a batch without the others."""
    decisions = [json.loads(v) for k, v in keys.items() if k.endswith("/decision/last")]
    return any(exceptions for _, _, exceptions, _ in decisions)


def error(problem: str) -> str:
    text = f"mf.Loader: {problem}: a step uses different batches in these processes; take the same "
    text += "number of batches in every process; loader.peek() shows the next one without taking "
    return text + "it; then continue from a saved state in all of them"


def at_once(*cases: Callable[[], object]) -> None:
    """Runs cases beside each other, because they mostly wait; raises the first error."""
    with ThreadPoolExecutor(len(cases)) as pool:
        for case in [pool.submit(case) for case in cases]:
            case.result()


def test_ahead() -> None:
    """All processes name the one that takes more batches, with their number."""
    at_once(
        partial(ahead, {0}, 1, "process 0 is 1 batch ahead of processes 1, 2 and 3"),
        partial(ahead, {3}, 4, "process 3 is 4 batches ahead of processes 0, 1 and 2"),
        partial(ahead, {0, 2}, 1, "processes 0 and 2 are 1 batch ahead of processes 1 and 3"),
        partial(ahead, {0, 2, 3}, 2, "process 1 is 2 batches behind processes 0, 2 and 3"),
        the_error_is_the_same_in_all,
        the_error_outlives_the_processes_that_raised_it,
    )


def ahead(odd: set[int], more: int, problem: str) -> None:
    step, taken = Steps(), [0] * 4

    def loop(p: int, it: Iterator[Any]) -> None:
        for _ in range(more if p in odd else 0):
            next(it)
        for _ in it:
            step()
            taken[p] += 1

    with players(verify_replicas="always") as job:
        got = run(job, loop)
        assert [str(e) for e in got] == [error(problem)] * 4
        assert all(isinstance(e, mf.IncompatibleError) for e in got)
        assert taken == [3] * 4
        for loader in job.loaders:  # every later batch raises it again
            with pytest.raises(mf.IncompatibleError) as again:
                next(iter(loader))
            assert str(again.value) == error(problem)


def the_error_is_the_same_in_all() -> None:
    """The error is the same in all, also in a process that receives it from another first."""
    step, message = Steps(), error("process 3 is 1 batch ahead of processes 0, 1 and 2")

    def loop(p: int, it: Iterator[Any]) -> None:
        for _ in range(1 + (p == 3)):
            next(it)
        for _ in it:
            step()

    with players(verify_replicas="always") as job:
        got = run(job, loop)
        cluster(job.loaders[0]).abandon(got[0])
        heard(job, 0)
        for loader in job.loaders[1:]:
            with pytest.raises(mf.IncompatibleError) as e:
                next(iter(loader))
            assert (type(e.value), str(e.value)) == (mf.IncompatibleError, message)


def the_error_outlives_the_processes_that_raised_it() -> None:
    """A process that has not read the error when the others depart still raises it."""
    step, message = Steps(), error("process 3 is 1 batch ahead of processes 0, 1 and 2")

    def loop(p: int, it: Iterator[Any]) -> None:
        for _ in range(1 + (p == 3)):
            next(it)
        for _ in it:
            step()

    with players(verify_replicas="always") as job:
        run(job, loop)
        slow = job.loaders[2]
        barrier_of(slow)._last = Decision(0, 0, {})
        for p in (0, 1, 3):
            job.loaders[p].close()
        until(lambda: bool(peers_of(slow).departed))
        with pytest.raises(mf.IncompatibleError) as e:
            next(iter(slow))
        assert str(e.value) == message


def loop_of(step: Steps) -> Loop:
    """Returns a correct loop."""

    def loop(_: int, it: Iterator[Any]) -> None:
        for _ in range(STEPS):
            next(it)
            step()

    return loop


def after_a_seek() -> None:
    """Processes that go on from one position raise no error."""
    step = Steps()

    def loop(p: int, it: Iterator[Any]) -> None:
        if p == 0:
            next(it)
        while True:
            next(it)
            step()

    with players(verify_replicas="always") as job:
        run(job, loop)
        for loader in job.loaders:
            loader.seek(epoch=0, position=24)
        assert run(job, loop_of(step)) == [None] * 4


def late(process: int) -> None:
    """A process that is only late is not behind."""
    step = Steps()

    def loop(p: int, it: Iterator[Any]) -> None:
        for n in range(STEPS):
            next(it)
            step()
            if p == process and n == 4:
                job.store.until(some_go_on)

    with players(verify_replicas="always") as job:
        assert run(job, loop) == [None] * 4


def independent_steps() -> None:
    """Processes with independent steps are never held up as skewed."""
    print(f"MESHFEED_SEED={SEED}")

    def loop(p: int, it: Iterator[Any]) -> None:
        rng = random.Random(SEED + p)
        for _ in range(STEPS // 3):
            next(it)
            threading.Event().wait(rng.choice([0, 0, 0.05, 0.3, 0.6]))

    with players(verify_replicas="always") as job:
        assert run(job, loop) == [None] * 4


def one_leads() -> None:
    """Processes that take each batch after process 0 are not behind."""
    step = Steps()
    first = [threading.Event() for _ in range(STEPS)]

    def loop(p: int, it: Iterator[Any]) -> None:
        for n in range(STEPS // 4):
            assert 0 in (n, p) or first[n].wait(HANG)  # all take the first batch together
            next(it)
            first[n].set()
            step()

    with players(verify_replicas="always") as job:
        assert run(job, loop) == [None] * 4


def test_a_silent_departure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that departs without a message does not hold up the others."""
    monkeypatch.setattr(peers.Peers, "depart", lambda _: None)
    at_once(partial(silent, 0), partial(silent, 2))


def silent(gone: int) -> None:
    def loop(p: int, it: Iterator[Any]) -> None:
        for n in range(STEPS):
            if p == gone and n == 3:
                job.loaders[p].close()
                return
            next(it)

    with players(verify_replicas="always") as job:
        assert run(job, loop) == [None] * 4


def test_alike() -> None:
    """No process is ahead of the others."""
    at_once(
        *(partial(late, p) for p in range(4)),
        after_a_seek,
        independent_steps,
        one_leads,
    )


@pytest.mark.parametrize("uses", [False, True])
def test_a_main_thread_that_never_waits(
    uses: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After three stops no further one lasts longer. If it uses batches, a warning says so."""
    monkeypatch.setattr(barrier, "LIMIT", 0.01)
    monkeypatch.setattr(barrier, "PAUSES", 0)
    monkeypatch.setattr(barrier, "EARLY", 5)
    made: list[Array] = []

    def live(_: Feed) -> list[Array]:
        made.extend([Array()] * (uses or not made))
        return made[-1:]

    monkeypatch.setattr(Feed, "live", live)
    got: list[Any] = []
    with players(verify_replicas="always", name="train") as job:
        thread = threading.Thread(target=lambda: got.extend(run(job, loop_of(Steps()))))
        thread.start()
        while thread.is_alive():
            sum(range(1000))
        assert [barrier_of(loader)._tries for loader in job.loaders] == [0] * 4
    assert got == [None] * 4
    text = "loader 'train': the main thread never waits for the thread that takes batches: if a "
    assert [r.getMessage()[: len(text)] for r in caplog.records] == [text] * (4 * uses)


class Array:
    def is_ready(self) -> bool:
        return True


def barrier_of(loader: mf.Loader) -> Any:
    return cluster(loader).barrier


def test_off() -> None:
    """With verify_replicas="off" nothing adds a barrier."""
    with players(verify_replicas="off") as job:
        job.step()
        assert cluster(job.loaders[0]).barrier is None
        assert sum(1 for _ in zip(range(STEPS), job.loaders[0], strict=False)) == STEPS
