"""From a saved state to the first batch, at any position of a billion records.

    python -m tests.bench.distributed.restore FOLDER

The records are one byte each, in a sparse file of zeros. The file is open and mapped, as in a
running job. First its pages are not in memory and are read ahead in the background; then all are in
memory.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import PartitionSpec

import meshfeed as mf
from tests.bench.disk import drop

RECORDS, BATCH = 1_000_000_000, 128
EACH = 1_000_000  # records of a record batch
TRIES = 40
BOUND = 50.0  # ms


def written(folder: Path) -> Path:
    """Returns the file, written at first use."""
    path = folder / "billion.arrow"
    if path.exists():
        return path
    part = pa.record_batch({"x": pa.array(np.zeros(EACH, np.uint8))})
    scratch = path.with_suffix(".part")
    with scratch.open("wb") as raw, pa.ipc.new_file(_Holes(raw), part.schema) as file:
        for _ in range(RECORDS // EACH):
            file.write_batch(part)
    scratch.replace(path)
    return path


class _Holes:
    """A file that leaves out long runs of zeros."""

    closed = False

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def write(self, data: Any) -> int:
        data = bytes(data)
        if len(data) >= EACH and not any(data[:: EACH // 100]):
            self._raw.seek(len(data), os.SEEK_CUR)
            return len(data)
        return int(self._raw.write(data))

    def tell(self) -> int:
        return int(self._raw.tell())

    def flush(self) -> None:
        self._raw.flush()


def measure(folder: Path) -> dict[str, Any]:
    """Times `restore` to the first batch, and a new loader to its first batch."""
    path = written(folder)
    drop(path)
    mesh = jax.make_mesh((8,), ("data",))
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "seed": 0, "epochs": -1}
    rng = random.Random(0)
    last = RECORDS - RECORDS % BATCH - BATCH
    places = [0, last, RECORDS // 2, *(rng.randrange(RECORDS - BATCH) for _ in range(TRIES))]
    times: dict[str, list[float]] = {}
    with mf.open(path) as ds, mf.Loader(ds, mesh, PartitionSpec("data"), **options) as loader:
        states = [loader.state() | {"epoch": rng.randrange(100), "position": p} for p in places]
        jax.block_until_ready(next(iter(loader)))
        for pages in ("being read", "in memory"):
            for state in states:
                start = time.perf_counter()
                loader.restore(state)
                jax.block_until_ready(next(iter(loader)))
                times.setdefault(f"restore, pages {pages}", []).append(_ms(start))
                start = time.perf_counter()
                with mf.Loader(ds, mesh, PartitionSpec("data"), **options, state=state) as other:
                    jax.block_until_ready(next(iter(other)))
                times.setdefault(f"new loader, pages {pages}", []).append(_ms(start))
            np.fromfile(path, np.uint8).sum()  # every page
    rows = {name: _spread(values) for name, values in times.items()}
    size = max(len(json.dumps(state, separators=(",", ":"))) for state in states)
    return {"records": RECORDS, "tries": len(places), "state_bytes": size, "ms": rows}


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1e3


def _spread(values: list[float]) -> dict[str, float]:
    middle, above = float(np.median(values)), sum(value > BOUND for value in values)
    return {"p50": middle, "low": min(values), "high": max(values), "above": above}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
