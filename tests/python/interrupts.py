"""Interrupts a function at every place where CPython can raise KeyboardInterrupt."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import meshfeed as mf

PACKAGE = Path(mf.__file__).parent

# The modules where batches and handles change owners.
WATCHED = tuple(
    str(PACKAGE / name) for name in ("_arrays/stream.py", "_feed", "_loader", "_native")
)

Step = tuple[CodeType, int]  # an instruction that is about to run


def _pending() -> Iterator[None]:
    """Returns an iterator that makes Ctrl-C pending with its first item.

    CPython looks for signals after a call, but not when a loop takes an item. A function that loops
    over this iterator and returns therefore ends before CPython sees Ctrl-C.
    """
    return map(_thread.interrupt_main, (signal.SIGINT,))


def _resend(dropped: Any) -> None:
    """Makes Ctrl-C pending again after Python dropped it in a finalizer of another library.

    A finalizer of this package must not lose it.
    """
    assert dropped.exc_type is KeyboardInterrupt
    if _last_step(dropped.exc_traceback) is None:
        for _ in _pending():
            return


def _last_step(trace: TracebackType | None) -> Step | None:
    """Returns the last watched instruction of a traceback."""
    found: Step | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(WATCHED):
            found = code, trace.tb_lasti
        trace = trace.tb_next
    return found


Handler = Callable[[int, FrameType | None], Any]


class Trial:
    """Runs a function with one Ctrl-C, which arrives before the n-th instruction that is watched.

    The trial makes the signal pending. CPython raises KeyboardInterrupt at the next place where it
    looks for signals: after a call, or where a function begins.

    Args:
        work: the function.
        n: the number of the instruction.
        handler: handles the signal; by default it raises KeyboardInterrupt.

    Attributes:
        n: the number of the instruction.
        caught: the KeyboardInterrupt.
        arrived: whether there were as many instructions.
        steps: the instructions before that one; all of them if Ctrl-C did not arrive.
    """

    def __init__(
        self, work: Callable[[], object], n: int, handler: Handler = signal.default_int_handler
    ) -> None:
        self.steps: list[Step] = []
        self.arrived, self.n = False, n
        self.caught = self._run(work, handler)

    def _run(self, work: Callable[[], object], handler: Handler) -> KeyboardInterrupt | None:
        usual = signal.signal(signal.SIGINT, handler), sys.unraisablehook
        sys.unraisablehook = _resend
        sys.settrace(self._enter)
        try:
            try:
                work()
            finally:
                sys.settrace(None)
        except KeyboardInterrupt as e:
            return e
        finally:
            signal.signal(signal.SIGINT, usual[0])
            sys.unraisablehook = usual[1]
        return None

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        frame.f_trace = self._step  # Python 3.14 ignores the next line in a frame without it
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "opcode":
            return self._step
        if len(self.steps) < self.n:
            self.steps.append((frame.f_code, frame.f_lasti))
            return self._step
        self.arrived = True
        sys.settrace(None)
        for _ in _pending():
            return None
        return None

    @property
    def where(self) -> str:
        """Where KeyboardInterrupt was raised in the package."""
        step = self.raised_at()
        return "after the function" if step is None else f"{step[0].co_qualname}+{step[1]}"

    def raised_at(self) -> Step | None:
        """Returns the last watched instruction under way when KeyboardInterrupt was raised."""
        error: BaseException | None = self.caught
        while (
            error is not None and error.__context__ is not None
        ):  # of several interrupts, the first
            error = error.__context__
        return None if error is None else _last_step(error.__traceback__)


def raise_twice() -> Handler:
    """Returns a handler that raises, and once makes Ctrl-C pending again before it does."""
    again = _pending()

    def handler(number: int, frame: FrameType | None) -> None:
        for _ in again:
            raise KeyboardInterrupt
        raise KeyboardInterrupt

    return handler


def in_package(frame: FrameType | None) -> Step | None:
    """Returns the watched instruction that a signal has interrupted, given its handler's frame."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(WATCHED):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def trials(work: Callable[[], Callable[[], object]]) -> Iterator[Trial]:
    """Yields a trial for every place where KeyboardInterrupt can be raised, and one without it.

    Ctrl-C before any of several successive instructions leads to the same place. The instructions
    of a run without Ctrl-C show which ones can be skipped. A run that finds a batch ready has fewer
    instructions, so one run without Ctrl-C does not end the trials.

    Args:
        work: prepares a run, and returns the function to interrupt.
    """
    Trial(work(), sys.maxsize)  # imports what it needs
    steps, n = Trial(work(), sys.maxsize).steps, 0
    while True:
        trial = Trial(work(), n)
        at = trial.raised_at()
        yield trial
        if not trial.arrived and n >= len(steps):
            return
        n = next_place(steps, n, at)


def next_place(steps: list[Step], n: int, at: Step | None) -> int:
    """Returns the first instruction from n on before which Ctrl-C leads to another place."""
    if at is None:
        return n + 1
    code, offset = at
    for i in range(n, len(steps)):
        if steps[i][0] is code and steps[i][1] >= offset:
            return max(i + (steps[i][1] == offset), n + 1)
    return n + 1
