"""The cold calls of the C library, as functions.

Every call that may wait does so in slices, so that Ctrl-C is answered.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from ctypes import byref, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

from meshfeed._native.abi import RELEASE, Array, Bytes, DType, Stats
from meshfeed._native.handle import Handle
from meshfeed._native.library import SLICE_MS, borrowed, call, library
from meshfeed.errors import Code

if TYPE_CHECKING:
    import numpy as np


def _made(what: str, name: str, *arguments: Any) -> Handle:
    """Calls a function that makes a handle, and waits until what it names stands."""
    handle = Handle(what)
    try:
        call(name, *arguments, byref(handle.out))
        _patiently("mf_wait", handle.out)
    except BaseException as e:  # after Ctrl-C nobody waits for a file that does not answer
        handle.close(type(e))
        raise
    return handle


def _patiently(name: str, handle: Any, *arguments: Any) -> None:
    while call(name, handle, SLICE_MS, *arguments) == Code.Timeout:
        pass


def _taken(out: Bytes) -> str:
    """Copies a text out of memory of the library, and frees that."""
    try:
        return ctypes.string_at(out.data, out.size).decode() if out.data else ""
    finally:
        library().mf_bytes_free(byref(out))


def _text(name: str, *arguments: Any) -> str:
    out = Bytes()
    call(name, *arguments, byref(out))
    return _taken(out)


def _encoded(text: str | bytes) -> tuple[bytes, int]:
    data = text.encode() if isinstance(text, str) else text
    return data, len(data)


# ---- layouts ----


class _Layout(Handle):
    """A layout handle for the time of one call."""

    def __init__(self, document: str | bytes) -> None:
        super().__init__("layout")
        self._document = document

    def __enter__(self) -> int:
        call("mf_layout_create", *_encoded(self._document), byref(self.out))
        return self.value

    def __exit__(self, *_: object) -> None:
        self.close()


def layout_canonical(document: str | bytes) -> str:
    """Reads a layout document and gives its canonical form."""
    with _Layout(document) as handle:
        return _text("mf_layout_json", handle)


def layout_report(document: str, *, tables: bool) -> str:
    """Gives the report of a layout, as JSON."""
    with _Layout(document) as handle:
        options = json.dumps({"tables": tables})
        return _text("mf_layout_report", handle, *_encoded(options))


def layout_drawing(document: str, options: Mapping[str, Any]) -> str:
    """Draws a layout, as text or SVG."""
    with _Layout(document) as handle:
        return _text("mf_layout_draw", handle, *_encoded(json.dumps(options)))


def layout_page(document: str) -> str:
    """Gives the browser page that begins with a layout."""
    with _Layout(document) as handle:
        return _text("mf_layout_page", handle)


# ---- datasets ----


def dataset_open(options: str) -> Handle:
    """Opens files."""
    return _made("dataset", "mf_dataset_open", *_encoded(options))


def dataset_from_stream(address: int, options: str) -> Handle:
    """Moves an Arrow C stream into a dataset."""
    return _made("dataset", "mf_dataset_open_stream", address, *_encoded(options))


@RELEASE
def _give_back(context: int) -> None:
    borrowed.pop(context, None)


def dataset_from_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> Handle:
    """Lends NumPy arrays to a dataset until its last user is gone."""
    descriptions = (Array * len(arrays))()
    for out, (name, array) in zip(descriptions, arrays.items(), strict=True):
        out.struct_size = ctypes.sizeof(Array)
        out.ndim = array.ndim
        out.name = name.encode()
        out.data = array.ctypes.data
        out.dtype = DType(_DLPACK[array.dtype.kind], 8 * array.dtype.itemsize, 1)
        out.shape = (c_int64 * array.ndim)(*array.shape)
        out.strides = (c_int64 * array.ndim)(*array.strides)
    lent = list(arrays.values())
    borrowed[id(lent)] = lent
    back = _give_back, id(lent)
    return _made("dataset", "mf_dataset_open_arrays", descriptions, len(arrays), *back)


# DLPack's type codes by NumPy's kind; the only "V" that gets here is bfloat16.
_DLPACK = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}


def dataset_facts(handle: int) -> dict[str, Any]:
    """Gives what is in a dataset."""
    facts: dict[str, Any] = json.loads(_text("mf_dataset_info", handle))
    return facts


def dataset_fingerprint(handle: int) -> str:
    """Gives the hash of the content."""
    out = Bytes()
    _patiently("mf_dataset_fingerprint", handle, byref(out))
    return _taken(out)


def dataset_hash(handle: int, *, wait: bool) -> dict[str, Any] | None:
    """Gives the SHA-256 of all bytes of the files, and of each file.

    Args:
        handle: the dataset's.
        wait: whether to wait until all is read; else None comes back after a moment.
    """
    out = Bytes()
    while call("mf_dataset_hash", handle, SLICE_MS, byref(out)) == Code.Timeout:
        if not wait:
            return None
    hashes: dict[str, Any] = json.loads(_taken(out))
    return hashes


def dataset_slice(handle: int, start: int, stop: int) -> Handle:
    """Gives the records [start, stop)."""
    return _made("dataset", "mf_dataset_slice", handle, start, stop)


# ---- loaders ----


def loader_create(dataset: int, document: str, options: Mapping[str, Any]) -> Handle:
    """Begins to load."""
    with _Layout(document) as layout:
        return _made("loader", "mf_loader_create", dataset, layout, *_encoded(json.dumps(options)))


def loader_one_epoch(handle: int, epoch: int) -> Handle:
    """Begins an independent pass over one epoch."""
    return _made("loader", "mf_loader_one_epoch", handle, epoch)


def loader_remesh(handle: int, document: str, process: int) -> Handle:
    """Begins to go on where a loader stands, on another layout."""
    with _Layout(document) as layout:
        return _made("loader", "mf_loader_remesh", handle, layout, process)


def loader_info(handle: int) -> dict[str, Any]:
    """Gives what every batch of a loader looks like."""
    info: dict[str, Any] = json.loads(_text("mf_loader_info", handle))
    return info


def loader_state(handle: int) -> dict[str, Any]:
    """Gives the state after the last batch handed out by C."""
    state: dict[str, Any] = json.loads(_text("mf_loader_state", handle))
    return state


def loader_restore(handle: int, state: str, *, ignore_dataset: bool) -> None:
    """Continues where a state stands."""
    call("mf_loader_restore", handle, *_encoded(state), int(ignore_dataset))


def loader_seek(handle: int, epoch: int, position: int) -> None:
    """Continues at a position of an epoch."""
    call("mf_loader_seek", handle, epoch, position)


def loader_skip(handle: int, steps: int) -> None:
    """Leaves out the next steps."""
    call("mf_loader_skip", handle, steps)


def loader_rewind(handle: int, epoch: int, position: int) -> None:
    """Goes back to where a batch ended, and takes back those behind it."""
    call("mf_loader_rewind", handle, epoch, position)


def loader_certificate(handle: int, epoch: int, position: int) -> str:
    """Gives the certificate of what was handed over up to where a batch ended."""
    return _text("mf_loader_certificate", handle, epoch, position)


def certificate_add(a: str, b: str) -> str:
    """Gives the sum of two certificates."""
    return _text("mf_certificate_add", *_encoded(a), *_encoded(b))


Range = tuple[int, int, int, int]  # first epoch and position, last epoch and position


def _range(asked: Range | None) -> Any:
    """Gives an `mf_range`, or NULL."""
    return None if asked is None else (c_int64 * 4)(*asked)


def certificate_check(text: str, asked: Range | None) -> None:
    """Checks a range of a certificate against its order and seed."""
    _made("certificate", "mf_certificate_check", *_encoded(text), _range(asked)).close()


def certificate_report(text: str | bytes, asked: Range | None = None) -> str:
    """Gives what a certificate claims of a range."""
    return _text("mf_certificate_report", *_encoded(text), _range(asked))


def loader_records(handle: int, epoch: int, position: int, out: np.ndarray[Any, Any]) -> None:
    """Writes the records of a batch into an int64 array of as many rows."""
    count = c_int64()
    call("mf_loader_records", handle, epoch, position, out.ctypes.data, out.size, byref(count))


def loader_stats(handle: int) -> dict[str, int]:
    """Gives the counters of a loader."""
    stats = Stats(ctypes.sizeof(Stats))
    call("mf_loader_stats", handle, byref(stats))
    return {name: getattr(stats, name) for name, _ in Stats._fields_[2:]}


# ---- batches ----


def batch_retain(batch: int) -> None:
    """Keeps the batch at this address until one more `batch_release`."""
    library().mf_batch_retain(batch)


def batch_release(batch: int) -> None:
    """Gives back the batch at this address once."""
    library().mf_batch_release(batch)


def digests(batch: int, tensors: Sequence[int]) -> list[bytes]:
    """Gives XXH3-128 of blocks of the batch at this address, which the caller keeps alive."""
    n = len(tensors)
    out = (ctypes.c_uint8 * (16 * n))()
    call("mf_digest", batch, (ctypes.c_int32 * n)(*tensors), n, out)
    data = bytes(out)
    return [data[16 * i : 16 * i + 16] for i in range(n)]


# ---- devices ----


def devices_open(spec: str, options: Mapping[str, Any]) -> Handle:
    """Opens devices."""
    what, texts = "backend of these devices", (*_encoded(spec), *_encoded(json.dumps(options)))
    return _made(what, "mf_devices_open", *texts)


def devices_info(handle: int) -> dict[str, Any]:
    """Gives what was opened, and what of meshfeed's is on it."""
    info: dict[str, Any] = json.loads(_text("mf_devices_info", handle))
    return info


def ring_create(devices: int, document: str) -> Handle:
    """Makes memory on devices for the batches of a layout."""
    with _Layout(document) as layout:
        return _made("ring", "mf_ring_create", devices, layout)


def ring_info(handle: int) -> dict[str, Any]:
    """Gives where the shards of a batch are."""
    info: dict[str, Any] = json.loads(_text("mf_ring_info", handle))
    return info


def batch_place(batch: Any, ring: int) -> Handle:
    """Copies the batch at this address, which the caller keeps alive, to devices."""
    placed = Handle("batch")
    call("mf_batch_place", batch, ring, byref(placed.out))
    return placed


def placed_read(placed: int, array: int, position: int, out: np.ndarray[Any, Any]) -> None:
    """Copies a shard into an array."""
    call("mf_placed_read", placed, array, position, out.ctypes.data, out.nbytes)


def placed_lend(function: str, placed: int, array: int, position: int) -> int:
    """Gives the address of a DLPack tensor of a shard, which the caller deletes."""
    out = c_void_p()
    call(function, placed, array, position, byref(out))
    assert out.value is not None
    return out.value
