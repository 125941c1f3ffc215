"""Owners of a batch's memory: a batch is released when the last view of it is gone."""

from __future__ import annotations

import ctypes
import weakref
from functools import lru_cache
from typing import Any, Protocol


class Release(weakref.ref[Any]):
    """Releases a batch when its owner dies, without running Python code.

    Ctrl-C can interrupt a finalizer in Python. Python would then drop the exception, and the batch
    would leak. The callback here is a ctypes function. Python calls it with this reference, and
    ctypes passes `_as_parameter_` on to the function.
    """

    _as_parameter_: ctypes.c_void_p | None = None  # Ctrl-C may come before the batch is handed over


class Owner(Protocol):
    """Exports the memory of a batch to its views. The batch lives as long as the last view."""

    release: Release


@lru_cache(64)
def owner_type(size: int) -> Any:
    """Returns the type of owners with this number of bytes."""
    return type("Owner", (ctypes.c_uint8 * size,), {"__slots__": ("release",)})
