"""Ask the installed JAX which part of an array each device holds.

Writes testdata/sharding.json.gz, the tables that the tests read. README.md
beside this file describes them.

    python make_tables.py            # write the tables
    python make_tables.py --check    # ask again and compare

It uses public names of JAX only. Every case is asked twice. On a mesh of real
CPU devices in a random order, arrays are made and their shards compared with
array[index]. On a mesh of stand-ins for devices of several processes, JAX is
asked once per process, because no process can ask JAX about another one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEVICES = 64
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = str(DEVICES)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from stand_ins import Device, Process  # noqa: E402

TABLES = Path(__file__).parent / "testdata" / "sharding.json.gz"
FORMAT = 1
SEED = 20261121
MESHES = 420
CASES_PER_MESH = 14
ERRORS_PER_MESH = 3
NAMES = ["data", "model", "x", "y", "expert", "it's", 'say "hi"', "é", "a b"]

Case = dict[str, Any]
Entry = None | str | list[str]


class Plan:
    """A random mesh: real devices in a random order, and processes for stand-ins."""

    def __init__(self, rng: random.Random) -> None:
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5])
        names = rng.sample(NAMES, rank)
        sizes: list[int] = []
        for _ in names:
            size = rng.choice([1, 2, 2, 2, 3, 4, 4, 5, 8, 16])
            sizes.append(size if size * int(np.prod(sizes, dtype=int)) <= DEVICES else 1)
        self.names, self.sizes = names, sizes
        self.size = int(np.prod(sizes, dtype=int))
        self.order = rng.sample(range(DEVICES), self.size)
        if rng.random() < 0.3:
            self.order = list(range(self.size))
        self.owners = self.draw_owners(rng)
        self.ids = rng.sample(range(1, 5 * DEVICES), self.size)

    def draw_owners(self, rng: random.Random) -> list[int]:
        """Draw the process of each device: equal blocks, in turn, or at random."""
        count = rng.randint(1, min(6, self.size))
        kind = rng.random()
        if kind < 0.4:
            return [i * count // self.size for i in range(self.size)]
        if kind < 0.6:
            return [i % count for i in range(self.size)]
        ranks = rng.sample(range(9), count)
        return [rng.choice(ranks) for _ in range(self.size)]

    def mesh(self) -> Mesh:
        real = np.array(jax.devices(), dtype=object)[self.order]
        return Mesh(real.reshape(self.sizes), tuple(self.names))

    def mesh_of(self, process: int) -> Mesh:
        """Return the mesh as a process sees it."""
        me = Process(process)
        devices = np.empty(self.size, dtype=object)
        for i, (owner, number) in enumerate(zip(self.owners, self.ids, strict=True)):
            devices[i] = Device(owner, number, me)
        return Mesh(devices.reshape(self.sizes), tuple(self.names))

    def record(self) -> Case:
        return {
            "axes": [[name, size] for name, size in zip(self.names, self.sizes, strict=True)],
            "devices": [[p, i] for p, i in zip(self.owners, self.ids, strict=True)],
            "text": re.sub(r"(, )?axis_types=\(.*\)\)$", ")", str(self.mesh())),
        }


def partition_spec(entries: list[Entry]) -> PartitionSpec:
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries))


def draw_spec(rng: random.Random, plan: Plan, rank: int) -> list[Entry]:
    """Assign axes, in any order, to the entries of a spec of at most this rank."""
    dealt: list[list[str]] = [[] for _ in range(rng.randint(0, rank))]
    for name in rng.sample(plan.names, len(plan.names)):
        d = rng.randint(0, rank + 1)
        if d < len(dealt):
            dealt[d].append(name)
    return [entry[0] if len(entry) == 1 else entry or None for entry in dealt]


def names_of(entry: Entry) -> list[str]:
    return [entry] if isinstance(entry, str) else entry or []


def tiles(plan: Plan, entry: Entry) -> int:
    return int(np.prod([plan.sizes[plan.names.index(n)] for n in names_of(entry)], dtype=int))


def draw_shape(rng: random.Random, plan: Plan, spec: list[Entry], rank: int) -> list[int]:
    factors = [tiles(plan, e) for e in spec] + [1] * (rank - len(spec))
    return [f * rng.choice([0, 1, 1, 1, 2, 2, 3]) if f < 16 else f for f in factors]


def full(index: tuple[slice, ...], shape: list[int]) -> list[list[int]]:
    return [list(s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)]


def ask(plan: Plan, number: int, spec: list[Entry], shape: list[int]) -> Case:
    sharding = NamedSharding(plan.mesh(), partition_spec(spec))
    sharding.check_compatible_aval(tuple(shape))
    by_device = sharding.devices_indices_map(tuple(shape))
    assert list(by_device) == list(plan.mesh().devices.flat)
    indexes = [full(index, shape) for index in by_device.values()]
    distinct: list[list[list[int]]] = []
    for index in indexes:
        if index not in distinct:
            distinct.append(index)
    return {
        "mesh": number,
        "spec": spec,
        "shape": shape,
        "text": str(sharding.spec),
        "shard": list(sharding.shard_shape(tuple(shape))),
        "distinct": distinct,
        "device": [distinct.index(index) for index in indexes],
        "replica": ask_replicas(sharding, shape, indexes),
        "replicated": sharding.is_fully_replicated,
        "processes": ask_processes(plan, spec, shape, indexes),
    }


def ask_replicas(sharding: NamedSharding, shape: list[int], indexes: list[Any]) -> list[int]:
    """Make the array, compare its shards with array[index], and number them."""
    whole = np.arange(int(np.prod(shape, dtype=int)), dtype=np.int32).reshape(shape)
    shards = {s.device: s for s in jax.device_put(whole, sharding).addressable_shards}
    replicas = []
    for device, index in zip(sharding.mesh.devices.flat, indexes, strict=True):
        shard = shards[device]
        np.testing.assert_array_equal(shard.data, whole[tuple(slice(*pair) for pair in index)])
        replicas.append(shard.replica_id)
    return replicas


def ask_processes(plan: Plan, spec: list[Entry], shape: list[int], indexes: list[Any]) -> list[Any]:
    """For each process, and for one without devices: whether it owns the whole mesh,
    and the mesh positions that it addresses."""
    answers = []
    for process in [*sorted(set(plan.owners)), 9]:
        sharding = NamedSharding(plan.mesh_of(process), partition_spec(spec))
        everywhere = sharding.devices_indices_map(tuple(shape))
        assert [full(index, shape) for index in everywhere.values()] == indexes
        devices = list(everywhere)
        local = sharding.addressable_devices_indices_map(tuple(shape))
        answers.append([process, sharding.is_fully_addressable, [devices.index(d) for d in local]])
    return answers


DUPLICATE = re.compile(r"has duplicate entries for `(.*)`")
UNKNOWN = re.compile(r"Resource axis: (.*) of P\w*\(.* is not found in mesh")
RANK = re.compile(r"rank at least (\d+), but was applied to a value of rank (\d+)")
INDIVISIBLE = re.compile(
    r"array axis (\d+) is partitioned (\d+) times, but the dimension size is (\d+)"
)


def fault(plan: Plan, spec: list[Entry], shape: list[int]) -> Case | None:
    """Return JAX's objection to a case, or None."""
    try:
        sharding = NamedSharding(plan.mesh(), partition_spec(spec))
        sharding.check_compatible_aval(tuple(shape))
        sharding.shard_shape(tuple(shape))
    except Exception as e:  # DuplicateSpecError is a bare Exception
        return {**facts(str(e)), "jax": type(e).__name__}
    return None


def facts(message: str) -> Case:
    if found := DUPLICATE.search(message):
        return {"error": "duplicate", "axis": found[1]}
    if found := UNKNOWN.search(message):
        return {"error": "unknown", "axis": found[1]}
    if found := RANK.search(message):
        return {"error": "rank", "entries": int(found[1]), "rank": int(found[2])}
    if found := INDIVISIBLE.search(message):
        dimension, count, size = map(int, found.groups())
        return {"error": "indivisible", "dimension": dimension, "tiles": count, "size": size}
    raise ValueError(f"JAX's wording has changed: {message}")


def spoil(
    rng: random.Random, plan: Plan, spec: list[Entry], shape: list[int]
) -> tuple[list[Entry], list[int]]:
    """Put one or two faults into a good case."""
    spec, shape = [*spec], [*shape]
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.randint(0, 3)
        if kind == 0 and spec:  # an unknown axis, alone or beside others
            d = rng.randrange(len(spec))
            spec[d] = [*names_of(spec[d]), "nowhere"]
        elif kind == 1 and plan.names and len(spec) > 1:  # a name twice
            name = rng.choice(plan.names)
            spec[0] = name
            spec[-1] = [name] * rng.randint(1, 2)
        elif kind == 2:  # more entries than dimensions
            spec += [None] * (len(shape) - len(spec) + rng.randint(1, 2))
        elif shape:  # sizes that need not divide
            shape = [n + rng.randint(0, 3) for n in shape]
    return spec, shape


def mesh_faults() -> list[Case]:
    """Return meshes that meshfeed refuses, with JAX's answer."""
    four = jax.devices()[:4]
    found = []
    for error, devices, names in [
        ("axis twice", [four[:2], four[2:]], ("x", "x")),
        ("device twice", [four[0], four[1], four[0], four[2]], ("x",)),
    ]:
        array = np.array(devices, dtype=object)
        try:
            Mesh(array, names)
            answer = "accepted"
        except ValueError as e:
            answer = type(e).__name__
        ids = [[0, d.id] for d in array.flat]
        axes = [[n, s] for n, s in zip(names, array.shape, strict=True)]
        found.append({"error": error, "axes": axes, "devices": ids, "jax": answer})
    return found


def spec_faults() -> list[Case]:
    """Return entries that JAX's PartitionSpec refuses or normalizes."""
    found: list[Case] = []
    for entries in ([["a"], None], [[], "a"], [["a", "b"], None, None], [["a", ["b"]]], [[["a"]]]):
        try:
            found.append({"entries": entries, "text": str(PartitionSpec(*map(frozen, entries)))})
        except ValueError as e:
            found.append({"entries": entries, "jax": type(e).__name__})
    return found


def frozen(entry: Any) -> Any:
    return tuple(map(frozen, entry)) if isinstance(entry, list) else entry


def draw(rng: random.Random, plan: Plan) -> tuple[list[Entry], list[int]]:
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5])
    spec = draw_spec(rng, plan, rank)
    return spec, draw_shape(rng, plan, spec, rank)


def tables(seed: int, progress: bool) -> Case:
    rng = random.Random(seed)
    meshes, cases, errors = [], [], []
    for number in range(MESHES):
        plan = Plan(rng)
        meshes.append(plan.record())
        cases += [ask(plan, number, *draw(rng, plan)) for _ in range(CASES_PER_MESH)]
        for _ in range(ERRORS_PER_MESH):
            spec, shape = spoil(rng, plan, *draw(rng, plan))
            if answer := fault(plan, spec, shape):
                errors.append({"mesh": number, "spec": spec, "shape": shape, **answer})
        if progress:
            print(f"\r{number + 1} of {MESHES} meshes", end="", file=sys.stderr)
    if progress:
        print(file=sys.stderr)
    return {
        "format": FORMAT,
        "jax": jax.__version__,
        "seed": seed,
        "meshes": meshes,
        "cases": cases,
        "errors": errors,
        "mesh_errors": mesh_faults(),
        "specs": spec_faults(),
    }


def differences(old: Case, new: Case) -> Iterator[str]:
    """Name differences, except exception classes, and the text of another version."""
    ignored = {"jax"} if old["jax"] == new["jax"] else {"jax", "text"}
    for part in ("meshes", "cases", "errors", "mesh_errors", "specs"):
        if len(old[part]) != len(new[part]):
            yield f"{part}: {len(old[part])} then, {len(new[part])} now"
        for i, (a, b) in enumerate(zip(old[part], new[part], strict=False)):
            for key in (a.keys() | b.keys()) - ignored:
                if a.get(key) != b.get(key):
                    yield f"{part}[{i}].{key}: {a.get(key)} then, {b.get(key)} now"


def write(table: Case) -> None:
    lines = []
    for key, value in table.items():
        if isinstance(value, list):
            rows = [json.dumps(r, separators=(",", ":"), ensure_ascii=False) for r in value]
            lines.append(f'"{key}":[\n' + ",\n".join(rows) + "\n]")
        else:
            lines.append(f'"{key}":{json.dumps(value)}')
    text = "{" + ",\n".join(lines) + "}\n"
    TABLES.parent.mkdir(exist_ok=True)
    TABLES.write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the existing tables")
    parser.add_argument("--seed", type=int, default=SEED, help="draw other cases to write")
    options = parser.parse_args()
    start = time.monotonic()
    old = json.loads(gzip.decompress(TABLES.read_bytes())) if options.check else None
    table = tables(old["seed"] if old else options.seed, progress=sys.stderr.isatty())
    counts = f"{len(table['cases'])} cases, {len(table['errors'])} errors"
    print(f"JAX {jax.__version__}: {counts}, {time.monotonic() - start:.0f} s")
    if old is None:
        write(table)
        return 0
    found = list(differences(old, json.loads(json.dumps(table))))
    for line in found[:20]:
        print(line)
    print(f"{len(found)} differences from the tables of JAX {old['jax']}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
