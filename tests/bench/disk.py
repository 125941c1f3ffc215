"""The page cache: drops the pages of a file, and counts what a process reads from disks."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np


def drop(path: Path) -> float:
    """Drops a file's pages from the cache, and returns the share that stayed."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return cached_part(path)


def counters() -> dict[str, int]:
    """Returns the kernel's counts of this process: bytes read, and bytes from a disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def cached_part(path: Path) -> float:
    """Returns the share of a file in the page cache, by mincore(2)."""
    mapped = np.memmap(path, np.uint8, "r")
    pages = np.empty(-(-mapped.size // mmap.PAGESIZE), np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.c_size_t(mapped.size)
    if libc.mincore(ctypes.c_void_p(mapped.ctypes.data), size, ctypes.c_void_p(pages.ctypes.data)):
        raise OSError(ctypes.get_errno(), "mincore")
    return float(np.mean(pages & 1))
