"""Arrow's PyCapsule protocol: streams and arrays of any library, without pyarrow."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_void_p
from typing import Any

from meshfeed.errors import InvalidArgumentError

_GET_SCHEMA = CFUNCTYPE(c_int, c_void_p, c_void_p)
_GET_NEXT = CFUNCTYPE(c_int, c_void_p, c_void_p)
_GET_LAST_ERROR = CFUNCTYPE(c_void_p, c_void_p)
_RELEASE = CFUNCTYPE(None, c_void_p)

# The sizes of struct ArrowSchema and ArrowArray on 64-bit platforms, and the offsets of `release`.
_SCHEMA, _SCHEMA_RELEASE = 72, 56
_ARRAY, _ARRAY_RELEASE = 80, 64


class Stream(ctypes.Structure):
    """`struct ArrowArrayStream`."""

    _fields_ = (
        ("get_schema", _GET_SCHEMA),
        ("get_next", _GET_NEXT),
        ("get_last_error", _GET_LAST_ERROR),
        ("release", _RELEASE),
        ("private_data", c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = (ctypes.py_object, c_char_p)


def address(capsule: Any, name: str) -> int:
    """Returns the address of the struct in a capsule of that name.

    Raises:
        InvalidArgumentError: the object is not such a capsule.
    """
    try:
        found: int = _pointer(capsule, name.encode())
    except (ValueError, TypeError) as e:
        message = f"{capsule!r} is not a capsule of the name {name!r}"
        hint = "the object breaks Arrow's PyCapsule protocol"
        raise InvalidArgumentError(message, op="dataset", hint=hint) from e
    return found


@contextmanager
def one_array_stream(schema: Any, array: Any) -> Iterator[int]:
    """Builds a stream of one array. It must be read on this thread before the block ends.

    Args:
        schema: an `arrow_schema` capsule; its struct is moved out.
        array: an `arrow_array` capsule; its struct is moved out.

    Yields:
        The address of the stream.
    """
    source = {"array": address(array, "arrow_array")}
    schema_at = address(schema, "arrow_schema")

    @_GET_SCHEMA
    def get_schema(_: int, out: int) -> int:
        _move(schema_at, out, _SCHEMA, _SCHEMA_RELEASE)
        return 0

    @_GET_NEXT
    def get_next(_: int, out: int) -> int:
        at = source.pop("array", None)
        if at is None:
            ctypes.memset(out, 0, _ARRAY)  # an array without release ends the stream
        else:
            _move(at, out, _ARRAY, _ARRAY_RELEASE)
        return 0

    @_GET_LAST_ERROR
    def get_last_error(_: int) -> int | None:
        return None

    @_RELEASE
    def release(at: int) -> None:
        Stream.from_address(at).release = _RELEASE()

    stream = Stream(get_schema, get_next, get_last_error, release)
    yield ctypes.addressof(stream)


def _move(source: int, out: int, size: int, release: int) -> None:
    """Moves a struct of the C data interface, and marks the source as released."""
    ctypes.memmove(out, source, size)
    ctypes.cast(source + release, POINTER(c_void_p))[0] = None
