"""Ways to give one process of a job wrong bytes, and the errors that follow.

They work on the data and the arrays "x" and "y" of `tests.python.players`: four processes, where
0 and 2 hold the same rows, and so do 1 and 3.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import meshfeed as mf
from meshfeed._native.abi import Head
from meshfeed._native.owner import Owner
from tests.python.players import rows

SEED = int(os.environ.get("MESHFEED_SEED") or random.SystemRandom().getrandbits(32))

Bytes = np.ndarray[Any, Any]
Way = Callable[[mf.Loader, Bytes, int], None]  # changes the bytes of the batch of the n-th call


def corrupt(loader: mf.Loader, way: Way) -> None:
    """Changes the memory of every batch of a loader before its delivery."""
    inspector = loader._engine.cursor._make
    make = inspector.make  # type: ignore[attr-defined]
    count = 0

    def changed(owner: Owner) -> Any:
        nonlocal count
        held = owner.release._as_parameter_
        assert held is not None
        assert held.value is not None
        head = Head.from_address(held.value)
        memory = (ctypes.c_uint8 * head.bytes).from_address(head.data)
        way(loader, np.frombuffer(memory, np.uint8), count)
        count += 1
        return make(owner)

    inspector.make = changed  # type: ignore[attr-defined]


def blocks(loader: mf.Loader, memory: Bytes, name: str) -> list[Bytes]:
    """Returns the blocks of an array in a batch's memory."""
    array = next(a for a in loader._engine.batch.info["arrays"] if a["name"] == name)
    return [
        memory[b["offset"] : b["offset"] + b["bytes"]].view(array["dtype"]).reshape(b["shape"])
        for b in array["blocks"]
    ]


def one_byte(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[1].view(np.uint8)
    x.reshape(-1)[random.Random(SEED).randrange(x.size)] ^= 1


def last_bit(loader: mf.Loader, memory: Bytes, step: int) -> None:
    blocks(loader, memory, "x")[-1].view(np.uint8).reshape(-1)[-1] ^= 0x80


def swapped_blocks(loader: mf.Loader, memory: Bytes, step: int) -> None:
    a, b = blocks(loader, memory, "x")
    a[:], b[:] = b.copy(), a.copy()


def swapped_rows(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[0]
    x[:] = x[::-1].copy()


def swapped_columns(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[0]
    x[:, [0, 1]] = x[:, [1, 0]]


def shifted_row(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[0]
    x[:] = np.roll(x, 1, axis=0)


def doubled_row(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[0]
    x[1] = x[0]


def zeroed_row(loader: mf.Loader, memory: Bytes, step: int) -> None:
    blocks(loader, memory, "x")[1][0] = 0


def minus_zero(loader: mf.Loader, memory: Bytes, step: int) -> None:
    """Changes bytes that compare equal as numbers: bytes are compared, not numbers."""
    x = blocks(loader, memory, "x")[0]
    x[x == 0] = -0.0


def byte_order(loader: mf.Loader, memory: Bytes, step: int) -> None:
    y = blocks(loader, memory, "y")[1]
    y[:] = y.byteswap()


def rows_of_another_process(loader: mf.Loader, memory: Bytes, step: int) -> None:
    """Delivers the rows of process 1, as a loader does that chooses rows by rank."""
    for name in ("x", "y"):
        for block in blocks(loader, memory, name):
            start = 8 * step + 4
            block[:] = rows()[name][start : start + len(block)]


def stale_step(loader: mf.Loader, memory: Bytes, step: int) -> None:
    kept = loader.__dict__.setdefault("kept", [])
    kept.append(memory.copy())
    memory[:] = kept[max(0, len(kept) - 2)]


def garbage(loader: mf.Loader, memory: Bytes, step: int) -> None:
    x = blocks(loader, memory, "x")[0].view(np.uint8)
    x[:] = np.random.default_rng(SEED).integers(0, 256, x.shape)


WAYS = [
    one_byte,
    last_bit,
    swapped_blocks,
    swapped_rows,
    swapped_columns,
    shifted_row,
    doubled_row,
    zeroed_row,
    minus_zero,
    byte_order,
    rows_of_another_process,
    stale_step,
    garbage,
]

# Corruptions that a faulty loader or a wrong mesh would cause. The others imitate faulty hardware.
LOADER_FAULTS = [swapped_blocks, shifted_row, rows_of_another_process, stale_step]

# The error of the process that compares.
FOUND = re.compile(
    r"mf\.Loader: array '(x|y|all)', index \[[0-9:, ]+\](?: \(and [0-9]+ more\))?, differs between "
    r"processes 0 and 2 at epoch 0, step ([0-9]+); compare what these hosts read: meshfeed verify "
    r"--hash"
)
