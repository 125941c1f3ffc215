"""Rounds: the time from one agreement of a loader's processes to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshfeed.coordinator import Coordinator


@dataclass(frozen=True)
class Round:
    """A round, seen from one of the loader's processes.

    Attributes:
        store: the job's store.
        path: under which the round's keys stand.
        title: the loader, as the log names it.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
    """

    store: Coordinator
    path: str
    title: str
    me: int
    members: Sequence[int]
