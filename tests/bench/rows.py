"""G against `np.take(..., out=, mode="clip")` of the same rows, by the size of a row.

    python -m tests.bench.rows MEGABYTES ROUNDS [SIZE...]

Both write into three buffers in turn. A loop that hands batches over has to: JAX on CPU aliases
the memory, so a batch may not be written while anybody reads it, and the next one is under way.
`np.take` into one and the same buffer, which no loader can do, stands beside it. Each side runs
in stretches of its own, so that its buffers and nobody else's are in the caches.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import meshfeed as mf
from tests.bench import turns
from tests.bench.probe import aligned_bytes

SIZES = [4, 8, 16, 32, 52, 64, 104, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 24576, 49152]
BATCH_BYTES = 3 << 20
SECONDS = 0.012  # of a stretch, and at least LEAST batches
LEAST = 12
SKIP = 4

Array = np.ndarray[Any, Any]
Step = Callable[[], object]


def run(megabytes: int, rounds: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Gives, for every size of row, the microseconds of a batch of about 3 MB."""
    whole = np.random.default_rng(0).integers(0, 256, megabytes << 20, np.uint8)
    return [_size(whole, size, rounds) for size in sizes]


def _size(whole: Array, size: int, rounds: int) -> dict[str, Any]:
    count = len(whole) // size
    array = whole[: count * size].view(np.int32).reshape(count, size // 4)
    batch = max(8, min(4096, BATCH_BYTES // size, count // 4))
    loader = mf.Loader(mf.from_arrays({"x": array}), batch_size=batch, shuffle=True, epochs=-1)
    ring = [aligned_bytes(batch * size).view(np.int32).reshape(batch, size // 4) for _ in range(3)]
    stretches = {
        "G": lambda: {"G": [_gather(loader)]},
        "take": lambda: {"take": [_each(_takes(loader, array, ring))]},
        "one": lambda: {"one": [_each(_takes(loader, array, ring[:1]))]},
        "memcpy": lambda: {"memcpy": [_each(_copies(loader, array, ring))]},
    }
    samples = turns.take_turns(stretches, rounds)
    loader.close()
    times = {name: turns.summary(parts) for name, parts in samples.items()}
    return {"size": size, "rows": batch, "times": times}


def _gather(loader: mf.Loader) -> float:
    """Gives the microseconds of a gather while its caller does nothing but take."""
    batches, end = iter(loader), time.perf_counter() + SECONDS
    for _ in range(SKIP):
        next(batches)
    before, n = loader.stats(), 0
    while n < LEAST or time.perf_counter() < end:
        next(batches)
        n += 1
    after = loader.stats()
    made = sum(after[k] - before[k] for k in ("batches", "queued"))
    return (after["gather_seconds"] - before["gather_seconds"]) / made * 1e6


def _each(steps: Iterator[Step]) -> float:
    """Gives the mean microseconds of a step; what prepares a step is not timed."""
    for _ in range(SKIP):
        next(steps)()
    times: list[float] = []
    while len(times) < LEAST or sum(times) < SECONDS * 1e6:
        step = next(steps)
        start = time.perf_counter_ns()
        step()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return float(np.mean(times))


def _takes(loader: mf.Loader, array: Array, ring: list[Array]) -> Iterator[Step]:
    """Takes the records of the loader's batches of half an epoch later, so that none is cached."""
    away = len(array) // 2
    for out, records in zip(itertools.cycle(ring), _records(loader, away), strict=False):
        yield functools.partial(np.take, array, records, axis=0, out=out, mode="clip")


def _copies(loader: mf.Loader, array: Array, ring: list[Array]) -> Iterator[Step]:
    """Copies as many bytes from one place after another of the data, as a batch has."""
    batch = len(ring[0])
    for out, records in zip(itertools.cycle(ring), _records(loader, 0), strict=False):
        source = array[min(int(records[0]), len(array) - batch) :].ctypes.data
        yield functools.partial(ctypes.memmove, out.ctypes.data, source, out.nbytes)


def _records(loader: mf.Loader, away: int) -> Iterator[Array]:
    """Gives the records of batches that are away positions from the loader's own."""
    step = loader.steps_per_epoch
    rows = len(loader.records(0, 0))
    for number in itertools.count(loader.step + away // rows):
        yield loader.records(loader.epoch, number % step * rows)


if __name__ == "__main__":
    megabytes, rounds, *sizes = map(int, sys.argv[1:])
    print(json.dumps(run(megabytes, rounds, sizes or SIZES)))
