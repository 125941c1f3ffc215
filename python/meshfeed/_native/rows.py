"""Rows of a dataset, which the library reads as Arrow arrays, in memory of NumPy arrays."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p, string_at
from typing import Any, NamedTuple

import numpy as np

from meshfeed._native.library import call

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# The level of a column: LISTS of a varying length, lists of a FIXED length, TEXT or bytes, or
# the number of bits of one value.
LISTS, FIXED, TEXT = -1, -2, -3

# `ArrowArray` without its last two words: length, null_count, offset, n_buffers, n_children,
# buffers, children and dictionary. Python reads these structs as bytes, because fields of ctypes
# would take most of the time of a row.
_ARRAY = struct.Struct("@qqqqqPPP")
_POINTERS = [struct.Struct(f"@{n}P") for n in range(4)]

LENT = 1 << 16  # bytes of a buffer that is not copied, because a copy would take longer


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
    data: Bytes | None


class _Record:
    """An `ArrowArray` of a record batch. It is released with the last array that it lends."""

    _releases: dict[int, Any] = {}  # noqa: RUF012 - the function of each address; there is one

    def __init__(self) -> None:
        self._words = (c_int64 * 10)()
        self.address = ctypes.addressof(self._words)

    def __del__(self) -> None:
        if not (release := self._words[8]):  # the call failed
            return
        function = self._releases.get(release)
        if function is None:
            function = self._releases[release] = CFUNCTYPE(None, c_void_p)(release)
        function(self.address)


class _Lent:
    """A buffer of a record batch, for `np.asarray`. The array keeps this object."""

    def __init__(self, record: _Record, address: int, size: int) -> None:
        self._record = record
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


def read(
    dataset: int,
    records: np.ndarray[Any, np.dtype[np.int64]] | int,
    columns: Sequence[Sequence[int]],
) -> list[list[Level]]:
    """Reads records of a dataset and returns the levels of every column.

    Args:
        dataset: the handle.
        records: record numbers, which may repeat; or one number.
        columns: the kinds of the levels of each field.
    """
    record = _Record()
    if isinstance(records, int):
        number = c_int64(records)
        call("mf_dataset_rows", dataset, ctypes.addressof(number), 1, record.address, None)
    else:
        numbers = records.ctypes.data
        call("mf_dataset_rows", dataset, numbers, len(records), record.address, None)
    return _columns(record, columns)


def moved(address: int, columns: Sequence[Sequence[int]]) -> list[list[Level]]:
    """Takes a record batch from where it is, and returns the levels of every column."""
    record = _Record()
    size = ctypes.sizeof(record._words)
    ctypes.memmove(record.address, address, size)
    ctypes.memset(address, 0, size)
    return _columns(record, columns)


def _columns(record: _Record, columns: Sequence[Sequence[int]]) -> list[list[Level]]:
    children = _ARRAY.unpack(string_at(record.address, _ARRAY.size))[6]
    at = struct.unpack(f"@{len(columns)}P", string_at(children, 8 * len(columns)))
    return [_levels(record, a, kinds) for a, kinds in zip(at, columns, strict=True)]


def _levels(record: _Record, address: int, kinds: Sequence[int]) -> list[Level]:
    levels: list[Level] = []
    for kind in kinds:
        n, nulls, _, n_buffers, _, buffers, children, _ = _ARRAY.unpack(
            string_at(address, _ARRAY.size)
        )
        valid = offsets = data = None
        if nulls or kind != FIXED:
            at = _POINTERS[n_buffers].unpack(string_at(buffers, 8 * n_buffers))
            if nulls and at[0]:
                valid = bits(_bytes(record, at[0], (n + 7) // 8), n)
            if kind in (LISTS, TEXT):
                offsets = _bytes(record, at[1], 8 * (n + 1)).view(np.int64)
            if kind == TEXT:
                assert offsets is not None
                data = _bytes(record, at[2], int(offsets[-1]))
            elif kind > 0:
                data = _bytes(record, at[1], (n * kind + 7) // 8)
        levels.append(Level(n, valid, offsets, data))
        if kind in (LISTS, FIXED):
            (address,) = _POINTERS[1].unpack(string_at(children, 8))
    return levels


def _bytes(record: _Record, address: int, size: int) -> Bytes:
    """Returns a buffer as an array that may be changed: a copy of a small one."""
    if not size or not address:
        return np.empty(size, np.uint8)
    if size < LENT:
        return np.frombuffer(bytearray(string_at(address, size)), np.uint8)
    return np.asarray(_Lent(record, address, size))


def bits(packed: Bytes, n: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns the first n bits as booleans, the lowest bit of a byte first."""
    return np.unpackbits(packed, count=n, bitorder="little").view(np.bool_)
