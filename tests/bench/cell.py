"""One cell: a case from memory or from a file on a mesh, all loops interleaved in one process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import numpy as np

import meshfeed as mf
from tests.bench import gates, grain, measure, probe
from tests.bench.cases import CASES, shardings

ROUNDS = 5


def run(case_name: str, source: str, mesh: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Measures one cell and gives its numbers, times in microseconds."""
    case = next(c for c in CASES if c.name == case_name)
    data = case.make()
    path = folder / f"{case.name.replace(' ', '-')}.arrow"
    if source == "file":
        case.write(path, data)
        data = case.mapped(path)
    dataset = mf.from_arrays(data) if source == "memory" else mf.open(path)
    split = shardings(case, mesh)

    def make(epochs: int = -1) -> mf.Loader:
        return mf.Loader(dataset, None, split, batch_size=case.batch, shuffle=True, epochs=epochs)

    gates.check(make, case, data)
    first = measure.first_batch(make)
    loader = make()
    batches = iter(loader)
    grown = measure.resident_growth(lambda: measure.closed(batches, seconds))
    allocated = measure.allocated(batches)
    loops: dict[str, Iterator[Any]] = {
        "meshfeed": batches,
        "probe": probe.plain(data, case, split),
        "probe aligned": probe.aligned(data, case, split),
        "F": iter(measure.Floor(next(batches))),
    }
    result = _rounds(loops, lambda: grain.loop(data, case, split), case.batch, seconds)
    result["first_ms"] = first
    result["grown_mb"] = grown
    result["allocated"] = allocated
    result["batch_bytes"] = sum(a.nbytes for a in next(batches).values())
    stats = loader.stats()
    result["G"] = stats["gather_seconds"] / (stats["batches"] + stats["queued"]) * 1e6
    result["wait"] = stats["wait_seconds"] / stats["batches"] * 1e6
    loader.close()
    return result


def _rounds(
    loops: dict[str, Iterator[Any]],
    begin: Callable[[], Generator[Any, None, None]],
    batch: int,
    seconds: float,
) -> dict[str, Any]:
    """Runs all loops in turn, several times, closed and pipelined.

    Grain begins anew in every round, and ends with it: it reads ahead as it likes.
    """
    names = [*loops, "grain"]
    times: dict[str, list[float]] = {name: [] for name in names}
    medians: dict[str, list[float]] = {name: [] for name in names}
    flow: dict[str, list[tuple[int, float, float]]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        peer = begin()
        next(peer)
        for name, loop in [("grain", peer), *loops.items()]:
            round_ = measure.closed(loop, seconds)
            times[name] += round_
            medians[name].append(float(np.median(round_)))
            if name != "F":
                flow[name].append(measure.pipelined(loop, seconds))
            if name == "grain":
                peer.close()
    result: dict[str, Any] = {}
    for name in names:
        n, wall, cpu = (sum(part) for part in zip((0, 0, 0), *flow[name], strict=True))
        result[name] = {
            "p10": float(np.percentile(times[name], 10)),
            "p50": float(np.median(times[name])),
            "p99": float(np.percentile(times[name], 99)),
            "spread": [min(medians[name]), max(medians[name])],
            "closed_rows_per_second": batch / float(np.mean(times[name])) * 1e6,
            "rows_per_second": n * batch / max(wall, 1e-9),
            "cpu_seconds_per_million_rows": cpu / max(n * batch, 1) * 1e6,
        }
    return result


if __name__ == "__main__":
    case_name, source, mesh, folder, seconds = sys.argv[1:]
    print(json.dumps(run(case_name, source, mesh, Path(folder), float(seconds))))
