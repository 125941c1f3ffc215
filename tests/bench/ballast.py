"""Locks memory so that other programs have little: `python -m tests.bench.ballast LEFT_MB`.

It locks memory until LEFT_MB are available to all other programs, prints that, and holds the memory
until its input ends. It ends with its parent in every case. If memory runs out, the kernel kills it
first, and it returns memory if other programs need more than planned. So a file of twice the
remaining memory cannot stay in the page cache.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PIECE = 256 << 20
LEAST = 1 << 30  # if fewer bytes are available, pieces are returned
PR_SET_PDEATHSIG = 1


def available() -> int:
    """Returns the bytes available to programs, including the page cache."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) << 10


def lock(libc: ctypes.CDLL) -> mmap.mmap:
    """Returns a locked piece of memory."""
    piece = mmap.mmap(-1, PIECE)
    piece.madvise(mmap.MADV_HUGEPAGE)  # without it the kernel takes seconds per GB
    start = ctypes.addressof(ctypes.c_char.from_buffer(piece))
    if libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(PIECE)):
        error = ctypes.get_errno()
        raise OSError(error, f"mlock: {os.strerror(error)}")
    return piece


def fill(libc: ctypes.CDLL, left: int) -> list[mmap.mmap]:
    """Locks memory on all cores, because the kernel clears it slowly."""
    pieces: list[mmap.mmap] = []
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        while available() > left + cores * PIECE:
            pieces += threads.map(lock, [libc] * cores)
    return pieces


def main(left: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    Path("/proc/self/oom_score_adj").write_text("1000")
    pieces = fill(libc, left)
    print(f"locked {len(pieces) * PIECE >> 20} MB", flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        while pieces and available() < LEAST:
            pieces.pop().close()
            print("gave some back", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) << 20)
