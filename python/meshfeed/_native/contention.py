"""Waits of threads for the lock of the interpreter, in which one thread at a time runs Python.

Linux counts how long a thread ran, and how long it was ready and had no processor. The rest of
the time of a call is a wait: for the lock, for a file or for another thread. A thread that comes
from the library takes the lock first. If it waits long even there, others hold it most of the time.
"""

from __future__ import annotations

import os
import sys
from time import monotonic_ns

from meshfeed._native.lock import Lock

_CALLS, _TIME = 8, 200_000_000  # the least calls and nanoseconds for a verdict
_WAITED = 0.3  # of the time of the calls
_ENTRY = 1_000_000  # nanoseconds for the lock at the beginning of a call; holders keep it for 5 ms


class Contention:
    """The sums over the calls of a function, on all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls = self._time = self._waited = self._entry = 0

    def add(self, time: int, waited: int, entry: int) -> None:
        """Adds a call: its time, the wait in it, and the part of the wait before its function."""
        with self._lock:
            self._calls += 1
            self._time += time
            self._waited += waited
            self._entry += entry

    @property
    def locked(self) -> bool:
        """Whether the lock of the interpreter bounds the function."""
        enough = self._calls >= _CALLS and self._time >= _TIME
        least = min(_ENTRY * self._calls, self._time // 4)
        return enough and self._waited >= _WAITED * self._time and self._entry >= least


class Meter:
    """Measures the calls of one thread. It measures none if the system does not count."""

    def __init__(self) -> None:
        self._file = -1
        if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
            return
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            return
        self._last = self._busy()

    def close(self) -> None:
        """Ends the measurement, when the thread ends."""
        if self._file >= 0:
            os.close(self._file)

    def _busy(self) -> int:
        """Returns the nanoseconds in which the thread ran, or waited for a processor."""
        ran, ready, _ = os.pread(self._file, 64, 0).split()
        return int(ran) + int(ready)

    def ended(self, contention: Contention, taken: int, began: int) -> None:
        """Adds a call that ends now. It came from the library, then its function began."""
        if self._file < 0:
            return
        busy, time = self._busy(), monotonic_ns() - taken
        waited = max(0, time - (busy - self._last))
        self._last = busy
        contention.add(time, waited, min(waited, began - taken))
