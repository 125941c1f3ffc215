"""What devices hold of a global batch, and a comparison with the whole batch.

A block is the name of an array, a range in each of its dimensions, and the SHA-256 of the part.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Block = tuple[str, list[list[int]], str]


def held(batch: Mapping[str, Any]) -> list[Block]:
    """Returns the blocks of a batch of `jax.Array`s that the devices of this process hold."""
    return [
        (name, [list(i.indices(n)[:2]) for i, n in zip(shard.index, array.shape, strict=True)], sha)
        for name, array in batch.items()
        for shard in array.addressable_shards
        for sha in [digest(shard.data)]
    ]


def compare(step: int, batch: Mapping[str, np.ndarray], blocks: list[Block]) -> int:
    """Compares the blocks of all processes with a batch that they must cover.

    Returns the number of blocks. Exits with a message if a byte differs or is missing.
    """
    covered = {name: np.zeros(array.shape, bool) for name, array in batch.items()}
    for name, ranges, sha in blocks:
        part = tuple(slice(*each) for each in ranges)
        if digest(batch[name][part]) != sha:
            sys.exit(f"step {step}: {name}{ranges} differs from an undisturbed run")
        covered[name][part] = True
    for name, cells in covered.items():
        if not cells.all():
            sys.exit(f"step {step}: no device got {(~cells).sum():,} elements of {name}")
    return len(blocks)


def compare_all(steps: Iterable[Sequence[Any]], batches: Sequence[Mapping[str, np.ndarray]]) -> int:
    """Compares the logged lines of all processes, by step, with the batches of all steps.

    Returns the number of blocks. Exits with a message if a byte differs or is missing.
    """
    compared = 0
    for together in steps:
        (step,) = {line["step"] for line in together}
        found = [block for line in together for block in line["blocks"]]
        compared += compare(step, batches[step - 1], found)
    return compared


def digest(array: Any) -> str:
    return hashlib.sha256(np.asarray(array).tobytes()).hexdigest()
