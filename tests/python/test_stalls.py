"""A process that is late, or says nothing any more, is named."""

from __future__ import annotations

import re

import pytest

import meshfeed as mf
from meshfeed.stalls import Stalls
from tests.python.players import Players, cluster, peers_of, players


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
