"""Finds files in shared memory that an ended program has left behind.

Files that other, running programs use do not count.
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def in_shared_memory() -> set[str]:
    """Lists the paths of the files in shared memory."""
    shared = Path("/dev/shm")
    return {str(file) for file in shared.iterdir()} if shared.exists() else set()


def left_since(before: set[str]) -> list[str]:
    """Lists the new files that no living process uses."""
    left = in_shared_memory() - before
    return sorted(file for file in left - _in_use() if Path(file).exists()) if left else []


def _in_use() -> set[str]:
    """Lists the files that living processes have open or mapped, as far as permissions show."""
    used: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            maps = (process / "maps").read_text().splitlines()
            used.update(line.split(maxsplit=5)[5] for line in maps if "/" in line)
        with contextlib.suppress(OSError):
            used.update(str(fd.readlink()) for fd in (process / "fd").iterdir())
    return used
