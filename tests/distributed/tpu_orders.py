"""Records in which order the installed JAX puts the chips of TPU slices into meshes.

    python -m tests.distributed.tpu_orders          # write testdata/tpu_orders.json

A TPU host holds a block of the torus, and JAX walks the torus. So a process's devices are scattered
over the mesh. The slices are imitated as in JAX's own tests of mesh_utils: by a list of devices
with kind, coordinates, core and process.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.experimental import mesh_utils

TABLE = Path(__file__).parent / "testdata" / "tpu_orders.json"

# Kind, chips in x, y and z, devices of one chip, slices.
SLICES = [
    ("TPU v3", (2, 2, 1), 2, 1),
    ("TPU v3", (4, 4, 1), 2, 1),
    ("TPU v4", (2, 2, 2), 1, 1),
    ("TPU v4", (2, 2, 4), 1, 1),
    ("TPU v4", (4, 4, 4), 1, 1),
    ("TPU v5 lite", (4, 2, 1), 1, 1),
    ("TPU v5 lite", (4, 4, 1), 1, 1),
    ("TPU v5 lite", (8, 8, 1), 1, 1),
    ("TPU v5", (2, 2, 2), 1, 1),
    ("TPU v5", (2, 2, 4), 1, 1),
    ("TPU v6 lite", (4, 4, 1), 1, 1),
    ("TPU7x", (2, 2, 2), 2, 1),
    ("TPU v4", (2, 2, 1), 1, 4),
    ("TPU v5 lite", (4, 4, 1), 1, 2),
]


@dataclass(frozen=True)
class Chip:
    """The attributes of a TPU device that JAX reads."""

    device_kind: str
    id: int
    process_index: int
    coords: tuple[int, int, int]
    core_on_chip: int
    slice_index: int
    platform: str = "tpu"


def devices(kind: str, size: tuple[int, ...], cores: int, slices: int) -> list[Chip]:
    """Returns the devices by slice, host, chip and core; a host holds 2 x 2 chips."""
    block = (min(size[0], 2), min(size[1], 2), 1)
    hosts = [n // b for n, b in zip(size, block, strict=True)]
    inner = [range(n) for n in (*reversed(block), cores)]
    outer = [range(n) for n in (slices, *reversed(hosts))]
    chips: list[Chip] = []
    for process, (number, *host) in enumerate(itertools.product(*outer)):
        for *chip, core in itertools.product(*inner):
            z, y, x = (h * b + c for h, b, c in zip(host, reversed(block), chip, strict=True))
            chips.append(Chip(kind, len(chips), process, (x, y, z), core, number))
    return chips


def shapes(n: int) -> list[tuple[int, ...]]:
    """Lists common shapes of n devices, with one, two or three axes."""
    pairs = [(n // m, m) for m in (2, 4, 8, n // 2) if n // m > 1]
    return [(n,), *dict.fromkeys(pairs), (2, n // 4, 2)]


def orders() -> list[dict[str, Any]]:
    """Makes the rows of the table, without the shapes that JAX rejects on a slice."""
    rows = []
    for kind, size, cores, slices in SLICES:
        chips = devices(kind, size, cores, slices)
        for shape in shapes(len(chips)):
            try:
                mesh = _mesh(shape, chips, slices)
            except NotImplementedError:
                continue
            text = "x".join(str(n) for n in size) + (f" x {slices} slices" if slices > 1 else "")
            order = [[chip.process_index, chip.id] for chip in mesh.flat]
            rows.append({"slice": f"{kind} {text}", "shape": list(shape), "devices": order})
    return rows


def _mesh(shape: tuple[int, ...], chips: list[Chip], slices: int) -> Any:
    if slices == 1:
        return mesh_utils.create_device_mesh(shape, chips)
    if shape[0] % slices:
        raise NotImplementedError
    outer = (slices, *[1] * (len(shape) - 1))
    inner = (shape[0] // slices, *shape[1:])
    return mesh_utils.create_hybrid_device_mesh(inner, outer, chips)


def text() -> str:
    """Returns the table as stored, one row per line."""
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in orders())
    return f'{{"jax":"{jax.__version__}","orders":[\n{rows}\n]}}\n'


if __name__ == "__main__":
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text())
