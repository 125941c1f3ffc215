"""Rows of datasets as NumPy arrays."""

from __future__ import annotations

import itertools
import math
import operator
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meshfeed._data.fields import Field
from meshfeed._io.arguments import Checks, is_integer, repr_short
from meshfeed._native import calls, interruptible
from meshfeed._native.rows import FIXED, LISTS, TEXT, Level, bits, read
from meshfeed.errors import DataLossError, OutOfRangeError

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Rows = dict[str, Any]  # a batch or one record, by field

_INDEX = "a record number, a slice, a list of numbers or a mask"
_TIMES = re.compile(r"(?:timestamp|date|duration|time)(?:32|64)?\[(\w+)")
_DAYS = {"day": "D"}

# The rows that are read at once to visit all records: at first few, which show how large rows are.
_FIRST, _MOST, _MOST_BYTES = 16, 4096, 4 << 20

_SLOW = 0.001  # seconds of a read that has decoded
_MANY = 1024  # rows of a read that Ctrl-C can end; starting such a read takes about 0.2 ms


class Reader:
    """Reads rows of some fields, and makes NumPy arrays of them. It is safe in several threads.

    On the main thread, Ctrl-C ends a read of many rows, and one that decodes rows after another
    that did: reads of decoded rows take microseconds, and are made on the main thread itself.

    Args:
        fields: the fields.
        encoded: whether a row may have to be decoded or computed, which can take seconds.

    Attributes:
        kinds: the kinds of the levels of each field.
    """

    def __init__(self, fields: Sequence[Field], *, encoded: bool) -> None:
        self._columns = [_Column(field) for field in fields]
        self.kinds = [column.kinds for column in self._columns]
        self._encoded = self._slow = encoded

    def _read(self, dataset: int, numbers: Numbers | int) -> list[list[Level]]:
        """Reads rows. After Ctrl-C, the read goes on in the background."""
        if not isinstance(numbers, int) and len(numbers) >= _MANY:
            return interruptible.call(lambda: read(dataset, numbers, self.kinds))
        if not self._encoded:
            return read(dataset, numbers, self.kinds)
        began, slow, self._slow = time.perf_counter(), self._slow, True
        if slow:
            columns = interruptible.call(lambda: read(dataset, numbers, self.kinds))
        else:
            columns = read(dataset, numbers, self.kinds)
        self._slow = time.perf_counter() - began > _SLOW
        return columns

    def batch(self, dataset: int, numbers: Numbers) -> Rows:
        """Returns rows of the dataset with this handle: one value per field."""
        if len(numbers) < _MANY:
            return self.arrays(self._read(dataset, numbers))
        # After Ctrl-C the release of a handle of its own ends the read.
        handle = calls.dataset_view("slice", [dataset], start=0, stop=int(numbers.max()) + 1)
        try:
            columns = self._read(handle.value, numbers)
        except BaseException as e:
            handle.close(type(e))
            raise
        handle.close()
        return self.arrays(columns)

    def arrays(self, columns: list[list[Level]]) -> Rows:
        """Returns rows that the library has read: one value per field."""
        pairs = zip(self._columns, columns, strict=True)
        return {column.field.name: column.batch(levels) for column, levels in pairs}

    def row(self, dataset: int, number: int) -> Rows:
        """Returns one row. A row that is null is None."""
        pairs = zip(self._columns, self._read(dataset, number), strict=True)
        return {column.field.name: column.row(levels) for column, levels in pairs}

    def rows(self, dataset: int, numbers: Numbers) -> list[Rows]:
        """Returns each row as a dict of its own. The rows share memory."""
        return rows_of(self.batch(dataset, numbers), len(numbers))

    def batches(self, dataset: int, records: int) -> Iterator[tuple[int, int, Rows]]:
        """Yields all records in batches of a few MiB.

        Yields:
            The first record of the batch, the record after its last one, and the rows.
        """
        start, count = 0, _FIRST
        while start < records:
            stop = min(start + count, records)
            columns = self._read(dataset, np.arange(start, stop, dtype=np.int64))
            yield start, stop, self.arrays(columns)
            size = sum(_size(level) for levels in columns for level in levels)
            fit = _MOST_BYTES * (stop - start) // max(size, 1)
            start, count = stop, max(1, min(fit, 8 * count, _MOST))


def _size(level: Level) -> int:
    return sum(part.nbytes for part in level[1:] if isinstance(part, np.ndarray))


def rows_of(batch: Rows, n: int, *, own: bool = False) -> list[Rows]:
    """Returns the n rows of a batch, each as a dict. A row that is null is None.

    Args:
        batch: the rows, one value per field.
        n: how many there are.
        own: whether each row has memory of its own. If not, one row keeps the memory of all.
    """
    columns = [_split(values, own=own) for values in batch.values()]
    return [dict(zip(batch, row, strict=True)) for row in zip(*columns, strict=True)][:n]


def _split(values: Any, *, own: bool) -> list[Any]:
    """Returns the rows of a field."""
    if not isinstance(values, np.ma.MaskedArray):
        return [_owned(row) for row in values] if own else list(values)
    rows, mask = list(np.ma.getdata(values)), np.ma.getmaskarray(values)
    for i in np.flatnonzero(mask.any(axis=tuple(range(1, mask.ndim)))):
        rows[i] = None if mask[i].all() else values[i]
    return [_owned(row) for row in rows] if own else rows


def _owned(row: Any) -> Any:
    """Returns a row in memory of its own."""
    if isinstance(row, list):
        return [_owned(inner) for inner in row]
    return row.copy() if isinstance(row, np.ndarray) else row


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

    def row(self, levels: list[Level]) -> Any:
        """Returns the first row; None if it is null."""
        if self.field.ragged or not self.field.nullable:
            return self.batch(levels)[0]
        values = self._values(levels)  # a masked array of one row would take most of the time
        mask = _nulls(levels, values.shape)
        if mask is None or not mask.any():
            return values[0]
        return None if mask.all() else np.ma.array(values[0], mask=mask[0])

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
        """Returns the lists of level d; the lists of the last level are arrays."""
        if d + 1 < self.field.ragged:
            return _pieces(levels[d], self._lists(levels, d + 1, values))
        return [unmasked(x) for x in _pieces(levels[d], values)]

    def _texts(self, levels: list[Level], d: int) -> list[Any]:
        """Returns the text, bytes or lists of them of level d."""
        level = levels[d]
        if d + 1 < len(levels):
            return _pieces(level, self._texts(levels, d + 1))
        assert level.data is not None
        stored = _pieces(level, level.data.tobytes())
        if not self._text:
            return stored
        try:
            return [None if text is None else text.decode() for text in stored]
        except UnicodeDecodeError as e:  # Arrow files may claim that any bytes are UTF-8
            message = f"a row of the field {self.field.name!r} is not UTF-8: {repr_short(e.object)}"
            hint = "write the column as binary, or correct the file"
            raise DataLossError(message, op="Dataset", hint=hint) from None


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
        try:
            return np.arange(*index.indices(records), dtype=np.int64)
        except (TypeError, ValueError):  # a bound is not an integer, or the step is 0
            hint = "as in ds[10:20] or ds[::2]"
            raise check.wrong("index", index, "a slice of integers with a step", hint) from None
    if is_integer(index):
        return _inside(operator.index(index), records)
    given = _array(check, index)
    if given.dtype == np.bool_ and given.shape == (records,):
        return np.flatnonzero(given)
    if given.size == 0 and given.ndim == 1:
        return np.empty(0, np.int64)
    if given.dtype == object and given.ndim == 1 and all(map(is_integer, given)):
        for number in given:  # one of them may be larger than 64 bits
            _inside(operator.index(number), records)
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise check.wrong("index", index, _INDEX, _hint(index, given, records))
    low, high = int(given.min()), int(given.max())
    for number in (low, high):
        _inside(number, records)
    numbers = given.astype(np.int64)
    if low < 0:
        numbers[numbers < 0] += records
    return numbers


def _array(check: Checks, index: Any) -> np.ndarray[Any, Any]:
    """Returns an index of several records as an array."""
    if np.ma.is_masked(index):
        hint = "give index.filled(False)" if index.dtype == bool else "give index.compressed()"
        raise check.wrong("index", index, "numbers or a mask without nulls", hint)
    try:
        return np.asarray(index)
    except (TypeError, ValueError, RuntimeError):
        return np.empty((), object)


def _inside(number: int, records: int) -> int:
    """Returns the number of a record, counted from 0; raises an error if it does not exist."""
    if -records <= number < records:
        return number + records if number < 0 else number
    message = f"record {number} is not one of the {records} records of the dataset"
    hint = f"give numbers from {-records} to {records - 1}" if records else ""
    raise OutOfRangeError(message, op="Dataset", hint=hint)


def _hint(index: Any, given: np.ndarray[Any, Any], records: int) -> str:
    if isinstance(index, str):
        return f"ds.select([{index!r}])[:] has the rows of a field"
    if given.dtype.kind == "b" and given.ndim == 1:
        return f"a mask has one value for each of the {records} records, and this has {len(given)}"
    return ""
