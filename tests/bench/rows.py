"""G against `np.take(..., out=, mode="clip")` of as many rows, by the size of a row.

Both write to buffers in turn, three of them, as a loader with batches in flight has to.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

import numpy as np

import meshfeed as mf
from tests.bench.probe import aligned_bytes

SIZES = [4, 8, 16, 32, 52, 64, 104, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 24576, 49152]


def run(megabytes: int, rounds: int) -> list[dict[str, Any]]:
    """Gives, for every size of row, the median microseconds of a batch of about 3 MB."""
    whole = np.random.default_rng(0).integers(0, 256, megabytes << 20, np.uint8)
    return [_size(whole, size, rounds) for size in SIZES]


def _size(whole: np.ndarray[Any, Any], size: int, rounds: int) -> dict[str, Any]:
    count = len(whole) // size
    array = whole[: count * size].view(np.int32).reshape(count, size // 4)
    batch = max(8, min(4096, (3 << 20) // size, count // 4))
    ring = [aligned_bytes(batch * size).view(np.int32).reshape(batch, size // 4) for _ in range(3)]
    loader = mf.Loader(
        mf.from_arrays({"x": array}), batch_size=batch, shuffle=True, epochs=-1, prefetch=1
    )
    rng = np.random.default_rng(1)
    times: dict[str, list[float]] = {"G": [], "take": [], "memcpy": []}
    gathered = 0.0
    for r, delivered in zip(range(rounds), loader, strict=False):
        out = ring[r % len(ring)]
        while loader.stats()["queued"] < 1:  # nobody else runs while G or np.take is timed
            time.sleep(0.001)
        total = loader.stats()["gather_seconds"]
        if r:
            times["G"].append((total - gathered) * 1e6)
        gathered = total
        records = rng.integers(0, count, batch)  # others than G's, which lie in the cache now
        start = time.perf_counter_ns()
        np.take(array, records, axis=0, out=out, mode="clip")
        times["take"].append((time.perf_counter_ns() - start) / 1e3)
        start = time.perf_counter_ns()
        ctypes.memmove(out.ctypes.data, array.ctypes.data + r % 4 * size, out.nbytes)
        times["memcpy"].append((time.perf_counter_ns() - start) / 1e3)
        del delivered
    loader.close()
    return {"size": size, "rows": batch} | {name: float(np.median(t)) for name, t in times.items()}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
