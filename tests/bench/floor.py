"""F and G: the costs of the hand-over and of the gather, alone and at the same time.

F is the bare `make_array_from_callback` calls for the leaves of a batch, over aligned buffers that
are ready. G is the gather of a batch, by the loader's own clock. A closed loop runs both at once:
it gathers the next batch while it hands this one over. `both` is such a loop with nothing else in
it, and measures F and G there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import meshfeed as mf
from tests.bench.probe import aligned_bytes

SKIP = 5  # batches that were ready when a turn began, and the first one after them


class Floor(Iterator[Any]):
    """F, as a loop."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self._leaves = [_Leaf(array) for array in batch.values()]

    def __next__(self) -> list[jax.Array]:
        return [leaf() for leaf in self._leaves]


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


class Gather:
    """G: a loader of the same layout without `jax.Array`s, and a caller that only takes batches."""

    def __init__(self, dataset: Any, layout: Any) -> None:
        self.loader = mf.Loader(
            dataset, layout=layout, process=0, shuffle=True, seed=1, epochs=-1, prefetch=2
        )
        self.batches = iter(self.loader)

    def stretch(self, seconds: float) -> dict[str, list[float]]:
        """Returns one G, and the time of one `next` without JAX, in microseconds."""
        for _ in range(SKIP):
            next(self.batches)
        before, start, n = self.done(), time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            next(self.batches)
            n += 1
        wall = time.perf_counter() - start
        return {"G": [_each(before, self.done())], "blocks": [wall / n * 1e6]}

    def done(self) -> tuple[float, float]:
        """Returns the seconds of all gathers so far, and the number of their batches."""
        stats = self.loader.stats()
        return stats["gather_seconds"], stats["batches"]


def among(
    batches: Iterator[Any], floor: Floor, seconds: float, every: int = 4
) -> dict[str, list[float]]:
    """Runs the measured loop with F in place of every fourth `next`, in microseconds.

    A loop of F alone has its code and its objects in the caches; here they are as `next` leaves
    them. F takes no batch, so the gather mostly rests meanwhile.
    """
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(every - 1):
            jax.block_until_ready(next(batches))
        start = time.perf_counter_ns()
        jax.block_until_ready(next(floor))
        times.append((time.perf_counter_ns() - start) / 1e3)
    return {"F among": times}


def both(gather: Gather, floor: Floor, seconds: float) -> dict[str, list[float]]:
    """Runs the closed loop of a gather and F, and returns both times in microseconds."""
    for _ in range(SKIP):
        next(gather.batches)
        jax.block_until_ready(next(floor))
    times = []
    before, end = gather.done(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        next(gather.batches)
        start = time.perf_counter_ns()
        jax.block_until_ready(next(floor))
        times.append((time.perf_counter_ns() - start) / 1e3)
    return {"F with G": times, "G with F": [_each(before, gather.done())]}


def _each(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Returns the microseconds of one gather between two counts."""
    return (after[0] - before[0]) / (after[1] - before[1]) * 1e6
