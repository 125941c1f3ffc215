"""How messages name processes and batches."""

from __future__ import annotations

from collections.abc import Sequence

LISTED = 12  # processes that are named one by one


def named(processes: Sequence[int], one: str = "", many: str = "") -> str:
    """Names processes, with what follows one process or many.

    Examples:
        >>> named([2])
        'process 2'
        >>> named([0, 1, 3], "has", "have")
        'processes 0, 1 and 3 have'
    """
    if len(processes) == 1:
        return f"process {processes[0]} {one}".rstrip()
    listed = [str(p) for p in processes[:LISTED]]
    last = f"{len(processes) - LISTED} more" if len(processes) > LISTED else listed.pop()
    return f"processes {', '.join(listed)} and {last} {many}".rstrip()


def counted(batches: int) -> str:
    """Returns a number of batches in words, such as "1 batch"."""
    return "1 batch" if batches == 1 else f"{batches} batches"
