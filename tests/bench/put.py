"""`mf.put` against `jax.device_put` of the same arrays, in one process.

    python -m tests.bench.put LEAF ROUNDS

A call counts until the arrays are ready, and drops them after that. Both loops take turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.bench import turns
from tests.bench.probe import aligned_bytes

P = PartitionSpec
SECONDS = 0.02  # of a turn
SKIP = 3  # first calls of a turn that do not count

Array = np.ndarray[Any, Any]


def _random(shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


LEAVES: dict[str, Callable[[], Any]] = {
    "128x32x32x3 f32": lambda: _random((128, 32, 32, 3), "float32"),
    "512x32x32x3 u8": lambda: _random((512, 32, 32, 3), "uint8"),
    "64x2048 i32": lambda: _random((64, 2048), "int32"),
    "4096x40 f32": lambda: _random((4096, 40), "float32"),
    "6 of 256x64 f32": lambda: {str(i): _random((256, 64), "float32") for i in range(6)},
}

# The sizes of the axes "data" and "model", and which dimensions are split.
MESHES = [((1,), "rows"), ((8,), "rows"), ((4, 2), "rows"), ((4, 2), "both"), ((2, 4), "rows")]


def aligned(array: Array, offset: int = 0) -> Array:
    """Copies an array to memory that begins `offset` bytes after a multiple of 64."""
    out = aligned_bytes(array.nbytes + offset)[offset:].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def read_only(array: Array) -> Array:
    """Copies an array to aligned memory that no array can write to."""
    out = aligned(array)
    owner: Any = out
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return out


class Memory(NamedTuple):
    """How the memory of the arrays is, and what both calls may do with it.

    Attributes:
        change: copies an array to such memory.
        may_alias: the argument of `mf.put`.
        is_copied: whether `device_put` gets a copy, as its array would change with the memory.
    """

    change: Callable[[Array], Array]
    may_alias: bool | None = None
    is_copied: bool = False


# NumPy aligns memory to 16 bytes.
MEMORIES = {
    "unaligned": Memory(partial(aligned, offset=16)),
    "read-only": Memory(read_only),
    "may_alias=True": Memory(aligned, may_alias=True),
    "writable": Memory(aligned, is_copied=True),
}


def spec(array: Array, split: str) -> PartitionSpec:
    """Splits the rows, or the rows and the last large dimension."""
    if split == "rows":
        return P("data")
    return P("data", *[None] * (array.ndim - 2 if array.ndim == 2 else 1), "model")


def run(leaf: str, rounds: int) -> list[dict[str, Any]]:
    """Returns the microseconds of both calls in all cells of a leaf."""
    given = LEAVES[leaf]()
    cells = []
    for name, memory in MEMORIES.items():
        tree = jax.tree.map(memory.change, given)
        for sizes, split in MESHES:
            devices = np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes)
            mesh = Mesh(devices, ("data", "model")[: len(sizes)])
            specs = jax.tree.map(partial(spec, split=split), tree)
            times = compare(tree, mesh, specs, memory, rounds)
            cells.append({"memory": name, "mesh": sizes, "split": split, "times": times})
    return cells


def compare(tree: Any, mesh: Mesh, specs: Any, memory: Memory, rounds: int) -> dict[str, Any]:
    """Returns the times of both calls, after a check that their arrays are equal."""
    shardings = jax.tree.map(lambda s: NamedSharding(mesh, s), specs)
    calls: dict[str, Callable[[], Any]] = {
        "meshfeed": lambda: mf.put(tree, mesh, specs, may_alias=memory.may_alias),
        "device_put": lambda: jax.device_put(tree, shardings),
    }
    if memory.is_copied:
        calls["device_put"] = lambda: jax.device_put(jax.tree.map(np.array, tree), shardings)
    got = [call() for call in calls.values()]
    jax.tree.map(np.testing.assert_array_equal, *got)
    stretches = {name: partial(_timed, name, call) for name, call in calls.items()}
    samples = turns.take_turns(stretches, rounds)
    return {name: turns.summary(parts) for name, parts in samples.items()}


def _timed(name: str, call: Callable[[], Any]) -> turns.Times:
    for _ in range(SKIP):
        jax.block_until_ready(call())
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        jax.block_until_ready(call())
        times.append((time.perf_counter_ns() - start) / 1e3)
    return {name: times}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
