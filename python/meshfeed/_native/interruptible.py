"""Calls of the library that Ctrl-C can end, although they return only when their work is done.

Python handles signals on the main thread, between its own instructions. A call that may take long
therefore runs on another thread, for which the main thread waits. That costs about 15 us.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from meshfeed._native import library

T = TypeVar("T")


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


_Jobs = SimpleQueue["_Job[object] | None"]

_idle: list[_Jobs] = []  # of threads that wait for a job
os.register_at_fork(after_in_child=_idle.clear)  # the threads are not in the child


def call(function: Callable[[], T]) -> T:
    """Returns the result of a function. On the main thread, Ctrl-C ends the wait for it.

    The function then ends in the background, and its result is dropped.

    Args:
        function: calls the library. It must not need to run on the calling thread.
    """
    if threading.current_thread() is not threading.main_thread() or library.exiting:
        return function()
    try:
        jobs = _idle.pop() if _idle else _started()
    except RuntimeError:  # the process can have no more threads
        return function()
    job = _Job(function)
    jobs.put(job)  # type: ignore[arg-type]
    try:
        job.done.acquire()
    except BaseException:
        jobs.put(None)  # the thread ends after the job
        raise
    _idle.append(jobs)
    return job.result()


def _started() -> _Jobs:
    jobs: _Jobs = SimpleQueue()
    threading.Thread(target=_serve, args=(jobs,), name="meshfeed.reads", daemon=True).start()
    return jobs


def _serve(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # its result belongs to the caller alone
