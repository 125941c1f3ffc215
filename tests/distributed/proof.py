"""Checks what the processes of a job got, from the data and the mesh alone.

The checks use neither JAX nor meshfeed to find the index of a device. It follows from the device's
coordinates in the mesh: the tile number of a dimension is the mixed-radix number of the coordinates
on its spec's axes, the first axis most significant.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np

import meshfeed as mf
from tests.distributed import data
from tests.distributed.data import BATCH, Array
from tests.distributed.scenarios import Cluster, Entry, Scenario, Want

STATE_BYTES = 256

Given = list[dict[str, Any]]  # by process
Index = list[tuple[int, int]]


def prove(cluster: Cluster, scenario: Scenario, given: Given, steps: int) -> None:
    """Fails unless every device of the mesh, and no other, got exactly its part."""
    for process in given:
        assert "error" not in process, process["error"]
        assert process["layout"] == given[0]["layout"]
        assert len(process["steps"]) == steps
    for number in range(steps):
        together = [process["steps"][number] for process in given]
        for one in together:
            assert one["state"] == together[0]["state"]
            assert len(json.dumps(one["state"])) <= STATE_BYTES
            np.testing.assert_array_equal(one["records"], together[0]["records"])
        _prove_step(cluster, scenario, together)
    for process in given:
        _prove_computed(scenario, process)
    _prove_sequence(scenario, given[0]["steps"])
    _prove_plan(scenario, given, cluster)


def _prove_step(cluster: Cluster, scenario: Scenario, together: Given) -> None:
    whole = reference(scenario, together[0]["records"])
    for p, step in enumerate(together):
        assert set(whole) <= set(step["arrays"])
        for name, array in step["arrays"].items():
            _prove_array(scenario, array, name, set(cluster.of(p)))
            if name in whole:
                _prove_shards(array, whole[name])
    if "key" in together[0]["arrays"]:
        _prove_same_keys(together)


def _prove_array(scenario: Scenario, array: dict[str, Any], name: str, mine: set[int]) -> None:
    """Checks the sharding of an array, and one shard on each device of this process."""
    assert array["same mesh"]
    spec = array["spec"]
    if array["moved"]:
        spec = scenario.arrays[name].spec if name in scenario.arrays else ()
    elif scenario.loading == "reshard":
        assert spec == delivered(scenario)
    elif name in scenario.arrays:
        assert spec == scenario.arrays[name].spec
    wanted = {d: i for d, i in indexes(scenario, spec, array["shape"]).items() if d in mine}
    shards = {shard["device"]: shard for shard in array["shards"]}
    assert len(shards) == len(array["shards"])
    assert {d: [tuple(part) for part in shard["index"]] for d, shard in shards.items()} == wanted
    if not array["moved"]:
        _prove_memory(scenario, list(shards.values()))


def _prove_memory(scenario: Scenario, shards: Given) -> None:
    """Checks that replicas share memory, unless loading="device"."""
    addresses: dict[str, set[int]] = {}
    for shard in shards:
        addresses.setdefault(str(shard["index"]), set()).add(shard["address"])
    if scenario.loading == "device":
        assert sum(map(len, addresses.values())) == len(shards), "devices share memory"
    else:
        assert all(len(same) == 1 for same in addresses.values()), "replicas do not share memory"


def _prove_shards(array: dict[str, Any], whole: Array) -> None:
    assert array["shape"] == whole.shape
    assert array["dtype"] == whole.dtype.name
    for shard in array["shards"]:
        part = whole[tuple(slice(start, stop) for start, stop in shard["index"])]
        assert shard["data"].shape == part.shape
        assert shard["data"].tobytes() == part.tobytes(), f"device {shard['device']}"


def _prove_same_keys(together: Given) -> None:
    """Checks that rows on several devices have the same keys, which have no formula here."""
    held: dict[int, bytes] = {}
    for step in together:
        for shard in step["arrays"]["key"]["shards"]:
            start = shard["index"][0][0]
            for row, key in enumerate(shard["data"], start):
                assert held.setdefault(row, key.tobytes()) == key.tobytes()
    real = [key for key in held.values() if key != bytes(8)]
    assert len(set(real)) == len(real) == int((together[0]["records"] >= 0).sum())


def _prove_computed(scenario: Scenario, process: dict[str, Any]) -> None:
    """Checks the result of a program over all elements of the global batch."""
    for step, sums in zip(process["steps"], process.get("computed", []), strict=False):
        whole = reference(scenario, step["records"])
        for name, total in sums.items():
            twice = (whole[name] * 2).astype(np.uint32).ravel()
            weights = np.arange(1, twice.size + 1, dtype=np.uint32)
            assert total == int((twice * weights).sum(dtype=np.uint32)), name


def indexes(scenario: Scenario, spec: tuple[Entry, ...], shape: Any) -> dict[int, Index]:
    """Returns the index of every device in an array."""
    sizes = scenario.axes
    cells = itertools.product(*(range(n) for n in sizes.values()))
    parts: dict[int, Index] = {}
    for device, cell in zip(scenario.devices, cells, strict=True):
        at = dict(zip(sizes, cell, strict=True))
        parts[device] = []
        for n, entry in itertools.zip_longest(shape, spec):
            tile, tiles = 0, 1
            for axis in (entry,) if isinstance(entry, str) else entry or ():
                tile, tiles = tile * sizes[axis] + at[axis], tiles * sizes[axis]
            parts[device].append((tile * (n // tiles), (tile + 1) * (n // tiles)))
    return parts


def reference(scenario: Scenario, records: Array) -> dict[str, Array]:
    """Makes the global batch of these records from the data."""
    dims = dims_of(scenario)
    whole = {
        name: data.batch(want.field, records, _columns(want), dims)
        for name, want in scenario.arrays.items()
    }
    if scenario.options.get("remainder") == "pad":
        mask = scenario.options.get("mask_name", "valid")
        whole[mask] = (records >= 0).reshape(dims)
    if "record" in scenario.options.get("extras", ()):
        halves = np.stack([records & 0xFFFFFFFF, records >> 32 & 0xFFFFFFFF], axis=1)
        whole["record"] = halves.astype(np.uint32).reshape(*dims, 2)
    return whole


def dims_of(scenario: Scenario) -> tuple[int, ...]:
    size = scenario.options.get("batch_size", BATCH)
    return size if isinstance(size, tuple) else (size,)


def _columns(want: Want) -> list[tuple[int, int]] | None:
    return None if want.columns is None else list(want.columns)


def _prove_sequence(scenario: Scenario, steps: list[dict[str, Any]]) -> None:
    """Checks that one process without a mesh has the same records, each once per epoch."""
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5} | scenario.options
    options = {k: v for k, v in options.items() if k not in ("prefetch", "device_prefetch")}
    source = mf.from_arrays(data.fields())
    with source, mf.Loader(source.slice(0, scenario.stop or len(source)), **options) as loader:
        place, seen = {"epoch": 0, "position": 0}, list[int]()
        for step in steps:
            alone = loader.records(place["epoch"], place["position"])
            np.testing.assert_array_equal(step["records"], alone)
            seen = (seen if place["position"] else []) + [r for r in alone.tolist() if r >= 0]
            assert len(set(seen)) == len(seen)
            place = step["state"]


def _prove_plan(scenario: Scenario, given: Given, cluster: Cluster) -> None:
    """Checks the rows and bytes that the layout's report lists for each process."""
    report = mf.Layout.from_json(given[0]["layout"]).report()
    planned = {process["process"]: process for process in report["processes"]}
    assert set(planned) == {cluster.owners[device] for device in scenario.devices}
    for p, process in enumerate(given):
        steps, plan = process["steps"], planned.get(p)
        per_step, stats = plan["bytes_per_step"] if plan else 0, process["stats"]
        assert gathered_bytes(scenario, steps[0], len(cluster.of(p))) == per_step
        assert stats["gathered_bytes"] == stats["batches"] * per_step
        assert stats["batches"] >= len(steps)
        rows = read_by(scenario, cluster.of(p))
        assert rows == {r for a, b in (plan["rows"] if plan else []) for r in range(a, b)}
        same = [q for q in planned if q != p and read_by(scenario, cluster.of(q)) == rows]
        assert (plan["same_rows_as"] if plan else []) == (same if plan else [])


def gathered_bytes(scenario: Scenario, step: dict[str, Any], devices: int) -> int:
    """Counts the bytes that a process with this many devices gathers for a step."""
    arrays = step["arrays"].values()
    held: list[list[tuple[str, int]]] = [
        [(str(s["index"]), s["data"].nbytes) for s in array["shards"]] for array in arrays
    ]
    if not any(held):
        return 0
    if scenario.loading == "process":  # every distinct block, once
        return sum(sum(dict(shards).values()) for shards in held)
    if scenario.loading == "device":  # every block of every device
        return sum(size for shards in held for _, size in shards)
    whole: int = sum(
        array["shards"][0]["data"].itemsize * math.prod(array["shape"]) for array in arrays
    )
    if scenario.loading == "global":
        return whole
    return whole * devices // len(scenario.devices)


def delivered(scenario: Scenario) -> tuple[Entry, ...]:
    """Returns the spec of a batch before resharding.

    Every axis splits the first batch dimension that it divides, after the axes before it.
    """
    left = list(dims_of(scenario))
    spec: list[tuple[str, ...]] = [()] * len(left)
    for axis, size in scenario.axes.items():
        at = next(i for i, n in enumerate(left) if n % size == 0)
        left[at] //= size
        spec[at] += (axis,)
    return tuple(axes[0] if len(axes) == 1 else axes or None for axes in spec)


def read_by(scenario: Scenario, devices: tuple[int, ...]) -> set[int]:
    """Lists the rows of the global batch that the process of these devices reads."""
    if scenario.loading == "global" and set(devices) & set(scenario.devices):
        return set(range(math.prod(dims_of(scenario))))
    if scenario.loading == "reshard":
        return rows_of(scenario, devices, [delivered(scenario)])
    return rows_of(scenario, devices)


def rows_of(
    scenario: Scenario, devices: tuple[int, ...], specs: list[tuple[Entry, ...]] | None = None
) -> set[int]:
    """Lists the rows of the global batch that some devices hold, in C order of its dimensions."""
    dims = dims_of(scenario)
    number = np.arange(math.prod(dims)).reshape(dims)
    rows: set[int] = set()
    for spec in specs or [want.spec for want in scenario.arrays.values()]:
        parts = indexes(scenario, spec[: len(dims)], dims)
        for device in set(devices) & set(parts):
            part = tuple(slice(start, stop) for start, stop in parts[device])
            rows |= set(number[part].ravel().tolist())
    return rows
