"""Opens datasets: Arrow and Parquet files, Arrow objects, and arrays of NumPy."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from meshfeed import _types
from meshfeed._data import filesystem as files
from meshfeed._data.dataset import Dataset, cache_folder, compare_files, origin
from meshfeed._data.fields import Field, element, row_shape
from meshfeed._io import arraylike
from meshfeed._io.arguments import Checks, is_field_name
from meshfeed._jobs import commits
from meshfeed._native import arrow, calls

log = logging.getLogger("meshfeed")

Paths = str | os.PathLike[str]
_PATH = (str, bytes, os.PathLike)
_TIMES = (
    "mf.from_arrays: dates and times are delivered as int64, counts of their unit: %s; "
    "give array.view(np.int64) to avoid this warning"
)

# Objects with one of these are tables and datasets.
_NO_PATHS = ("__arrow_c_stream__", "__arrow_c_array__", "save_to_disk", "collect", "to_table")

# For objects that are not tables: a method that identifies the type, and the advice in the error.
_TABLES = {
    "set_epoch": "a stream has no record numbers: use load_dataset without streaming=True",
    "joinpath": "mf.open opens files",  # a pathlib.Path
    "splitlines": "mf.open opens files",  # a str
    "collect": "give what its collect() returns",  # a LazyFrame of polars
    "to_table": "give what its to_table() returns",  # a pyarrow.dataset.Dataset
    "save_to_disk": 'give one of its splits, such as splits["train"]',  # a datasets.DatasetDict
}


def open(
    paths: Paths | Sequence[Paths],
    *,
    columns: Sequence[str] | None = None,
    io: Literal["auto", "map", "read"] = "auto",
    shapes: _types.Shapes | None = None,
    duplicates: Literal["refuse", "allow"] = "refuse",
    fingerprint: Literal["sampled", "full"] = "sampled",
    split: str | None = None,
    cache: Literal["auto", "memory"] | Paths | None = "auto",
    cache_bytes: int | None = None,
    dtype: npt.DTypeLike | None = None,
    skip: int = 0,
    images: bool = False,
    filesystem: Any = None,
) -> Dataset:
    """Opens files of Parquet, Arrow IPC, JSON Lines, WebDataset, TFRecord or tokens as a dataset.

    JSON Lines may be compressed (``.jsonl``, ``.ndjson``, ``.jsonl.gz``, ``.jsonl.zst``). The first
    MiB of a file gives the fields their types: int64, float64, bool, text, and lists of these.

    An archive of WebDataset (``shards-{000000..000127}.tar``) has a field for each ending of the
    names of files, with their bytes, and ``__key__``.

    A file of TFRecord, also compressed with gzip, has a field for each feature of its records of
    ``tf.Example``: bytes, float32 or int64. A feature with one value in each record is a scalar,
    and one with as many in every record has rows of that length. Others are lists.

    Files of tokens are .npy files, raw files, and pairs of Megatron, which are opened by their
    ``.idx``. They have one field, ``tokens``. A .npy file has a record for each index of its first
    dimension, a raw file one for each element, and Megatron one for each document.
    ``ds.window(2048)`` makes sequences of elements.

    Addresses of web servers open too: ``"https://host/train-{000..127}.parquet"``. Row groups of
    Parquet and record batches of Arrow files are read when they are needed; other files are fetched
    whole. A server lists no files, so addresses have no globs. Objects in a bucket of S3 or of
    Google Cloud Storage have names such as ``"s3://bucket/train-*.parquet"`` and ``"gs://…"``, and
    datasets of the Hugging Face hub ``"hf://datasets/ORG/NAME/data"``, both with globs.

    Args:
        paths: a file, an address, a glob such as ``"data/train-*.arrow"``, a directory, also of
            Hugging Face's `save_to_disk`, or a list of them. A leading ``~`` is the home
            directory. Directories such as ``year=2024`` in a directory become a field ``year``.
            Columns are matched by name, and their types of values must agree, as string and
            large_string do.
        columns: the names of the columns that become fields, in this order. All files must have
            them; other columns may differ. By default all columns become fields, and a field that
            only some files have is an error.
        io: "map" maps the files into memory, "read" reads each row from its file, and "auto", the
            default, chooses by the size and location of the files.
        shapes: the shape of a row, by name, for list columns whose rows have one length, such as
            ``{"image": (8, 8)}``; by default a row has the dimensions of the lists. Binary columns
            have rows of bytes, or of another type: ``jax.ShapeDtypeStruct((8, 8), "float32")``, or
            anything with `shape` and `dtype`. A record of another size is an error.
        duplicates: with "refuse", a file that is found twice, by overlapping globs, by a link, or
            in two formats such as ``a.arrow`` and ``a.parquet``, is an error; with "allow", its
            records are repeated.
        fingerprint: with "full" the processes of a job also compare a SHA-256 of every byte. Each
            computes it in the background during its first epoch. If a file differs, all processes
            raise an error that names it. By default they compare only `Dataset.fingerprint`, which
            samples files of more than 16 MiB.
        split: which split of a directory is meant, such as "train". The directory is a
            `DatasetDict` that `save_to_disk` wrote, a dataset in the cache of `load_dataset` or of
            `huggingface_hub`, or has files such as ``train-00000-of-00002.parquet``.
        cache: where the rows of Parquet, JSON Lines, TFRecord and compressed files are kept once
            they are decoded, with the text of compressed files of JSON Lines and TFRecord.
            "memory" keeps up to 256 MiB. A path is a folder, which is made if it does not exist;
            all processes of a host share it, and it may be removed at any time when none runs.
            "auto", the default, is memory if the fields of a loader take up to 256 MiB decoded
            and the files are on this machine, and ``~/.cache/meshfeed/units`` otherwise (below
            ``$XDG_CACHE_HOME`` if that is set).
            If that folder cannot be used, a warning says why, and memory is used. None is memory,
            and a loader refuses to shuffle such files.
        cache_bytes: the most bytes of all files in the folder; those that were used longest ago
            are removed first. The default is a quarter of what is free on its disk.
        dtype: the type of the elements of raw files, such as "uint16" for nanoGPT's ``train.bin``.
            They are little-endian. Without it, the files must say what they hold.
        skip: bytes before the first element of each raw file, such as the 1024 of the header in
            files of llm.c and modded-nanoGPT.
        images: the path is a folder that has a folder of images for each class, as in
            ``imagenet/train/cat/1.jpg``. The fields are ``image`` with the bytes of a file,
            ``label`` with the number of its class, and ``path``. ``ds.schema["label"].names`` has
            the classes, which are sorted as in torchvision's ImageFolder. `Dataset.decode_image`
            makes arrays.
        filesystem: finds and reads the files, for storages that `paths` cannot name: a file system
            of fsspec, of which `info`, `ls`, `glob` and `cat_file` are called, or a store of
            obstore. Its threads read blocks of up to 8 MiB, up to 16 at a time. It makes its own
            retries. Without a version or a time in its `info`, a change of a file is not noticed,
            and nothing is kept on disk; a warning says so.

    Raises:
        NotFoundError: there is no such file or split.
        InvalidArgumentError: a file is found twice, and the message names both paths; or a
            directory has several splits, and the message names them.
        IncompatibleError: a column has other types of values in two files, or only some files have
            it; the message names both files and the column. Also if a line of JSON has another
            type than the first lines, when it is read; the message names the file and the line.
        UnsupportedError: a file has another format, such as CSV, or is encrypted; the message says
            what to do.
        DataLossError: a file is damaged; the message names the file and the place in it. Or a file
            of a web server has changed since it was opened, when it is read.
        ReadError: a server cannot be reached, or denies access; or `filesystem` has raised an
            exception, which is its cause.
    """
    with Checks("mf.open") as check:
        listed = _listed(check, paths)
        mode = check.choice("io", io, "auto", "map", "read")
        allowed = check.choice("duplicates", duplicates, "refuse", "allow") == "allow"
        rows = _shapes(check, shapes)
        wanted = _columns(check, columns)
        full = check.choice("fingerprint", fingerprint, "sampled", "full") == "full"
        chosen = None if split is None else check.name("split", _split_name(split))
        kept = _cache(check, cache)
        kept_bytes = check.optional("cache_bytes", cache_bytes, 1, 2**63 - 1) or 0
        raw = element(check, "dtype", dtype)
        skipped = check.integer("skip", skip, 0, 2**63 - 1)
        folder = bool(check.boolean("images", images))
        served = None
        if filesystem is not None:
            listed, served = files.opened(check, filesystem, listed)
        opened = functools.partial(
            calls.dataset_open,
            listed,
            io=mode,
            allow_duplicates=allowed,
            shapes=rows,
            columns=wanted,
            split=chosen,
            cache=kept,
            cache_bytes=kept_bytes,
            dtype=raw,
            skip=skipped,
            images=folder,
            served=served,
        )
        ds = Dataset(commits.of_job(listed, lambda known: opened(commits=known)))
        if cache is None:
            origin(ds).uncached = list(origin(ds).packed)
        if full:
            compare_files(ds)
        return ds


def _split_name(split: Any) -> Any:
    """Returns the name of a split, also of one such as `datasets.Split.TRAIN`."""
    return str(split) if type(split).__name__ == "NamedSplit" else split


def _listed(check: Checks, paths: Any) -> list[str]:
    """Checks `paths=` and returns a list of strings, with the home directory in place of ~."""
    if any(hasattr(paths, name) for name in _NO_PATHS) and not hasattr(paths, "to_list"):
        message = f"{type(paths).__name__} is not a path"
        raise check.misfit(message, "mf.from_arrow makes a dataset of a table")
    several = [paths] if isinstance(paths, _PATH) else paths
    stream = hasattr(several, "read")
    unordered = isinstance(several, set | frozenset | Iterator) and not stream  # as of Path.glob
    unfit = isinstance(several, Mapping) or unordered or stream
    try:
        listed = [] if unfit else [os.path.expanduser(os.fsdecode(path)) for path in several]
    except TypeError:
        listed = []
    if not all(listed) or not listed or "\0" in "".join(listed):
        expected = "a path, a glob, a directory or a list of them"
        ordered = "give sorted(paths): the order of the files decides the order of the records"
        hint = ordered if unordered else ""
        raise check.wrong("paths", paths, expected, hint)
    return listed


def _columns(check: Checks, columns: Any) -> list[str]:
    """Checks `columns=` and returns the names. None stands for all columns, as an empty list."""
    if columns is None:
        return []
    expected = 'a list of the names of columns, such as ["tokens", "label"]'
    if isinstance(columns, str | bytes | Mapping) or not isinstance(columns, Iterable):
        raise check.wrong("columns", columns, expected)
    names = [check.field("columns", name) for name in columns]
    if not names:
        raise check.wrong("columns", columns, expected, "leave it out for all columns")
    return names


def _cache(check: Checks, cache: Any) -> str:
    """Checks `cache=` and returns the word or the path that the library takes."""
    if cache is None:
        return "memory"
    return cache_folder(check, "cache", cache, '"auto", "memory", a folder or None')


def _shapes(check: Checks, shapes: Any) -> dict[str, calls.RowShape] | None:
    """Checks `shapes=` and returns the shape of a row, and its element type, for each field."""
    if shapes is None:
        return None
    if not isinstance(shapes, Mapping):
        expected = 'the shape of a row for every field named, such as {"tokens": (2048,)}'
        raise check.wrong("shapes", shapes, expected)
    given: dict[str, calls.RowShape] = {}
    for name, shape in shapes.items():
        argument = f"shapes[{name!r}]"
        typed = hasattr(shape, "dtype") and not hasattr(shape, "__iter__")
        dims, dtype = (shape.shape, shape.dtype) if typed else (shape, None)
        given[check.name("shapes", name)] = (
            row_shape(check, argument, dims),
            element(check, f"{argument}.dtype", dtype),
        )
    return given


def from_arrow(data: Any, *, shapes: _types.Shapes | None = None) -> Dataset:
    """Makes a dataset from a table of pyarrow, polars, duckdb, pandas or others, without a copy.

    Args:
        data: an object with `__arrow_c_stream__` or `__arrow_c_array__`, or a Hugging Face dataset.
            A reader is read to its end. If a Hugging Face dataset was shuffled, filtered, or had
            rows selected, its records come in their present order, which takes 8 bytes each. Rows
            are copied if a column has nulls, or lists of different lengths. A format with columns
            chooses these; a transform is an error.
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
            data = _formatted(check, data)
            dataset = _chosen(data, shapes)
            if dataset is not None:
                return dataset
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
        if isinstance(data, list) and data and isinstance(data[0], Mapping):
            table = "give pyarrow.Table.from_pylist(rows)"
        remedies = (remedy for method, remedy in _TABLES.items() if hasattr(data, method))
        raise check.misfit(message, next(remedies, table))


def _formatted(check: Checks, data: Any) -> Any:
    """Returns a Hugging Face dataset without the columns that its format leaves out.

    Rejects a transform, because it computes other rows than the stored ones.
    """
    form = getattr(data, "format", None) or {}
    if form.get("type") == "custom":
        message = "the dataset has a transform, which computes its rows when they are read"
        remedy = "store its rows with map, or leave it out: dataset.with_format(None)"
        raise check.misfit(message, remedy)
    chosen = form.get("columns")
    if chosen is None or form.get("output_all_columns") or len(chosen) == len(data.column_names):
        return data
    return data.select_columns([name for name in data.column_names if name in chosen])


def _chosen(data: Any, shapes: _types.Shapes | None) -> Dataset | None:
    """Makes a dataset of the chosen rows of a Hugging Face dataset, without a copy.

    Returns None for a dataset of all rows, and if a field depends on which rows are chosen: some
    may be null, or some lists may have other lengths. A release of the library may keep rows and
    indices elsewhere, too.
    """
    indices = getattr(data, "_indices", None)
    table = getattr(getattr(data, "data", None), "table", None)
    if indices is None or table is None:
        return None
    with from_arrow(table, shapes=shapes) as stored:
        fields = stored.schema.values()
        if any(not _is_text(f) if f.ragged else f.nullable for f in fields):
            return None
        return stored.take(indices.column(0).to_numpy())


def _is_text(field: Field) -> bool:
    return "string" in field.logical or "binary" in field.logical


def _check_objects(check: Checks, data: Any) -> None:
    """Rejects Python objects in a table of polars, which exports their addresses as values."""
    if not hasattr(data, "get_columns"):
        return
    for column in data.get_columns():
        if type(column.dtype).__name__ == "Object":
            message = f"column {column.name!r} holds Python objects"
            raise check.misfit(message, f"leave it out: table.drop({column.name!r})")


def _unspent(check: Checks, data: Any, dataset: Dataset) -> Dataset:
    """Returns the dataset. Rejects a reader without records, which was probably read before."""
    if len(dataset) or not hasattr(data, "read_next_batch"):
        return dataset
    dataset.close()
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
        return Dataset(calls.dataset_from_arrays(fields, times))


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
        if not is_field_name(name):
            message = f"the name {name!r} has a character that no field name may have"
            hint = "names are Unicode text without NUL"
            raise check.misfit(message, hint)
