"""The records of a dataset, as NumPy, other loaders, Arrow and notebooks read them."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meshfeed._data import preview
from meshfeed._data.fields import Field, Origin, Skipped
from meshfeed._data.rows import Reader, Rows, numbers_of, rows_of
from meshfeed._io.arguments import RECORDS, Checks, no_fields
from meshfeed._native import arrow, calls, maps
from meshfeed._native.handle import Handle, Resource

log = logging.getLogger("meshfeed")

_LEFT_OUT = "columns that cannot be arrays are not in the %s: %s; %s"


class Readable(Resource):
    """The part of `Dataset` that reads records, and neither loads nor views them."""

    def __init__(self, handle: Handle, origin: Origin | None = None) -> None:
        super().__init__(handle)
        self._facts = calls.dataset_facts(self.handle)
        if origin is None:
            files = self._facts["files"]
            packed = {f["path"]: f["compression"] for f in files if "compression" in f}
            origin = Origin([f["path"] for f in files], packed)
        self._origin = origin

    def __len__(self) -> int:
        return int(self._facts["records"])

    def __getitem__(self, index: Any) -> Rows:
        """Returns rows as NumPy arrays, in a dict by field.

        ``ds[7]`` is record 7: a scalar or an array per field. ``ds[10:20]``, ``ds[[3, 1]]`` and
        ``ds[mask]`` are several records: an array per field, with a first dimension that counts
        them. A negative number counts from the end. The arrays are copies, which may be changed.

        The rows of a ragged field are a list: arrays for lists of numbers, `str` for text, `bytes`
        for binary, and lists for lists of these. Dates and times become datetime64 and
        timedelta64.

        In one record, a null row is None, and so is a row of a shape if all its values are null. In
        several, a field that may hold nulls is a `numpy.ma.MaskedArray`, and a null row of a ragged
        field is None.

        Args:
            index: a record number, a slice, a list or an array of numbers, or a mask.

        Raises:
            OutOfRangeError: there is no such record.
            InvalidArgumentError: the index is of another kind.
            UnsupportedError: the dataset has no field.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"label": [7, 8, 9], "text": ["a", None, "bc"]}))
            >>> ds[-1]
            {'label': np.int64(9), 'text': 'bc'}
            >>> ds[:2]
            {'label': array([7, 8]), 'text': ['a', None]}
        """
        with Checks("Dataset") as check:
            numbers = numbers_of(check, index, len(self))
            if isinstance(numbers, int):
                return self._reader.row(self.handle, numbers)
            return self._reader.batch(self.handle, numbers)

    def __getitems__(self, indices: Any) -> list[Rows]:
        """Returns each of several records as a dict, for PyTorch's `DataLoader`."""
        with Checks("Dataset") as check:
            numbers = np.atleast_1d(numbers_of(check, indices, len(self)))
            return self._reader.rows(self.handle, numbers)

    _getitems = __getitems__  # the name that Grain looks for

    def __iter__(self) -> Iterator[Rows]:
        """Yields every record, as ``ds[i]`` returns it. Several are read at once."""
        with Checks("Dataset"):
            for start, stop, batch in self._reader.batches(self.handle, len(self)):
                yield from rows_of(batch, stop - start, own=True)

    def head(self, n: int = 5) -> Rows:
        """Returns the first `n` records, as ``ds[:n]`` does.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> mf.from_arrays({"x": np.arange(100)}).head(3)
            {'x': array([0, 1, 2])}
        """
        with Checks("Dataset.head") as check:
            return self[: check.integer("n", n, 0, RECORDS)]

    @property
    def _reader(self) -> Reader:
        maps.refuse_reading(self._origin.functions)
        return self._columns

    @functools.cached_property
    def _columns(self) -> Reader:
        if not self.schema:
            raise no_fields(self.skipped)
        return Reader(
            list(self.schema.values()), encoded=bool(self._origin.packed or self._origin.functions)
        )

    @property
    def schema(self) -> dict[str, Field]:
        """The fields by name, in the order of the data."""
        return {
            f["name"]: Field(
                name=f["name"],
                dtype=f["dtype"],
                shape=tuple(f["shape"]),
                nullable=f["nullable"],
                logical=f.get("logical", ""),
                ragged=f.get("ragged", 0),
                names=tuple(f.get("names", ())),
            )
            for f in self._facts["fields"]
        }

    @property
    def skipped(self) -> list[Skipped]:
        """The columns that are not fields, because their type is not read, with the reasons."""
        return [Skipped(s["name"], s["type"], s["reason"]) for s in self._facts["skipped"]]

    @property
    def _commits(self) -> list[str]:
        """The names with commits under which the same files of a hub open again."""
        return list(self._facts.get("pinned", ()))

    @property
    def _far_bytes(self) -> int:
        """The size of the files on other machines, as stored."""
        return int(self._facts.get("far_bytes", 0))

    @property
    def _not_arrays(self) -> list[Skipped]:
        """The ragged fields and the skipped columns, with the reasons."""
        ragged = [f for f in self._facts["fields"] if f.get("ragged")]
        return [Skipped(f["name"], f["type"], f["reason"]) for f in ragged] + self.skipped

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a capsule of an Arrow stream of all records, in order.

        `pyarrow.table(ds)`, `polars.DataFrame(ds)` and `FROM ds` in DuckDB call it. The record
        batches have about 16 MiB and 2^20 rows at most, so a consumer of a stream need not hold
        all. The stream stays valid after the dataset is closed. Skipped columns are left out, with
        a warning.

        Args:
            requested_schema: ignored, as the protocol allows; the consumer casts.
        """
        with Checks("Dataset.__arrow_c_stream__"):
            capsule = self._stream()
            warn_of(self._origin, self.skipped, "Arrow stream", "print(ds) lists them")
            return capsule

    def __arrow_c_schema__(self) -> Any:
        """Returns a capsule of the Arrow schema of the fields."""
        with Checks("Dataset.__arrow_c_schema__"):
            return arrow.schema_of_stream(self._stream())

    def _stream(self) -> Any:
        if not self.schema:
            raise no_fields(self.skipped)
        for function in self._origin.functions:
            maps.pin(function)  # the stream may outlive all datasets
        formats = [arrow.format_of(field.logical) for field in self.schema.values()]
        return arrow.stream_of_dataset(self.handle, formats)

    def __repr__(self) -> str:
        lines = [f"  {f}{' (may hold nulls)' if f.nullable else ''}" for f in self.schema.values()]
        lines += [f"  {s.name}: not an array, {s.reason}" for s in self.skipped]
        packed = ", encoded" if self._origin.packed else ""
        lines += [f"  from {name}" for name in self._commits]
        return "\n".join([f"Dataset of {len(self)} records{packed}", *lines])

    def _repr_html_(self) -> str:
        """Returns the first rows as a table, for notebooks. It reads no other rows and fields.

        It never raises an error: a table that fails would hide the rest of a notebook.
        """
        try:
            return self._table()
        except Exception as e:
            return preview.failure(repr(self), e)

    def _table(self) -> str:
        fields = list(self.schema.values())
        shown, n = fields[: preview.FIELDS], min(len(self), preview.ROWS)
        rows: list[Rows] = [{} for _ in range(n)]
        if shown and n:
            view = calls.dataset_view("select", [self.handle], fields=[f.name for f in shown])
            with Readable(view) as part:
                rows = part.__getitems__(range(n))
        skipped = [(s.name, s.reason.partition("; ")[0]) for s in self.skipped]
        return preview.table(len(self), fields, rows, skipped)


def warn_of(origin: Origin, columns: Sequence[Skipped], where: str, remedy: str) -> None:
    """Warns once that columns are left out. `remedy` is what the user can do."""
    if not columns or origin.warned:
        return
    origin.warned = True
    why = [f"{s.name!r} ({s.reason.partition('; ')[0]})" for s in columns[:4]]
    names = ", ".join(why) + (", …" if len(columns) > 4 else "")
    log.warning(_LEFT_OUT, where, names, remedy)
