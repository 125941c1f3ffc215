"""Measures the first batch, allocations, page faults and memory."""

from __future__ import annotations

import resource
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

FIRST = 9  # loaders made for the time to the first batch
SAMPLED = 0.02  # seconds between two samples of the memory


def first_batch(open_dataset: Callable[[], Any], make: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns the milliseconds of opening, and from construction to the first ready batch.

    Every round opens the data again, so that no loader benefits from an earlier one; only the page
    cache stays warm. The first round is reported separately, because the library and JAX run for
    the first time in the process.
    """
    opened: list[float] = []
    first: list[float] = []
    for _ in range(FIRST):
        start = time.perf_counter_ns()
        dataset = open_dataset()
        middle = time.perf_counter_ns()
        loader = make(dataset)
        jax.block_until_ready(next(iter(loader)))
        first.append((time.perf_counter_ns() - middle) / 1e6)
        opened.append((middle - start) / 1e6)
        loader.close()
    return {
        "open_ms": float(np.median(opened)),
        "first_ms": float(np.median(first[1:])),
        "worst_ms": max(first[1:]),
        "process_first_ms": first[0],
    }


def allocated(batches: Iterator[Any], rounds: int = 30) -> int:
    """Returns the median of the bytes that Python and NumPy allocate during one `next`."""
    for _ in range(10):
        jax.block_until_ready(next(batches))
    peaks = []
    tracemalloc.start()
    for _ in range(rounds):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        jax.block_until_ready(next(batches))
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    return int(np.median(peaks))


def faults_per_batch(batches: Iterator[Any], rounds: int = 2000) -> float:
    """Returns the pages that the process touches for the first time, per batch.

    Memory that is allocated for every batch shows here: large blocks of NumPy and C come from the
    kernel and return to it. There are so many rounds because a loader may allocate its last buffer
    late: over 200 batches, its 384 pages of 1.5 MB would look like two per batch.
    """
    for _ in range(20):
        jax.block_until_ready(next(batches))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        jax.block_until_ready(next(batches))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / rounds


def anonymous() -> int:
    """Returns the bytes of memory of this process that belong to no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    return (int(sizes["RssAnon"]) + int(sizes["RssShmem"])) << 10


class Peak(threading.Thread):
    """Samples the memory that belongs to no file."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = anonymous()
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(SAMPLED):
            self.most = max(self.most, anonymous())

    def finish(self) -> float:
        """Returns the growth in MB."""
        self._done.set()
        self.join()
        return (self.most - self.before) / 1e6


def peak_growth(begin: Callable[[], Iterator[Any]], seconds: float) -> float:
    """Returns the largest growth of the process in MB, from before the loop is made."""
    before = most = anonymous()
    batches = begin()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            jax.block_until_ready(next(batches))
        most = max(most, anonymous())
    return (most - before) / 1e6
