"""Times, processor seconds, memory and allocations of a loop."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import psutil

from tests.bench.probe import aligned_bytes


def closed(batches: Iterator[Any], seconds: float) -> list[float]:
    """Gives the microseconds of each `next` with its batch ready, one after the other."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        jax.block_until_ready(next(batches))
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def pipelined(batches: Iterator[Any], seconds: float) -> tuple[int, float, float]:
    """Gives batches, seconds and processor seconds of a loop that waits for its last batch only."""
    cpu, start, n = time.process_time(), time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        batch = next(batches)
        n += 1
    jax.block_until_ready(batch)
    return n, time.perf_counter() - start, time.process_time() - cpu


def first_batch(make: Callable[[], Any]) -> float:
    """Gives the milliseconds from construction to the first batch ready, the best of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter_ns()
        loader = make()
        jax.block_until_ready(next(iter(loader)))
        times.append((time.perf_counter_ns() - start) / 1e6)
        loader.close()
    return min(times)


def allocated(batches: Iterator[Any], rounds: int = 20) -> int:
    """Gives the most bytes that Python and NumPy allocate during one `next`."""
    most = 0
    tracemalloc.start()
    for _ in range(rounds):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        jax.block_until_ready(next(batches))
        most = max(most, tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    return most


def resident_growth(run: Callable[[], object]) -> float:
    """Gives by how many MB the process has grown after run."""
    process = psutil.Process()
    before = process.memory_info().rss
    run()
    return float(process.memory_info().rss - before) / 1e6


class Floor:
    """F: the bare `make_array_from_callback` calls, over buffers that stand ready."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self._leaves = [_Leaf(array) for array in batch.values()]

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield [leaf() for leaf in self._leaves]


class _Leaf:
    """One array, with the aligned view for each call of its callback, in the order of the calls."""

    def __init__(self, array: Any) -> None:
        self._shape, self._sharding, self._dtype = array.shape, array.sharding, array.dtype
        self._views: list[np.ndarray[Any, Any]] = []
        made: dict[Any, np.ndarray[Any, Any]] = {}

        def record(index: Any) -> np.ndarray[Any, Any]:
            key = tuple((s.start, s.stop) for s in index)
            if key not in made:
                shard = array.sharding.shard_shape(array.shape)
                size = int(np.prod(shard)) * array.dtype.itemsize
                made[key] = aligned_bytes(size).view(array.dtype).reshape(shard)
            self._views.append(made[key])
            return made[key]

        jax.make_array_from_callback(self._shape, self._sharding, record, dtype=self._dtype)

    def __call__(self) -> jax.Array:
        views = iter(self._views)
        return jax.make_array_from_callback(
            self._shape, self._sharding, lambda _: next(views), dtype=self._dtype
        )
