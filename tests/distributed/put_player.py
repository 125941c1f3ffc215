"""The program of a job that places arrays that meshfeed did not load.

The backend has no collectives, so a call that needed one would fail. Each process writes what it
found to a file `got`.
"""

from __future__ import annotations

import logging
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.distributed.play import write
from tests.distributed.process import Place, joined
from tests.python.arrays.putting import drawn_memory, memory

P = PartitionSpec
Host = npt.NDArray[Any]
CASES = 600 if os.environ.get("MESHFEED_DEEP") else 60
STEPS = 4

Rows = list[int]


def grid(order: Any, *sizes: int) -> Mesh:
    """Makes a mesh with the axes "a", "b" and so on, of devices in this order."""
    devices = np.array(jax.devices())[list(order)].reshape(sizes)
    return Mesh(devices, tuple("abc"[: len(sizes)]))


def drawn(r: random.Random) -> tuple[Mesh, PartitionSpec, tuple[int, ...]]:
    """Draws a mesh of some devices in any order, a spec and a shape that fits."""
    sizes = r.choice([(8,), (2, 4), (4, 2), (2, 2, 2), (2, 2), (4,), (3, 2), (1, 2)])
    mesh = grid(r.sample(range(8), math.prod(sizes)), *sizes)
    axes = r.sample(mesh.axis_names, len(sizes))
    entries: list[Any] = [(), (), ()]
    for axis in axes[: r.randint(0, len(axes))]:
        d = r.choice([0, 0, 1, 2])
        entries[d] = (*entries[d], axis)
    shape = tuple(
        math.prod(mesh.shape[axis] for axis in entry) * r.choice([1, 2, 3, 16]) for entry in entries
    )
    return mesh, P(*(entry or None for entry in entries)), shape


def held(sharding: NamedSharding, shape: tuple[int, ...], process: int) -> Rows:
    """Returns the rows that the devices of a process hold, in increasing order."""
    rows = set[int]()
    device: Any
    for device, index in sharding.devices_indices_map(shape).items():
        if device.process_index == process:
            rows |= set(range(*index[0].indices(shape[0])))
    return sorted(rows)


def wrong(got: jax.Array, host: Host, sharding: NamedSharding) -> str:
    """Compares an array with the host array that all processes know; returns "" if it is right."""
    host = host.astype(jax.dtypes.canonicalize_dtype(host.dtype))
    if (got.shape, got.dtype, got.sharding) != (host.shape, host.dtype, sharding):
        return f"{got.shape} {got.dtype} {got.sharding}, not {host.shape} {host.dtype} {sharding}"
    here = [d for d in sharding.mesh.devices.flat if d.process_index == jax.process_index()]
    if [shard.device for shard in got.addressable_shards] != here:
        return "other devices"
    for shard in got.addressable_shards:
        if np.asarray(shard.data).tobytes() != host[shard.index].tobytes():
            return f"wrong values on {shard.device}"
    return ""


def compare(seed: int) -> Iterator[str]:
    """Yields the random cases in which an array is wrong."""
    process = jax.process_index()
    for n in range(CASES):
        r = random.Random(f"{seed}.{n}")
        mesh, spec, shape = drawn(r)
        sharding = NamedSharding(mesh, spec)
        host = drawn_memory(r, shape)
        rows = [held(sharding, shape, p) for p in range(jax.process_count())]
        owners = [p for p in range(jax.process_count()) if rows[p]]
        whole = len(owners) > 1 and all(len(rows[p]) == shape[0] for p in owners)
        for way in ("all", "local"):
            mine = host
            if way == "local":
                if whole or not rows[process]:
                    continue
                mine = host[rows[process]]
            for may_alias in (None, None, True):
                got = mf.put(mine, mesh, spec, rows=way, may_alias=may_alias)
                if text := wrong(got, host, sharding):
                    yield f"case {n}: {mesh} {spec} {shape} {host.dtype} rows={way}: {text}"


def stream(host: Host, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yields the rows of a process, as a loader of its own would."""
    for step in range(STEPS):
        yield {"x": host[rows] + step, "y": np.float32(step)}


def streamed() -> list[str]:
    """Places per-process streams by a thread. Returns what is wrong."""
    mesh = grid(range(8), 2, 4)
    host = np.arange(16 * 3, dtype=np.float32).reshape(16, 3)
    x, y = NamedSharding(mesh, P("b")), NamedSharding(mesh, P())
    rows = held(x, host.shape, jax.process_index())
    found = []
    with mf.place_batches(stream(host, rows), specs={"x": x, "y": y}, rows="local") as batches:
        for step, batch in enumerate(batches):
            found.append(wrong(batch["x"], host + step, x))
            found.append(wrong(batch["y"], np.full((), step, np.float32), y))
    return [f"{len(found)} arrays", *filter(None, found)]


def arrays() -> dict[str, Any]:
    """Places `jax.Array`s."""
    mesh = grid(range(8), 2, 4)
    host = np.arange(16, dtype=np.float32)
    sharding = NamedSharding(mesh, P("b"))
    one = jax.device_put(host, jax.local_devices()[1])
    placed = mf.put(one, specs=sharding)
    half = NamedSharding(grid((0, 1, 2, 4), 4), P("a"))
    whole = memory((16, 16))
    copies = mf.put(host, mesh, P())
    rows = held(sharding, host.shape, jax.process_index())
    local = mf.put(jax.device_put(host[rows]), specs=sharding, rows="local")
    return {
        "one": wrong(placed, host, sharding),
        "local": wrong(local, host, sharding),
        "outside": wrong(mf.put(whole, specs=half, may_alias=True), whole, half),
        "again": mf.put(placed, specs=sharding) is placed,
        "again local": mf.put(copies, mesh, P(), rows="local") is copies,
        "moved": text(placed, mesh, P("a")),
        "own keys": mf.put(jax.random.key(7), grid(jax_local(), 2), P()).sharding.num_devices,
        "keys": text(jax.random.key(0), mesh, P()),
    }


def text(tree: Any, mesh: Mesh, specs: Any, rows: Any = "all") -> str:
    """Returns the error of a call, or ""."""
    try:
        mf.put(tree, mesh, specs, rows=rows)
    except mf.Error as e:
        return str(e)
    return ""


def errors() -> dict[str, str]:
    """Returns the errors of wrong rows."""
    rows, mixed = np.zeros((3, 4)), grid((0, 2, 4, 6, 1, 3, 5, 7), 8)
    half = grid((0, 1, 2, 4), 4)
    return {
        "all whole": text({"x": rows}, grid(range(8), 2, 4), P(), "local"),
        "columns": text(np.zeros((4, 8)), grid(range(8), 8), P(None, "a"), "local"),
        "uneven": text({"x": rows}, mixed, P("a"), "local"),
        "shared": text({"x": rows}, grid(range(8), 2, 4), P("b"), "local"),
        "not cut": text(
            {"x": np.zeros((4, 2)), "y": np.zeros(4)},
            grid(range(8), 8),
            {"x": P("a"), "y": P()},
            "local",
        ),
        "outside": text(np.zeros((2, 2)), half, P("a"), "local"),
        "unknown axis": text({"x": rows}, mixed, P("z"), "local"),
        "indivisible": text({"x": rows}, mixed, P("a")),
        "columns indivisible": text(np.zeros((4, 3)), mixed, P(None, "a"), "all"),
    }


def ways() -> list[tuple[int, ...]]:
    """Returns the shapes of an array that every process has whole, or as its own rows."""
    mesh, host = grid(range(8), 8), np.zeros((8, 2), np.float32)
    return [mf.put(host, mesh, P("a"), rows=way).shape for way in ("all", "local", "all")]


def counts() -> str:
    """Returns the error of a comparison when one process has more rows than the others."""
    rows = 4 if jax.process_index() == 3 else 2
    batch = {"x": np.zeros((rows, 4), np.float32), "y": np.zeros(2, np.int32)}
    placed = mf.put(batch, grid(range(8), 8), P("a"), rows="local")
    try:
        mf.check_replicas(placed, name="batch")
    except mf.Error as e:
        return str(e)
    return ""


class Notices(logging.Handler):
    """Keeps the texts that are logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def noticed() -> list[str]:
    """Returns what is logged when processes hold the same rows."""
    handler, log = Notices(), logging.getLogger("meshfeed")
    log.addHandler(handler)
    for _ in range(2):
        mf.put({"x": np.zeros((4, 4))}, grid(range(8), 2, 4), P("b"), rows="local")
    mf.put(np.zeros((4, 4)), grid(range(8), 2, 4), P("b"), rows="local")
    mf.put({"x": np.zeros((4, 4))}, grid(range(8), 8), P("a"), rows="local")
    mf.put({"x": np.zeros((4, 4))}, grid(jax_local(), 2), P("a"), rows="local")
    log.removeHandler(handler)
    return handler.texts


def uneven(place: Place) -> list[str]:
    """Places fewer batches in the last process, and returns what is logged about that."""
    handler, log = Notices(), logging.getLogger("meshfeed")
    log.addHandler(handler)
    last = place.rank == place.processes - 1
    n = 2 if last else 3
    rows = [np.zeros((4, 4), np.float32)] * n
    placed = mf.place_batches(rows, grid(range(8), 8), P("a"), rows="local")

    def counted() -> list[Any]:
        return list(place.folder.glob("uneven-*"))

    for step, _ in enumerate(placed):
        if step == n - 1:
            (place.folder / f"uneven-{place.rank}").touch()
            until(lambda: handler.texts or (last and len(counted()) == place.processes))
    log.removeHandler(handler)
    return handler.texts


def until(condition: Callable[[], Any]) -> None:
    """Polls until a condition holds."""
    late = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < late
        time.sleep(0.01)


def jax_local() -> list[int]:
    """Returns the indexes of this process's devices in `jax.devices()`."""
    return [i for i, d in enumerate(jax.devices()) if d.process_index == jax.process_index()]


def play(place: Place) -> None:
    """Plays random arrays; in a job of four processes everything."""
    got: dict[str, Any] = {"wrong": list(compare(int(os.environ["MESHFEED_SEED"])))}
    if jax.process_count() == 4:
        got |= {
            "streamed": streamed(),
            "arrays": arrays(),
            "errors": errors(),
            "noticed": noticed(),
            "counts": counts(),
            "uneven": uneven(place),
            "ways": ways(),
        }
    write(place, "got", got)


if __name__ == "__main__":
    with joined(jax_cpu_collectives_implementation=None) as here:
        play(here)
