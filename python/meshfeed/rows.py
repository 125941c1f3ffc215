"""Rows of datasets as NumPy arrays."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meshfeed._io.arguments import Checks
from meshfeed._native.rows import FIXED, LISTS, TEXT, Level, bits, read
from meshfeed.errors import OutOfRangeError
from meshfeed.fields import Field

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Rows = dict[str, Any]  # of a batch or of one record, by field

_INDEX = "a record number, a slice, a list of numbers or a mask"
_TIMES = re.compile(r"(?:timestamp|date|duration|time)(?:32|64)?\[(\w+)")
_DAYS = {"day": "D"}

# The rows that are read at once to visit all records.
_ITERATED_BYTES, _ITERATED = 4 << 20, 4096


class Reader:
    """Reads rows of some fields, and makes NumPy arrays of them."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._columns = [_Column(field) for field in fields]
        self._kinds = [column.kinds for column in self._columns]
        row = sum(column.row_bytes for column in self._columns)
        self.at_once = max(1, min(_ITERATED, _ITERATED_BYTES // max(row, 1)))

    def batch(self, dataset: int, numbers: Numbers) -> Rows:
        """Returns rows of the dataset with this handle: one value per field."""
        columns = read(dataset, numbers, self._kinds)
        made = zip(self._columns, columns, strict=True)
        return {column.field.name: column.batch(levels) for column, levels in made}

    def row(self, dataset: int, number: int) -> Rows:
        """Returns one row."""
        return row_of(self.batch(dataset, np.array([number])), 0)

    def rows(self, dataset: int, numbers: Numbers) -> list[Rows]:
        """Returns each row as a dict of its own."""
        batch = self.batch(dataset, numbers)
        return [row_of(batch, i) for i in range(len(numbers))]

    def batches(self, dataset: int, records: int) -> Iterator[tuple[int, Rows]]:
        """Yields all records in batches of a few MiB, each with the number of its first one."""
        for start in range(0, records, self.at_once):
            numbers = np.arange(start, min(start + self.at_once, records), dtype=np.int64)
            yield start, self.batch(dataset, numbers)


def row_of(batch: Rows, i: int) -> Rows:
    """Returns row i of a batch. A row that is null is None."""
    return {name: _row(values, i) for name, values in batch.items()}


def _row(values: Any, i: int) -> Any:
    row = values[i]
    if isinstance(values, np.ma.MaskedArray):
        return None if np.ma.is_masked(row) and np.ma.getmaskarray(row).all() else unmasked(row)
    return row


def unmasked(values: Any) -> Any:
    """Returns the plain array of a masked one that has no null."""
    if isinstance(values, np.ma.MaskedArray) and not np.ma.is_masked(values):
        return np.ma.getdata(values)
    return values


def _nulls(levels: list[Level], shape: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
    """Returns which values of that shape are null; None if none is."""
    size, mask = math.prod(shape), None
    for level in levels:
        if level.valid is not None:
            nulls = ~level.valid
            if level.length > size:  # the two parts of a complex number
                nulls = nulls[::2]
            mask = np.zeros(size, np.bool_) if mask is None else mask
            mask |= np.repeat(nulls, size // len(nulls))
    return None if mask is None else mask.reshape(shape)


class _Column:
    """How the rows of a field become NumPy arrays.

    Attributes:
        field: the field.
        kinds: the kinds of the levels of its Arrow array.
        row_bytes: the bytes of a row; of a ragged one, a guess.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self._dtype = field.numpy_dtype
        self._text = bool(field.ragged) and "string" in field.logical
        self._bytes = bool(field.ragged) and "binary" in field.logical
        lists = [LISTS] * field.ragged
        if self._text or self._bytes:
            self.kinds = [*lists[1:], TEXT]
        else:
            self.kinds = [*lists, *[FIXED] * len(field.shape), *self._value_kinds()]
        elements = math.prod(field.shape) * (256 if field.ragged else 1)
        self.row_bytes = elements * self._dtype.itemsize
        self._time = _time_of(field.logical)

    def _value_kinds(self) -> list[int]:
        if self._dtype.kind == "c":
            return [FIXED, 4 * self._dtype.itemsize]
        if self._dtype.kind == "b":
            return [1]
        if self.field.dtype == "bfloat16":
            return [32]
        return [8 * self._dtype.itemsize]

    def batch(self, levels: list[Level]) -> Any:
        """Returns the rows: an array, or a list of the rows of a ragged field."""
        if self._text or self._bytes:
            return self._texts(levels, 0)
        elements = levels[self.field.ragged :]
        values = self._values(elements)
        if not self.field.ragged and not self.field.nullable:
            return values
        mask = _nulls(elements, values.shape)
        if not self.field.ragged:
            return np.ma.array(values, mask=False if mask is None else mask)
        return self._lists(levels, 0, values if mask is None else np.ma.array(values, mask=mask))

    def _values(self, levels: list[Level]) -> np.ndarray[Any, Any]:
        """Returns the elements, each of the shape of the field."""
        last = levels[-1]
        assert last.data is not None
        if self.field.dtype == "bool":
            values = bits(last.data, last.length)
        elif self.field.dtype == "bfloat16":
            values = last.data.view(np.float32).astype(self._dtype)
        else:
            values = last.data.view(self._dtype)
        if self._time:
            values = values.astype(np.int64, copy=False).view(self._time)
        return values.reshape(levels[0].length, *self.field.shape)

    def _lists(self, levels: list[Level], d: int, values: Any) -> list[Any]:
        """Returns the lists of level d; those of the last one are arrays."""
        if d + 1 < self.field.ragged:
            return _pieces(levels[d], self._lists(levels, d + 1, values))
        return [unmasked(x) for x in _pieces(levels[d], values)]

    def _texts(self, levels: list[Level], d: int) -> list[Any]:
        """Returns the text, bytes or lists of them of level d."""
        level = levels[d]
        if d + 1 < len(levels):
            return _pieces(level, self._texts(levels, d + 1))
        assert level.data is not None
        stored = level.data.tobytes()
        if self._text:
            return [None if x is None else x.decode() for x in _pieces(level, stored)]
        return _pieces(level, stored)


def _pieces(level: Level, inner: Any) -> list[Any]:
    """Cuts the entries of a level from what they consist of. A null is None."""
    assert level.offsets is not None
    ends = level.offsets.tolist()
    found = [inner[start:stop] for start, stop in itertools.pairwise(ends)]
    if level.valid is not None:
        for i in np.flatnonzero(~level.valid):
            found[i] = None
    return found


def _time_of(logical: str) -> np.dtype[Any] | None:
    """Returns the NumPy type of dates, times and durations; None for other values.

    Examples:
        >>> _time_of("timestamp[us, tz=UTC]"), _time_of("date32[day]"), _time_of("string")
        (dtype('<M8[us]'), dtype('<M8[D]'), None)
    """
    if logical.startswith(("datetime64", "timedelta64")):
        return np.dtype(logical)
    if not (found := _TIMES.match(logical)):
        return None
    kind = "M8" if logical.startswith(("timestamp", "date")) else "m8"
    return np.dtype(f"{kind}[{_DAYS.get(found[1], found[1])}]")


def numbers_of(check: Checks, index: Any, records: int) -> int | Numbers:
    """Returns the record numbers that an index names; an int if it names one record.

    A negative number counts from the end, as in NumPy.

    Raises:
        OutOfRangeError: there is no such record.
        InvalidArgumentError: the index is of another kind.
    """
    if isinstance(index, slice):
        return np.arange(*index.indices(records), dtype=np.int64)
    try:
        given = np.asarray(index)
    except (TypeError, ValueError):
        given = np.empty((), object)
    if given.dtype == np.bool_ and given.shape == (records,):
        return np.flatnonzero(given)
    if given.size == 0 and given.ndim == 1:
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu" or given.ndim > 1:
        hint = ""
        if given.dtype.kind == "b" and given.ndim == 1:
            hint = (
                f"a mask has one value for each of the {records} records, and this has {len(given)}"
            )
        elif isinstance(index, str):
            hint = f"ds.select([{index!r}])[:] has the rows of a field"
        raise check.misfit(f"index={index!r}: expected {_INDEX}", hint)
    outside = (given < -records) | (given >= records)
    if outside.any():
        wrong = int(given[outside].flat[0])
        message = f"record {wrong} is not one of the {records} records of the dataset"
        raise OutOfRangeError(
            message, op="Dataset", hint=f"give numbers from {-records} to {records - 1}"
        )
    given = np.where(given < 0, given + records, given).astype(np.int64)
    return int(given) if given.ndim == 0 else np.ascontiguousarray(given)
