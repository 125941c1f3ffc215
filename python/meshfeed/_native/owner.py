"""Owners of a batch's memory: a batch is released when the last view of it is gone."""

from __future__ import annotations

import ctypes
import weakref
from functools import lru_cache
from typing import Any, Protocol


class Release(weakref.ref[Any]):
    """Drops a batch when its owner dies, without a line of Python.

    A finalizer in Python could be interrupted by Ctrl-C, which would then be lost, and the batch
    with it. The callback of a weak reference is called with that reference, and where it is a
    function of ctypes, `_as_parameter_` is what the function gets.
    """

    _as_parameter_: ctypes.c_void_p | None = None  # Ctrl-C may come before the batch is handed over


class Owner(Protocol):
    """Exports the memory of a batch to its views: when the last is gone, so is the batch."""

    release: Release


@lru_cache(64)
def owner_type(size: int) -> Any:
    """Gives the type of owners of so many bytes, which views keep alive."""
    return type("Owner", (ctypes.c_uint8 * size,), {"__slots__": ("release",)})
