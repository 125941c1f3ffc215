"""`meshfeed.h` for ctypes: the structs, and the types of the functions."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from meshfeed import errors
from meshfeed._native import raised
from meshfeed._native.wording import in_python

VERSION = 1, 0  # the library needs the same major number, and at least this minor number


def fields(*groups: tuple[Any, str]) -> tuple[tuple[str, Any], ...]:
    """Builds `_fields_` from types and the names of the fields that have them."""
    return tuple((name, kind) for kind, names in groups for name in names.split())


class Failure(ctypes.Structure):
    """`mf_error`."""

    _fields_ = fields(
        (c_uint32, "struct_size"),
        (c_int32, "code"),
        (c_char * 64, "op"),
        (c_char * 1024, "message"),
        (c_char * 512, "hint"),
        (c_char * 256, "path"),
    )

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Failure))

    def exception(self, code: int, op: str) -> errors.Error:
        """Builds the exception of a call that returned this code.

        Args:
            code: the status code that the call returned.
            op: the name of the user's call; "" for the part of the library that failed.
        """
        texts = (op.encode() or self.op, self.message, self.hint, self.path)
        error = errors.of(code, *(in_python(text.decode(errors="replace")) for text in texts))
        if cause := raised.of(error.message):
            error.__cause__ = cause
        return error


class Bytes(ctypes.Structure):
    """`mf_bytes`."""

    _fields_ = fields((c_void_p, "data"), (c_size_t, "size"))


class Head(ctypes.Structure):
    """`mf_batch`."""

    _fields_ = fields(
        (c_uint32, "struct_size"),
        (c_int32, "tensors"),
        (c_void_p, "data"),
        (c_int64, "bytes epoch step position rows next_epoch next_position"),
        (c_char_p, "state"),
        (c_int64, "state_size live idle bad"),
    )


class Stats(ctypes.Structure):
    """`mf_stats`."""

    _fields_ = fields(
        (c_uint32, "struct_size reserved"),
        (c_int64, "epoch step position batches rows bytes wait_ns stall_ns build_ns gather_ns"),
        (c_int64, "storage_ns decode_ns"),
        (c_int64, "queued live_batches idle_batches host_bytes gathered_bytes"),
        (c_int64, "decoding_ns delayed_ns map_ns bad"),
        (c_int64, "requests retries planned_bytes fetched_bytes"),
    )


class DType(ctypes.Structure):
    """`mf_dtype`."""

    _fields_ = fields((c_uint8, "code bits"), (c_uint16, "lanes"))


class Array(ctypes.Structure):
    """`mf_array`."""

    _fields_ = fields(
        (c_uint32, "struct_size"),
        (c_int32, "ndim"),
        (c_char_p, "name"),
        (c_void_p, "data"),
        (DType, "dtype"),
        (c_int32, "reserved"),
        (POINTER(c_int64), "shape strides"),
        (c_char_p, "logical"),
    )


class Picture(ctypes.Structure):
    """`mf_picture`."""

    _fields_ = fields(
        (c_uint32, "struct_size"),
        (c_int32, "format"),
        (c_char_p, "array"),
        (POINTER(c_int32), "dims"),
        (c_int64, "width"),
    )


class RowShape(ctypes.Structure):
    """`mf_row_shape`."""

    _fields_ = fields(
        (c_char_p, "field"),
        (POINTER(c_int64), "shape"),
        (c_int64, "ndim"),
        (DType, "dtype"),
        (c_int32, "reserved"),
    )


class DatasetOptions(ctypes.Structure):
    """`mf_dataset_options`."""

    _fields_ = fields(
        (c_uint32, "struct_size flags"),
        (c_int32, "io n_shapes"),
        (POINTER(RowShape), "shapes"),
        (c_char_p, "split cache"),
        (c_int64, "cache_bytes"),
        (POINTER(c_char_p), "columns"),
        (c_int64, "n_columns"),
        (DType, "dtype"),
        (c_int32, "reserved"),
        (c_int64, "skip"),
        (c_char_p, "commits"),
        (c_void_p, "storage"),
    )


class Fill(ctypes.Structure):
    """`mf_fill`."""

    _fields_ = fields(
        (c_char_p, "field"),
        (c_void_p, "value"),
        (DType, "dtype"),
        (c_int32, "reserved"),
    )


class LoaderOptions(ctypes.Structure):
    """`mf_loader_options`."""

    _fields_ = fields(
        (c_uint32, "struct_size flags"),
        (c_int64, "process processes"),
        (c_char_p, "order"),
        (c_int64, "seed epochs prefetch"),
        (c_char_p, "state"),
        (POINTER(Fill), "fill"),
        (c_int64, "n_fill max_host_bytes workers"),
    )


class DevicesOptions(ctypes.Structure):
    """`mf_devices_options`."""

    _fields_ = fields(
        (c_uint32, "struct_size flags"), (c_char_p, "prober"), (c_int64, "timeout_ms")
    )


class MapColumn(ctypes.Structure):
    """`mf_map_column`."""

    _fields_ = fields((c_void_p, "data"), (c_int64, "size"), (POINTER(c_int64), "lengths"))


class MapRows(ctypes.Structure):
    """`mf_map_rows`."""

    _fields_ = fields(
        (c_uint32, "struct_size"),
        (c_int32, "n_out"),
        (c_int64, "n_rows"),
        (POINTER(c_int64), "records"),
        (POINTER(c_uint32), "keys"),
        (c_void_p, "given"),
        (POINTER(MapColumn), "out"),
        (c_int64, "taken_ns"),
    )


class Map(ctypes.Structure):
    """`mf_map`."""

    _fields_ = fields(
        (c_uint32, "struct_size"), (c_int32, "reserved"), (c_void_p, "function user release")
    )


class Python(ctypes.Structure):
    """`mf_python`."""

    _fields_ = fields(
        (c_uint32, "struct_size reserved"),
        (c_void_p, "capsule_context lock unlock drop"),
    )

    def __init__(self) -> None:
        names = (
            "PyCapsule_GetContext",
            "PyGILState_Ensure",
            "PyGILState_Release",
            "Py_DecRef",
        )
        functions = (ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in names)
        super().__init__(ctypes.sizeof(Python), 0, *(function.value for function in functions))


# Flags of the header, without MF_. Each belongs to another function or struct, so numbers repeat.
ALL_DEVICES = 1
ALLOW_DUPLICATES = 1
IMAGES = 2
IGNORE_DATASET = 1
TEXT, SVG, JSON, DOCUMENT = range(4)
NO_PREFLIGHT = 1

# The kinds of Arrow structs, by the names of their capsules.
ARROW = {b"arrow_schema": 0, b"arrow_array": 1, b"arrow_array_stream": 2}

_TEXT = (c_char_p, c_size_t)
_ERROR = c_void_p

# The argument types of every function that this package calls. A function returns
# an mf_status unless RESULTS names another type. A handle is c_uint64 here: x86-64
# and arm64 pass a struct with one such member in the same register.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "mf_abi_version": (),
    "mf_version": (),
    "mf_jpeg_decoder": (),
    "mf_bytes_free": (c_void_p,),
    "mf_wait": (c_uint64, c_int64, _ERROR),
    "mf_cancel_all": (),
    "mf_release": (c_uint64, _ERROR),
    "mf_layout_create": (*_TEXT, c_void_p, _ERROR),
    "mf_layout_json": (c_uint64, c_void_p, _ERROR),
    "mf_layout_report": (c_uint64, c_uint32, c_void_p, _ERROR),
    "mf_layout_draw": (c_uint64, c_void_p, c_void_p, _ERROR),
    "mf_diagram": (*_TEXT, c_int32, c_int64, c_void_p, _ERROR),
    "mf_layout_page": (c_uint64, c_void_p, _ERROR),
    "mf_memory": (*_TEXT, c_int32, c_void_p, _ERROR),
    "mf_diagnose": (*_TEXT, c_int32, c_void_p, _ERROR),
    "mf_advise": (*_TEXT, c_int32, c_void_p, _ERROR),
    "mf_dataset_open": (c_void_p, c_int32, c_void_p, c_void_p, _ERROR),
    "mf_dataset_open_tensors": (c_char_p, c_void_p, _ERROR),
    "mf_dataset_open_stream": (c_void_p, c_void_p, c_void_p, _ERROR),
    "mf_dataset_open_record_batch": (c_void_p, c_void_p, c_void_p, c_void_p, _ERROR),
    "mf_dataset_open_arrays": (c_void_p, c_int32, c_void_p, c_void_p, c_void_p, _ERROR),
    "mf_dataset_info": (c_uint64, c_void_p, _ERROR),
    "mf_dataset_fingerprint": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_dataset_hash": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_dataset_stream": (c_uint64, c_void_p, c_int32, c_void_p, _ERROR),
    "mf_dataset_rows": (c_uint64, c_void_p, c_int64, c_void_p, c_void_p, _ERROR),
    "mf_dataset_view": (
        c_char_p,
        *_TEXT,
        c_void_p,
        c_int32,
        c_void_p,
        c_int64,
        c_void_p,
        c_int32,
        _ERROR,
    ),
    "mf_map_reserve": (c_void_p, c_int64),
    "mf_map_queue_new": (c_int32,),
    "mf_map_queue_run": (c_void_p, c_void_p, _ERROR),
    "mf_map_queue_next": (c_void_p,),
    "mf_map_queue_done": (c_void_p, c_void_p, c_int32, c_char_p, c_char_p),
    "mf_map_queue_close": (c_void_p,),
    "mf_dataset_lengths": (c_uint64, c_char_p, c_int64, c_int64, c_void_p, _ERROR),
    "mf_dataset_convert": (c_uint64, c_char_p, *_TEXT, c_void_p, _ERROR),
    "mf_loader_create": (c_uint64, c_uint64, c_void_p, c_void_p, _ERROR),
    "mf_loader_info": (c_uint64, c_void_p, _ERROR),
    "mf_loader_components": (c_uint64, c_void_p, _ERROR),
    "mf_loader_next": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_loader_state": (c_uint64, c_void_p, _ERROR),
    "mf_loader_restore": (c_uint64, *_TEXT, c_uint32, _ERROR),
    "mf_loader_seek": (c_uint64, c_int64, c_int64, _ERROR),
    "mf_loader_skip": (c_uint64, c_int64, _ERROR),
    "mf_loader_one_epoch": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_loader_rewind": (c_uint64, c_int64, c_int64, _ERROR),
    "mf_loader_certificate": (c_uint64, c_int64, c_int64, c_void_p, _ERROR),
    "mf_certificate_add": (*_TEXT, *_TEXT, c_void_p, _ERROR),
    "mf_certificate_check": (*_TEXT, c_void_p, c_uint64, c_void_p, _ERROR),
    "mf_certificate_report": (*_TEXT, c_void_p, c_void_p, _ERROR),
    "mf_loader_remesh": (c_uint64, c_uint64, c_int64, c_void_p, _ERROR),
    "mf_loader_records": (c_uint64, c_int64, c_int64, c_void_p, c_int64, c_void_p, _ERROR),
    "mf_loader_stats": (c_uint64, c_void_p, _ERROR),
    "mf_splitter_create": (c_uint64, c_int64, c_void_p, c_int32, c_void_p, _ERROR),
    "mf_splitter_info": (c_uint64, c_void_p, _ERROR),
    "mf_split": (c_uint64, c_void_p, c_int32, c_void_p, _ERROR),
    "mf_batch_retain": (c_void_p,),
    "mf_batch_release": (c_void_p,),
    "mf_batch_record": (c_void_p, c_void_p, c_int32, c_void_p, c_void_p),
    "mf_batch_stream": (c_void_p, c_void_p, c_int32, c_void_p),
    "mf_python_set": (c_void_p,),
    "mf_python_drop": (c_void_p,),
    "mf_python_capsule_new": (c_int32,),
    "mf_python_capsule_free": (c_void_p,),
    "mf_digest": (c_void_p, c_void_p, c_int32, c_void_p, _ERROR),
    "mf_digest_memory": (c_void_p, c_size_t, c_void_p, _ERROR),
    "mf_devices_open": (*_TEXT, c_void_p, c_void_p, _ERROR),
    "mf_devices_info": (c_uint64, c_void_p, _ERROR),
    "mf_ring_create": (c_uint64, c_uint64, c_void_p, _ERROR),
    "mf_ring_info": (c_uint64, c_void_p, _ERROR),
    "mf_ring_transfer": (c_uint64, c_void_p, c_void_p, _ERROR),
    "mf_device_batch_read": (c_uint64, c_int32, c_int64, c_void_p, c_int64, _ERROR),
    "mf_device_batch_dlpack": (c_uint64, c_int32, c_int64, c_void_p, _ERROR),
    "mf_device_batch_dlpack_legacy": (c_uint64, c_int32, c_int64, c_void_p, _ERROR),
    "mf_live_handles": (),
    "mf_live_batches": (),
    "mf_live_bytes": (),
}
RESULTS: dict[str, Any] = {
    "mf_abi_version": c_uint32,
    "mf_version": c_char_p,
    "mf_jpeg_decoder": c_char_p,
    "mf_bytes_free": None,
    "mf_cancel_all": None,
    "mf_map_reserve": c_void_p,
    "mf_map_queue_new": c_void_p,
    "mf_map_queue_next": c_void_p,
    "mf_map_queue_done": None,
    "mf_map_queue_close": None,
    "mf_batch_retain": None,
    "mf_batch_release": None,
    "mf_python_set": None,
    "mf_python_drop": None,
    "mf_python_capsule_new": c_void_p,
    "mf_python_capsule_free": None,
    "mf_live_handles": c_int64,
    "mf_live_batches": c_int64,
    "mf_live_bytes": c_int64,
}


def declare(library: ctypes.CDLL) -> None:
    """Declares the types of the library's functions."""
    for name, arguments in ARGUMENTS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = RESULTS.get(name, c_int32)
