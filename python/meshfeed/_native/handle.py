"""Handles of objects in the C library."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_int32, c_uint64, c_void_p
from functools import cache
from types import TracebackType
from typing import Any, Self

from meshfeed import errors
from meshfeed._native import library
from meshfeed._native.library import SLICE_MS, call, encoded
from meshfeed._native.owner import Release
from meshfeed.errors import Code


class Handle:
    """A handle, which is released by `close`, or when this object is deleted.

    This object exists before the call that creates the object in the library. If Ctrl-C comes
    right after that call, the new object has an owner and does not leak.

    Args:
        what: the name of the object in errors.
        out: the variable to which a call writes the handle, if it is part of an array.

    Attributes:
        out: the variable to which a call writes the handle.
        closed: whether the handle is released.
    """

    _exiting = library.exiting  # a class attribute: at exit, Python clears the globals of modules
    closed = False

    def __init__(self, what: str, out: c_uint64 | None = None) -> None:
        self._what = what
        self._release = library.library().mf_release
        self.out = c_uint64() if out is None else out
        if not self._exiting:
            _release_at_end(self)

    @property
    def value(self) -> int:
        """The number of the handle. Raises an error if the handle is released."""
        self.check()
        return self.out.value

    def check(self, hint: str = "make another") -> None:
        """Raises an error if the handle is released.

        Args:
            hint: the hint of the error.
        """
        if self.closed:
            message, op = f"the {self._what} is closed", f"mf.{self._what.title()}"
            raise errors.InvalidStateError(message, op=op, hint=hint)

    def close(self, cause: type[BaseException] | None = None) -> None:
        """Releases the handle, unless the interpreter exits.

        A second release does nothing, because the library never reuses the number of a handle. It
        may come from another thread, or after Ctrl-C has interrupted the first one.

        Args:
            cause: the class of the exception that ended a `with` block. After Ctrl-C the release
                runs on another thread, because it waits up to a second for a slow file system.
        """
        self.closed = True
        value = self.out.value
        if not value or self._exiting:
            return
        if cause is not None and issubclass(cause, KeyboardInterrupt | SystemExit):
            library.release_later(value)
        else:
            self._release(value, None)
        self.out.value = 0


def _release_at_end(handle: Handle) -> None:
    """Releases a handle when its object is deleted, without running Python code."""
    release = Release(handle, _final_release())
    release._as_parameter_ = handle.out
    ends = library.ends
    ends[id(release)] = release
    if len(ends) % 64 == 0:  # drops entries of deleted objects; rarely, because it visits all
        for key in [key for key, end in ends.copy().items() if end() is None]:
            ends.pop(key, None)  # another thread may do the same


@cache
def _final_release() -> Any:
    """Returns `mf_release` as a function of the handle alone: `error` is NULL by default."""
    kind = CFUNCTYPE(c_int32, c_uint64, c_void_p)
    return kind(("mf_release", library.library()), ((1, "id"), (1, "error", None)))


def created(
    what: str, name: str, *arguments: Any, unused: Callable[[], None] | None = None
) -> Handle:
    """Calls a function that creates an object, and waits until the object is ready.

    If the call has created nothing, which would own what it was given, `unused` is called.
    """
    handle = Handle(what)
    try:
        call(name, *arguments, byref(handle.out))
        wait("mf_wait", handle.out)
    except BaseException as e:  # after Ctrl-C this must not wait for a file system
        if unused is not None and not handle.out.value:
            unused()
        handle.close(type(e))
        raise
    return handle


def wait(name: str, handle: Any, *arguments: Any) -> None:
    """Repeats a call that may wait until it is over. Ctrl-C is handled between two calls."""
    while call(name, handle, SLICE_MS, *arguments) == Code.Timeout:
        pass


class LayoutHandle(Handle):
    """A layout handle for the time of one call."""

    def __init__(self, document: str | bytes) -> None:
        super().__init__("layout")
        self._document = document

    def __enter__(self) -> int:
        call("mf_layout_create", *encoded(self._document), byref(self.out))
        return self.value

    def __exit__(self, *_: object) -> None:
        self.close()


class Resource:
    """The base class of objects that own a handle and that users close."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def handle(self) -> int:
        """The number of the handle. Raises an error if this object is closed."""
        return self._handle.value

    def close(self) -> None:
        """Closes this object. Objects created from it stay valid. Closing again does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.close(kind)


def batch_release() -> Any:
    """Returns `mf_batch_release` as a new function object. ctypes converts no arguments for it."""
    function = library.library()["mf_batch_release"]
    function.restype = None
    return function
