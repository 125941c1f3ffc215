"""A process of a run that is stopped, killed or shrunk, and goes on.

What it is to do stands in `folder/orders.json`. Which rows of which batch its devices got goes
to `folder/log-rank.jsonl`, a line per step, before the next step begins; truth is the business
of `tests.distributed.test_elastic`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.distributed.data import BATCH
from tests.distributed.process import Place, joined

MOST = 100_000  # steps: those of a loop that is ended from outside


def mesh_of(devices: list[Any]) -> Mesh:
    return Mesh(np.array(devices), ("data",))


def note(log: Any, before: dict[str, Any], labels: jax.Array) -> None:
    """Writes down where the batch stands, and what every device of this process got."""
    rows = {
        shard.index[0].start or 0: np.asarray(shard.data) for shard in labels.addressable_shards
    }
    line = {"epoch": before["epoch"], "position": before["position"]}
    log.write(json.dumps(line | {"rows": {k: v.tolist() for k, v in rows.items()}}) + "\n")
    log.flush()


def batches(loader: mf.Loader, log: Any, steps: int) -> Iterator[int]:
    """Takes batches, writes them down, and says after each how many they are."""
    loop = iter(loader)
    for step in range(1, steps + 1):
        before = loader.state()
        note(log, before, next(loop)["label"])
        yield step


def run(place: Place, loader: mf.Loader, log: Any, steps: int) -> None:
    """Runs some steps, and saves."""
    for _ in batches(loader, log, steps):
        pass
    loader.save_state(place.folder / "state.json")


def preempted(place: Place, loader: mf.Loader, log: Any, _: int) -> None:
    """Runs until JAX says that a SIGTERM has come to one of the processes, and saves."""
    for step in batches(loader, log, MOST):
        if step == 5:
            (place.folder / f"ran-{place.rank}").touch()
        if multihost_utils.reached_preemption_sync_point(step):
            loader.save_state(place.folder / "state.json")
            return
    raise AssertionError("nobody sent a SIGTERM")


def killed(place: Place, loader: mf.Loader, log: Any, _: int) -> None:
    """Runs until the job is killed, and saves at every fourth step."""
    for step in batches(loader, log, MOST):
        if step % 4 == 0:
            loader.save_state(place.folder / "state.json")
        if step == 6:
            (place.folder / f"ran-{place.rank}").touch()
            wait_for_the_end()


def survive(place: Place, loader: mf.Loader, log: Any, steps: int) -> None:
    """Runs, loses processes, and goes on with the devices that are left."""
    client: Any = distributed.global_state.client  # which has no public name
    for step in batches(loader, log, steps):
        if step == 4:
            (place.folder / f"ran-{place.rank}").touch()
            if place.rank == place.processes - 1:
                wait_for_the_end()
            alive: dict[int, Any] = client.get_live_nodes(list(range(place.processes)))
            left = [d for d in jax.devices() if d.process_index in alive]
            loader.remesh(mesh_of(left))
    (place.folder / f"survived-{place.rank}").write_text(json.dumps(sorted(alive)))
    client.wait_at_barrier("done", 60_000, sorted(alive))


def wait_for_the_end() -> None:
    """Waits for the kill that ends this process."""
    while True:
        os.read(os.pipe()[0], 1)


PLAYS = {"run": run, "preempted": preempted, "killed": killed, "survive": survive}


def main() -> None:
    folder = Path(json.loads(os.environ["MESHFEED_JOB"])["folder"])
    orders: dict[str, Any] = json.loads((folder / "orders.json").read_text())
    config: dict[str, Any] = {"dead_after": 5} if orders["what"] in ("killed", "survive") else {}
    if orders["what"] == "survive":
        config["jax_enable_recoverability"] = True
    with (
        joined(**config) as place,
        mf.open(str(place.folder / "*.arrow")) as ds,
        (place.folder / f"log-{place.rank}.jsonl").open("w") as log,
    ):
        options: dict[str, Any] = {"shuffle": True, "seed": 5, "epochs": -1}
        if orders["state"]:
            options["state"] = orders["state"]
        specs = {"label": P("data"), "image": P("data")}
        mesh = mesh_of(jax.devices())
        with mf.Loader(ds, mesh, specs, batch_size=BATCH, **options) as loader:
            PLAYS[orders["what"]](place, loader, log, orders["steps"])
        if orders["what"] == "survive":
            if place.rank == 0:
                wait_for_the_end()  # with it ends JAX's service, which the others would notice
            os._exit(0)  # JAX's shutdown waits for the dead, too


if __name__ == "__main__":
    main()
