"""The keys of a loader in the job's store.

A namespace holds all keys of one loader. A generation, one level below, lasts from one agreement
of the processes to the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from meshfeed.coordinator import Coordinator, patient_get


@dataclass(frozen=True)
class Namespace:
    """The keys of a loader, as one of its processes uses them.

    Attributes:
        store: the job's store.
        path: the prefix of all the keys.
        title: the loader's name in errors and log lines.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
    """

    store: Coordinator
    path: str
    title: str
    me: int
    members: Sequence[int]

    @property
    def lead(self) -> int:
        """The lowest process, which decides for all."""
        return self.members[0]

    @property
    def others(self) -> list[int]:
        """The other processes."""
        return [p for p in self.members if p != self.me]

    def generation(self, number: int) -> Generation:
        """Returns the keys of one generation."""
        return Generation(self, f"{self.path}/{number}")

    def departed(self) -> set[int]:
        """Returns the processes that have closed the loader."""
        return set(_by_process(self.store, f"{self.path}/departed"))

    def depart(self) -> None:
        """Marks this process as departed; the last process deletes all keys."""
        self.store.set(f"{self.path}/departed/{self.me}", b"")
        if len(self.departed()) == len(self.members):
            self.store.delete(self.path)


@dataclass(frozen=True)
class Generation:
    """The keys of one generation. Values are JSON.

    Attributes:
        namespace: the loader's keys.
        path: the prefix of this generation's keys.
    """

    namespace: Namespace
    path: str

    def set(self, key: str, value: Any) -> None:
        """Sets a key."""
        self.namespace.store.set(f"{self.path}/{key}", json.dumps(value).encode())

    def get(self, key: str, seconds: float) -> Any:
        """Waits for a key; returns None if it is not set in time."""
        return _parsed(self.namespace.store.get(f"{self.path}/{key}", seconds))

    def wait(self, key: str, until: float, sleep: Callable[[float], object]) -> Any:
        """Waits for a key by `patient_get`, so that the wait can be ended."""
        return _parsed(patient_get(self.namespace.store, f"{self.path}/{key}", until, sleep))

    def try_get(self, key: str) -> Any:
        """Returns the value of a key, None if it is not set."""
        return _parsed(self.namespace.store.try_get(f"{self.path}/{key}"))

    def by_process(self, key: str) -> dict[int, Any]:
        """Returns the values below a key whose last parts are the numbers of processes."""
        found = _by_process(self.namespace.store, f"{self.path}/{key}")
        return {process: json.loads(value) for process, value in found.items()}

    def delete(self, key: str) -> None:
        """Deletes a key and all keys below it."""
        self.namespace.store.delete(f"{self.path}/{key}")


def _parsed(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


def _by_process(store: Coordinator, path: str) -> dict[int, bytes]:
    return {int(key.rpartition("/")[2]): value for key, value in store.list(path).items()}
