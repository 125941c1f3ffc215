"""The memory of batches: kept batches never change, and dropped batches free their memory."""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
import psutil
import pytest
from jax.sharding import PartitionSpec

import meshfeed as mf
from meshfeed._native import library
from tests.python.conftest import flushed, released
from tests.python.programs import run
from tests.python.samples import numbers

P = PartitionSpec


@contextmanager
def wide(rows: int = 64, width: int = 256, **kwargs: Any) -> Iterator[mf.Loader]:
    """Returns a loader over eight devices. Each row contains its record number."""
    records = np.arange(rows, dtype=np.int32)
    table = np.broadcast_to(records[:, None], (rows, width))
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with mf.from_arrays({"x": table, "label": records}) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=16, epochs=-1, **kwargs) as it:
            yield it


def assert_is(batch: Any, records: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(np.asarray(batch["label"]), records)
    np.testing.assert_array_equal(
        np.asarray(batch["x"]), np.broadcast_to(records[:, None], batch["x"].shape)
    )


def test_a_kept_batch_never_changes() -> None:
    with wide(shuffle=True) as it:
        loop = iter(it)
        kept, wanted = [], []
        for step in range(1000):
            state = it.state()
            batch = next(loop)
            if step in (0, 1, 7, 200, 500):
                kept.append(batch)
                wanted.append(it.records(state["epoch"], state["position"]))
        for batch, records in zip(kept, wanted, strict=True):
            assert_is(batch, records)


def test_deleted_objects_release_their_handles() -> None:
    before, known = flushed(), len(library.ends)
    for i in range(100):
        cycle: list[Any] = [mf.from_arrays({"x": np.arange(8)})]
        cycle += [cycle[0].slice(0, 4), cycle]
        del cycle
        if i % 10 == 0:
            gc.collect()
        assert len(library.ends) <= known + 64 + 2 * 10  # no entries of deleted objects pile up
    assert released(before) == before


def test_one_shard_keeps_its_batch() -> None:
    with wide() as it:
        loop = iter(it)
        shard = next(loop)["label"].addressable_shards[3].data
        for _ in range(100):
            next(loop)
        assert np.asarray(shard).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("collect", [True, False])
def test_all_batches_can_be_kept(collect: bool) -> None:
    if not collect:
        gc.disable()
    try:
        with wide() as it:
            loop = iter(it)
            batches = [next(loop) for _ in range(200)]
            for step, batch in enumerate(batches):
                assert_is(batch, np.arange(16) + 16 * (step % 4))
    finally:
        gc.enable()


def test_batches_outlive_the_loader_and_the_dataset() -> None:
    with wide() as it:
        batches = [batch for batch, _ in zip(it, range(4), strict=False)]
    assert_is(batches[3], np.arange(48, 64))


@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize("kept", [0, 2])
def test_the_memory_of_dropped_batches_is_reused(kept: int, collect: bool) -> None:
    if not collect:
        gc.disable()
    try:
        with wide(prefetch=2) as it:
            loop = iter(it)
            window: deque[Any] = deque(maxlen=kept)
            most = 0.0
            for _ in range(500):
                window.append(jax.block_until_ready(next(loop)))
                most = max(most, it.stats()["live_batches"])
            assert most <= kept + 5
            assert it.stats()["idle_batches"] <= 2 + 3
    finally:
        gc.enable()


def test_batches_in_cycles_are_collected_before_memory_grows() -> None:
    class Node:
        pass

    gc.disable()
    try:
        with wide(prefetch=2) as it:
            loop = iter(it)
            for _ in range(200):
                node: Any = Node()
                node.itself, node.batch = node, next(loop)
            del node
            assert it.stats()["live_batches"] <= 40
    finally:
        gc.enable()


def test_nothing_leaks_over_thousands_of_batches() -> None:
    process = psutil.Process()
    with wide(rows=256, width=4096) as it:  # 256 KiB a batch
        loop = iter(it)
        for _ in range(300):
            next(loop)
        before = process.memory_info().rss
        for _ in range(4000):
            next(loop)
        grown = process.memory_info().rss - before
    assert grown < 24 << 20, f"{grown >> 20} MiB more after 1 GiB of batches"


def test_many_loaders_leave_nothing_alive() -> None:
    flushed()
    lib = library.library()
    before = lib.mf_live_handles(), lib.mf_live_batches(), lib.mf_live_bytes()
    for _ in range(100):
        with numbers(40) as ds, mf.Loader(ds, batch_size=4) as it:
            next(it.one_epoch())
            next(iter(it))
    released(before[:2])
    assert (lib.mf_live_handles(), lib.mf_live_batches(), lib.mf_live_bytes()) == before


SHORT_LIVED = """
import os, random
import jax, numpy as np, psutil
from jax.sharding import PartitionSpec as P
import meshfeed as mf

kind, warm, more = os.environ["KIND"], int(os.environ["WARM"]), int(os.environ["MORE"])
draws, kept = random.Random(0), []
ds = mf.from_arrays({"x": np.zeros((256, 3000 if kind == "sizes" else 64), np.float32)})
mesh = {"mesh": mf.make_mesh({"data": -1}), "specs": P("data")} if kind == "mesh" else {}

def loaders(n):
    for _ in range(n):
        size = draws.randint(8, 128) if kind == "sizes" else 32
        with mf.Loader(ds, batch_size=size, shuffle=True, **mesh) as loader:
            kept.append(next(iter(loader)))
            if len(kept) > 4:
                kept.pop(draws.randrange(len(kept)))
            for batch in loader:
                pass
    return psutil.Process().memory_info().rss

held = [loaders(warm)] + [loaders(more // 3) for _ in range(3)]
print(*(after - before for before, after in zip(held, held[1:])))
"""


def growth(**environment: str) -> list[int]:
    """The bytes by which the process grows in each third of its loaders, after the warm-up."""
    return [int(part) for part in run(SHORT_LIVED, **environment).split()]


def test_loaders_of_other_batch_sizes_reuse_memory() -> None:
    """The memory of batches of 0.1 to 1.5 MB goes back to the system. malloc kept 40 MiB of it."""
    assert sum(growth(KIND="sizes", WARM="40", MORE="160")) < 16 << 20


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["numpy", "mesh"])
def test_the_growth_of_short_lived_loaders_ends(kind: str) -> None:
    """Go's heap, threads and JAX's caches fill in the first hundreds of loaders: about 12 MiB.

    A leak of 2 KiB a loader grows in each third. An allocator that takes one more chunk grows in
    one third.
    """
    assert min(growth(KIND=kind, WARM="600", MORE="1800", JAX_NUM_CPU_DEVICES="8")) < 1 << 20


def test_unreferenced_loaders_are_collected() -> None:
    flushed()
    before = flushed()
    for _ in range(10):
        next(iter(mf.Loader(numbers(40), batch_size=4)))
    assert released(before) == before


def test_a_memory_limit_counts_kept_batches() -> None:
    with wide(max_host_bytes=8 * 16 * 1028) as it:
        loop = iter(it)
        for _ in range(50):
            next(loop)  # a dropped batch does not count
        kept: list[Any] = []
        with pytest.raises(mf.ResourceExhaustedError, match="batches") as caught:
            kept.extend(batch for batch, _ in zip(loop, range(20), strict=False))
        assert isinstance(caught.value, MemoryError)
        del kept
        flushed()
        assert_is(next(loop), it.records(0, it.state()["position"] - 16))


def test_a_limit_waits_for_dispatched_computations() -> None:
    """Dispatched steps hold many batches, although the program has no reference to them."""

    @jax.jit
    def step(weights: jax.Array, batch: Any) -> tuple[jax.Array]:
        for _ in range(20):
            weights = weights @ weights * 1e-3 + batch["x"].sum()
        return (weights,)

    mesh = jax.make_mesh((1,), ("data",))
    weights = jax.device_put(np.ones((256, 256), np.float32), mesh.devices.flat[0])
    with numbers(64 * 16) as ds:
        with mf.Loader(ds, mesh, P(), batch_size=16, max_host_bytes=3 * 16 * 4) as it:
            steps = 0
            for batch in it:
                (weights,) = step(weights, batch)
                steps += 1
    assert steps == 64
    jax.block_until_ready(weights)  # the last steps hold their batches until then


def test_a_limit_collects_old_cycles() -> None:
    class Node:
        pass

    with wide(max_host_bytes=3 * 16 * 1028) as it:
        loop = iter(it)
        gc.disable()
        try:
            for _ in range(20):
                node: Any = Node()
                node.itself, node.batch = node, next(loop)
                gc.collect(1)  # makes it old, so that only a full collection finds it
                del node
        finally:
            gc.enable()


def test_arrays_are_released_on_another_thread() -> None:
    with wide() as it:
        batches = [batch for batch, _ in zip(it, range(8), strict=False)]
        thread = threading.Thread(target=batches.clear)
        thread.start()
        thread.join()
        flushed()
        assert it.stats()["live_batches"] <= 1


def test_device_prefetch_makes_arrays_ahead() -> None:
    with wide(device_prefetch=2, prefetch=4) as it, wide() as plain:
        ahead, loop = iter(it), iter(plain)
        for _ in range(40):
            assert_is(next(ahead), np.asarray(next(loop)["label"]))
            assert it.state() == plain.state()
