"""Calls of the library that Ctrl-C can end, although they return only when their work is done.

Python handles signals on the main thread, between its own instructions. A call that may take long
therefore runs on a thread of its own, for which the main thread waits. That costs about 0.1 ms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from meshfeed._native import library

T = TypeVar("T")

# A signal that comes just before a wait does not end the wait, so the main thread looks for
# signals after this many seconds.
_LOOK = 0.1


class _Job(Generic[T]):
    """A call for another thread.

    Attributes:
        done: a lock that is held until the call is over.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: T
        self._error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """Runs the call."""
        try:
            self._result = self._function()
        except BaseException as e:
            self._error = e
        finally:
            self.done.release()

    def result(self) -> T:
        """Returns the result of the call, or raises its error."""
        if self._error is not None:
            raise self._error
        return self._result


def call(function: Callable[[], T]) -> T:
    """Returns the result of a function. On the main thread, Ctrl-C ends the wait for it.

    The function then ends in the background, and its result is dropped.

    Args:
        function: calls the library. It must not need to run on the calling thread.
    """
    if threading.current_thread() is not threading.main_thread() or library.exiting:
        return function()
    job = _Job(function)
    try:
        threading.Thread(target=job.run, name="meshfeed.read", daemon=True).start()
    except RuntimeError:  # the process can have no more threads
        return function()
    while not job.done.acquire(timeout=_LOOK):
        pass
    return job.result()
