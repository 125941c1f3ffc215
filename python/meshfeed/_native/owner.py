"""The owners of the memory of batches, and weak references that release it."""

from __future__ import annotations

import ctypes
import weakref
from functools import lru_cache
from typing import Any, Protocol


class Release(weakref.ref[Any]):
    """A weak reference that releases a batch or a handle when its owner is deleted.

    No Python code runs for it.

    Ctrl-C can interrupt a finalizer in Python. Python would then drop the exception, and the batch
    would leak. The callback here is a ctypes function. Python calls it with this reference, and
    ctypes passes `_as_parameter_` on to the function.
    """

    # The batch or handle to release. None until the owner owns it, so that Ctrl-C before that
    # does not release it twice.
    _as_parameter_: ctypes.c_void_p | ctypes.c_uint64 | None = None


class Owner(Protocol):
    """Exports the memory of a batch to its views. The batch lives as long as the last view."""

    release: Release


@lru_cache(64)
def owner_type(size: int) -> Any:
    """Returns the type of owners with this number of bytes."""
    return type("Owner", (ctypes.c_uint8 * size,), {"__slots__": ("release",)})
