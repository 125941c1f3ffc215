"""Where the keys of a loader stand, and rounds: the time from one agreement to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshfeed.coordinator import Coordinator


@dataclass(frozen=True)
class Room:
    """The keys of a loader, seen from one of its processes; the last one deletes them.

    Attributes:
        store: the job's store.
        path: under which all the keys stand.
        title: the loader, as the log names it.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
    """

    store: Coordinator
    path: str
    title: str
    me: int
    members: Sequence[int]

    def round(self, number: int) -> Round:
        """Gives one of its rounds."""
        return Round(self, f"{self.path}/{number}")

    def left(self) -> set[int]:
        """Gives the processes that have left, as a process may while the others go on."""
        return {int(key.rpartition("/")[2]) for key in self.store.list(f"{self.path}/left")}

    def leave(self) -> None:
        """Leaves, after the last of this process's keys."""
        self.store.set(f"{self.path}/left/{self.me}", b"")
        if len(self.left()) == len(self.members):
            self.store.delete(self.path)


@dataclass(frozen=True)
class Round:
    """A round, seen from one of the loader's processes.

    Attributes:
        room: what it is a round of.
        path: under which the round's keys stand.
    """

    room: Room
    path: str
