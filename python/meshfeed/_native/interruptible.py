"""Calls of the library that Ctrl-C can end, although they return only when their work is done.

Python handles signals on the main thread, between its own instructions. A call that may take long
therefore runs on a thread of its own, and the main thread waits for it. That costs about 0.1 ms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from meshfeed._native import library

T = TypeVar("T")

# A signal that comes just before a wait does not end the wait, so the main thread looks for
# signals after this many seconds.
_LOOK = 0.1


def call(function: Callable[[], T]) -> T:
    """Returns the result of a function. On the main thread, Ctrl-C ends the wait for it.

    The function then ends in the background, and its result is dropped.

    Args:
        function: calls the library. It must not need to run on the calling thread.
    """
    if threading.current_thread() is not threading.main_thread() or library.exiting:
        return function()
    job: Future[T] = Future()
    try:
        threading.Thread(
            target=_run, args=(function, job), name="meshfeed.read", daemon=True
        ).start()
    except RuntimeError:  # the process can have no more threads
        return function()
    while not wait([job], timeout=_LOOK).done:
        pass
    return job.result()


def _run(function: Callable[[], T], job: Future[T]) -> None:
    try:
        job.set_result(function())
    except BaseException as e:
        job.set_exception(e)
