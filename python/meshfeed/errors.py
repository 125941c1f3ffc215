"""The errors of meshfeed: one class per code, each also a subclass of a similar builtin.

The codes and their numbers are the same in Go, in C and here.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar

#: The exit status of a process that `on_peer_error` ends.
EXIT_PEER_ERROR = 113


class Code(enum.IntEnum):
    """The outcome of a call: 0 and positive codes are not failures, negative codes are errors."""

    OK = 0
    Timeout = 1
    End = 2
    InvalidArgument = -1
    OutOfRange = -2
    NotFound = -3
    InvalidState = -4
    Incompatible = -5
    DataLoss = -6
    IO = -7
    ResourceExhausted = -8
    Unsupported = -9
    Cancelled = -10
    Forked = -11
    Internal = -12


class Error(Exception):
    """The base class of every error of meshfeed.

    The text says what failed, what was expected and found, and what to do.

    Attributes:
        code: the `Code` of the error.
        op: the call that failed, as the user writes it, such as ``"mf.Loader"``.
        message: what was expected and what was found.
        hint: what to do; may be empty.
        path: the file, or the path in a document, that the error is about; may be empty.

    Examples:
        >>> import meshfeed as mf
        >>> raise mf.InvalidArgumentError("30 % 4 = 2", op="mf.Loader", hint="use 28 or 32")
        Traceback (most recent call last):
            ...
        meshfeed.InvalidArgumentError: mf.Loader: 30 % 4 = 2; use 28 or 32
        >>> issubclass(mf.InvalidArgumentError, ValueError)
        True
    """

    code: ClassVar[Code] = Code.Internal
    op: str
    message: str
    hint: str
    path: str

    def __init__(self, message: str, *, op: str = "", hint: str = "", path: str = "") -> None:
        super().__init__()
        self.message, self.hint, self.path = message, hint, path
        set_op(self, op)

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidArgumentError(Error, ValueError):
    """An argument, a layout or a partition spec is wrong."""

    code = Code.InvalidArgument


class OutOfRangeError(Error, IndexError):
    """A record, position or epoch is out of range."""

    code = Code.OutOfRange


class NotFoundError(Error, FileNotFoundError):
    """The file, field or process does not exist."""

    code = Code.NotFound


class InvalidStateError(Error, RuntimeError):
    """An object is used after its close, or methods are called in a wrong order."""

    code = Code.InvalidState


class IncompatibleError(Error, ValueError):
    """A saved state, a dataset or a library does not fit this one."""

    code = Code.Incompatible


class DataLossError(Error, OSError):
    """Data are damaged or truncated."""

    code = Code.DataLoss


class ReadError(Error, OSError):
    """The operating system could not read or write a file (code ``IO``)."""

    code = Code.IO


class ResourceExhaustedError(Error, MemoryError):
    """There is not enough memory or disk space, or a limit such as `max_host_bytes` forbids it."""

    code = Code.ResourceExhausted


class UnsupportedError(Error, NotImplementedError):
    """Meshfeed does not support this; the text says what to do instead."""

    code = Code.Unsupported


class CancelledError(Error):
    """A close on another thread, or the end of the interpreter, ended the call."""

    code = Code.Cancelled


class ForkedError(Error, RuntimeError):
    """An object is used in a forked child of the process that opened it."""

    code = Code.Forked


class InternalError(Error, RuntimeError):
    """A bug in meshfeed."""

    code = Code.Internal


CLASSES: dict[int, type[Error]] = {cls.code: cls for cls in Error.__subclasses__()}  # all above


class PeerError(Error):
    """Another process of the job failed, is missing, or was given other data.

    The error is also an instance of the class that the other process raised. If that is
    `mf.DataLossError`, `except mf.DataLossError` and `except OSError` catch it here. If a process
    does not answer in time, it is a `TimeoutError`.

    Attributes:
        process: the process that failed.
        epoch: its epoch.
        step: its step in that epoch.
    """

    process: int
    epoch: int
    step: int
    _origin: ClassVar[type[BaseException] | None] = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self._origin,), self.__dict__ | {"args": self.args}


# Tracebacks show the name that users import the class by.
for _cls in (Error, PeerError, *CLASSES.values()):
    _cls.__module__ = "meshfeed"


def set_op(error: Error, op: str) -> None:
    """Sets the call that failed."""
    text = f"{op}: {error.message}" if op else error.message
    error.op, error.args = op, (f"{text}; {error.hint}" if error.hint else text,)


def at(error: PeerError, process: int, epoch: int = -1, step: int = -1) -> PeerError:
    """Sets which process failed, and where."""
    error.process, error.epoch, error.step = process, epoch, step
    return error


def of(code: int, op: str, message: str, hint: str, path: str) -> Error:
    """Makes the error for a code of the library."""
    return CLASSES.get(code, InternalError)(message, op=op, hint=hint, path=path)


def peer(origin: type[BaseException]) -> type[PeerError]:
    """Returns the class of errors for an exception of this class in another process."""
    kind = _PEERS.get(origin)
    if kind is None:
        bases = (PeerError,) if issubclass(PeerError, origin) else (PeerError, origin)
        names = {"__module__": "meshfeed", "_origin": origin}
        kind = _PEERS[origin] = type("PeerError", bases, names)
    return kind


def _revived(origin: type[BaseException] | None) -> PeerError:
    """Makes an empty error, which unpickling fills."""
    return (PeerError if origin is None else peer(origin))("")


_PEERS: dict[type[BaseException], type[PeerError]] = {}
