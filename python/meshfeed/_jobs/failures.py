"""The messages of a process to the others that it failed or closed the loader."""

from __future__ import annotations

import builtins
import re
from typing import Any

from meshfeed import errors
from meshfeed._io.arguments import cut
from meshfeed._jobs.wording import OP, counted

LENGTH = 400  # characters of an error's text that a message carries

Message = dict[str, Any]

# Errors in the use of a loader are not reported.
_LOCAL = errors.InvalidStateError, errors.CancelledError, errors.ForkedError

_STATUS = re.compile(r"[A-Z][A-Z_]+: ")  # begins the text of every error of XLA
# What JAX's collectives and its coordination service report when another process is gone.
_TRANSPORT = re.compile(
    r"gloo|nccl|mpi_|connection (reset|closed|refused)|connect(ion)? timeout|socket closed"
    r"|broken pipe|heartbeat|coordination service|\b(UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED)\b",
    re.IGNORECASE,
)


def is_local(error: BaseException) -> bool:
    """Returns whether an error concerns this process alone."""
    return isinstance(error, _LOCAL)


def is_failure(error: BaseException) -> bool:
    """Returns whether a program that ends with this exception leaves the others waiting.

    It does not after an exit on purpose.
    """
    on_purpose = isinstance(error, SystemExit) and error.code in (None, 0)
    return not on_purpose and not isinstance(error, GeneratorExit)


def is_lost_peer(error: BaseException | None) -> bool:
    """Returns whether an error probably follows from the loss of another process."""
    while error is not None:
        known = isinstance(error, RuntimeError | ValueError) and not isinstance(error, errors.Error)
        if known and _STATUS.match(str(error)) and _TRANSPORT.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def failure(error: BaseException, process: int, epoch: int, step: int) -> Message:
    """Writes the message about an error of a process, at the epoch and step of its batch.

    An epoch of -1 means that the program has ended, and that no batch is known.
    """
    message: Message = {"process": process, "epoch": epoch, "step": step}
    if is_lost_peer(error):
        message["lost"] = True
    if isinstance(error, errors.Error):
        message |= {"op": error.op, "hint": error.hint, "path": error.path}
        text = error.message
        if isinstance(error, tuple(errors.CLASSES.values())):
            return {**message, "message": text, "code": int(error.code)}
    else:
        text = cut(f"{type(error).__name__}: {error}".removesuffix(": "), LENGTH)
    known = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    return {**message, "message": text, "type": known.__name__}


def departure(process: int, batches: int, *, ends: bool) -> Message:
    """Writes the message that a process closed the loader after a number of batches.

    `ends` is true if the last batch ended an epoch.
    """
    return {"process": process, "batches": batches, "ends": ends}


def is_departure(message: Message) -> bool:
    """Returns whether a message is about a process that closed the loader."""
    return "ends" in message


def describe_departure(message: Message) -> str:
    """Describes a departure."""
    return f"process {message['process']} has closed the loader after {counted(message['batches'])}"


def error_of(message: Message) -> errors.PeerError:
    """Makes the error for a message of another process."""
    if is_departure(message):
        text = f"{describe_departure(message)}, and this process takes another"
        hint = "end the loops of all processes at the same batch"
        return errors.at(errors.PeerError(text, op=OP, hint=hint), message["process"])
    process, epoch, step = message["process"], message["epoch"], message["step"]
    op, text = message.get("op", OP), message["message"]
    if op not in ("", OP):
        text = f"{op}: {text}"
    if message.get("lost"):
        text = f"lost a peer: {text}"
    where = f", at epoch {epoch}, step {step}" if epoch >= 0 else " has ended"
    text = f"process {process}{where}: {text}"
    if "cause" in message:  # which process was lost; found by the receiver
        text, process, epoch, step = f"{message['cause']}; {text}", message["of"], -1, -1
    error = errors.peer(_origin(message))(
        text, op=OP, hint=message.get("hint", ""), path=message.get("path", "")
    )
    return errors.at(error, process, epoch, step)


def _origin(message: Message) -> type[BaseException]:
    """Returns the class of the original error, a base class of the PeerError beside `Exception`.

    `Exception` replaces a class that would end a loop silently, that is not a subclass of
    `Exception`, or that cannot be made from a text.
    """
    if "code" in message:
        return errors.CLASSES.get(message["code"], errors.InternalError)
    origin: type[BaseException] = getattr(builtins, message["type"], RuntimeError)
    apart = StopIteration, StopAsyncIteration, UnicodeError, BaseExceptionGroup
    return Exception if issubclass(origin, apart) or not issubclass(origin, Exception) else origin
