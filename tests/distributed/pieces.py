"""What each of four processes plays besides the scenarios: certificates, local orders, big arrays.

It only records what it gets; `tests.distributed.test_pieces` checks that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.distributed.data import BATCH
from tests.distributed.process import Place

P = PartitionSpec
SPECS = {"label": P("data"), "image": P("data")}
STEPS, MORE = 5, 3  # on two meshes; the first number exceeds an epoch of usual batches
LONGEST = 1024  # bytes of a certificate that is sent
ODD = 2  # the process that takes one batch fewer at first
ORDER: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "seed": 5, "epochs": -1}

# For single arrays: devices, as indexes into `jax.devices()`, in meshes of 2 x n, and specs.
MESHES = range(8), (5, 2, 7, 0, 3, 6, 1, 4), range(2, 6)
RECORDS, RECORD = 16, 77  # records of a slice of the dataset; a single record
BIG = P("data"), P(), P(("model", "data")), P("model", "data"), P(None, ("data", "model"))

Sent = list[str]  # the certificates of all processes, as JSON


def played(place: Place) -> dict[str, Any]:
    """Plays all pieces."""
    with mf.open(str(place.folder / "part-*.arrow")) as ds:
        return {
            "certificates": dict(certificates(place, ds)),
            "local": local(ds),
            "big": big(ds),
            "drawn": drawn(),
        }


def drawn() -> list[str]:
    """Draws an array that spans all processes, and a tree with it."""
    sharding = NamedSharding(mesh(2, 4), P("data", "model"))
    x = jax.make_array_from_callback((8, 4), sharding, np.zeros((8, 4), np.float32).__getitem__)
    return [str(mf.draw(x)), str(mf.draw({"x": x}))]


def mesh(*shape: int) -> Mesh:
    """Makes a mesh of all devices; with (2, 4), processes 0 and 2 hold the same rows."""
    return Mesh(np.array(jax.devices()).reshape(shape), ("model", "data"))


def exchanged(certificate: mf.Certificate) -> Sent:
    """Sends a certificate to all processes by a collective of the program."""
    mine = np.frombuffer(certificate.to_json().encode().ljust(LONGEST), np.uint8)
    return [bytes(one).decode().rstrip() for one in multihost_utils.process_allgather(mine)]


def certificates(place: Place, ds: mf.Dataset) -> Iterator[tuple[str, Sent]]:
    """Plays a correct job, and jobs with a wrong process and without checks."""
    with mf.Loader(ds, mesh(2, 4), SPECS, **ORDER) as loader:
        take(loader, STEPS)
        yield "right", exchanged(loader.certificate())

    lay = mf.layout({"model": 2, "data": 4}, SPECS, ds, batch_size=BATCH)  # of one process
    options = {k: v for k, v in ORDER.items() if k != "batch_size"}
    with mf.Loader(ds, mesh(2, 4), layout=lay, **options) as loader:
        take(loader, STEPS)
        yield "of a layout", exchanged(loader.certificate())

    with mf.Loader(ds, mesh(2, 4), SPECS, **ORDER) as loader:
        take(loader, 1)
        loader.skip(2)
        take(loader, 1)
        yield "skipped", exchanged(loader.certificate())

    # One row per process and step.
    one = Mesh(np.array(jax.devices())[::2], ("data",))
    rows = {**ORDER, "batch_size": 4, "coordinator": False}
    with mf.Loader(ds, one, SPECS, **rows) as loader:
        take(loader, STEPS - (place.rank == ODD))
        yield "a dropped row", exchanged(loader.certificate())
        before = loader.state()
        take(loader, place.rank == ODD)
        delivered = loader.certificate()
    with mf.Loader(ds, one, SPECS, **rows, state=before) as again:
        take(again, place.rank == ODD)
        yield "a doubled row", exchanged(delivered + again.certificate())

    lay = mf.layout({"data": 4}, P("data"), ds, batch_size=4, processes=4)
    for name, played in {"in place": [0, 1, 2, 3], "one for another": [0, 1, 1, 3]}.items():
        with mf.Loader(ds, layout=lay, process=played[place.rank], **options) as loader:
            take(loader, STEPS)
            yield name, exchanged(loader.certificate())


def take(loader: mf.Loader, steps: int) -> None:
    for _ in range(steps):
        next(iter(loader))


def local(ds: mf.Dataset) -> list[dict[str, Any]]:
    """Loads in a local order, and continues with another mesh and batch size."""
    options: dict[str, Any] = {"order": "local", "seed": 5, "epochs": -1}
    seen: list[dict[str, Any]] = []
    with mf.Loader(ds, mesh(2, 4), SPECS, batch_size=16, **options) as loader:
        for batch, state in loader.with_state():
            seen.append({"labels": rows(batch["label"]), "state": state})
            if len(seen) == STEPS:
                break
    with mf.Loader(ds, mesh(4, 2), SPECS, batch_size=24, **options, state=state) as loader:
        for batch, state in loader.with_state():
            seen.append({"labels": rows(batch["label"]), "state": state})
            if len(seen) == STEPS + MORE:
                return seen
    raise AssertionError


def rows(labels: jax.Array) -> dict[int, list[int]]:
    """Returns the rows that this process holds, by their index in the batch."""
    return {
        shard.index[0].start or 0: np.asarray(shard.data).tolist()
        for shard in labels.addressable_shards
    }


def big(ds: mf.Dataset) -> list[dict[str, Any]]:
    """Loads single arrays on each of the meshes."""
    out = []
    for order in MESHES:
        devices = np.array(jax.devices())[list(order)]
        on = Mesh(devices.reshape(2, -1), ("model", "data"))
        for spec in BIG:
            with ds.slice(0, RECORDS) as part:
                table = mf.load_array(part, "tokens", NamedSharding(on, P(*spec[:1])))
            image = mf.load_array(ds, "image", NamedSharding(on, spec), record=RECORD)
            out.append({"tokens": shards(table), "image": shards(image)})
    return out


def shards(array: jax.Array) -> dict[int, Any]:
    """Returns the index and data of every shard, by its device's index in `jax.devices()`."""
    places = {device: i for i, device in enumerate(jax.devices())}
    return {
        places[shard.device]: (
            [s.indices(n)[:2] for s, n in zip(shard.index, array.shape, strict=True)],
            np.asarray(shard.data),
        )
        for shard in array.addressable_shards
    }
