"""A process that is late or silent is logged by the others."""

from __future__ import annotations

import threading
import time

import pytest

import meshfeed as mf
from meshfeed._jobs import stalls
from tests.python.players import HANG, Players, cluster, peers_of, players


class Clock:
    """A clock of time and CPU time that tests advance."""

    def __init__(self) -> None:
        self.now, self.used = time.monotonic(), 0.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of `stalls`."""
    made = Clock()
    monkeypatch.setattr(stalls, "time", made)
    return made


def looks(job: Players, times: int = 2) -> None:
    """Has every process look for stalls."""
    for _ in range(times):
        for loader in job.loaders:
            peers_of(loader)._stalls.look()


def waited(loader: mf.Loader, seconds: float, *, inside: bool = False) -> None:
    """Pretends that a loader has been idle for some time."""
    progress = cluster(loader).progress
    progress.since -= seconds
    progress.inside = inside


@pytest.mark.parametrize(
    ("inside", "busy", "why"),
    [(False, 0.3, "consumer"), (True, 0.2, "read"), (True, 0.3, "gather")],
)
def test_stall(
    clock: Clock, caplog: pytest.LogCaptureFixture, inside: bool, busy: float, why: str
) -> None:
    """Processes that are ahead log the one behind, and what it waits for."""
    with players(name="train") as job:
        job.step()
        for p in (0, 1, 3):
            next(iter(job.loaders[p]))
        for p, loader in enumerate(job.loaders):
            waited(loader, 40 + p, inside=p == 2 and inside)
        looks(job, 1)
        assert caplog.records == []  # the others need a moment to publish their progress
        clock.now += 1
        clock.used += busy
        looks(job, 1)
        want = (
            "loader 'train': this process has taken 2 batches and has waited for {} s: process 2 "
        )
        want += "has taken 1 and has waited for {} s ({})"
        first = "read" if inside else "consumer"  # what process 2 published first
        said = [(41, 42, first), (42, 42, first), (44, 43, why)]
        assert [r.getMessage() for r in caplog.records] == [want.format(*each) for each in said]
        looks(job)
        assert len(caplog.records) == 3  # logged again after twice the time
        next(iter(job.loaders[2]))
        for p in range(4):
            next(iter(job.loaders[p]))
        looks(job, 1)
        assert not any("/progress/" in key for key in job.store.keys)


@pytest.mark.usefixtures("clock")
def test_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    """Equal progress is not a stall."""
    with players() as job:
        job.step()
        for loader in job.loaders:
            waited(loader, 1000)
        looks(job, 3)
    assert caplog.records == []


@pytest.mark.parametrize(("seconds", "late"), [(90, False), (130, True)])
def test_usual_is_not_late(
    clock: Clock, caplog: pytest.LogCaptureFixture, seconds: float, late: bool
) -> None:
    """A step of the usual length is not late."""
    with players() as job:
        job.step()
        looks(job, 1)
        for _ in range(4):
            clock.now += 20
            job.step()
        next(iter(job.loaders[0]))
        clock.now += 20
        for loader in job.loaders:
            waited(loader, seconds - 20)
        looks(job)
    assert bool(caplog.records) == late


@pytest.mark.usefixtures("clock")
def test_silent(caplog: pytest.LogCaptureFixture) -> None:
    """A silent process is logged too."""
    with players(name="train") as job:
        job.step()
        for p in (0, 1):
            waited(job.loaders[p], 50)
        looks(job)
        assert caplog.records == []  # the others may have become late a moment ago
        waited(job.loaders[0], 20)
        peers_of(job.loaders[0])._stalls.look()
    want = (
        "loader 'train': this process has taken 1 batch and has waited for 70 s: processes 2 and "
    )
    assert [r.getMessage() for r in caplog.records] == [want + "3 do not answer"]


def test_stall_in_its_own_time(caplog: pytest.LogCaptureFixture) -> None:
    """The watchers look for stalls by themselves."""
    with players(name="train", late_after=0.2) as job:
        job.step()
        for p in (0, 1, 3):
            next(iter(job.loaders[p]))
        late = time.monotonic() + HANG
        # Before that they may log that it does not answer, if its own watcher is late.
        while not any(
            "process 2 has taken 1 and has waited" in r.getMessage() for r in caplog.records
        ):
            assert time.monotonic() < late
            threading.Event().wait(0.01)


@pytest.mark.usefixtures("clock")
def test_a_departed_process(caplog: pytest.LogCaptureFixture) -> None:
    """A departed process is logged as such."""
    with players(name="train") as job:
        job.step()
        job.loaders.pop(2).close()
        waited(job.loaders[0], 70)
        for _ in range(2):
            peers_of(job.loaders[0])._stalls.look()
    want = "loader 'train': this process has taken 1 batch and has waited for 70 s: "
    want += "process 2 has closed the loader, processes 1 and 3 do not answer; if this one waits "
    want += "in a step, end the loops of all processes after the same step"
    assert [r.getMessage() for r in caplog.records] == [want]


def test_clocks_of_hosts_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of another process's measurements does not depend on the time of its host."""
    ahead = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: time.monotonic() + 3600 * next(ahead))
    with players() as job:
        for _ in range(4):
            job.step()
        looks(job, 1)
        before = time.monotonic()
        for loader in job.loaders:
            measured, silent = cluster(loader).reports()
            assert silent == []
            assert [0 <= each["age_ns"] < 1e9 * HANG for each in measured] == [True] * 3
        assert time.monotonic() - before < HANG
