"""Runs loops in short turns, again and again, in another order every time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from tests.bench.floor import SKIP

Times = dict[str, list[float]]
Stretch = Callable[[], Times]


def take_turns(stretches: Mapping[str, Stretch], rounds: int) -> dict[str, Any]:
    """Runs every stretch once per round, and returns the samples of every name.

    A first round does not count.

    Args:
        stretches: each returns samples by name.
        rounds: their number. Round r begins with stretch r, so no stretch always follows another.

    Returns:
        For each name, the samples of each round.
    """
    names = list(stretches)
    samples: dict[str, list[list[float]]] = {}
    for r in range(-1, rounds):
        shift = r % len(names)
        for name in names[shift:] + names[:shift]:
            for key, values in stretches[name]().items():
                if r >= 0:
                    samples.setdefault(key, []).append(values)
    return samples


def loop(
    name: str,
    batches: Iterator[Any],
    rows: int,
    seconds: float,
    *,
    skip: int = SKIP,
    sums: Callable[[], dict[str, float]] = dict,
) -> Stretch:
    """Makes the stretch of a loop: pipelined, then closed.

    Args:
        name: what to call it in the samples.
        batches: the loop.
        rows: of a batch.
        seconds: of each part.
        skip: first batches that do not count, because they may have been ready.
        sums: returns running totals of seconds, reported per batch of the closed part.
    """

    def stretch() -> Times:
        for _ in range(skip):
            jax.block_until_ready(next(batches))
        parts = pipelined(batches, rows, seconds)
        before = sums()
        times = closed(batches, seconds)
        for key, value in sums().items():
            parts[key] = (value - before[key]) / len(times) * 1e6
        return {name: times} | {f"{name}.{key}": [value] for key, value in parts.items()}

    return stretch


def seldom(every: int, stretch: Stretch) -> Stretch:
    """Makes a stretch that runs in one of `every` rounds, including the first that counts."""
    turn = itertools.count(-1)
    return lambda: {} if next(turn) % every else stretch()


def closed(batches: Iterator[Any], seconds: float) -> list[float]:
    """Returns the microseconds of each `next`, up to its ready batch."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        jax.block_until_ready(next(batches))
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def pipelined(batches: Iterator[Any], rows: int, seconds: float) -> dict[str, float]:
    """Returns rows and processor seconds of a loop that waits for its last batch only."""
    cpu, start, n = time.process_time(), time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        batch = next(batches)
        n += 1
    jax.block_until_ready(batch)
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    return {"rows_per_second": n * rows / wall, "cpu_per_million": used / (n * rows) * 1e6}


def summary(samples: list[list[float]]) -> dict[str, Any]:
    """Returns percentiles of all samples, and the median of every round."""
    everything = np.concatenate([np.asarray(part) for part in samples])
    p10, p50, p99 = (float(p) for p in np.percentile(everything, [10, 50, 99]))
    medians = [round(float(np.median(part)), 3) for part in samples]
    mean = float(np.mean(everything))
    return {"p10": p10, "p50": p50, "p99": p99, "mean": mean, "n": len(everything)} | {
        "medians": medians
    }
