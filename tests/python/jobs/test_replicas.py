"""Processes that hold the same block of a batch compare its bytes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._jobs import barrier, peers, replicas, worker
from meshfeed._native import calls
from meshfeed._native.abi import Head
from tests.python.jobs.corruptions import FOUND, SEED, WAYS, Way, blocks, corrupt, last_bit
from tests.python.players import (
    HANG,
    RECORDS,
    Memory,
    Players,
    cluster,
    compared,
    heard,
    one_odd,
    plan,
    players,
    rows,
    threads,
    together,
    until,
)

ODD = 2  # the process that gets other bytes; it holds the same rows as process 0


def compared_by(loader: mf.Loader) -> int:
    found = cluster(loader).replicas
    assert found is not None
    return found.compared


def after(job: Players) -> list[Any]:
    """Waits until every process knows of a failure of the odd one, and takes a step."""
    heard(job, ODD)
    return job.step()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_corrupted(way: Way) -> None:
    """If one process gets other bytes, all stop, and the error says where they differ."""
    print(f"MESHFEED_SEED={SEED}")
    with players() as job:
        corrupt(job.loaders[ODD], way)
        job.step()
        job.step()
        got = after(job)
        assert all(isinstance(e, mf.DataLossError) for e in got), got
        found = FOUND.fullmatch(str(got[ODD]))
        assert found, str(got[ODD])
        assert int(found[2]) in (0, 1)
        for p in {0, 1, 3}:
            assert isinstance(got[p], mf.PeerError)
            assert got[p].process == ODD
            assert str(got[p]).startswith(
                f"mf.Loader: process 2, at epoch 0, step {found[2]}: array "
            )


@pytest.mark.parametrize("copy", [0, 1])
@pytest.mark.parametrize("odd", [0, ODD])
def test_copies_of_a_process(odd: int, copy: int) -> None:
    """If every device has its own memory, each copy is compared."""
    specs = {"x": mf.P("data", None), "y": mf.P("data")}
    axes = {"model": 2, "data": 2, "more": 2}
    fields = {"x": ("float32", (6,)), "y": ("int32", ())}
    options: dict[str, Any] = {"batch_size": 8, "records": RECORDS, "processes": 4}
    layout = mf.layout(axes, specs, fields, loading="device", **options)

    def one_copy(loader: mf.Loader, memory: Any, step: int) -> None:
        blocks(loader, memory, "x")[copy][0, 0] += 1

    with players(layout=layout) as job:
        corrupt(job.loaders[odd], one_copy)
        job.step()
        known = [cluster(loader).peers for loader in job.loaders]
        until(lambda: all(peers._own or peers._received for peers in known))
        text = "array 'x', index [0:4, 0:6], differs between {} at epoch 0, step 0; "
        text += "compare what these hosts read: meshfeed verify --hash"
        own, other = "devices of process 0", "processes 0 and 2"
        want = [text.format(other)] if odd else [text.format(own), text.format(other)]
        for e in job.step():
            assert isinstance(e, mf.DataLossError)
            assert any(str(e).endswith(each) for each in want), str(e)


def test_message(caplog: pytest.LogCaptureFixture) -> None:
    with players() as job:
        corrupt(job.loaders[ODD], last_bit)
        job.step()
        got = after(job)
        text = "array 'x', index [2:4, 0:6], differs between processes 0 and 2 at epoch 0, step 0; "
        text += "compare what these hosts read: meshfeed verify --hash"
        assert str(got[2]) == f"mf.Loader: {text}"
        assert str(got[1]) == f"mf.Loader: process 2, at epoch 0, step 0: {text}"
        assert str(job.step()[0]) == str(got[1])  # there is no later batch
        assert len(caplog.records) == 4  # each process logs it once


def test_another_file_version() -> None:
    """The digests find a different record that the fingerprint does not cover."""
    n = 4096
    odd = rows(n)
    odd["x"][:] += (np.arange(n) % 8 == 3)[:, None]
    options: dict[str, Any] = {"layout": plan(records=n)}
    with players(rows(n), rows(n), odd, rows(n), **options) as job:
        same_fingerprint(job)
        job.step()
        assert FOUND.fullmatch(str(after(job)[ODD]))


def same_fingerprint(job: Players) -> None:
    """Replaces the fingerprints by equal ones, as large files may have."""
    for loader in job.loaders:
        cluster(loader).state["dataset"] = "same"


def test_another_seed() -> None:
    """The digests find another seed if the agreement does not."""
    with one_odd(ODD, seed=1, shuffle=True) as job:
        for loader in job.loaders:
            cluster(loader).state.update(seed=0, order="any")
        job.step()
        assert FOUND.fullmatch(str(after(job)[ODD]))


@pytest.mark.parametrize(
    ("verify", "steps"),
    [("first", {0, 1, 2}), (3, {0, 3, 6}), ("always", set(range(8))), ("off", set[int]())],
)
def test_sampling(monkeypatch: pytest.MonkeyPatch, verify: Any, steps: set[int]) -> None:
    """All processes compare the same steps."""
    seen = watched(monkeypatch)
    with players(verify_replicas=verify, epochs=1) as job:
        for _ in range(RECORDS // 8):
            assert all(isinstance(batch, dict) for batch in job.step())
    assert seen == {p: sorted(steps) for p in range(4)}


def watched(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[int]]:
    """Records the steps that every process compares."""
    seen: dict[int, list[int]] = {p: [] for p in range(4)}
    inspect = replicas.Replicas.inspect

    def watch(self: replicas.Replicas, batch: int, stream: int, spare: int) -> None:
        seen[self._me].append(Head.from_address(batch).step)
        inspect(self, batch, stream, spare)

    monkeypatch.setattr(replicas.Replicas, "inspect", watch)
    return seen


def move_on(job: Players) -> None:
    """Takes four steps, then seeks."""
    for _ in range(4):
        job.step()
    for loader in job.loaders:
        loader.seek(epoch=0, position=32)


def test_sampling_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first steps after a seek are compared."""
    seen = watched(monkeypatch)
    with players() as job:
        move_on(job)
        for _ in range(4):
            assert all(isinstance(batch, dict) for batch in job.step())
    assert list(seen.values()) == [[0, 1, 2, 4, 5, 6]] * 4


def test_sampling_begins_anew_after_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are also if a pass takes the first batch after a seek."""
    seen = watched(monkeypatch)
    with players() as job:
        move_on(job)
        passes = [loader.one_epoch() for loader in job.loaders]
        together([lambda each=each: next(each) for each in passes])  # type: ignore[misc]
        for _ in range(4):
            assert all(isinstance(batch, dict) for batch in job.step())
        for each in passes:
            each.close()
    assert list(seen.values()) == [[0, 1, 2, 0, 4, 5, 6]] * 4


def test_sampling_goes_on_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are made twice count once, so that all processes compare the same steps."""
    seen = watched(monkeypatch)
    with players(verify_replicas=3, epochs=1, device_prefetch=2) as job:
        while job.step()[0] is not None:
            job.loaders[1]._engine.cursor._out_of_sync = True  # as after Ctrl-C
    assert [sorted(set(steps)) for steps in seen.values()] == [[0, 3, 6]] * 4


def test_nothing_is_left_behind() -> None:
    """The keys of digests are deleted after the last reader."""
    with players(verify_replicas="always", epochs=2) as job:
        for _ in range(2 * RECORDS // 8):
            assert all(isinstance(batch, dict) for batch in job.step())
        compared(job)
        assert not any("/digests/" in key for key in job.store.keys)
        # Every process compares the blocks that a lower one holds too: "all" of process 0, and two
        # blocks each of "x" and "y" of the process with the same rows.
        want = [0, 16, 16 * 5, 16 * 5]
        assert [compared_by(loader) for loader in job.loaders] == want
    assert job.store.keys == {}
    assert threads() == []


def test_nothing_shared() -> None:
    """Without shared blocks nothing is compared."""
    layout = mf.layout(
        {"data": 8}, mf.P("data"), {"y": ("int32", ())}, batch_size=8, records=64, processes=4
    )
    with players(layout=layout, verify_replicas="always") as job:
        job.step()
        assert [cluster(loader).replicas for loader in job.loaders] == [None] * 4


def test_a_batch_is_kept_until_it_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is kept until its hash is known; `next` waits only if too many are kept."""
    gate, count = threading.Semaphore(0), calls.digests

    def digests(batch: int, tensors: Sequence[int]) -> list[bytes]:
        gate.acquire()
        return count(batch, tensors)

    monkeypatch.setattr(calls, "digests", digests)
    with players(verify_replicas="always") as job:
        for _ in range(replicas.UNHASHED):
            job.step()
        assert [loader.stats()["live_batches"] for loader in job.loaders] == [2, 2, 2, 2]
        late = threading.Thread(target=job.step)
        late.start()
        late.join(0.05)
        waits = late.is_alive()
        gate.release(100)
        late.join(HANG)
        assert waits
        compared(job)
        assert [compared_by(loader) for loader in job.loaders] == [0, 3, 15, 15]
        assert all(isinstance(batch, dict) for batch in job.step())


def test_a_bound_on_memory_waits_for_the_hash() -> None:
    """With a bound on memory no batch is kept longer than the program keeps it."""
    with players(verify_replicas="always", max_host_bytes=1 << 20) as job:
        for _ in range(RECORDS // 8):
            assert all(isinstance(batch, dict) for batch in job.step())
            assert max(loader.stats()["live_batches"] for loader in job.loaders) == 0


def test_passes_at_the_same_position(caplog: pytest.LogCaptureFixture) -> None:
    """Each of several passes over one epoch is compared separately."""
    with players(verify_replicas="always") as job:
        job.step()
        unused = [job.loaders[p].one_epoch() for p in (0, 2)]  # they do not count

        def evaluate(loader: mf.Loader) -> None:
            for _ in range(4):
                assert sum(1 for _ in loader.one_epoch()) == RECORDS // 8

        together([lambda loader=loader: evaluate(loader) for loader in job.loaders])  # type: ignore[misc]
        compared(job)
        steps = 1 + 4 * RECORDS // 8
        want = [0, steps, 5 * steps, 5 * steps]
        assert [compared_by(loader) for loader in job.loaders] == want
        for evaluation in unused:
            evaluation.close()
    assert caplog.records == []


def test_slow_writer(caplog: pytest.LogCaptureFixture) -> None:
    """A process that gets no digests in time logs it, and goes on."""
    with players(name="train") as job:
        job.step()
        compared(job)
        odd = job.loaders[ODD]
        found = cluster(odd).replicas
        assert found is not None
        found._seconds = 0.5  # from here on, because the agreement may take longer
        assert next(iter(odd))
        found._batches.join()
        logged = [r.getMessage() for r in caplog.records]
        assert next(iter(odd))
    want = "loader 'train': epoch 0, step 1 was not compared with process 0, which sent no digests "
    assert logged == [want + "within 0.5 s"]


@pytest.mark.parametrize(
    "size", [1, 3, 16, 17, 128, 129, 240, 241, 1 << 20, (1 << 20) + 1, 3 << 20]
)
def test_digest_is_xxh3(size: int) -> None:
    """The hash equals the reference implementation of XXH3-128."""
    xxhash = pytest.importorskip("xxhash", reason="comes with datasets, which make setup installs")
    data = np.random.default_rng(size).integers(0, 256, (1, size), np.uint8)
    with mf.from_arrays({"x": data}) as ds, mf.Loader(ds, batch_size=1) as loader:
        block = next(iter(loader))["x"]
        assert isinstance(block.base, np.ndarray)
        owner: Any = block.base.base
        batch = owner.release._as_parameter_.value
        assert calls.digests(batch, [0]) == [xxhash.xxh3_128_digest(data.tobytes())]


@pytest.fixture
def silent_departure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a process depart without a message, so that the others go on."""
    monkeypatch.setattr(peers.Peers, "depart", lambda _: None)


@pytest.mark.usefixtures("silent_departure")
def test_a_writer_leaves(caplog: pytest.LogCaptureFixture) -> None:
    """The digests of a departed process are not waited for."""
    with players(verify_replicas="always", name="train") as job:
        job.step()
        compared(job)
        job.loaders.pop(0).close()
        for _ in range(replicas.UNCOMPARED + 20):  # more than may wait
            assert all(isinstance(batch, dict) for batch in job.step())
        compared(job)
        assert compared_by(job.loaders[0]) == 1  # what it shared with process 0
        assert compared_by(job.loaders[2]) == 1 + 4 * (replicas.UNCOMPARED + 21)
    text = "loader 'train': epoch 0, step 1 was not compared with process 0, which has closed the "
    text += "loader; nor will later ones be"
    assert [r.getMessage() for r in caplog.records] == [text] * 3


@pytest.mark.usefixtures("silent_departure")
@pytest.mark.parametrize("gone", [2, 3])
def test_a_reader_leaves(gone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No digest is kept for a departed process."""
    monkeypatch.setattr(worker, "OLD", 0.0)
    with players(verify_replicas="always") as job:
        job.step()
        compared(job)
        job.loaders.pop(gone).close()
        for _ in range(20):
            job.step()
        compared(job)


def test_the_store_stays_small(monkeypatch: pytest.MonkeyPatch, deep: bool) -> None:
    """The number of keys is bounded, however long a run is.

    Each step compares and has a barrier, so a key that one step in a hundred leaves would show.
    """
    monkeypatch.setattr(replicas, "UNCOMPARED", 4)
    monkeypatch.setattr(barrier, "STILL", 0.0)  # the main thread waits for these loops

    class Counted(Memory):
        most = 0

        def set(self, key: str, value: bytes) -> None:
            super().set(key, value)
            self.most = max(self.most, len(self.keys))

    store = Counted()
    with players(verify_replicas="always", coordinator=store) as job:
        for _ in range(4000 if deep else 60):
            job.step()
        compared(job)
        # The terms, the verdict and three answers; an arrival, a heartbeat and, after some seconds,
        # a report of each of the four processes; the last decision, two more by number, and two
        # wake keys.
        assert len(store.keys) <= 5 + 12 + 5
    # Two writers are ahead of the slowest reader by what waits in its queues, and one of them has
    # three readers. Two of these have said that they are ready.
    assert store.most < 24 + 4 * (replicas.UNCOMPARED + replicas.UNHASHED + 2)


def test_a_store_that_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    """A transient store error does not end the comparison."""

    class Weak(Memory):
        fails = 0

        def get(self, key: str, seconds: float) -> bytes | None:
            if self.fails and "/digests/" in key:
                self.fails -= 1
                raise ConnectionError("gone")
            return super().get(key, seconds)

    store = Weak()
    with players(verify_replicas="always", coordinator=store, name="train") as job:
        job.step()
        compared(job)
        before = compared_by(job.loaders[ODD])
        store.fails = 3  # one for each reader
        job.step()
        for loader in job.loaders:
            cluster(loader).replicas._batches.join()  # type: ignore[union-attr]
        job.step()
        for loader in job.loaders:
            cluster(loader).replicas._batches.join()  # type: ignore[union-attr]
        assert compared_by(job.loaders[ODD]) == before + 5
    text = "loader 'train': epoch 0, step 1 and what came since were not compared: gone"
    assert [r.getMessage() for r in caplog.records] == [text] * 3
