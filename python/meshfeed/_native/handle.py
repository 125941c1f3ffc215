"""What stands for something in the C library: a handle."""

from __future__ import annotations

from ctypes import c_uint64
from types import TracebackType
from typing import Any, Self

from meshfeed import errors
from meshfeed._native import library


class Handle:
    """A handle of the library, released once: by `close`, or with the object.

    It is there before the call that makes what it names. Ctrl-C may come right behind that call,
    and what was made then has an owner already.

    Args:
        what: what errors call it.

    Attributes:
        out: where a call writes the handle.
        closed: whether it is released.
    """

    _leaving = library.leaving  # at the exit modules lose their names, and classes keep theirs
    closed = False
    out = c_uint64()  # Ctrl-C may come before there is one

    def __init__(self, what: str) -> None:
        self._what = what
        self._release = library.library().mf_release
        self.out = c_uint64()

    @property
    def value(self) -> int:
        """The number; an error once it is released."""
        self.check()
        return self.out.value

    def check(self, hint: str = "make another") -> None:
        """Raises an error if the handle is released.

        Args:
            hint: the remedy that the error names.
        """
        if self.closed:
            message, op = f"the {self._what} is closed", f"mf.{self._what.title()}"
            raise errors.InvalidStateError(message, op=op, hint=hint)

    def close(self, cause: type[BaseException] | None = None) -> None:
        """Releases the handle. The interpreter's exit releases nothing.

        Another release, by another thread or after Ctrl-C in the middle of this one, does nothing:
        the library gives no number twice.

        Args:
            cause: what ends the block whose `__exit__` calls. After Ctrl-C nobody waits for the
                release, which takes up to a second where a file does not answer.
        """
        self.closed = True
        value = self.out.value
        if not value or self._leaving:
            return
        if cause is not None and issubclass(cause, KeyboardInterrupt | SystemExit):
            library.release_later(value)
        else:
            self._release(value, None)
        self.out.value = 0

    def __del__(self) -> None:
        if self.out.value and not self._leaving:
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


def batch_release() -> Any:
    """Gives `mf_batch_release` as a function object of its own, without argtypes."""
    function = library.library()["mf_batch_release"]
    function.restype = None
    return function
