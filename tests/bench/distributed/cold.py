"""Counts what a job reads from the disk if its file is not in memory.

Run as a module it is one process of the job; `measure` starts them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import jax

import meshfeed as mf
from tests.bench.cases import CASES, MESHES, Case, named, shardings
from tests.bench.disk import counters, drop
from tests.distributed.job import Job
from tests.distributed.process import joined

CASE = CASES[2]
STEPS = 200
HANG = 110  # seconds


def measure(folder: Path, devices: tuple[int, ...]) -> list[dict[str, Any]]:
    """Drops the file's pages, runs a job, and returns what each process read and gathered."""
    path = CASE.file(folder)
    stayed = drop(path)
    with tempfile.TemporaryDirectory() as scratch:
        order = {"case": CASE.name, "data": str(folder)}
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        with Job("tests.bench.distributed.cold", devices, Path(scratch)) as job:
            job.wait(HANG)
        texts = [(Path(scratch) / f"disk-{p}.json").read_text() for p in range(len(devices))]
    return [json.loads(text) | {"cached_before": stayed} for text in texts]


def read(case: Case, path: Path) -> dict[str, Any]:
    """Runs the loop for some steps, and counts the bytes that the kernel read for it."""
    split = shardings(case, next(iter(MESHES)))
    before = counters()
    options: dict[str, Any] = {"batch_size": case.batch, "shuffle": True}
    with mf.open(path) as ds, mf.Loader(ds, None, dict(split), **options) as loader:
        for _, batch in zip(range(STEPS), loader, strict=False):
            jax.block_until_ready(batch)
        stats = loader.stats()
    after = counters()
    return {
        "steps": STEPS,
        "gathered": stats["bytes"] / stats["batches"],
        "file": path.stat().st_size,
        **{name: after[name] - before[name] for name in ("rchar", "read_bytes")},
    }


def main() -> None:
    with joined() as place:
        order = json.loads((place.folder / "order.json").read_text())
        case = named(order["case"])
        result = read(case, case.file(Path(order["data"])))
        (place.folder / f"disk-{place.rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
