"""Several processes save to one path: the file never goes back in a run, but may in a new run."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import meshfeed as mf
from meshfeed._io import saving
from tests.python.players import Players, players, together

STEPS = 30


def position_in(path: Path) -> tuple[int, int]:
    """Returns the epoch and position of the state in a file."""
    state = json.loads(path.read_text())
    return state["epoch"], state["position"]


def take(loader: mf.Loader, batches: int) -> None:
    for _ in range(batches):
        next(iter(loader))


def apart(job: Players) -> None:
    """Has process 1 take six batches, and the others one."""
    job.step()
    take(job.loaders[1], 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.state"


def test_a_slow_process(path: Path) -> None:
    """A slow process does not replace a later state."""
    with players() as job:
        apart(job)
        job.loaders[1].save_state(path)
        job.loaders[0].save_state(path)
        assert position_in(path) == (0, 48)
        take(job.loaders[0], 9)  # into the next epoch
        job.loaders[0].save_state(path)
        assert position_in(path) == (1, 16)
        job.loaders[1].save_state(path)
        assert position_in(path) == (1, 16)
        assert [p.name for p in path.parent.iterdir()] == ["run.state"]


def test_the_file_of_an_earlier_run(path: Path) -> None:
    """A new run replaces the state of an earlier run, also a later one."""
    with players() as job:
        apart(job)
        job.loaders[1].save_state(path)
    with players() as job:
        job.step()
        job.loaders[0].save_state(path)
        assert position_in(path) == (0, 8)


def test_going_back(path: Path) -> None:
    """After a seek of all processes the file may go back."""
    with players() as job:
        apart(job)
        job.loaders[1].save_state(path)
        for loader in job.loaders:
            loader.seek(epoch=0, position=8)
        job.loaders[0].save_state(path)
        assert position_in(path) == (0, 8)
        job.step()
        job.loaders[1].save_state(path)
        assert position_in(path) == (0, 16)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not a state", '{"epoch": 9, "position": "x"}'])
def test_a_file_of_something_else(path: Path, text: str) -> None:
    """A text that is not a state of this run is replaced."""
    path.write_text(text)
    with players() as job:
        job.step()
        job.loaders[0].save_state(path)
        assert position_in(path) == (0, 8)


def test_all_at_once(path: Path) -> None:
    """While processes run at different speeds, the file only goes forward."""
    with players(verify_replicas="off") as job:
        job.step()
        job.loaders[0].save_state(path)
        over, seen = threading.Event(), []

        def watch() -> None:
            while not over.is_set():
                seen.append(position_in(path))

        def run(p: int) -> None:
            for _ in range(STEPS):
                take(job.loaders[p], 1)
                job.loaders[p].save_state(path)

        watcher = threading.Thread(target=watch)
        watcher.start()
        together([lambda p=p: run(p) for p in range(4)])  # type: ignore[misc]
        over.set()
        watcher.join()
        assert seen == sorted(seen)
        assert position_in(path) == position_of(job.loaders[0])


def position_of(loader: mf.Loader) -> tuple[int, int]:
    state = loader.state()
    return state["epoch"], state["position"]


def test_a_folder_that_stays_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process locks the folder for long, a save continues without the lock."""
    import fcntl
    import os

    monkeypatch.setattr(saving, "LONGEST", 0.05)
    holder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with players() as job:
            job.step()
            job.loaders[0].save_state(path)
            assert position_in(path) == (0, 8)
    finally:
        os.close(holder)
