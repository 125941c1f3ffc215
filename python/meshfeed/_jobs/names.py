"""Names of loaders: every use of a name gets keys of its own in the store."""

from __future__ import annotations

import threading
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meshfeed.coordinator import Coordinator
from meshfeed.errors import InvalidStateError


@dataclass(frozen=True)
class Claim:
    """One use of a name.

    Attributes:
        path: the prefix of its keys.
        title: the loader's name in errors.
        release: frees the name for another loader of this process.
    """

    path: str
    title: str
    release: Callable[[], None]


class Names:
    """The names of this process's loaders in one store, and how often each was used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, str], int] = {}
        self._taken: set[tuple[int, str | None]] = set()

    def claim(self, me: int, name: str | None, members: Sequence[int]) -> Claim:
        """Claims a name; without one, the name that the members make.

        Uses by the same members are counted, because all of them have the same count.
        """
        group = _group(members)
        path = f"{name}.{group}" if name else group
        with self._lock:
            if name is not None and (me, name) in self._taken:
                message = f"name={name!r}: another loader of this process has that name"
                hint = "close it first, or choose another"
                raise InvalidStateError(message, op="mf.Loader", hint=hint)
            if name is not None:
                self._taken.add((me, name))
            count = self._counts[me, path] = self._counts.get((me, path), -1) + 1
        title = repr(name) if name else f"{count} of processes {group}"
        return Claim(f"meshfeed/{path}/{count}", title, lambda: self._taken.discard((me, name)))


def _group(members: Sequence[int]) -> str:
    """Names a set of processes: uses by different sets are counted apart."""
    span = f"{members[0]}-{members[-1]}"
    if members[-1] - members[0] == len(members) - 1:
        return span
    return f"{span}.{zlib.crc32(repr(list(members)).encode()):08x}"


_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[Coordinator, Names] = weakref.WeakKeyDictionary()


def names(store: Coordinator) -> Names:
    """Returns the names of this process's loaders in a store."""
    with _lock:
        return _known.setdefault(store, Names())
