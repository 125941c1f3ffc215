"""A process of a job in which one process is late, and others report it.

Each scene is a loop of a few steps. The file `report` gets, for every scene, the report that this
process saw.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from meshfeed._jobs.keys import SLICE
from tests.distributed.play import write
from tests.distributed.process import Place, joined

BATCH, STEPS = 6, 12
HANG = 100.0  # seconds
P = PartitionSpec


@contextmanager
def looped(name: str, step: float, verify: str) -> Iterator[mf.Loader[Any]]:
    """Runs a loop with a step of some seconds. The loader is open until all have left the block."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    options: dict[str, Any] = {"verify_replicas": verify, "late_after": 3 * SLICE, "name": name}
    with (
        mf.from_arrays({"n": np.arange(2 * BATCH * STEPS, dtype=np.int32)}) as ds,
        mf.Loader(ds, mesh, {"n": P("data")}, batch_size=BATCH, epochs=-1, **options) as loader,
    ):
        for n, _ in enumerate(loader):
            if n == STEPS:
                break
            time.sleep(step)
        yield loader
        meet(f"{name}-end")


def meet(name: str) -> None:
    """Waits for the other processes."""
    from meshfeed._jax.runtime import coordination_client

    coordination_client().wait_at_barrier(name, int(1000 * HANG))


def seen(loader: mf.Loader[Any], processes: int) -> dict[str, Any]:
    """Returns the report on the job, once all processes have published all their batches."""
    late = time.monotonic() + HANG
    while True:
        report = loader.report(all_processes=True)
        rows = report.processes
        if len(rows) == processes and min(row.batches for row in rows) >= STEPS - 2:
            return report.to_dict()
        assert time.monotonic() < late, report
        time.sleep(0.05)


def silent(place: Place) -> dict[str, Any]:
    """Returns the report on a job whose processes have not agreed yet."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    with (
        mf.from_arrays({"n": np.arange(64, dtype=np.int32)}) as ds,
        mf.Loader(ds, mesh, {"n": P("data")}, batch_size=BATCH) as loader,
    ):
        report = loader.report(all_processes=True).to_dict()
        meet("silent")
    return report


if __name__ == "__main__":
    with joined() as place:
        found = {"silent": silent(place)}
        for name, usual, late, verify in (("late", 0, 0.3, "always"), ("alike", 0.2, 0.2, "first")):
            step = late if place.rank == 1 else usual
            with looped(name, step, verify) as loader:
                found[name] = seen(loader, place.processes)
        write(place, "report", found)
