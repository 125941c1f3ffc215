"""Measures the cost of comparing replicas: processes 0 and 2, and 1 and 3, hold the same rows.

Run as a module it is one process of the job; `measure` starts them. Loops without comparisons, with
the default and with all steps compared take turns. The default compares three steps, which cost
less than the noise of a loop. So the cost of a comparison comes from the loop that compares all.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from tests.bench.cases import CASES
from tests.bench.distributed.play import meet
from tests.bench.pieces import child
from tests.distributed.job import Job
from tests.distributed.process import joined

CASE = CASES[2]
MODES = ("off", "first", "always")  # of verify_replicas
STEPS = 1000
HANG = 300  # seconds


def measure(folder: Path, devices: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Returns the medians of all processes and rounds for every mode."""
    child("cases", CASE.name, folder)
    with tempfile.TemporaryDirectory() as scratch:
        order = {"data": str(folder), "rounds": rounds}
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        with Job("tests.bench.distributed.replicas", devices, Path(scratch)) as job:
            job.wait(HANG)
        texts = [(Path(scratch) / f"replicas-{p}.json").read_text() for p in range(len(devices))]
    processes = [json.loads(text) for text in texts]
    modes = {mode: summary([row for p in processes for row in p[mode]]) for mode in MODES}
    return {"steps": STEPS, "modes": modes}


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """Returns the median of every number."""
    return {name: median(row[name] for row in rows) for name in rows[0]}


def run(ds: mf.Dataset, mode: str) -> dict[str, float]:
    """Runs some steps; returns seconds of the first batch, and of a step by clock and processor.

    The close of the loader belongs to the steps, because it waits for comparisons under way.
    """
    mesh = Mesh(np.array(jax.devices()).reshape(2, -1), ("model", "data"))
    options: dict[str, Any] = {"batch_size": CASE.batch, "shuffle": True, "epochs": -1}
    options["verify_replicas"] = mode
    with mf.Loader(ds, mesh, PartitionSpec("data"), **options) as loader:
        loop, start = iter(loader), time.perf_counter()
        jax.block_until_ready(next(loop))
        first = time.perf_counter() - start
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            jax.block_until_ready(next(loop))
        size = loader.stats()["bytes"] / loader.stats()["batches"]
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    return {"first": first, "step": wall / STEPS, "cpu": used / STEPS, "bytes": size}


def main() -> None:
    with joined() as place:
        order = json.loads((place.folder / "order.json").read_text())
        rows: dict[str, list[Any]] = {mode: [] for mode in MODES}
        with mf.open(CASE.file(Path(order["data"]))) as ds:
            for r in range(-1, order["rounds"]):  # the first round does not count
                for mode in MODES:
                    meet(f"replicas/{r}/{mode}")
                    result = run(ds, mode)
                    if r >= 0:
                        rows[mode].append(result)
        (place.folder / f"replicas-{place.rank}.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
