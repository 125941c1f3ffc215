"""Names of loaders between processes: each use of a name has its own place in the store."""

from __future__ import annotations

import threading
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meshfeed.coordinator import Coordinator
from meshfeed.errors import InvalidStateError


class Uses:
    """The names of this process's loaders in one store, and how often each was used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, str], int] = {}
        self._busy: set[tuple[int, str | None]] = set()

    def claim(self, me: int, name: str | None, members: Sequence[int]) -> Use:
        """Begins the next use of a name; without one, of the name that the members make.

        What is counted is its uses by the same members: each of them has as many behind it.
        """
        group = _group(members)
        place = f"{name}.{group}" if name else group
        with self._lock:
            if name is not None and (me, name) in self._busy:
                message = f"name={name!r}: another loader of this process has that name"
                hint = "close it first, or choose another"
                raise InvalidStateError(message, op="mf.Loader", hint=hint)
            if name is not None:
                self._busy.add((me, name))
            count = self._counts[me, place] = self._counts.get((me, place), -1) + 1
        title = repr(name) if name else f"{count} of processes {group}"
        return Use(f"meshfeed/{place}/{count}", title, lambda: self._busy.discard((me, name)))


@dataclass(frozen=True)
class Use:
    """One use of a name: where its keys stand, what errors call it, and what ends it."""

    path: str
    title: str
    end: Callable[[], None]


def _group(members: Sequence[int]) -> str:
    """Names a set of processes: loaders on different sets are counted apart."""
    span = f"{members[0]}-{members[-1]}"
    if members[-1] - members[0] == len(members) - 1:
        return span
    return f"{span}.{zlib.crc32(repr(list(members)).encode()):08x}"


_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[Coordinator, Uses] = weakref.WeakKeyDictionary()


def uses(store: Coordinator) -> Uses:
    """Gives the names of this process's loaders in a store."""
    with _lock:
        return _known.setdefault(store, Uses())
