"""A loop over a file without its pages in memory, in its own process.

    python -m tests.bench.cold CASE LOOP FOLDER SECONDS EPOCHS

Drops the file's pages, then runs the loop for SECONDS or for EPOCHS (0: no bound), and counts from
the opening of the file. `limits` can limit the memory of this process. The kernel counts the bytes
that came from the disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax
import numpy as np

import meshfeed as mf
from tests.bench import probe
from tests.bench.cases import MESHES, Case, named, shardings
from tests.bench.disk import cached_part, counters, drop


def run(name: str, loop: str, folder: Path, seconds: float, epochs: int) -> dict[str, Any]:
    """Returns rows per second, percentiles of `next`, CPU seconds, and bytes from the disk."""
    case = named(name)
    path = case.file(folder)
    split = shardings(case, next(iter(MESHES)))
    warm_up(case, split)
    stayed = drop(path)
    start = began = time.perf_counter()
    disk, cpu = counters()["read_bytes"], time.process_time()
    most = epochs * (case.rows // case.batch) or sys.maxsize
    batches = begin(loop, path, case, split)
    times: list[float] = []
    while len(times) < most and start < began + seconds:
        jax.block_until_ready(next(batches))
        times.append((time.perf_counter() - start) * 1e3)
        start = time.perf_counter()
    rows = len(times) * case.batch
    return {
        "rows": rows,
        "epochs": rows / case.rows,
        "rows_per_second": rows / (start - began),
        "first_ms": times[0],  # includes opening the file and making the loop
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "cpu_per_million": (time.process_time() - cpu) / rows * 1e6,
        "disk_mb": (counters()["read_bytes"] - disk) / 1e6,
        "rows_mb": len(times) * case.batch_bytes / 1e6,
        "file_mb": path.stat().st_size / 1e6,
        "cached_before": stayed,
        "cached_after": cached_part(path),
    }


def begin(loop: str, path: Path, case: Case, split: dict[str, Any]) -> Iterator[Any]:
    """Opens the file and makes a loop over it."""
    if loop == "probe":
        return probe.plain(case.mapped(path), case, split)
    dataset = mf.open(path)
    return iter(mf.Loader(dataset, None, split, batch_size=case.batch, shuffle=True, epochs=-1))


def warm_up(case: Case, split: dict[str, Any]) -> None:
    """Starts JAX, so that its start does not count for a loop."""
    shape = {case.field: (case.batch, *case.shape), "label": (case.batch,)}
    batch = {name: np.zeros(shape[name], np.int32) for name in split}
    jax.block_until_ready(jax.device_put(batch, split))


if __name__ == "__main__":
    case, loop, folder, seconds, epochs = sys.argv[1:]
    print(json.dumps(run(case, loop, Path(folder), float(seconds), int(epochs))))
