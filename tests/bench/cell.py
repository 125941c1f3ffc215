"""One warm cell: a case from memory or from a file on a mesh, all loops in one process.

python -m tests.bench.cell CASE SOURCE MESH FOLDER ROUNDS
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import meshfeed as mf
from tests.bench import floor, gates, grain, measure, probe, turns
from tests.bench.cases import Case, Data, named, shardings

SECONDS = 0.06  # of each loop in each round, closed and pipelined
GRAIN_EVERY = 3  # rounds: its batches take many times as long


class Cell:
    """The data of a cell, and a way to make a loader over it."""

    def __init__(self, case: Case, source: str, mesh: str, folder: Path) -> None:
        self.case = case
        self.split = shardings(case, mesh)
        self.path = case.file(folder)
        self._memory = source == "memory"
        self.data: Data = case.make() if self._memory else case.mapped(self.path)
        self.dataset = self.open()

    def open(self) -> mf.Dataset:
        return mf.from_arrays(self.data) if self._memory else mf.open(self.path)

    def make(
        self, dataset: mf.Dataset | None = None, *, epochs: int = -1, batch: int | None = None
    ) -> mf.Loader:
        return mf.Loader(
            dataset or self.dataset,
            None,
            self.split,
            batch_size=batch or self.case.batch,
            shuffle=True,
            epochs=epochs,
        )


def run(case: str, source: str, mesh: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Measures one cell and returns its numbers, with times in microseconds."""
    cell = Cell(named(case), source, mesh, folder)
    first = measure.first_batch(cell.open, cell.make)
    gates.check(cell.make, cell.case, cell.data)
    costs = _costs(cell)
    loader = cell.make()
    times = _times(cell, loader, rounds)
    loader.close()
    return {
        "rounds": rounds,
        "batch": cell.case.batch,
        "batch_bytes": cell.case.batch_bytes,
        "first": first,
        "costs": costs,
        "times": times,
    }


def _costs(cell: Cell) -> dict[str, Any]:
    """Measures the allocations of a whole batch and of a quarter of it."""
    out: dict[str, Any] = {}
    for name, batch in (("whole", cell.case.batch), ("quarter", cell.case.batch // 4)):
        with cell.make(batch=batch) as loader:
            batches = iter(loader)
            out[name] = {
                "faults": measure.faults_per_batch(batches),
                "allocated": measure.allocated(batches),
            }
    loop = probe.plain(cell.data, cell.case, cell.split)
    out["probe"] = {
        "faults": measure.faults_per_batch(loop),
        "allocated": measure.allocated(loop),
    }
    return out


def _times(cell: Cell, loader: mf.Loader, rounds: int) -> dict[str, Any]:
    batches = iter(loader)
    case = cell.case

    def whole(name: str, **more: Any) -> turns.Stretch:
        return turns.loop(name, loops[name], case.batch, SECONDS, **more)

    def waits() -> dict[str, float]:
        return {"wait": loader.stats()["wait_seconds"]}

    loops = {
        "meshfeed": batches,
        "probe": probe.plain(cell.data, case, cell.split),
        "aligned": probe.aligned(cell.data, case, cell.split),
        "grain": grain.loop(cell.data, case, cell.split),
    }
    for loop in loops.values():
        gates.same_end_point(next(loop), case, cell.data, cell.split)
    bare = floor.Floor(next(batches))
    gather = floor.Gather(cell.dataset, loader.layout)
    stretches = {
        "meshfeed": whole("meshfeed", sums=waits),
        "probe": whole("probe"),
        "aligned": whole("aligned"),
        "F": lambda: {"F": turns.closed(bare, SECONDS)},
        "among": lambda: floor.among(batches, bare, SECONDS),
        "G": lambda: gather.stretch(SECONDS),
        "both": lambda: floor.both(gather, bare, SECONDS),
        "grain": turns.seldom(GRAIN_EVERY, whole("grain", skip=1)),
    }
    samples = turns.take_turns(stretches, rounds)
    gather.loader.close()
    return {name: turns.summary(parts) for name, parts in samples.items()}


if __name__ == "__main__":
    case, source, mesh, folder, rounds = sys.argv[1:]
    print(json.dumps(run(case, source, mesh, Path(folder), int(rounds))))
