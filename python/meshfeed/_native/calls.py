"""The calls of the C library that are not made for every batch, as Python functions.

A call that may wait is made again every `SLICE_MS`, so that Ctrl-C is handled.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int32, c_int64, c_uint64, sizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from meshfeed._native import abi
from meshfeed._native.abi import Array, Bytes, DType, Stats
from meshfeed._native.handle import Handle, LayoutHandle, created, wait
from meshfeed._native.library import SLICE_MS, call, copied, encoded, library, read_json, read_text
from meshfeed._native.wording import in_python
from meshfeed.errors import Code, NotFoundError

if TYPE_CHECKING:
    import numpy as np

    from meshfeed._native.maps import Served

    # The shape of a row, and the type of the elements of binary values; None stands for bytes.
    RowShape = tuple[Sequence[int], np.dtype[Any] | None]
    Shapes = Mapping[str, RowShape]


def _field(name: str) -> bytes:
    """Encodes the name of a field, which ends with NUL in C."""
    if "\0" in name:
        raise NotFoundError(f"the dataset has no field {name!r}", hint="no field name contains NUL")
    return name.encode()


# ---- datasets ----

_IO = ("auto", "map", "read")  # by the numbers of mf_dataset_options.io


def _dtype(dtype: np.dtype[Any] | None) -> DType:
    return DType() if dtype is None else DType(_DLPACK[dtype.kind], 8 * dtype.itemsize, 1)


def _row_shape(field: str, shape: RowShape) -> abi.RowShape:
    dims, dtype = shape
    return abi.RowShape(_field(field), (c_int64 * len(dims))(*dims), len(dims), _dtype(dtype))


def _dataset_options(shapes: Shapes | None) -> abi.DatasetOptions:
    given = shapes or {}
    rows = (abi.RowShape * len(given))(*(_row_shape(*named) for named in given.items()))
    options = abi.DatasetOptions(sizeof(abi.DatasetOptions))
    options.shapes, options.n_shapes = rows, len(rows)
    return options


def dataset_open(
    paths: Sequence[str],
    *,
    io: str,
    allow_duplicates: bool,
    shapes: Shapes | None,
    columns: Sequence[str],
    split: str | None,
    cache: str,
    cache_bytes: int,
    dtype: np.dtype[Any] | None,
    skip: int,
    images: bool,
    commits: Mapping[str, str],
    served: Served | None,
) -> Handle:
    """Opens files. Without names of columns, all columns become fields.

    If the call fails before the library owns the function that is served, its threads end.
    """
    options = _dataset_options(shapes)
    options.columns = (c_char_p * len(columns))(*map(_field, columns))
    options.n_columns = len(columns)
    options.io = _IO.index(io)
    options.split = None if split is None else _field(split)
    options.cache, options.cache_bytes = os.fsencode(cache), cache_bytes
    options.dtype, options.skip = _dtype(dtype), skip
    options.commits = json.dumps(commits).encode()
    options.flags = abi.ALLOW_DUPLICATES * allow_duplicates | abi.IMAGES * images
    options.storage = None if served is None else ctypes.addressof(served.function)
    names = (c_char_p * len(paths))(*map(os.fsencode, paths))
    given = names, len(paths), byref(options)
    return created("dataset", "mf_dataset_open", *given, unused=served.close if served else None)


def dataset_open_tensors(path: str) -> Handle:
    """Opens a file of arrays as a dataset of one record."""
    return created("file of arrays", "mf_dataset_open_tensors", os.fsencode(path))


def dataset_from_stream(address: int, shapes: Shapes | None) -> Handle:
    """Moves an Arrow C stream into a dataset."""
    options = _dataset_options(shapes)
    return created("dataset", "mf_dataset_open_stream", address, byref(options))


def dataset_from_record_batch(array: int, schema: int, shapes: Shapes | None) -> Handle:
    """Moves a record batch of the Arrow C data interface into a dataset."""
    at, options = (array, schema), _dataset_options(shapes)
    return created("dataset", "mf_dataset_open_record_batch", *at, byref(options))


def dataset_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], logical: Mapping[str, str]
) -> Handle:
    """Lends NumPy arrays to a dataset until no handle needs them.

    Args:
        arrays: the fields by name.
        logical: the type that the values of a field stand for, by name.
    """
    descriptions = (Array * len(arrays))()
    for out, (name, array) in zip(descriptions, arrays.items(), strict=True):
        out.struct_size = sizeof(Array)
        out.data = array.ctypes.data
        out.logical = logical.get(name, "").encode()
        _describe(out, name, array.dtype, array.shape, array.strides)
    lent = list(arrays.values())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lent))
    release = library().mf_python_drop, id(lent)
    return created("dataset", "mf_dataset_open_arrays", descriptions, len(arrays), *release)


def _describe(
    out: Array, name: str, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]
) -> None:
    """Writes the description of an array's memory, without its address."""
    out.ndim = len(shape)
    out.name = name.encode()
    out.dtype = DType(_DLPACK[dtype.kind], 8 * dtype.itemsize, 1)
    out.shape = (c_int64 * len(shape))(*shape)
    out.strides = (c_int64 * len(shape))(*strides)


# DLPack's type codes by NumPy's kind. The only "V" here is bfloat16.
_DLPACK = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}


def dataset_facts(handle: int) -> dict[str, Any]:
    """Describes a dataset."""
    facts = read_json("mf_dataset_info", handle)
    for column in facts["fields"] + facts["skipped"]:
        if "reason" in column:
            column["reason"] = in_python(column["reason"])
    return facts


def dataset_fingerprint(handle: int) -> str:
    """Returns the hash of the content."""
    out = Bytes()
    wait("mf_dataset_fingerprint", handle, byref(out))
    return copied(out)


def dataset_hash(handle: int, *, wait: bool) -> dict[str, Any] | None:
    """Returns the SHA-256 of all bytes of the files, and of each file.

    Args:
        handle: of the dataset.
        wait: whether to wait until all files are read. If not, the result may be None.
    """
    out = Bytes()
    while call("mf_dataset_hash", handle, SLICE_MS, byref(out)) == Code.Timeout:
        if not wait:
            return None
    hashes: dict[str, Any] = json.loads(copied(out))
    return hashes


def dataset_view(
    kind: str,
    handles: Sequence[int],
    values: tuple[np.ndarray[Any, Any] | ctypes.Structure, int] | None = None,
    unused: Callable[[], None] | None = None,
    /,
    **document: Any,
) -> Handle:
    """Creates a view of datasets.

    Args:
        kind: of the view, such as "slice"; `meshfeed.h` lists the kinds.
        handles: of the datasets below.
        values: the contiguous array beside the document, and how many indices or bits it has; or
            the function of a map, and 1.
        unused: called if the call fails before the library owns the function.
        document: the members of the document that are not None.
    """
    (view,) = dataset_views(kind, handles, 1, values, unused, **document)
    return view


def dataset_views(
    kind: str,
    handles: Sequence[int],
    count: int,
    values: tuple[np.ndarray[Any, Any] | ctypes.Structure, int] | None = None,
    unused: Callable[[], None] | None = None,
    /,
    **document: Any,
) -> list[Handle]:
    """Creates several views, such as the parts of a split; see `dataset_view`."""
    members = {name: member for name, member in document.items() if member is not None}
    below, out = (c_uint64 * len(handles))(*handles), (c_uint64 * count)()
    at, n = (None, 0) if values is None else values
    address = ctypes.addressof(at) if isinstance(at, ctypes.Structure) else None
    if at is not None and address is None:
        address = at.ctypes.data
    views = [Handle("dataset", c_uint64.from_buffer(out, 8 * i)) for i in range(count)]
    try:
        text = encoded(json.dumps(members, ensure_ascii=False))
        call("mf_dataset_view", kind.encode(), *text, below, len(handles), address, n, out, count)
        for handle in views:
            wait("mf_wait", handle.out)
    except BaseException as e:  # after Ctrl-C this must not wait for a file system
        if unused is not None and not any(out):
            unused()
        for handle in views:
            handle.close(type(e))
        raise
    return views


_LENGTHS = 2**20  # records of one call, so that Ctrl-C is noticed between two


def dataset_lengths(handle: int, field: str, out: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """Writes the lengths of all rows of a ragged field."""
    for start in range(0, max(len(out), 1), _LENGTHS):
        part = out[start : start + _LENGTHS]
        at = (start, start + len(part), part.ctypes.data)
        call("mf_dataset_lengths", handle, _field(field), *at)


def dataset_convert(handle: int, folder: str, **document: Any) -> dict[str, Any]:
    """Writes the files of a part of a conversion, and returns the report. It takes long."""
    text = encoded(json.dumps(document))
    return read_json("mf_dataset_convert", handle, os.fsencode(folder), *text)


# ---- loaders ----


def loader_create(dataset: int, document: str, given: Mapping[str, Any]) -> Handle:
    """Creates a loader.

    Args:
        dataset: the handle of the dataset.
        document: the layout.
        given: the fields of `mf_loader_options` that the user gave. `state` is a text, `fill` is a
            dict of numbers, and prefetch 0 builds each batch on request.
    """
    options = abi.LoaderOptions(sizeof(abi.LoaderOptions))
    for name in _NUMBERS & given.keys():
        setattr(options, name, given[name])
    options.flags = abi.IGNORE_DATASET if given.get("ignore_dataset") else 0
    if given.get("prefetch") == 0:
        options.prefetch = -1
    if "order" in given:
        options.order = given["order"].encode()
    if "state" in given:
        options.state = given["state"]
    options.fill, values = _fills(given.get("fill", {}))
    options.n_fill = len(values) // 16
    with LayoutHandle(document) as layout:
        return created("loader", "mf_loader_create", dataset, layout, byref(options))


_NUMBERS = {"process", "processes", "seed", "epochs", "prefetch", "max_host_bytes", "workers"}


def _fills(fill: Mapping[str, Any]) -> tuple[Any, Any]:
    """Builds an array of `mf_fill`, and the memory that it points at."""
    fills, values = (abi.Fill * len(fill))(), ctypes.create_string_buffer(16 * len(fill))
    for i, (name, number) in enumerate(fill.items()):
        code, form, *parts = _element(number)
        struct.pack_into(form, values, 16 * i, *parts)
        dtype = DType(code, 8 * struct.calcsize(form), 1)
        fills[i] = abi.Fill(_field(name), ctypes.addressof(values) + 16 * i, dtype)
    return fills, values


def _element(number: Any) -> tuple[Any, ...]:
    """Returns DLPack's code of a number, and what `struct` packs: its format and its parts.

    Args:
        number: a boolean, a number, a list of the two parts of a complex number, or the name of
            a number that JSON does not have.
    """
    if isinstance(number, bool):
        return _DLPACK["b"], "?", number
    if isinstance(number, int) and -(2**63) <= number < 2**64:
        return (_DLPACK["i"], "q", number) if number < 2**63 else (_DLPACK["u"], "Q", number)
    if isinstance(number, list):
        return _DLPACK["c"], "dd", *map(float, number)
    return _DLPACK["f"], "d", float(number)


def loader_one_epoch(handle: int, epoch: int) -> Handle:
    """Creates an independent pass over one epoch."""
    return created("loader", "mf_loader_one_epoch", handle, epoch)


def loader_remesh(handle: int, document: str, process: int) -> Handle:
    """Creates a loader that continues at the position of another one, on another layout."""
    with LayoutHandle(document) as layout:
        return created("loader", "mf_loader_remesh", handle, layout, process)


def loader_info(handle: int) -> dict[str, Any]:
    """Describes the batches of a loader."""
    return read_json("mf_loader_info", handle)


def loader_components(handle: int) -> dict[str, Any]:
    """Returns the tree of what the fingerprint of the dataset is made of."""
    return read_json("mf_loader_components", handle)


def loader_state(handle: int) -> dict[str, Any]:
    """Returns the state after the last batch that the library delivered."""
    return read_json("mf_loader_state", handle)


def loader_restore(handle: int, state: bytes, *, ignore_dataset: bool) -> None:
    """Continues at a state."""
    flags = abi.IGNORE_DATASET if ignore_dataset else 0
    call("mf_loader_restore", handle, *encoded(state), flags)


def loader_seek(handle: int, epoch: int, position: int) -> None:
    """Continues at a position of an epoch."""
    call("mf_loader_seek", handle, epoch, position)


def loader_skip(handle: int, steps: int) -> None:
    """Skips the next steps."""
    call("mf_loader_skip", handle, steps)


def loader_rewind(handle: int, epoch: int, position: int) -> None:
    """Continues at the end of an earlier batch, and takes back the batches after it."""
    call("mf_loader_rewind", handle, epoch, position)


def loader_certificate(handle: int, epoch: int, position: int) -> str:
    """Returns the certificate of everything delivered up to the end of a batch."""
    return read_text("mf_loader_certificate", handle, epoch, position)


def certificate_add(a: str, b: str) -> str:
    """Adds two certificates."""
    return read_text("mf_certificate_add", *encoded(a), *encoded(b))


Range = tuple[int, int, int, int]  # first epoch and position, last epoch and position


def _range(covered: Range | None) -> Any:
    """Builds an `mf_range`, or NULL."""
    return None if covered is None else (c_int64 * 4)(*covered)


def certificate_check(text: str, covered: Range | None, dataset: int) -> None:
    """Checks a range of a certificate against its order and seed. No dataset is 0."""
    checked = *encoded(text), _range(covered), dataset
    created("certificate", "mf_certificate_check", *checked).close()


def certificate_report(text: str | bytes, covered: Range | None = None) -> str:
    """Returns what a certificate claims about a range."""
    return read_text("mf_certificate_report", *encoded(text), _range(covered))


def loader_records(handle: int, epoch: int, position: int, out: np.ndarray[Any, Any]) -> None:
    """Writes the records of a batch to an int64 array of the same length."""
    count = c_int64()
    call("mf_loader_records", handle, epoch, position, out.ctypes.data, out.size, byref(count))


def _stats(handle: int) -> Stats:
    stats = Stats(sizeof(Stats))
    call("mf_loader_stats", handle, byref(stats))
    return stats


def loader_stats(handle: int) -> dict[str, int]:
    """Returns the counters of a loader."""
    stats = _stats(handle)
    return {name: getattr(stats, name) for name, _ in Stats._fields_[2:]}


def loader_position(handle: int) -> tuple[int, int]:
    """Returns epoch and position of the batch that the library delivers next."""
    stats = _stats(handle)
    return stats.epoch, stats.position


# ---- splitters ----


class HostArray(NamedTuple):
    """The memory of an array in the program: its name, type, shape and strides in bytes."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def splitter_create(document: str, process: int, arrays: Sequence[HostArray]) -> Handle:
    """Creates a splitter of arrays in this memory, which are the layout's arrays."""
    descriptions = (Array * len(arrays))()
    for out, array in zip(descriptions, arrays, strict=True):
        out.struct_size = sizeof(Array)
        _describe(out, *array)
    with LayoutHandle(document) as layout:
        given = layout, process, descriptions, len(arrays)
        return created("splitter", "mf_splitter_create", *given)


def splitter_info(handle: int) -> dict[str, Any]:
    """Describes the batches of a splitter."""
    return read_json("mf_splitter_info", handle)


# ---- batches ----


def batch_retain(batch: int) -> None:
    """Adds a reference to the batch at this address."""
    library().mf_batch_retain(batch)


def batch_release(batch: int) -> None:
    """Drops a reference to the batch at this address."""
    library().mf_batch_release(batch)


def digests(batch: int, tensors: Sequence[int]) -> list[bytes]:
    """Returns XXH3-128 of blocks of the batch at this address. The caller keeps it alive."""
    n = len(tensors)
    out = (ctypes.c_uint8 * (16 * n))()
    call("mf_digest", batch, (c_int32 * n)(*tensors), n, out)
    data = bytes(out)
    return [data[16 * i : 16 * i + 16] for i in range(n)]


def digest_of(address: int, size: int) -> bytes:
    """Returns XXH3-128 of `size` bytes at an address. Other threads run meanwhile."""
    out = (ctypes.c_uint8 * 16)()
    call("mf_digest_memory", address, size, out)
    return bytes(out)
