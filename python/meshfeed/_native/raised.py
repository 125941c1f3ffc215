"""Exceptions that functions of the user raised on threads of the library, as causes of its errors.

A text is all that passes through the library. It ends in the message of the error that the call of
the program raises, where the exception is found by it. So a traceback shows the user's line.
"""

from __future__ import annotations

from types import TracebackType

_MOST = 32  # exceptions that no call has raised; they keep the variables of their functions
_PREFIX = 200  # characters that are compared, because messages may be cut

_raised: dict[str, BaseException] = {}


def keep(error: BaseException, text: str) -> None:
    """Keeps an exception that passes through the library as a text."""
    if trace := _own(error.__traceback__):
        _raised[text[:_PREFIX]] = error.with_traceback(trace)
        for old in list(_raised)[:-_MOST]:
            _raised.pop(old, None)


def of(message: str) -> BaseException | None:
    """Returns the exception that a message of the library contains, and forgets it."""
    for text in list(_raised):
        if text in message:
            return _raised.pop(text, None)
    return None


def _own(trace: TracebackType | None) -> TracebackType | None:
    """Returns the part of a traceback that begins in code of the user, or None."""
    while trace is not None and trace.tb_frame.f_globals["__name__"].startswith("meshfeed."):
        trace = trace.tb_next
    return trace
