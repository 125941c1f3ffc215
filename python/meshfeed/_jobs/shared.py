"""The blocks of a batch that several processes hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshfeed._layout import documents

_Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Shared:
    """The blocks of this process that other processes hold too."""

    tensors: Sequence[int]  # their numbers in the batch
    labels: Sequence[str]  # their names in errors, such as "array 'image', index [0:8, 0:4]"
    writers: Sequence[int]  # for each block the lowest process that holds it
    readers: Mapping[int, frozenset[int]]  # by writer: the other processes that hold its blocks


def shared(info: Mapping[str, Any], mesh: Mapping[str, Any]) -> Shared:
    """Finds the shared blocks.

    Args:
        info: the library's description of the batches.
        mesh: the mesh of the layout document.
    """
    owners = np.array([process for process, _ in documents.devices(mesh)])
    readers: dict[int, set[int]] = {}
    found = []
    for array in info["arrays"]:
        if 0 in array["shape"]:
            continue  # an array without elements
        tiles = _tiles(mesh["axes"], array["spec"])
        groups = _groups(tiles, owners)
        for writer, *others in groups.values():
            readers.setdefault(writer, set()).update(others)
        found += [
            (block["tensor"], _label(array["name"], block["index"]), groups[tile][0])
            for block in array["blocks"]
            if (tile := int(tiles[block["holders"][0]])) in groups
        ]
    tensors, labels, writers = zip(*found, strict=True) if found else ((), (), ())
    return Shared(tensors, labels, writers, {w: frozenset(each) for w, each in readers.items()})


def _tiles(axes: Sequence[tuple[str, int]], spec: Sequence[Any]) -> _Numbers:
    """Returns the number of the tile that each device holds, in mesh order.

    Devices hold the same tile if they differ only along axes that the spec does not name.
    """
    used: set[str] = set()
    for entry in spec:
        used.update([entry] if isinstance(entry, str) else entry or ())
    n = stride = math.prod(size for _, size in axes)
    positions, tiles = np.arange(n), np.zeros(n, np.int64)
    for name, size in axes:
        stride //= size
        if name in used:
            tiles = tiles * size + positions // stride % size
    return tiles


def _groups(tiles: _Numbers, owners: _Numbers) -> dict[int, list[int]]:
    """Returns the processes, in ascending order, of every tile that several processes hold."""
    processes, owner = np.unique(owners, return_inverse=True)
    pairs = np.unique(tiles * len(processes) + owner)
    holders = processes[pairs % len(processes)]
    found = np.unique(pairs // len(processes), return_index=True, return_counts=True)
    several = [values[found[2] > 1].tolist() for values in found]
    return {tile: holders[at : at + n].tolist() for tile, at, n in zip(*several, strict=True)}


def _label(name: str, index: Sequence[Sequence[int]]) -> str:
    return f"array {name!r}, index [{', '.join(f'{a}:{b}' for a, b in index)}]"
