"""Names of loaders: every use of a name gets a namespace of its own in the store."""

from __future__ import annotations

import threading
import weakref
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence

from meshfeed._jobs.keys import Namespace
from meshfeed.coordinator import Coordinator
from meshfeed.errors import InvalidStateError


class _Names:
    """The names of this process's loaders in one store, and how often each was used."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.taken: set[tuple[int, str | None]] = set()


_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[Coordinator, _Names] = weakref.WeakKeyDictionary()


def claim(
    store: Coordinator, me: int, name: str | None, members: Sequence[int]
) -> tuple[Namespace, Callable[[], None]]:
    """Claims a name; without one, the name that the members make.

    Uses by the same members are counted, because all of them have the same count.

    Returns:
        The keys of this use, and a function that frees the name for another loader.
    """
    group = _group(members)
    path = f"{name}.{group}" if name else group
    with _lock:
        names = _known.setdefault(store, _Names())
        if name is not None and (me, name) in names.taken:
            message = f"name={name!r}: another loader of this process has that name"
            hint = "close it first, or choose another"
            raise InvalidStateError(message, op="mf.Loader", hint=hint)
        if name is not None:
            names.taken.add((me, name))
        count = names.counts[me, path]
        names.counts[me, path] += 1
    title = repr(name) if name else f"{count} of processes {group}"
    namespace = Namespace(store, f"meshfeed/{path}/{count}", title, me, members)
    return namespace, lambda: names.taken.discard((me, name))


def _group(members: Sequence[int]) -> str:
    """Names a set of processes: uses by different sets are counted apart."""
    span = f"{members[0]}-{members[-1]}"
    if members[-1] - members[0] == len(members) - 1:
        return span
    return f"{span}.{zlib.crc32(repr(list(members)).encode()):08x}"
