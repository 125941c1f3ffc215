"""Arrow's PyCapsule protocol: streams and record batches of any library, without pyarrow."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_void_p
from typing import Any

from meshfeed.errors import InvalidArgumentError

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
