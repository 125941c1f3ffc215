"""What stands for something in the C library: a handle, and the call for its next batch."""

from __future__ import annotations

import threading
from ctypes import byref, c_int32, c_int64, c_uint64, c_void_p
from functools import partial
from types import TracebackType
from typing import Any, Self

from meshfeed import _library, errors
from meshfeed._abi import Failure, Head
from meshfeed._library import SLICE_MS
from meshfeed.errors import Code


class Handle:
    """A handle of the library, released once: by `close`, or with the object."""

    __slots__ = ("_lock", "_release", "_value", "_what")
    _leaving = _library.leaving  # at the exit modules lose their names, and classes keep theirs

    def __init__(self, value: int, what: str) -> None:
        self._value = value
        self._what = what
        self._release = _library.library().mf_release
        self._lock = threading.Lock()

    @property
    def value(self) -> int:
        """The number; an error once it is released."""
        self.check()
        return self._value

    def check(self) -> None:
        """Raises an error if the handle is released."""
        if self._value == 0:
            message, op = f"the {self._what} is closed", f"mf.{self._what.title()}"
            raise errors.InvalidStateError(message, op=op, hint="make another")

    def close(self, cause: type[BaseException] | None = None) -> None:
        """Releases the handle. The interpreter's exit releases nothing.

        Args:
            cause: what ends the block whose `__exit__` calls. After Ctrl-C nobody waits for the
                release, which takes up to a second where a file does not answer.
        """
        with self._lock:
            value, self._value = self._value, 0
        if not value or self._leaving:
            return
        if cause is not None and issubclass(cause, KeyboardInterrupt | SystemExit):
            _library.release_later(value)
        else:
            self._release(value, None)

    def __del__(self) -> None:
        if not self._leaving:
            self.close()


class Held:
    """What users close, or use as a context: it stands for a handle."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def handle(self) -> int:
        """The handle in the C library; an error once it is closed."""
        return self._handle.value

    def close(self) -> None:
        """Closes it. What was made of it goes on, and closing again does nothing."""
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


class Next:
    """`mf_loader_next`: the one call per batch, with all its arguments made beforehand.

    A loader's threads share it under the cursor's lock.
    """

    def __init__(self, handle: int) -> None:
        self._batch = c_void_p()
        self._failure = Failure()
        # A function object of its own, without argtypes: ctypes converts nothing.
        function = _library.library()["mf_loader_next"]
        function.restype = c_int32
        out = byref(self._batch), byref(self._failure)
        self._wait = partial(function, c_uint64(handle), c_int64(SLICE_MS), *out)
        self._poll = partial(function, c_uint64(handle), c_int64(0), *out)

    def __call__(self, *, wait: bool) -> Head | None:
        """Gives a batch; None at the end of the pass and, without waiting, where none is ready."""
        code = self._wait() if wait else self._poll()
        while code == _TIMEOUT and wait:
            code = self._wait()
        if code == 0:
            return Head.from_address(self._batch.value)  # type: ignore[arg-type]
        if code < 0:
            raise _library.exception(self._failure, code, "mf.Loader")
        return None

    def hand_over(self) -> c_void_p:
        """Gives the address of the batch to its new owner."""
        batch = c_void_p(self._batch.value)
        self._batch.value = None
        return batch

    def drop(self) -> None:
        """Releases the batch of a call that was interrupted before it got an owner."""
        _library.library().mf_batch_release(self.hand_over())


_TIMEOUT = int(Code.Timeout)


def batch_release() -> Any:
    """Gives `mf_batch_release` as a function object of its own, without argtypes."""
    function = _library.library()["mf_batch_release"]
    function.restype = None
    return function
