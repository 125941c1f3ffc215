"""A process of a run that is stopped, killed or shrunk, and continues.

Its tasks are in `folder/orders.json`. It writes which rows of which batch its devices got to
`folder/log-rank.jsonl`, a line per step, before the next step begins.
`tests.distributed.test_elastic` checks them.
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

MOST = 100_000  # steps of a loop that is ended from outside


def mesh_of(devices: list[Any]) -> Mesh:
    return Mesh(np.array(devices), ("data",))


def note(log: Any, before: dict[str, Any], labels: jax.Array) -> None:
    """Logs the position of the batch, and what every device of this process got."""
    rows = {
        shard.index[0].start or 0: np.asarray(shard.data) for shard in labels.addressable_shards
    }
    line = {"epoch": before["epoch"], "position": before["position"]}
    log.write(json.dumps(line | {"rows": {k: v.tolist() for k, v in rows.items()}}) + "\n")
    log.flush()


def batches(loader: mf.Loader, log: Any, steps: int) -> Iterator[int]:
    """Takes batches, logs them, and reports their number after each."""
    loop = iter(loader)
    for step in range(1, steps + 1):
        before = loader.state()
        note(log, before, next(loop)["label"])
        yield step


def run(place: Place, loader: mf.Loader, log: Any, steps: int) -> None:
    """Runs some steps, then saves."""
    for _ in batches(loader, log, steps):
        pass
    loader.save_state(place.folder / "state.json")


def preempted(place: Place, loader: mf.Loader, log: Any, _: int) -> None:
    """Runs until JAX reports a SIGTERM of any process, then saves."""
    for step in batches(loader, log, MOST):
        if step == 5:
            (place.folder / f"ran-{place.rank}").touch()
        if multihost_utils.reached_preemption_sync_point(step):
            loader.save_state(place.folder / "state.json")
            return
    raise AssertionError("no process got a SIGTERM")


def killed(place: Place, loader: mf.Loader, log: Any, _: int) -> None:
    """Runs until the job is killed, and saves at every fourth step."""
    for step in batches(loader, log, MOST):
        if step % 4 == 0:
            loader.save_state(place.folder / "state.json")
        if step == 6:
            (place.folder / f"ran-{place.rank}").touch()
            wait_for_the_end()


def survive(place: Place, loader: mf.Loader, log: Any, steps: int) -> None:
    """Runs, loses processes, and continues with the remaining devices."""
    client: Any = distributed.global_state.client  # it has no public name
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


def opened(folder: Path, cache: str | None) -> mf.Dataset:
    """Opens the Arrow files, or with a cache the Parquet files, which have to be decoded."""
    if cache is None:
        return mf.open(str(folder / "*.arrow"))
    return mf.open(str(folder / "*.parquet"), cache=cache, cache_bytes=1 << 28)


PLAYS = {
    "run": run,
    "preempted": preempted,
    "killed": killed,
    "survive": survive,
    "decoding": run,
}


def main() -> None:
    folder = Path(json.loads(os.environ["MESHFEED_JOB"])["folder"])
    orders: dict[str, Any] = json.loads((folder / "orders.json").read_text())
    config: dict[str, Any] = (
        {"dead_after": 5} if orders["what"] in ("killed", "survive", "decoding") else {}
    )
    if orders["what"] == "survive":
        config["jax_enable_recoverability"] = True
    with (
        joined(**config) as place,
        opened(place.folder, orders.get("cache")) as ds,
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
                wait_for_the_end()  # it hosts JAX's service; the others would notice its end
            os._exit(0)  # JAX's shutdown would wait for the dead process


if __name__ == "__main__":
    main()
