"""Arrow's PyCapsule protocol: access to streams and record batches of any library."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_void_p
from typing import Any

from meshfeed.errors import InvalidArgumentError

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = (ctypes.py_object, c_char_p)


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
