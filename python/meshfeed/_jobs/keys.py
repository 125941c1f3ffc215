"""The keys of a loader in the job's key-value store (a `mf.Coordinator`), and waits for them."""

from __future__ import annotations

import json
import math
import time
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from meshfeed._jobs import wording
from meshfeed._jobs.coordinator import Coordinator
from meshfeed._native.lock import Lock
from meshfeed.errors import InvalidArgumentError

SLICE = 0.2  # seconds of one call of the store; Ctrl-C and a close take effect after it


@dataclass
class Namespace:
    """The keys of one loader, for one of its processes."""

    store: Coordinator
    path: str  # the prefix of all the keys
    title: str  # the loader's name in errors and log lines
    me: int  # this process
    members: Sequence[int]  # all processes that hold a device of the mesh, in ascending order
    _departed: tuple[float, set[int]] = field(default=(-math.inf, set()), init=False)
    _began: float | None = field(default=None, init=False)

    @property
    def lead(self) -> int:
        """The process of the lowest number, which decides for all."""
        return self.members[0]

    @property
    def leads(self) -> bool:
        """Whether this process is `lead`."""
        return self.me == self.lead

    @property
    def others(self) -> list[int]:
        """The other processes."""
        return [p for p in self.members if p != self.me]

    def seconds(self) -> float:
        """Returns the seconds since the first call, which comes when all processes have agreed.

        So it is about equal in all of them, unlike the clocks of their hosts.
        """
        now = time.monotonic()
        if self._began is None:
            self._began = now
        return now - self._began

    def generation(self, number: int) -> Generation:
        """Returns the keys of one generation."""
        return Generation(self, f"{self.path}/{number}")

    def departed(self, age: float = 0) -> set[int]:
        """Returns the processes that have closed the loader, from a list of at most this age."""
        now = time.monotonic()
        if now - self._departed[0] >= age:
            self._departed = now, set(_by_process(self.store, f"{self.path}/departed"))
        return self._departed[1]

    @property
    def reports(self) -> Generation:
        """The keys of the processes' measurements, which no move of the loader deletes."""
        return Generation(self, self.path)

    def depart(self, last: Any = None) -> dict[int, Any]:
        """Marks this process as departed; the last process deletes all keys.

        Args:
            last: what the last process gets from every process.

        Returns:
            By process what each has given; empty unless this process is the last one.
        """
        self.reports.set(f"departed/{self.me}", last)
        given = self.reports.by_process("departed")
        if len(given) < len(self.members):
            return {}
        self.store.delete(self.path)
        return given


@dataclass(frozen=True)
class Generation:
    """The keys of one generation: the time between two agreements. Values are JSON."""

    namespace: Namespace
    path: str  # the prefix of this generation's keys

    def set(self, key: str, value: Any) -> None:
        """Sets a key."""
        self.namespace.store.set(f"{self.path}/{key}", json.dumps(value).encode())

    def get(self, key: str, seconds: float = 0) -> Any:
        """Returns the value of a key, or None if it is not set within this time.

        Raises:
            InvalidArgumentError: the store returned something other than bytes.
        """
        store, path = self.namespace.store, f"{self.path}/{key}"
        value: Any = store.get(path, seconds) if seconds > 0 else store.try_get(path)
        if value is None or isinstance(value, bytes):
            return None if value is None else json.loads(value)
        kind = type(value).__name__
        message = f"the coordinator gave a {kind} for the key {path!r}, expected bytes"
        hint = "give a coordinator with the methods of mf.Coordinator"
        raise InvalidArgumentError(message, op=wording.OP, hint=hint)

    def wait(
        self, key: str, seconds: float, over: Callable[[], bool], *, each: float = SLICE
    ) -> Any:
        """Waits for a key in short calls of the store, between which Ctrl-C takes effect.

        Args:
            key: the key.
            seconds: how long to wait.
            over: whether to end the wait; called before each call of the store.
            each: seconds of each call.

        Returns:
            The value, or None if the wait ended. The key is read once more after that.
        """
        until = time.monotonic() + seconds
        while True:
            left = 0.0 if over() else until - time.monotonic()
            value = self.get(key, min(left, each))
            if value is not None or left <= 0:
                return value

    def by_process(self, key: str) -> dict[int, Any]:
        """Returns the values below a key that end in the numbers of processes."""
        found = _by_process(self.namespace.store, f"{self.path}/{key}")
        return {process: json.loads(value) for process, value in found.items()}

    def delete(self, key: str) -> None:
        """Deletes a key and all keys below it."""
        self.namespace.store.delete(f"{self.path}/{key}")


def _by_process(store: Coordinator, path: str) -> dict[int, bytes]:
    return {int(key.rpartition("/")[2]): value for key, value in store.list(path).items()}


# ---- the names of loaders ----


# For one store, by process: how often every name was used, and the names of open loaders.
_Names = tuple[Counter[tuple[int, str]], set[tuple[int, str | None]]]

_lock = Lock()
_known: weakref.WeakKeyDictionary[Coordinator, _Names] = weakref.WeakKeyDictionary()


def claim(
    store: Coordinator, me: int, name: str | None, members: Sequence[int]
) -> tuple[Namespace, Callable[[], None]]:
    """Claims a namespace for a loader: by its name, or else by the numbers of the members.

    Every use of a name has its own namespace. It contains the number of earlier uses by the same
    members, which is equal in all of them.

    Returns:
        The keys of this use, and a function that frees the name for another loader.
    """
    span = group(members)
    path = f"{name}.{span}" if name else span
    with _lock:
        counts, taken = _known.setdefault(store, (Counter(), set()))
        if name is not None:
            if (me, name) in taken:
                raise wording.name_is_taken(name)
            taken.add((me, name))
        count = counts[me, path]
        counts[me, path] += 1
    title = repr(name) if name else f"{count} of processes {span}"
    namespace = Namespace(store, f"meshfeed/{path}/{count}", title, me, members)
    return namespace, lambda: taken.discard((me, name))


def group(members: Sequence[int]) -> str:
    """Returns a name for a set of processes. Uses by different sets are counted apart."""
    span = f"{members[0]}-{members[-1]}"
    if members[-1] - members[0] == len(members) - 1:
        return span
    return f"{span}.{zlib.crc32(repr(list(members)).encode()):08x}"
