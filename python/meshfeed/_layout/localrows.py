"""Which rows of an array the devices of each process hold, and how many that makes in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meshfeed._io.arguments import Checks

_ALL = 'rows="all" places an array that every process has whole'
_LISTED = 6  # groups of processes in an error


class Parts:
    """The parts that a spec cuts the rows of an array into, and the processes that hold them.

    Args:
        axes: the sizes of the mesh axes by name.
        processes: the process of every device, in the shape of the mesh.
        entry: the axes that cut the rows, the first one outermost.

    Attributes:
        count: the number of parts.
        held: the parts that each process holds, in ascending order.
    """

    def __init__(
        self, axes: Mapping[str, int], processes: np.ndarray[Any, Any], entry: Sequence[str]
    ) -> None:
        part = np.zeros(processes.shape, np.int64)
        self.count = 1
        for axis in entry:
            coordinates = np.arange(axes[axis])
            dimension = list(axes).index(axis)
            others = [d for d in range(processes.ndim) if d != dimension]
            part = part * axes[axis] + np.expand_dims(coordinates, others)
            self.count *= axes[axis]
        self.held = {
            int(process): tuple(np.unique(part[processes == process]).tolist())
            for process in np.unique(processes)
        }

    @property
    def groups(self) -> list[list[int]]:
        """The processes that hold the same parts, group by group."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for process, parts in self.held.items():
            groups.setdefault(parts, []).append(process)
        return list(groups.values())

    @property
    def overlap(self) -> bool:
        """Whether several processes hold the same part."""
        return sum(map(len, self.held.values())) > self.count

    @property
    def is_whole(self) -> bool:
        """Whether every process holds all parts."""
        return all(len(parts) == self.count for parts in self.held.values())

    def starts(self, rows: int, process: int) -> dict[int, int]:
        """Returns the first local row of each part of a process, by its first global row.

        Args:
            rows: the rows in all processes.
            process: the number of the process.
        """
        size = rows // self.count
        return {part * size: i * size for i, part in enumerate(self.held[process])}

    def notice(self, name: str) -> str:
        """Returns the warning that several processes must give the same rows of an array."""
        groups = [group for group in self.groups if len(group) > 1]
        text = f"some rows of array {name!r} are in several processes, which"
        if groups:
            listed = "; ".join(_and(group) for group in groups[:_LISTED])
            listed += "; …" if len(groups) > _LISTED else ""
            text = f"these processes hold the same rows of array {name!r}: {listed}, and"
        text += " must give equal rows in the same order; JAX does not compare them, "
        return text + "mf.check_replicas does"

    def rows(self, check: Checks, name: str, rows: int, process: int) -> int:
        """Returns the number of rows in all processes, if this process has `rows` of them.

        Args:
            check: raises errors with the name of the user's call.
            name: the name of the array.
            rows: the rows that this process holds.
            process: the number of this process.

        Raises:
            InvalidArgumentError: the rows do not divide over the parts of this process.
        """
        held = len(self.held.get(process, ()))
        if held == 0:
            message = f"process {process} has no device in the mesh, so its rows of array {name!r} "
            message += "do not tell how many there are in all"
            raise check.misfit(message, _ALL)
        if rows % held:
            message = f"array {name!r} has {rows} rows in process {process}, whose devices hold "
            message += f"{held} of the {self.count} equal parts of its rows, but {rows} rows "
            message += f"do not divide into {held} parts"
            raise check.misfit(message, self._counts(rows, held))
        return rows // held * self.count

    def _counts(self, rows: int, held: int) -> str:
        """Returns the hint with the rows that every process must have."""
        sizes = [size for size in (rows // held, rows // held + 1) if size]
        return "; ".join(f"for {size * self.count} in all, {self._shares(size)}" for size in sizes)

    def _shares(self, size: int) -> str:
        """Describes the rows of every process, if each part has this size."""
        texts = []
        for group in self.groups[:_LISTED]:
            rows = size * len(self.held[group[0]])
            if len(group) == 1:
                texts.append(f"process {group[0]} gives {rows}")
            else:
                texts.append(f"processes {_and(group)} give the same {rows}")
        return ", ".join(texts + ["…"] * (len(self.groups) > _LISTED))


def _and(group: Sequence[int]) -> str:
    return ", ".join(map(str, group[:-1])) + f" and {group[-1]}"


def check_parts(check: Checks, arrays: Sequence[tuple[str, int, Parts]]) -> str:
    """Refuses arrays if their processes cannot have rows of their own.

    Returns a warning if processes share rows, or "".

    Args:
        check: raises errors with the name of the user's call.
        arrays: name, local rows and parts of every array.
    """
    several = [(name, rows, parts) for name, rows, parts in arrays if len(parts.held) > 1]
    if several and all(parts.is_whole for _, _, parts in several):
        name, _, parts = several[0]
        message = f"every process holds all rows of array {name!r}"
        message += ", and of the others" if len(several) > 1 else ""
        message += ", so no process has rows of its own"
        hint = 'read the same batch in every process and give rows="all", or cut dimension 0 by '
        hint += "an axis whose devices are in several processes"
        raise check.misfit(message, hint)
    for name, rows, parts in several:
        for other, others, more in several:
            if parts.is_whole and not more.is_whole and rows == others:
                message = f"array {name!r} has {rows} local rows, as many as {other!r}, but its "
                message += "spec does not cut rows over processes: every process must have all "
                message += f"{rows} rows of {name!r}, and only its own of {other!r}"
                hint = "name the same axes for dimension 0 of both, or put this array by a call of "
                hint += 'its own with rows="all"'
                raise check.misfit(message, hint)
    shared = (p.notice(name) for name, _, p in several if p.overlap and not p.is_whole)
    return next(shared, "")
