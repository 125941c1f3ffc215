"""Ask the installed JAX which dimensions of a torus of TPUs the axes of a mesh get.

Writes testdata/rings.json, the table that rings_test.go reads. README.md beside
this file describes it.

    python make_rings.py            # write the table
    python make_rings.py --check    # ask again and compare

The chips are imitated as in JAX's own tests of mesh_utils: by their coordinates.
"""

from __future__ import annotations

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import answers
import numpy as np
from answers import Case
from jax.experimental import mesh_utils

TABLE = Path(__file__).parent / "testdata" / "rings.json"
SEED = 20261123
CASES = 250


@dataclass(frozen=True)
class Chip:
    """The attributes of a TPU device that JAX reads."""

    id: int
    coords: tuple[int, ...]
    device_kind: str = "TPU v5"
    platform: str = "tpu"
    core_on_chip: int = 0
    process_index: int = 0


def draw(rng: random.Random) -> tuple[list[int], list[int]]:
    """Draw the dimensions of a torus, ascending, and a mesh of its chips."""
    torus = sorted(rng.choice([1, 2, 2, 3, 4, 4, 6, 8]) for _ in range(3))
    left, mesh = math.prod(torus), []
    for _ in range(rng.randint(0, 2)):
        # Mostly products of dimensions, so that they can be whole.
        parts = [n for n in rng.sample(torus, rng.randint(0, 2)) if n > 1]
        size = math.prod(parts) if rng.random() < 0.8 else rng.choice([2, 3, 4, 8])
        if left % size == 0:
            mesh.append(size)
            left //= size
    return torus, [*mesh, left]


def ask(rng: random.Random) -> Case:
    torus, mesh = draw(rng)
    chips = [Chip(i, c) for i, c in enumerate(np.ndindex(*torus))]
    case: Case = {"torus": torus, "mesh": mesh}
    try:
        table = mesh_utils.create_device_mesh(mesh, chips)
    except NotImplementedError:  # an axis would get a part of a dimension
        return case
    return {**case, "rings": [rings(table, axis) for axis in range(len(mesh))]}


def rings(table: Any, axis: int) -> list[int]:
    """Return the sizes of the dimensions in which the chips of an axis differ, ascending."""
    chips = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, 0]
    sizes = [len(set(values)) for values in zip(*(c.coords for c in chips), strict=True)]
    return sorted(n for n in sizes if n > 1)


def remark(cases: list[Case]) -> str:
    return f", {sum('rings' in case for case in cases)} with whole dimensions"


if __name__ == "__main__":
    sys.exit(answers.main(TABLE, SEED, ask, CASES, __doc__.split("\n\n")[0], remark))
