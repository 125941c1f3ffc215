"""Before the first batch of a pass, all processes agree that they begin the same pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.python.players import (
    DIFFER,
    HANG,
    RECORDS,
    Memory,
    Players,
    cluster,
    heard,
    peers_of,
    players,
    together,
)

SAME = "; make the same passes in every process, after the same batches"


def begun(job: Players, *processes: int, epoch: Callable[[int], int] = lambda p: 0) -> list[Any]:
    """Has processes, by default all, begin a pass at once; returns first rows, or the errors."""
    which = processes or range(len(job.loaders))
    out: dict[int, Any] = {}

    def begin(p: int) -> None:
        try:
            batch: Any = next(job.loaders[p].one_epoch(epoch(p)))
            out[p] = batch["all"][0][1].tolist()
        except mf.Error as e:
            out[p] = e

    together([lambda p=p: begin(p) for p in which])  # type: ignore[misc]
    return [out[p] for p in which]


def refused(got: list[Any], text: str) -> None:
    assert [type(e) for e in got] == [mf.IncompatibleError] * 4
    assert [str(e) for e in got] == [f"{DIFFER}{text}{SAME}"] * 4


@pytest.mark.parametrize("odd", [0, 2])
@pytest.mark.parametrize("stepped", [True, False], ids=["after a batch", "before any batch"])
def test_a_process_evaluates_alone(odd: int, stepped: bool) -> None:
    """It raises an error that names the others, and these hear of it in their next batch."""
    with players(name="train") as job:
        if stepped:
            job.step()
        else:
            together([cluster(loader).begin for loader in job.loaders])
        object.__setattr__(cluster(job.loaders[odd])._options, "agree_timeout", 0.2)
        [error] = begun(job, odd)
        others = "processes 1, 2 and 3 have" if odd == 0 else "process 0 has"
        text = f"process {odd} has begun a pass of one_epoch over loader 'train', and {others} not "
        text += "within 0.2 s; run the evaluation in every process, after the same batch; see the "
        text += "logs, or raise agree_timeout="
        assert isinstance(error, mf.PeerError)
        assert isinstance(error, TimeoutError)
        assert error.process == (1 if odd == 0 else 0)
        assert str(error) == f"mf.Loader: {text}"
        heard(job, odd)
        for p in {0, 1, 2, 3} - {odd}:
            for take in (job.loaders[p].one_epoch(), iter(job.loaders[p])):
                with pytest.raises(mf.PeerError) as theirs:
                    next(take)
                where = f"process {odd}, at epoch 0, step {int(stepped)}"
                assert str(theirs.value) == f"mf.Loader: {where}: {text}"


def test_one_is_missing() -> None:
    """All that have begun the pass name the process that has not."""
    with players(name="train", agree_timeout=1.0) as job:
        job.step()
        got = begun(job, 0, 1, 3)
        text = "mf.Loader: processes 0, 1 and 3 have begun a pass of one_epoch over loader "
        text += "'train', and process 2 has not within 1 s; "
        assert [str(e)[: len(text)] for e in got] == [text] * 3


def test_passes_alike() -> None:
    """Several passes, nested passes, and passes that end early or get no batch."""
    with players(name="train", device_prefetch=1) as job:
        unused = [job.loaders[p].one_epoch() for p in (1, 3)]
        counts: list[int] = []

        def evaluate(loader: mf.Loader) -> None:
            outer, rows = loader.one_epoch(2), 0
            next(outer)
            for _ in range(3):
                rows += sum(1 for _ in loader.one_epoch())
            rows += sum(1 for _ in outer)
            next(loader.one_epoch(1))
            counts.append(rows)

        together([lambda loader=loader: evaluate(loader) for loader in job.loaders])  # type: ignore[misc]
        assert counts == [4 * RECORDS // 8 - 1] * 4
        passes = {key.split("/")[5] for key in job.store.keys if "/pass/" in key}
        assert passes == {"5"}  # the keys of earlier passes are deleted
        for batch in job.step():
            np.testing.assert_array_equal(batch["all"][0][1], 7 * np.arange(8))
        for each in unused:
            each.close()
    assert job.store.keys == {}


def test_another_epoch() -> None:
    with players(name="train") as job:
        got = begun(job, epoch=lambda p: int(p == 1))
        refused(got, "one_epoch.epoch is 0 on processes 0, 2 and 3, 1 on process 1")
        assert begun(job) == [(7 * np.arange(8)).tolist()] * 4  # a difference ends nothing


def test_after_another_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes begin after the same number of batches, as far as the main thread takes these."""
    monkeypatch.setattr(threading, "main_thread", threading.current_thread)
    with players(name="train", verify_replicas="off") as job:
        job.step()
        next(iter(job.loaders[3]))
        refused(begun(job), "batches taken is 1 on processes 0, 1 and 2, 2 on process 3")
        for p in (3, 0):  # another thread may be taking batches there
            cluster(job.loaders[p]).progress.exact = False
            assert begun(job) == [(7 * np.arange(8)).tolist()] * 4


def test_another_failure_ends_the_wait() -> None:
    """A process that waits for a pass raises the failure of another at once."""
    with players(name="train") as job:
        job.step()
        got: list[Any] = []
        waiting = threading.Thread(target=lambda: got.extend(begun(job, 0)))
        waiting.start()
        job.store.until(lambda keys: any(key.endswith("/pass/1/terms") for key in keys))
        peers_of(job.loaders[2]).report(mf.ReadError("no answer"), 0, 1)
        waiting.join(HANG / 2)
        assert not waiting.is_alive()
        assert str(got[0]) == "mf.Loader: process 2, at epoch 0, step 1: no answer"


def test_passes_after_a_move() -> None:
    with players(name="train") as job:
        for loader in job.loaders:
            loader.skip(1)
        assert begun(job) == [(7 * np.arange(8)).tolist()] * 4
        for batch in job.step():
            np.testing.assert_array_equal(batch["all"][0][1], 7 * np.arange(8, 16))


class Weak(Memory):
    """A store that fails while it is `dead`."""

    dead = False

    def set(self, key: str, value: bytes) -> None:
        if self.dead:
            raise ConnectionError("gone")
        super().set(key, value)


def test_dead_store() -> None:
    """A pass goes on without the comparison if the store is gone."""
    store = Weak()
    with players(coordinator=store, name="train", verify_replicas="off") as job:
        job.step()
        store.dead = True
        assert begun(job) == [(7 * np.arange(8)).tolist()] * 4
        store.dead = False


def test_without_comparisons() -> None:
    """A pass of a job without comparisons waits for no other process."""
    with players(coordinator=False) as job:
        assert begun(job, 1) == [(7 * np.arange(8)).tolist()]
