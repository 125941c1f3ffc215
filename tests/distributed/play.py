"""A process of a job that plays scenarios and records what it gets.

The scenarios are in `folder/plan.pickle`. The result of scenario i goes to
`folder/given-i-rank.pickle`; `tests.distributed.proof` checks it.
"""

from __future__ import annotations

import os
import pickle
import traceback
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.distributed import collectives
from tests.distributed.data import BATCH
from tests.distributed.process import Place, joined
from tests.distributed.scenarios import Scenario

STEPS = 5  # more than an epoch of batches of the usual size


def play(place: Place, *, compute: bool) -> None:
    """Plays every scenario; a failure is recorded, and the next one is played."""
    plan: list[Scenario] = pickle.loads((place.folder / "plan.pickle").read_bytes())
    with mf.open(str(place.folder / "*.arrow")) as ds:
        for i, scenario in enumerate(plan):
            try:
                given = deliver(ds, scenario, compute=compute and scenario.computed)
            except Exception:
                given = {"error": traceback.format_exc()}
            write(place, f"given-{i}", given)


def write(place: Place, name: str, what: Any) -> None:
    (place.folder / f"{name}-{place.rank}.pickle").write_bytes(pickle.dumps(what))


def deliver(ds: mf.Dataset, scenario: Scenario, *, compute: bool) -> dict[str, Any]:
    """Loads some batches; returns all that this process can see of them."""
    source = ds if scenario.stop is None else ds.slice(0, scenario.stop)
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5, "epochs": -1} | scenario.options
    mesh = mesh_of(scenario)
    steps: list[dict[str, Any]] = []
    computed: list[dict[str, int]] = []
    with mf.Loader(source, mesh, specs_of(scenario), **options) as loader:
        before = loader.state()
        moved = jax.jit(loader.reshard) if compute else None
        for batch, state in loader.with_state():
            records = loader.records(before["epoch"], before["position"])
            resharded = moved(batch) if moved and scenario.loading == "reshard" else batch
            arrays = {
                name: seen(array, mesh) | {"moved": resharded is not batch}
                for name, array in resharded.items()
            }
            steps.append({"records": records, "arrays": arrays, "state": state})
            if compute:
                computed.append({name: int(weighted(array)) for name, array in batch.items()})
            before = state
            if len(steps) == STEPS:
                break
        stats, layout = loader.stats(), loader.layout.to_json()
    return {"steps": steps, "computed": computed, "stats": stats, "layout": layout}


@jax.jit
def weighted(array: jax.Array) -> jax.Array:
    """Sums an array with the elements' indexes as weights, in a program over all its devices."""
    places = jnp.arange(1, array.size + 1, dtype=jnp.uint32).reshape(array.shape)
    return jnp.sum((array * 2).astype(jnp.uint32) * places)


def mesh_of(scenario: Scenario) -> Mesh:
    devices = np.array(jax.devices())[list(scenario.devices)]
    kind = AxisType.Explicit if scenario.explicit else AxisType.Auto
    shape, names = tuple(scenario.axes.values()), tuple(scenario.axes)
    return Mesh(devices.reshape(shape), names, axis_types=(kind,) * len(names))


def specs_of(scenario: Scenario) -> dict[str, mf.Array]:
    return {
        name: mf.Array(want.field, PartitionSpec(*want.spec), want.columns)
        for name, want in scenario.arrays.items()
    }


def seen(array: jax.Array, mesh: Mesh) -> dict[str, Any]:
    """Describes a global array as this process sees it, with the bytes of its shards."""
    assert isinstance(array.sharding, NamedSharding)
    places = {device: i for i, device in enumerate(jax.devices())}
    return {
        "shape": array.shape,
        "dtype": array.dtype.name,
        "same mesh": array.sharding.mesh == mesh,
        "spec": tuple(array.sharding.spec),
        "shards": [
            {
                "device": places[shard.device],
                "index": [s.indices(n)[:2] for s, n in zip(shard.index, array.shape, strict=True)],
                "replica": shard.replica_id,
                "address": shard.data.unsafe_buffer_pointer(),
                "data": np.asarray(shard.data),
            }
            for shard in array.addressable_shards
        ],
    }


def main() -> None:
    denied = os.environ.get("MESHFEED_COLLECTIVES") == "denied"
    config: dict[str, Any] = {"jax_cpu_collectives_implementation": None} if denied else {}
    with joined(**config) as place:
        play(place, compute=not denied)
        if jax.device_count() == place.processes * jax.local_device_count():
            write(place, "tried", collectives.tried())


if __name__ == "__main__":
    main()
