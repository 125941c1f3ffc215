"""The gather against `np.take(..., out=, mode="clip")` of the same rows, by the size of a row.

    python -m tests.bench.rows MEGABYTES ROUNDS [SIZE...]

The gather runs twice: alone, on the thread of `np.take`, and in a loader, on another thread. All
write into three buffers in turn, as a loop does that hands batches over. JAX on CPU aliases the
memory, so a batch must not be overwritten while it is read, and the next one is gathered meanwhile.
`np.take` into one buffer, which no loader can do, is measured too. Each side runs in separate
turns, so that only its own buffers are in the caches.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import meshfeed as mf
from tests.bench import turns
from tests.bench.probe import aligned_bytes

SIZES = [4, 8, 16, 32, 52, 64, 104, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 24576, 49152]
BATCH_BYTES = 3 << 20
SECONDS = 0.012  # of a turn, of at least LEAST batches
LEAST = 12
SKIP = 4

ROOT = Path(__file__).resolve().parents[2]

Array = np.ndarray[Any, Any]
Step = Callable[[], float]  # returns its microseconds


def run(megabytes: int, rounds: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Returns, for every size of row, the microseconds of a batch of about 3 MB."""
    whole = np.random.default_rng(0).integers(0, 256, megabytes << 20, np.uint8)
    library = _library()
    return [_size(library, whole, size, rounds) for size in sizes]


def _library() -> Any:
    """Builds the gather as a library."""
    path = ROOT / "build" / "bench" / "gather.so"
    build = ["go", "build", "-buildmode=c-shared", "-o", str(path), "./tests/bench/gather"]
    subprocess.run(build, cwd=ROOT, check=True)
    library = ctypes.CDLL(str(path))
    number, address = ctypes.c_int64, ctypes.c_void_p
    library.bench_open.restype = library.bench_gather.restype = number
    library.bench_open.argtypes = address, number, number
    library.bench_gather.argtypes = number, address, number, address, number
    return library


def _size(library: Any, whole: Array, size: int, rounds: int) -> dict[str, Any]:
    count = len(whole) // size
    array = whole[: count * size].view(np.int32).reshape(count, size // 4)
    batch = max(8, min(4096, BATCH_BYTES // size, count // 4))
    loader = mf.Loader(mf.from_arrays({"x": array}), batch_size=batch, shuffle=True, epochs=-1)
    ring = [aligned_bytes(batch * size).view(np.int32).reshape(batch, size // 4) for _ in range(3)]
    alone = _Alone(library, array)
    alone.check(array, next(_records(loader, 0)), ring[0])
    stretches = {
        "gather": lambda: {"gather": [_each(alone.steps(loader, array, ring))]},
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
    """Returns the microseconds of a gather while its caller only takes batches."""
    batches, end = iter(loader), time.perf_counter() + SECONDS
    for _ in range(SKIP):
        next(batches)
    before, n = loader.stats(), 0
    while n < LEAST or time.perf_counter() < end:
        next(batches)
        n += 1
    after = loader.stats()
    took = after["gather_seconds"] - before["gather_seconds"]
    return took / (after["batches"] - before["batches"]) * 1e6


def _each(steps: Iterator[Step]) -> float:
    """Returns the mean microseconds of a step, without its preparation."""
    for _ in range(SKIP):
        next(steps)()
    times: list[float] = []
    while len(times) < LEAST or sum(times) < SECONDS * 1e6:
        times.append(next(steps)())
    return float(np.mean(times))


def _timed(function: Callable[..., object], *arguments: Any, **options: Any) -> float:
    start = time.perf_counter_ns()
    function(*arguments, **options)
    return (time.perf_counter_ns() - start) / 1e3


class _Alone:
    """The gather of an array's rows, on the caller's thread."""

    def __init__(self, library: Any, array: Array) -> None:
        self._gather = library.bench_gather
        self._number = library.bench_open(array.ctypes.data, array.size, array.shape[1])

    def __call__(self, records: Array, out: Array) -> float:
        """Gathers, and returns the microseconds without the entry into Go."""
        given = records.ctypes.data, len(records), out.ctypes.data, out.nbytes
        return float(self._gather(self._number, *given)) / 1e3

    def check(self, array: Array, records: Array, out: Array) -> None:
        """Fails unless it gathers the right rows."""
        if self(records, out) < 0 or not np.array_equal(out, array[records]):
            raise AssertionError("the gather alone gathers other rows")

    def steps(self, loader: mf.Loader, array: Array, ring: list[Array]) -> Iterator[Step]:
        """Gathers the records of the loader's batches a quarter of an epoch later."""
        away = len(array) // 4
        for out, records in zip(itertools.cycle(ring), _records(loader, away), strict=False):
            yield functools.partial(self, records, out)


def _takes(loader: mf.Loader, array: Array, ring: list[Array]) -> Iterator[Step]:
    """Takes the records of the loader's batches half an epoch later, so that none is cached."""
    away = len(array) // 2
    for out, records in zip(itertools.cycle(ring), _records(loader, away), strict=False):
        yield functools.partial(_timed, np.take, array, records, axis=0, out=out, mode="clip")


def _copies(loader: mf.Loader, array: Array, ring: list[Array]) -> Iterator[Step]:
    """Copies the bytes of a batch from successive positions of the data."""
    batch = len(ring[0])
    for out, records in zip(itertools.cycle(ring), _records(loader, 0), strict=False):
        source = array[min(int(records[0]), len(array) - batch) :].ctypes.data
        yield functools.partial(_timed, ctypes.memmove, out.ctypes.data, source, out.nbytes)


def _records(loader: mf.Loader, away: int) -> Iterator[Array]:
    """Returns the records of batches that are `away` positions from the loader's own."""
    step = loader.steps_per_epoch
    rows = len(loader.records(0, 0))
    for number in itertools.count(loader.step + away // rows):
        yield loader.records(loader.epoch, number % step * rows)


if __name__ == "__main__":
    megabytes, rounds, *sizes = map(int, sys.argv[1:])
    print(json.dumps(run(megabytes, rounds, sizes or SIZES)))
