"""Datasets: records with fields, from Arrow files, Arrow objects or NumPy."""

from __future__ import annotations

import dataclasses
import logging
import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from meshfeed._io import arraylike
from meshfeed._io.arguments import Checks, no_fields
from meshfeed._native import arrow, calls
from meshfeed._native.files import Files
from meshfeed._native.handle import Handle, Resource
from meshfeed._plan.blocks import dtype_of
from meshfeed.errors import InvalidStateError

log = logging.getLogger("meshfeed")

Paths = str | os.PathLike[str]
_PATH = (str, bytes, os.PathLike)
_DECODED = 2**28  # bytes of decoded record batches that the library keeps in its cache
_SLOW = (
    "%s is encoded (%s), and shuffled: every row takes the decoding of a whole record batch or row "
    "group, because the fields have %d bytes decoded, and %d are kept; "
    'use order="blocks", or write the data as Arrow IPC without compression, such as by '
    'pyarrow.feather.write_feather(table, path, compression="uncompressed")'
)
_SLOW_BLOCKS = (
    "%s is encoded (%s), and shuffled in blocks: a window of %d bytes takes the decoding of record "
    "batches or row groups of %d bytes, and %d are kept; give mf.Blocks a smaller window, and no "
    "records=, so that the blocks are what is decoded together"
)
_TIMES = (
    "mf.from_arrays: dates and times are delivered as int64, counts of their unit: %s; "
    "give array.view(np.int64) to avoid this warning"
)

_LEFT_OUT = "columns that cannot be arrays are not in the %s: %s; %s"
_SPECS = "specs that name fields, such as a list of names, avoid this warning"

# For objects that are not tables: a method that identifies the type, and the advice in the error.
_TABLES = {
    "collect": "give what its collect() returns",  # a LazyFrame of polars
    "to_table": "give what its to_table() returns",  # a pyarrow.dataset.Dataset
    "save_to_disk": 'give one of its splits, such as splits["train"]',  # a datasets.DatasetDict
}


@dataclasses.dataclass(frozen=True)
class Field:
    """A column of the dataset: rows of one shape, or ragged rows, whose length varies.

    Attributes:
        name: its name.
        dtype: the name of the element type, such as "float32" or "bfloat16"; "uint8" for text.
        shape: the shape of one row; empty for a scalar. If the field is ragged, the shape of one
            element of its lists.
        nullable: whether a record may have a null here.
        logical: the type whose stored values these are, such as "timestamp[us, tz=UTC]" of Arrow,
            "datetime64[s]" of NumPy, or "string"; empty for plain numbers.
        ragged: the number of leading dimensions whose size varies: 0 for rows of one shape, 1 for
            lists, text and bytes, 2 for lists of lists or of text.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nullable: bool
    logical: str = ""
    ragged: int = 0

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of NumPy."""
        return dtype_of(self.dtype)

    def __str__(self) -> str:
        stored = f" ({self.logical})" if self.logical else ""
        sizes = ", ".join(["…"] * self.ragged + [str(n) for n in self.shape])
        return f"{self.name}: {self.dtype}{f'[{sizes}]' if sizes else ''}{stored}"


@dataclasses.dataclass(frozen=True)
class Skipped:
    """A column that cannot be an array, and why."""

    name: str
    type: str
    reason: str


@dataclasses.dataclass
class _Origin:
    """The state that a dataset shares with its slices.

    Attributes:
        packed: the encoding of each file whose rows must be decoded, by path.
        logical: `Field.logical` by field, for types of NumPy, which the library does not know.
        compared: the files of `mf.open(fingerprint="full")`, whose every byte is compared; or None.
        warned: whether the warning about skipped columns was logged.
    """

    packed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    logical: Mapping[str, str] = dataclasses.field(default_factory=dict)
    compared: Sequence[str] | None = None
    warned: bool = False


class Dataset(Resource):
    """Records, numbered from 0, whose fields a `Loader` delivers.

    Make one with `mf.open`, `mf.from_arrow` or `mf.from_arrays`. A dataset is a context
    manager. Loaders keep what they need of it, so it may be closed as soon as they exist.
    """

    def __init__(self, handle: Handle, origin: _Origin | None = None) -> None:
        super().__init__(handle)
        self._facts = calls.dataset_facts(self.handle)
        if origin is None:
            files = self._facts["files"]
            origin = _Origin({f["path"]: f["compression"] for f in files if "compression" in f})
        self._origin = origin

    def __len__(self) -> int:
        return int(self._facts["records"])

    @property
    def schema(self) -> dict[str, Field]:
        """The fields by name, in the order of the data."""
        known = self._origin.logical
        return {
            (n := f["name"]): Field(
                name=n,
                dtype=f["dtype"],
                shape=tuple(f["shape"]),
                nullable=f["nullable"],
                logical=f.get("logical", known.get(n, "")),
                ragged=f.get("ragged", 0),
            )
            for f in self._facts["fields"]
        }

    @property
    def skipped(self) -> list[Skipped]:
        """The columns that are no fields, because their type is not read, with the reasons."""
        return [Skipped(s["name"], s["type"], s["reason"]) for s in self._facts["skipped"]]

    @property
    def _not_arrays(self) -> list[Skipped]:
        """The ragged fields and the skipped columns, with the reasons."""
        ragged = [f for f in self._facts["fields"] if f.get("ragged")]
        return [Skipped(f["name"], f["type"], f["reason"]) for f in ragged] + self.skipped

    def fingerprint(self) -> str:
        """Returns a hash of schema and content, the same on every host that has the same data.

        States contain it, and the processes of a job compare it. It covers every byte of a file of
        up to 16 MiB, and samples of a larger file. It depends on the division into record batches.

        For data in memory it covers all values of up to 256 MiB, and evenly spread rows of more. It
        does not depend on chunks. `fingerprint_covers` is the covered share; `sha256` reads all
        bytes.
        """
        with Checks("Dataset.fingerprint"):
            return calls.dataset_fingerprint(self.handle)

    @property
    def fingerprint_covers(self) -> float:
        """The share of the data that `fingerprint` covers; 1.0 if it reads everything.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> mf.from_arrays({"label": np.arange(1000)}).fingerprint_covers
            1.0
        """
        covered = self._facts["fingerprinted"]
        return float(covered["bytes"] / covered["of"]) if covered["of"] else 1.0

    def sha256(self) -> str:
        """Returns a SHA-256 over every byte of the files, which it reads once.

        It is the SHA-256 over the SHA-256 of each file, in order; `meshfeed verify --hash` prints
        the same. For a slice it is the SHA-256 of the whole dataset.

        Raises:
            UnsupportedError: the data are in memory.
        """
        with Checks("Dataset.sha256"):
            hashes = calls.dataset_hash(self.handle, wait=True)
            assert hashes is not None
            return str(hashes["sha256"])

    def slice(self, start: int, stop: int) -> Dataset:
        """Returns a view of the records from `start` up to `stop`, for example for validation.

        With one seed, slices of equal length are shuffled in the same order, because an order
        depends only on seed, epoch and number of records. To avoid this, give each loader its own
        `seed=`.

        Args:
            start: the first record.
            stop: the record after the last one.

        Raises:
            OutOfRangeError: the slice is not within the dataset.

        Examples:
            >>> import numpy as np, meshfeed as mf
            >>> ds = mf.from_arrays({"x": np.arange(10, dtype=np.int32)})
            >>> train, valid = ds.slice(0, 8), ds.slice(8, 10)
            >>> len(train), len(valid)
            (8, 2)
        """
        with Checks("Dataset.slice") as check:
            start, stop = check.int64("start", start), check.int64("stop", stop)
            handle = calls.dataset_slice(self.handle, start, stop)
            return Dataset(handle, self._origin)

    def lengths(self, field: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the length of every row of a ragged field: of its first dimension, -1 for null.

        It reads offsets and no values. `meshfeed inspect --lengths` prints a summary.

        Args:
            field: a field whose rows differ in length.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the rows of the field have one shape.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [], None]}))
            >>> ds.lengths("tokens").tolist()
            [3, 0, -1]
        """
        with Checks("Dataset.lengths") as check:
            out = np.empty(len(self), np.int64)
            calls.dataset_lengths(self.handle, check.name("field", field), out)
            return out

    def select(self, fields: Iterable[str]) -> Dataset:
        """Returns a view with some of the fields, in this order. Loaders read no others.

        Args:
            fields: their names.

        Raises:
            NotFoundError: there is no such field; the message lists all.
            UnsupportedError: the column cannot be an array; the message says why.
            InvalidArgumentError: a name occurs twice.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(3), "y": np.ones((3, 2)), "z": np.arange(3)})
            >>> ds.select(["z", "y"])
            Dataset of 3 records
              z: int64
              y: float64[2]
        """
        with Checks("Dataset.select") as check:
            several = hasattr(fields, "__iter__") and not isinstance(fields, str | bytes)
            names = list(fields) if several else []
            if not names or not all(isinstance(name, str) for name in names):
                raise check.wrong("fields", fields, 'a list of names, such as ["image", "label"]')
            return Dataset(calls.dataset_select(self.handle, names), self._origin)

    def take(self, indices: Any) -> Dataset:
        """Returns a view whose record k is record ``indices[k]`` of this dataset.

        Indices may be in any order, and may repeat. The view keeps a copy of them, 8 bytes each,
        and copies no records.

        Args:
            indices: integers from 0 to ``len(ds) - 1``: a one-dimensional array or a list. For a
                mask of booleans, give ``np.flatnonzero(mask)``.

        Raises:
            OutOfRangeError: an index is negative or too large; the message has its position.
            InvalidArgumentError: the indices are not integers in one dimension.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"label": np.array([7, 8, 9])}).take([2, 0, 2, 1])
            >>> with mf.Loader(ds, batch_size=4, shuffle=False) as loader:
            ...     next(iter(loader))["label"].tolist()
            [9, 7, 9, 8]
        """
        with Checks("Dataset.take") as check:
            return Dataset(calls.dataset_take(self.handle, _indices(check, indices)), self._origin)

    def pad(
        self,
        field: str,
        *,
        length: int,
        value: float | bool = 0,
        side: Literal["right", "left"] = "right",
        too_long: Literal["error", "truncate"] = "error",
    ) -> Dataset:
        """Returns a view in which the rows of a ragged field all have one length.

        The view also has the field ``f"{field}_length"`` of int32: how many elements of each row
        are its own. A null row becomes padding of length 0. Text becomes its bytes in UTF-8, as
        uint8. Rows are padded when they are loaded; nothing is copied before.

        Args:
            field: a field whose first dimension varies.
            length: the number of elements of every row.
            value: of the elements that are added.
            side: where they are added.
            too_long: "error" raises an error for a longer row, when a loader is made; "truncate"
                keeps its first elements.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the rows of the field have one shape, or it cannot hold `value`.
            UnsupportedError: the rows are lists of lists.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [], [8]]}))
            >>> with mf.Loader(ds.pad("tokens", length=4, value=-1), batch_size=3) as loader:
            ...     batch = next(iter(loader))
            >>> batch["tokens"].tolist()
            [[5, 6, 7, -1], [-1, -1, -1, -1], [8, -1, -1, -1]]
            >>> batch["tokens_length"].tolist()
            [3, 0, 1]
        """
        with Checks("Dataset.pad") as check:
            handle = calls.dataset_pad(
                self.handle,
                check.name("field", field),
                check.number("value", value),
                check.int64("length", length),
                left=check.choice("side", side, "right", "left") == "left",
                truncate=check.choice("too_long", too_long, "error", "truncate") == "truncate",
            )
            return Dataset(handle, self._origin)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a capsule of an Arrow stream of all records, in order.

        `pyarrow.table(ds)`, `polars.DataFrame(ds)` and `FROM ds` in DuckDB call it. The record
        batches have at most 16 MiB and 2^20 rows, so a consumer of a stream need not hold all. The
        stream stays valid after the dataset is closed. Ragged fields and skipped columns are left
        out, with a warning.

        Args:
            requested_schema: ignored, as the protocol allows; the consumer casts.
        """
        with Checks("Dataset.__arrow_c_stream__"):
            capsule = self._stream()
            warn_of_skipped(self, "Arrow stream", "print(ds) lists them")
            return capsule

    def __arrow_c_schema__(self) -> Any:
        """Returns a capsule of the Arrow schema of the fields."""
        with Checks("Dataset.__arrow_c_schema__"):
            return arrow.schema_of_stream(self._stream())

    def _stream(self) -> Any:
        if not fixed_fields(self):
            raise no_fields(self._not_arrays)
        formats = [arrow.format_of(field.logical) for field in self.schema.values()]
        return arrow.stream_of_dataset(self.handle, formats)

    def __repr__(self) -> str:
        lines = [f"  {f}{' (may hold nulls)' if f.nullable else ''}" for f in self.schema.values()]
        lines += [f"  {s.name}: not an array, {s.reason}" for s in self.skipped]
        packed = ", encoded: slow to shuffle" if self._origin.packed else ""
        return "\n".join([f"Dataset of {len(self)} records{packed}", *lines])

    def __reduce__(self) -> NoReturn:
        message = "a dataset cannot be pickled: it belongs to this process"
        raise InvalidStateError(
            message, op="mf.Dataset", hint="send the paths, and open them in the other process"
        )


def _indices(check: Checks, indices: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Checks record numbers and returns them as a contiguous array."""
    try:
        given = np.asarray(indices)
    except (TypeError, ValueError, RuntimeError):
        given = np.empty((), object)
    if given.size == 0 and given.ndim == 1:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        hint = "give np.flatnonzero(mask)" if given.dtype.kind == "b" else ""
        expected = "integers in one dimension"
        raise check.misfit(f"indices={given.dtype}{list(given.shape)}: expected {expected}", hint)
    if given.dtype == np.uint64 and given.size and given.max() > 2**63 - 1:
        given = np.minimum(given, np.uint64(2**63 - 1))  # out of range in any dataset
    return np.ascontiguousarray(given, np.int64)


def compared_files(dataset: Dataset) -> Files | None:
    """Returns the files if the processes of a job compare every byte of them, else None."""
    if dataset._origin.compared is None:
        return None
    return Files(calls.dataset_slice(dataset.handle, 0, len(dataset)), dataset._origin.compared)


def warn_of_shuffling(dataset: Dataset, fields: Iterable[str], order: str) -> None:
    """Warns of an order that decodes record batches or row groups again and again.

    That is so if files are encoded and the decoded fields exceed the library's cache. Blocks
    are an exception if those of a window are what is decoded together, and fit in the cache.

    Args:
        dataset: the dataset.
        fields: the fields that are read.
        order: the full name of an order that shuffles.
    """
    schema, packed = dataset.schema, dataset._origin.packed
    row = sum(math.prod(schema[f].shape) * schema[f].numpy_dtype.itemsize for f in set(fields))
    if not packed or row * len(dataset) <= _DECODED:
        return
    path, how = next(iter(packed.items()))
    units = dataset._facts.get("units")
    if order.startswith("blocks") and units:
        delivered, decoded = (row * n for n in _window_of(order, len(dataset), **units))
        if decoded > _DECODED or decoded > 2 * delivered:
            log.warning(_SLOW_BLOCKS, path, how, delivered, decoded, _DECODED)
    else:
        log.warning(_SLOW, path, how, row * len(dataset), _DECODED)


def _window_of(order: str, total: int, count: int, records: int) -> tuple[int, int]:
    """Returns how many records a window has at most, and how many are decoded for it.

    The dataset has `count` units of up to `records` records. Blocks of another size begin and end
    within units, which are then decoded for two blocks or more.
    """
    _, most, size, _ = order.split(":")
    block = int(size) or -(-total // count)
    blocks = -(-total // block)
    window = -(-blocks // -(-blocks // int(most)))
    each = block
    if int(size):
        each = records * (block // records + (block % records > 0))
    return min(total, window * block), min(total, window * each)


def fixed_fields(dataset: Dataset) -> dict[str, Field]:
    """Returns the fields whose rows have one shape, so that they can be arrays."""
    return {name: field for name, field in dataset.schema.items() if not field.ragged}


def not_arrays(dataset: Dataset) -> list[Skipped]:
    """Returns the columns that cannot be arrays, with the reasons."""
    return dataset._not_arrays


def warn_of_skipped(dataset: Dataset, where: str = "batches", remedy: str = _SPECS) -> None:
    """Warns once that some columns cannot be arrays, so that batches or a stream have none.

    Args:
        dataset: the dataset.
        where: what leaves them out.
        remedy: what the user can do.
    """
    skipped = not_arrays(dataset)
    if not skipped or dataset._origin.warned:
        return
    dataset._origin.warned = True
    why = [f"{s.name!r} ({s.reason.partition('; ')[0]})" for s in skipped[:4]]
    names = ", ".join(why) + (", …" if len(skipped) > 4 else "")
    log.warning(_LEFT_OUT, where, names, remedy)


def open(
    paths: Paths | Sequence[Paths],
    *,
    io: Literal["auto", "map", "read"] = "auto",
    shapes: Mapping[str, Sequence[int]] | None = None,
    duplicates: Literal["refuse", "allow"] = "refuse",
    fingerprint: Literal["sampled", "full"] = "sampled",
) -> Dataset:
    """Opens Parquet files, and Arrow IPC files and streams.

    Args:
        paths: a file, a glob such as ``"data/train-*.arrow"``, a directory (also one that
            Hugging Face `save_to_disk` wrote), or a list of them. A leading ``~`` is the home
            directory.
        io: "map" maps the files into memory, "read" reads each row from its file, and "auto", the
            default, chooses by the size and location of the files.
        shapes: the shape of a row, by name, for list columns whose rows have one length, such as
            ``{"image": (8, 8)}``; by default a row has the dimensions of the lists.
        duplicates: with "refuse", a file that is found twice, by overlapping globs or by a link,
            is an error; with "allow", its records are repeated.
        fingerprint: with "full" the processes of a job also compare a SHA-256 of every byte. Each
            computes it in the background during its first epoch. If a file differs, all processes
            raise an error that names it. By default they compare only `Dataset.fingerprint`, which
            samples files of more than 16 MiB.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: a file is found twice; the message names both paths.
        UnsupportedError: a file has another format, such as CSV, or is encrypted; the message says
            what to do.
        DataLossError: a file is damaged; the message names the file and the place in it.
    """
    with Checks("mf.open") as check:
        listed = _listed(check, paths)
        mode = check.choice("io", io, "auto", "map", "read")
        allowed = check.choice("duplicates", duplicates, "refuse", "allow") == "allow"
        rows = _shapes(check, shapes)
        full = check.choice("fingerprint", fingerprint, "sampled", "full") == "full"
        ds = Dataset(calls.dataset_open(listed, io=mode, allow_duplicates=allowed, shapes=rows))
        if full:
            ds._origin.compared = [file["path"] for file in ds._facts["files"]]
        return ds


def _listed(check: Checks, paths: Any) -> list[str]:
    """Checks `paths=` and returns a list of strings, in which the home directory replaces ~."""
    several = [paths] if isinstance(paths, _PATH) else paths
    unfit = isinstance(several, Mapping | set | frozenset) or hasattr(several, "read")
    try:
        listed = [] if unfit else [os.path.expanduser(os.fsdecode(path)) for path in several]
    except TypeError:
        listed = []
    if not all(listed) or not listed or "\0" in "".join(listed):
        expected = "a path, a glob, a directory or a list of them"
        ordered = "give sorted(paths): the order of the files is that of the records"
        hint = ordered if isinstance(paths, set | frozenset) else ""
        raise check.wrong("paths", paths, expected, hint)
    return listed


def _shapes(check: Checks, shapes: Any) -> dict[str, list[int]] | None:
    """Checks `shapes=` and returns the shape of a row for each field."""
    if shapes is None:
        return None
    try:
        given = {name: [operator.index(n) for n in shape] for name, shape in shapes.items()}
    except (AttributeError, TypeError):
        expected = 'the shape of a row for every field named, such as {"tokens": (2048,)}'
        raise check.wrong("shapes", shapes, expected) from None
    if any(n < 0 for shape in given.values() for n in shape):
        expected = "lengths of at least 0"
        hint = "no length is computed from the others: give all, or leave the shape out"
        raise check.wrong("shapes", shapes, expected, hint)
    return given


def from_arrow(data: Any, *, shapes: Mapping[str, Sequence[int]] | None = None) -> Dataset:
    """Makes a dataset from a table of pyarrow, polars, duckdb, pandas or others, without a copy.

    Args:
        data: an object with `__arrow_c_stream__` or `__arrow_c_array__`, or a Hugging Face dataset.
            A reader is read to its end. If a Hugging Face dataset was shuffled, filtered, or had
            rows selected, its rows are copied in their present order.
        shapes: as in `mf.open`.

    Examples:
        >>> import meshfeed as mf, pyarrow as pa
        >>> mf.from_arrow(pa.table({"label": pa.array([3, 1, 2], pa.int32())}))
        Dataset of 3 records
          label: int32
    """
    with Checks("mf.from_arrow") as check:
        rows = _shapes(check, shapes)
        if hasattr(data, "save_to_disk") and not isinstance(data, Mapping):
            data = data.with_format("arrow")[:]
        _check_objects(check, data)
        if hasattr(data, "__arrow_c_stream__"):
            capsule = data.__arrow_c_stream__()
            stream = arrow.address(capsule, "arrow_array_stream")
            return _unspent(check, data, Dataset(calls.dataset_from_stream(stream, rows)))
        if hasattr(data, "__arrow_c_array__"):
            schema, array = data.__arrow_c_array__()
            at = arrow.address(array, "arrow_array"), arrow.address(schema, "arrow_schema")
            return Dataset(calls.dataset_from_record_batch(*at, rows))
        message = f"{type(data).__name__} has neither __arrow_c_stream__ nor __arrow_c_array__"
        table = "give a table of pyarrow, polars, duckdb or pandas, or use mf.from_arrays"
        if isinstance(data, list | tuple) and all(hasattr(b, "__arrow_c_array__") for b in data):
            table = "give pyarrow.Table.from_batches(batches)"
        remedies = (remedy for method, remedy in _TABLES.items() if hasattr(data, method))
        raise check.misfit(message, next(remedies, table))


def _check_objects(check: Checks, data: Any) -> None:
    """Rejects Python objects in a table of polars, which exports their addresses as values."""
    if not hasattr(data, "get_columns"):
        return
    for column in data.get_columns():
        if type(column.dtype).__name__ == "Object":
            message = f"column {column.name!r} holds Python objects"
            raise check.misfit(message, f"leave it out: table.drop({column.name!r})")


def _unspent(check: Checks, data: Any, made: Dataset) -> Dataset:
    """Returns the dataset. Rejects a reader without records, which was probably read before."""
    if len(made) or not hasattr(data, "read_next_batch"):
        return made
    made.close()
    message = f"the {type(data).__name__} has no records left"
    raise check.misfit(message, "a reader is read once: give the table, or a new reader")


def from_arrays(arrays: Mapping[str, Any]) -> Dataset:
    """Makes a dataset from NumPy arrays, also strided ones, without a copy.

    Their first dimension counts records. The dataset and its loaders keep the arrays alive. Do not
    change the arrays until the dataset and its loaders are closed.

    Other objects, such as a list or an HDF5 dataset, are first read into a NumPy array. Dates and
    times become int64, with a warning; `Field.logical` names their unit. An array with missing
    values, such as a masked array or a pandas column with NA, is an error.

    Args:
        arrays: the fields by name.

    Raises:
        InvalidArgumentError: an array cannot be a field; the message says what to give instead.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> mf.from_arrays({"image": np.zeros((9, 8, 8), np.float32), "label": np.arange(9)})
        Dataset of 9 records
          image: float32[8, 8]
          label: int64
    """
    with Checks("mf.from_arrays") as check:
        _check_names(check, arrays)
        fields = {name: arraylike.exact(check, name, array) for name, array in arrays.items()}
        times = {name: str(a.dtype) for name, a in fields.items() if a.dtype.kind in "mM"}
        if times:
            log.warning(_TIMES, ", ".join(f"{name!r} ({kind})" for name, kind in times.items()))
        fields |= {name: fields[name].view(np.int64) for name in times}
        return Dataset(calls.dataset_from_arrays(fields), _Origin(logical=times))


def _check_names(check: Checks, arrays: Any) -> None:
    """Checks that the arrays are a mapping, and that each name can be a field's name."""
    if not isinstance(arrays, Mapping) or not all(isinstance(name, str) for name in arrays):
        message = "the arrays are not a dict of names and arrays"
        hint = 'give a dict, such as {"label": labels}'
        if getattr(getattr(arrays, "dtype", None), "names", None):
            hint = "give {name: array[name] for name in array.dtype.names}"
        if hasattr(arrays, "__arrow_c_stream__"):
            hint = "mf.from_arrow takes tables"
        raise check.misfit(message, hint)
    for name in arrays:
        if "\0" in name or not _is_unicode(name):
            message = f"the name {name!r} has a character that no field name may have"
            hint = "names are Unicode text without NUL"
            raise check.misfit(message, hint)


def _is_unicode(name: str) -> bool:
    """Returns whether a name has no surrogates, which UTF-8 cannot encode."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
