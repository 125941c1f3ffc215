"""Measures the cost of comparing replicas: processes 0 and 2, and 1 and 3, hold the same rows.

Run as a module it is one process of the job; `measure` starts them. The time is counted inside the
functions, on the program's thread and on the two others, because the difference of two runs, with
and without, is smaller than their noise.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from meshfeed._jobs import options, replicas
from tests.bench.cases import CASES
from tests.bench.distributed.play import meet
from tests.bench.pieces import child
from tests.distributed.job import Job
from tests.distributed.process import joined

CASE = CASES[2]
STEPS, ROUNDS = 1000, 8
HANG = 110  # seconds


def measure(folder: Path, devices: tuple[int, ...]) -> dict[str, Any]:
    """Returns the medians of all processes and rounds, in seconds, without the first round."""
    child("cases", CASE.name, folder)
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "order.json").write_text(json.dumps(str(folder)))
        with Job("tests.bench.distributed.replicas", devices, Path(scratch)) as job:
            job.wait(HANG)
        texts = [(Path(scratch) / f"spent-{p}.json").read_text() for p in range(len(devices))]
    rows = [row for text in texts for row in json.loads(text)[1:]]
    return {name: median(row[name] for row in rows) for name in rows[0]} | {"steps": STEPS}


class Spent(dict[str, float]):
    """Seconds by their purpose."""

    def on(self, name: str, clock: Callable[[], float], function: Callable[..., Any]) -> Any:
        """Wraps a function to count its time."""

        def timed(*arguments: Any, **more: Any) -> Any:
            start = clock()
            try:
                return function(*arguments, **more)
            finally:
                self[name] = self.get(name, 0.0) + clock() - start

        return timed


def watch(spent: Spent) -> None:
    """Counts the time of comparing, on the program's thread and on the two others."""
    kind: Any = replicas.Replicas
    options.shared = spent.on("begin", time.perf_counter, options.shared)  # type: ignore[attr-defined]
    kind.__init__ = spent.on("begin", time.perf_counter, kind.__init__)
    kind.inspect = spent.on("inspect", time.perf_counter, kind.inspect)
    kind._hash = spent.on("hash", time.thread_time, kind._hash)
    kind._work = spent.on("compare", time.thread_time, kind._work)


def run(ds: mf.Dataset, spent: Spent) -> dict[str, float]:
    """Runs some steps, and returns their time and the part for comparing."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, -1), ("model", "data"))
    options: dict[str, Any] = {"batch_size": CASE.batch, "shuffle": True, "epochs": -1}
    spent.clear()
    with mf.Loader(ds, mesh, PartitionSpec("data"), **options) as loader:
        loop, start = iter(loader), time.perf_counter()
        jax.block_until_ready(next(loop))
        first = time.perf_counter() - start
        for _ in range(STEPS - 1):
            jax.block_until_ready(next(loop))
        took = time.perf_counter() - start
        size = loader.stats()["bytes"] / loader.stats()["batches"]
    return {"first": first, "step": (took - first) / (STEPS - 1), "bytes": size, **spent}


def main() -> None:
    with joined() as place:
        path = CASE.file(Path(json.loads((place.folder / "order.json").read_text())))
        spent, rows = Spent(), []
        watch(spent)
        with mf.open(path) as ds:
            for number in range(ROUNDS):
                meet(f"replicas/{number}")
                rows.append(run(ds, spent))
        (place.folder / f"spent-{place.rank}.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
