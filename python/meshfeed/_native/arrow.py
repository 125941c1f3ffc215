"""Arrow's PyCapsule protocol: data of other libraries, and data for other libraries."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from ctypes import c_char_p, c_void_p
from typing import Any

from meshfeed._native.abi import ARROW
from meshfeed._native.library import call, library
from meshfeed.errors import Code, InvalidArgumentError, of

Formats = Sequence[str | None]  # of each array; None: the format of its type

_api = ctypes.pythonapi
_pointer, _new, _set_context = (
    _api.PyCapsule_GetPointer,
    _api.PyCapsule_New,
    _api.PyCapsule_SetContext,
)
_pointer.restype, _pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
_set_context.argtypes = (ctypes.py_object, c_void_p)


def address(capsule: Any, name: str) -> int:
    """Returns the address of the C struct in a capsule, which must have the given name.

    Raises:
        InvalidArgumentError: the object is not a capsule of this name.
    """
    try:
        found: int = _pointer(capsule, name.encode())
    except (ValueError, TypeError) as e:
        message = f"{capsule!r} is not a capsule of the name {name!r}"
        hint = "the object breaks Arrow's PyCapsule protocol"
        raise InvalidArgumentError(message, op="dataset", hint=hint) from e
    return found


def _capsule(name: bytes) -> tuple[Any, int]:
    """Returns a new capsule, and the address of the empty struct in it."""
    lib = library()
    memory = lib.mf_python_capsule_new(ARROW[name])
    if not memory:
        raise of(Code.ResourceExhausted, "python", "there is no memory for a capsule", "", "")
    capsule = _new(memory, name, ctypes.cast(lib.mf_python_capsule_free, c_void_p))
    _set_context(capsule, memory)
    return capsule, memory


def _texts(formats: Formats) -> tuple[Any, int]:
    texts = [None if text is None else text.encode() for text in formats]
    return (c_char_p * len(texts))(*texts), len(texts)


def schema_of_batch(batch: int, formats: Formats) -> Any:
    """Returns a capsule of the schema of the batch at this address."""
    capsule, at = _capsule(b"arrow_schema")
    _check(library().mf_batch_record(batch, *_texts(formats), None, at))
    return capsule


def record_of_batch(batch: int, formats: Formats) -> tuple[Any, Any]:
    """Returns capsules of schema and values of the batch at this address."""
    schema, schema_at = _capsule(b"arrow_schema")
    array, array_at = _capsule(b"arrow_array")
    _check(library().mf_batch_record(batch, *_texts(formats), array_at, schema_at))
    return schema, array


def stream_of_batch(batch: int, formats: Formats) -> Any:
    """Returns a capsule of a stream with one record batch, the batch at this address."""
    capsule, at = _capsule(b"arrow_array_stream")
    _check(library().mf_batch_stream(batch, *_texts(formats), at))
    return capsule


def stream_of_dataset(dataset: int, formats: Formats) -> Any:
    """Returns a capsule of a stream of all records of a dataset."""
    capsule, at = _capsule(b"arrow_array_stream")
    call("mf_dataset_stream", dataset, *_texts(formats), at)
    return capsule


def schema_of_stream(capsule: Any) -> Any:
    """Returns a capsule of the schema of a stream."""
    stream = _Stream.from_address(address(capsule, "arrow_array_stream"))
    schema, at = _capsule(b"arrow_schema")
    if stream.get_schema(ctypes.addressof(stream), at):
        _check(Code.ResourceExhausted)
    return schema


class _Stream(ctypes.Structure):
    """The beginning of `ArrowArrayStream`."""

    _fields_ = (("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p)),)


def _check(code: int) -> None:
    """Raises an error for the code of a function that has no `mf_error`."""
    if code < 0:
        message = "the batch could not be exported as an Arrow record batch"
        raise of(code, "python", message, "", "")


_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
_LOGICAL = re.compile(r"(\w+?)(?:32|64)?\[(\w+)(?:, tz=(.+))?\]|year_month_interval")
_KINDS = {
    "timestamp": "ts",
    "datetime": "ts",  # NumPy's datetime64, without a time zone
    "duration": "tD",
    "timedelta": "tD",
    "time": "tt",
}


def format_of(logical: str) -> str | None:
    """Returns the Arrow format string of `Field.logical`; None if Arrow has no such type.

    Examples:
        >>> format_of("timestamp[us, tz=UTC]"), format_of("datetime64[D]")
        ('tsu:UTC', None)
    """
    if not (found := _LOGICAL.fullmatch(logical)):
        return None
    kind, unit, zone = found.groups()
    if kind is None:
        return "tiM"
    if kind == "date":
        return {"day": "tdD", "ms": "tdm"}.get(unit)
    if kind not in _KINDS or unit not in _UNITS:
        return None
    text = _KINDS[kind] + _UNITS[unit]
    return f"{text}:{zone or ''}" if text.startswith("ts") else text
