"""Ask the installed JAX which devices communicate in a collective over mesh axes.

Writes testdata/groups.json, the table that groups_test.go reads. README.md beside
this file describes it.

    python make_groups.py            # write the table
    python make_groups.py --check    # ask again and compare

Every case is a psum over some axes of a mesh of real CPU devices in a random order. Its groups are
read out of the program that JAX lowers, and the groups of the program that XLA compiled must be the
same.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from pathlib import Path

DEVICES = 48
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = str(DEVICES)

import answers  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from answers import Case  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402

TABLE = Path(__file__).parent / "testdata" / "groups.json"
SEED = 20261123
CASES = 120
NAMES = ["data", "model", "x", "y", "expert"]


def draw(rng: random.Random) -> tuple[list[tuple[str, int]], list[str]]:
    """Draw the axes of a mesh, and some of them in any order."""
    axes: list[tuple[str, int]] = []
    size = 1
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        n = rng.choice([1, 2, 2, 2, 3, 3, 4, 6, 8])
        if size * n <= DEVICES:
            axes.append((name, n))
            size *= n
    names = [name for name, _ in axes]
    return axes, rng.sample(names, rng.randint(1, len(names)))


def ask(rng: random.Random) -> Case:
    axes, over = draw(rng)
    names, sizes = [name for name, _ in axes], [n for _, n in axes]
    devices = np.array(jax.devices(), dtype=object)[rng.sample(range(DEVICES), int(np.prod(sizes)))]
    mesh = Mesh(devices.reshape(sizes), tuple(names))
    spec = PartitionSpec(*names)
    step = jax.shard_map(
        lambda x: jax.lax.psum(x, tuple(over)),
        mesh=mesh,
        in_specs=spec,
        out_specs=spec,
        check_vma=False,
    )
    lowered = jax.jit(step).lower(jax.ShapeDtypeStruct(sizes, jnp.float32))
    groups = lowered_groups(lowered.as_text())
    compiled = compiled_groups(lowered.compile().as_text())
    # XLA may drop a collective of groups of one device.
    assert compiled == groups or len(groups[0]) == 1, (axes, over, groups, compiled)
    return {"axes": axes, "over": over, "groups": groups}


def lowered_groups(text: str) -> list[list[int]]:
    found = re.search(r"replica_groups = dense<(.*?)> : tensor<(\d+)x(\d+)xi64>", text)
    assert found, text
    values = np.array(json.loads(found[1]))  # a single number if all are equal
    return np.broadcast_to(values, (int(found[2]), int(found[3]))).tolist()


def compiled_groups(text: str) -> list[list[int]] | None:
    found = re.search(r"replica_groups=\{(.*?\})\}", text)
    if not found:
        return None
    return [[int(d) for d in g.split(",")] for g in re.findall(r"\{(.*?)\}", found[1])]


if __name__ == "__main__":
    sys.exit(answers.main(TABLE, SEED, ask, CASES, __doc__.split("\n\n")[0]))
