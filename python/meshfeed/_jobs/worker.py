"""Background threads of one generation, which wait for the store of the job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from meshfeed._jobs.keys import Generation

LEAVING = "meshfeed.leave"  # the name of threads that call the store while a loader closes
OLD = 1.0  # seconds for which a worker uses a list of the departed processes


class Worker:
    """A background thread. It holds no reference to a loader, which may be forgotten unclosed.

    Args:
        name: the thread's.
        of: the store keys of the present generation.

    Attributes:
        ended: set when the thread has to end.
    """

    def __init__(self, name: str, of: Generation) -> None:
        self._keys, self._namespace, self._title = of, of.namespace, of.namespace.title
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _start(self) -> None:
        """Starts the thread; comes last in a constructor."""
        running.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            running.discard(self)

    def _work(self) -> None:
        """Runs on the thread until `ended` is set."""
        raise NotImplementedError

    def _departed(self) -> set[int]:
        """Returns the processes that have closed the loader, as known for up to a second."""
        return self._namespace.departed(OLD)

    def _must_end(self, process: int) -> bool:
        """Returns whether a wait for a process has to end, because it or this worker has."""
        return self.ended.is_set() or process in self._departed()

    def _wake(self) -> None:
        """Ends a wait of the thread at the store."""

    def end(self, seconds: float | None) -> None:
        """Ends the thread and joins it, for at most this long."""
        self.forget()
        if self._thread.is_alive():
            with suppress(Exception):  # a store that fails ends the wait by itself
                self._wake()
            self._thread.join(seconds)

    def forget(self) -> None:
        """Tells the thread to end after its current wait; returns at once."""
        self.ended.set()


# All workers, also workers of forgotten loaders: they end at the interpreter's exit.
running: set[Worker] = set()


def beside(seconds: float, *works: Callable[[], None]) -> bool:
    """Runs functions on threads, and waits for them up to `seconds`.

    The functions call the store, which may not answer. Returns False if no thread can be started.
    """
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=w, name=LEAVING, daemon=True) for w in works]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        return False
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return True
