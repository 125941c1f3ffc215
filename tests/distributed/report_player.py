"""A process of a job in which one process is late, and others report it.

Each scene is a loop of a few steps. The file `report` gets, for every scene, the report that this
process saw. The scenes of `SCRIPTED` run on a clock of their own: the processes, their messages and
their steps are real, and the measured times come from the script. So the report is the same on
every machine. In the scene "program" the times are real: the steps of the processes wait for each
other in a collective.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from meshfeed._feed import batches, clock, joined
from meshfeed._jobs.keys import SLICE
from meshfeed._jobs.stalls import Measured
from tests.distributed.play import write
from tests.distributed.process import Place
from tests.distributed.process import joined as job

BATCH, STEPS = 6, 12
MEASURED = STEPS - 1  # the first two of the batches that a scene takes are left out
LATE = 1  # the process that is late
HANG = 100.0  # seconds
MS = 1_000_000  # nanoseconds
P = PartitionSpec


@dataclass(frozen=True)
class Times:
    """The times of a batch, in milliseconds.

    Attributes:
        wait: for the process's own input.
        peers: for the other processes, before the batch.
        step: the rest.
    """

    wait: int
    peers: int
    step: int


# The usual times, and the times of the late process.
SCRIPTED = {
    "late step": (Times(wait=1, peers=29, step=12), Times(wait=1, peers=0, step=41)),
    "late input": (Times(wait=1, peers=0, step=41), Times(wait=30, peers=0, step=12)),
    "alike": (Times(wait=1, peers=0, step=41), Times(wait=1, peers=0, step=41)),
}


@dataclass
class Script:
    """A clock that the loop itself moves.

    Attributes:
        now: nanoseconds.
        waited: nanoseconds for the process's input.
    """

    times: Times
    now: int = 0
    waited: int = 0

    def follow(self, loader: mf.Loader[Any]) -> None:
        """Makes a loader measure the times of the script."""
        cursor = loader._engine.cursor
        assert isinstance(cursor, joined.JoinedCursor)
        meet, fetch, stats = cursor._meet, cursor._fetch, cursor.stats

        def meet_late(cluster: Any) -> None:
            meet(cluster)
            self.now += self.times.peers * MS

        def fetch_late(*, wait: bool) -> Any:
            self.now += self.times.wait * MS
            self.waited += self.times.wait * MS
            return fetch(wait=wait)

        def counted() -> Measured:
            built = {"build_ns": self.waited, "gather_ns": self.waited, "storage_ns": self.waited}
            return {**stats(), **built, "decode_ns": 0, "wait_ns": self.waited}

        cursor._meet, cursor._fetch, cursor.stats = meet_late, fetch_late, counted  # type: ignore[method-assign]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Makes loops read the clock of the script."""
        with ExitStack() as stack:
            for module in (batches, clock, joined):
                stack.enter_context(patch.object(module, "now", lambda: self.now))
            yield


@contextmanager
def loader_of(name: str, verify: str = "first") -> Iterator[mf.Loader[Any]]:
    """Makes a loader over all processes. It is open until all have left the block."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    options: dict[str, Any] = {"verify_replicas": verify, "late_after": 3 * SLICE, "name": name}
    with (
        mf.from_arrays({"n": np.arange(2 * BATCH * STEPS, dtype=np.int32)}) as ds,
        mf.Loader(ds, mesh, {"n": P("data")}, batch_size=BATCH, epochs=-1, **options) as loader,
    ):
        yield loader
        meet(f"{name}-end")


def meet(name: str) -> None:
    """Waits for the other processes."""
    from meshfeed._jax.runtime import coordination_client

    coordination_client().wait_at_barrier(name, int(1000 * HANG))


def scripted(place: Place, name: str) -> dict[str, Any]:
    """Returns the report on a scene, once all processes have published all their batches."""
    script = Script(SCRIPTED[name][place.rank == LATE])
    with loader_of(name.replace(" ", "-")) as loader, script.running():
        script.follow(loader)
        for n, _ in enumerate(loader):
            if n == STEPS:
                break
            script.now += script.times.step * MS
        late = time.monotonic() + HANG
        while True:
            report = loader.report(all_processes=True)
            if [row.batches for row in report.processes] == [MEASURED] * place.processes:
                return report.to_dict()
            assert time.monotonic() < late, report
            time.sleep(0.05)


@jax.jit
def total(rows: jax.Array) -> jax.Array:
    """Adds the rows of all processes, in a computation that JAX does not run on this thread."""
    x = jnp.ones((128, 128)) * rows.sum()
    for _ in range(8):
        x = jnp.tanh(x @ x)
    return x.sum()


def program(place: Place) -> dict[str, Any]:
    """Returns the report on a job in which a process works alone before its collective.

    The loops end when all processes name the same process, or at a bound for hangs.
    """
    late = time.monotonic() + HANG
    with loader_of("program", "off") as loader:
        for n, batch in enumerate(loader):
            if place.rank == LATE:
                time.sleep(0.03)  # its work
            float(total(batch["n"]))
            if n % 25 == 24:
                report = loader.report(all_processes=True)
                known = report.process is not None or time.monotonic() > late
                if ended(f"program-{n}", place, known=known):
                    return report.to_dict()
    raise AssertionError("the loader has no end")


def ended(name: str, place: Place, *, known: bool) -> bool:
    """Returns whether all processes have their report."""
    from meshfeed._jax.runtime import coordination_client

    client = coordination_client()
    client.key_value_set(f"{name}/{place.rank}", str(int(known)))
    meet(name)
    return all(found == "1" for _, found in client.key_value_dir_get(name))


def silent() -> dict[str, Any]:
    """Returns the report on a job before its processes agree."""
    with loader_of("silent") as loader:
        return loader.report(all_processes=True).to_dict()


if __name__ == "__main__":
    with job() as place:
        found = {"silent": silent(), "program": program(place)}
        for name in SCRIPTED:
            found[name] = scripted(place, name)
        write(place, "report", found)
