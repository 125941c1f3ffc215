"""A lock that Ctrl-C cannot leave locked."""

from __future__ import annotations

import _thread


class Lock(_thread.RLock):  # type: ignore[misc]
    """A lock for `with`. `_ = lock.held` locks too, and `del lock.held` unlocks.

    Python runs signal handlers when a function begins and after a call of a function in C, but not
    after access to an attribute. So no signal comes between these lines and the lines next to them.

    In Python 3.14 a `with` statement calls `__enter__` like any function. An interrupt after
    `threading.Lock.__enter__`, which is in C, leaves that lock locked. Here an interrupt comes
    before the lock is locked, or inside the block. A signal handler may lock it again.
    """

    held = property(_thread.RLock.acquire, None, _thread.RLock.release)

    def __enter__(self) -> bool:  # type: ignore[override]
        _ = self.held
        return True
