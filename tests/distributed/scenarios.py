"""The scenarios of jobs: meshes over their devices, and loaders on them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.distributed.data import BATCH
from tests.distributed.tpu_orders import TABLE

Entry = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Want:
    """One array of the batch: a field, its spec, and ranges of columns."""

    field: str
    spec: tuple[Entry, ...]
    columns: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Scenario:
    """A mesh and a loader on it.

    Attributes:
        name: what the scenario shows.
        axes: the mesh's axes and their sizes.
        devices: the mesh in C order, as indexes into `jax.devices()`.
        arrays: the arrays to load.
        options: the loader's other arguments.
        stop: loads only the first `stop` records, so that batches divide them.
        explicit: whether the mesh's axes are of type Explicit.
        computed: whether a program over all processes runs on the batches.
    """

    name: str
    axes: dict[str, int]
    devices: tuple[int, ...]
    arrays: dict[str, Want]
    options: dict[str, Any] = field(default_factory=dict)
    stop: int | None = None
    explicit: bool = False
    computed: bool = False

    @property
    def loading(self) -> str:
        """The loader's `loading`."""
        how: str = self.options.get("loading", "process")
        return how


ROWS = {"image": Want("image", ("data",)), "label": Want("label", ("data",))}


class Cluster:
    """The devices of a job.

    Attributes:
        devices: the number of devices of each process.
        size: the number of all devices.
        owners: the process of each device, in the order of `jax.devices()`.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        self.devices = tuple(devices)
        self.owners = [p for p, n in enumerate(devices) for _ in range(n)]
        self.size = len(self.owners)

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(range(self.size))

    def of(self, *processes: int) -> tuple[int, ...]:
        """Lists the devices of some processes."""
        return tuple(i for i, p in enumerate(self.owners) if p in processes)

    def dealt(self) -> tuple[int, ...]:
        """Lists one device of each process in turn, so that no process has adjacent rows."""
        turn = [self.owners[:i].count(p) for i, p in enumerate(self.owners)]
        return tuple(sorted(self.all, key=lambda i: (turn[i], -self.owners[i])))


def scenarios(cluster: Cluster, seed: int) -> list[Scenario]:
    """Lists the scenarios of a job of 4, 8 or 16 devices."""
    return [
        *_batches(cluster),
        *_replicas(cluster),
        *_sequences(cluster),
        *_orders(cluster, seed),
        *_subsets(cluster),
        *_epochs(cluster),
        *_tpus(cluster),
        *loadings(cluster),
    ]


def _batches(c: Cluster) -> Iterator[Scenario]:
    mesh = {"data": c.size}
    yield Scenario("data parallel", mesh, c.all, ROWS, computed=True)
    yield Scenario("data parallel, explicit axes", mesh, c.all, ROWS, explicit=True)
    dims = Want("image", (None, "data")), Want("label", (None, "data"))
    arrays = dict(zip(ROWS, dims, strict=True))
    yield Scenario("micro-batches", mesh, c.all, arrays, {"batch_size": (3, BATCH // 3)})
    yield Scenario("scattered rows", mesh, c.dealt(), ROWS)


def _replicas(c: Cluster) -> Iterator[Scenario]:
    near = {"data": c.size // 2, "model": 2}
    yield Scenario("replicas on neighbors", near, c.all, ROWS)
    far = {"model": 2, "data": c.size // 2}
    yield Scenario("replicas across processes", far, c.all, ROWS)
    yield Scenario("full replication", far, c.all, {"image": Want("image", ())})


def _sequences(c: Cluster) -> Iterator[Scenario]:
    far = {"model": 2, "data": c.size // 2}
    split = {"image": Want("image", ("data", None, "model")), "flag": Want("flag", ("data",))}
    yield Scenario("columns across processes", far, c.all, split, computed=True)
    both = {"image": Want("image", (None, "data", "model"))}
    yield Scenario("an image across all", far, c.all, both)
    far = {"seq": c.size // 2, "data": 2}
    shifted = {
        "inputs": Want("tokens", ("data", "seq"), ((0, 48),)),
        "targets": Want("tokens", ("data", "seq"), ((1, 49),)),
    }
    yield Scenario("sequences across processes", far, c.all, shifted)
    n = c.size // 2  # parts of both halves, which balances causal attention
    cuts = [(i * 24 // n, (i + 1) * 24 // n) for i in range(n)]
    halves = [half for a, b in cuts for half in ((a, b), (48 - b, 48 - a))]
    zigzag = {"inputs": Want("tokens", ("data", "seq"), tuple(halves))}
    yield Scenario("zigzag sequences", far, c.all, zigzag)


def _orders(c: Cluster, seed: int) -> Iterator[Scenario]:
    arrays = {
        "image": Want("image", ("data", None, "model")),
        "inputs": Want("tokens", (("model", "data"),), ((0, 48),)),
        "label": Want("label", (("data", "model"),)),
        "all": Want("label", (None,)),
    }
    rng = random.Random(seed)
    for i in range(4):
        devices = tuple(rng.sample(c.all, c.size))
        mesh = {"data": c.size // 2, "model": 2}
        yield Scenario(f"permuted devices {i}", mesh, devices, arrays, computed=i == 0)


def _subsets(c: Cluster) -> Iterator[Scenario]:
    last = c.of(len(c.devices) - 1)
    yield Scenario("one process of all", {"data": len(last)}, last, ROWS)
    yield Scenario("one device of all", {"data": 1}, (c.size - 1,), ROWS)
    if len(c.devices) > 2:
        ends = c.of(0)[0], c.of(len(c.devices) - 1)[0]
        yield Scenario("first and last process", {"data": 2}, ends, ROWS)
    half = c.dealt()[: c.size // 2]
    yield Scenario("half of the devices", {"data": len(half)}, half, ROWS)


def _epochs(c: Cluster) -> Iterator[Scenario]:
    mesh = {"model": 2, "data": c.size // 2}
    yield Scenario("dropped remainder", mesh, c.all, ROWS, {"remainder": "drop"})
    yield Scenario("padded remainder", mesh, c.all, ROWS, {"remainder": "pad"})
    yield Scenario("no remainder", mesh, c.all, ROWS, {"remainder": "error"}, stop=3 * BATCH)
    extras = {"extras": ("key", "record"), "remainder": "pad", "mask_name": "real"}
    yield Scenario("extras", {"data": c.size}, c.dealt(), ROWS, extras)
    files = {"shuffle": False, "batch_size": c.size}
    yield Scenario("in file order", {"data": c.size}, c.all, ROWS, files)
    ahead = {"prefetch": 0, "device_prefetch": 2}
    yield Scenario("no prefetch", {"data": c.size}, c.all, ROWS, ahead)


LOADINGS = "process", "global", "device", "reshard"


def loadings(c: Cluster) -> Iterator[Scenario]:
    """Lists the ways of loading, each on two meshes; only "reshard" needs collectives."""
    far = {"model": 2, "data": c.size // 2}
    split = {
        "image": Want("image", ("data", None, "model")),
        "flag": Want("flag", ("data",)),
        "label": Want("label", ()),
    }
    for how in LOADINGS:
        options: dict[str, Any] = {"loading": how, "remainder": "pad", "extras": ("record",)}
        moved = how == "reshard"
        name = f"loading {how}"
        yield Scenario(name, far, c.all, split, options, computed=moved)
        name += ", scattered rows"
        options = {"loading": how, "batch_size": (3, BATCH // 3)}
        dims = {"image": Want("image", (None, "data", "model"))}
        yield Scenario(name, far, c.dealt(), dims, options, explicit=True, computed=moved)


def _tpus(c: Cluster) -> Iterator[Scenario]:
    for row in json.loads(TABLE.read_text())["orders"]:
        owners = sorted(process for process, _ in row["devices"])
        if owners != c.owners or len(c.devices) == 1:
            continue
        mesh = dict(zip(("data", "model", "x"), row["shape"], strict=False))
        all_axes: Entry = tuple(mesh) if len(mesh) > 1 else "data"
        split = {"image": Want("image", ("data",)), "flag": Want("flag", (all_axes,))}
        if len(mesh) > 1:
            split["inputs"] = Want("tokens", ("data", "model"), ((0, 48),))
        name = f"{row['slice']} as {'x'.join(map(str, row['shape']))}"
        yield Scenario(name, mesh, tuple(i for _, i in row["devices"]), split)
