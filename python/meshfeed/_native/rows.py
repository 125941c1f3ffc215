"""Rows of a dataset: read by the library as Arrow arrays, and copied to NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int64, c_void_p
from typing import Any, NamedTuple

import numpy as np

from meshfeed._native.library import call


class _Array(ctypes.Structure):
    """`ArrowArray`, with pointers as addresses."""


_Array._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", c_void_p),
    ("release", ctypes.CFUNCTYPE(None, c_void_p)),
    ("private_data", c_void_p),
]

# The level of a column: LISTS of a varying length, lists of a FIXED length, TEXT or bytes, or
# values, for which it is the number of bits of one value.
LISTS, FIXED, TEXT = -1, -2, -3


class Level(NamedTuple):
    """One Arrow array of a column: from its rows to its values.

    Attributes:
        length: the number of entries.
        valid: whether each entry is not null; None if none is.
        offsets: of lists and text, where each entry begins, and the end of the last one.
        data: the bytes of values and text.
    """

    length: int
    valid: np.ndarray[Any, np.dtype[np.bool_]] | None
    offsets: np.ndarray[Any, np.dtype[np.int64]] | None
    data: np.ndarray[Any, np.dtype[np.uint8]] | None


def read(
    dataset: int,
    records: np.ndarray[Any, np.dtype[np.int64]],
    columns: Sequence[Sequence[int]],
) -> list[list[Level]]:
    """Reads records of a dataset and returns the levels of every column.

    Args:
        dataset: the handle.
        records: record numbers, which may repeat.
        columns: the kinds of the levels of each field.
    """
    array = _Array()
    call("mf_dataset_rows", dataset, records.ctypes.data, len(records), byref(array), None)
    try:
        return [_levels(array.children[i][0], kinds) for i, kinds in enumerate(columns)]
    finally:
        array.release(byref(array))


def _levels(array: Any, kinds: Sequence[int]) -> list[Level]:
    levels = []
    for d, kind in enumerate(kinds):
        if d:
            array = array.children[0][0]
        levels.append(_level(array, kind))
    return levels


def _level(array: Any, kind: int) -> Level:
    n, buffers = array.length, array.buffers
    valid = offsets = data = None
    if array.null_count and (address := buffers[0]):
        valid = bits(_copied(address, (n + 7) // 8), n)
    if kind in (LISTS, TEXT):
        offsets = _copied(buffers[1], 8 * (n + 1)).view(np.int64)
    if kind == TEXT:
        assert offsets is not None
        data = _copied(buffers[2], int(offsets[-1]))
    elif kind > 0:
        data = _copied(buffers[1], (n * kind + 7) // 8)
    return Level(n, valid, offsets, data)


def _copied(address: int | None, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    out = np.empty(size, np.uint8)
    if size and address:
        ctypes.memmove(out.ctypes.data, address, size)
    return out


def bits(packed: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns the first n bits as booleans, the lowest bit of a byte first."""
    return np.unpackbits(packed, count=n, bitorder="little").view(np.bool_)
