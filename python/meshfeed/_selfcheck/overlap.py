"""Measures how much of a batch's transfer runs during the step before it.

A step of a few milliseconds reads a little of the batch and then computes on its devices. After
each step, the loop waits for the previous one, like a training loop that reads metrics one step
late. The cost of the input is the difference to the same step on a batch that is already on its
devices.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from meshfeed._selfcheck import checks
from meshfeed._selfcheck.report import Steps
from meshfeed._selfcheck.timing import LEAST, SKIP, Case
from meshfeed._selfcheck.work import Step, Work

STEPS = (0.0, 0.001, 0.010)  # seconds of computation
AHEAD = (0, 1, 2)  # values of device_prefetch
ALONE, BY_HAND = "alone", "by hand"  # names of the loops without input and without meshfeed


def prefetching(ahead: int) -> str:
    """Returns the name of meshfeed's loop with this `device_prefetch`."""
    return f"device_prefetch={ahead}"


def measure(case: Case, seconds: float, rounds: int) -> list[Steps]:
    """Measures all steps with the batches of one case.

    Args:
        case: the data.
        seconds: the time of each loop and step in each round.
        rounds: the number of measured rounds. One more round runs first and is not counted.
    """
    loaders = {prefetching(n): case.loader(device_prefetch=n) for n in AHEAD}
    ready = jax.block_until_ready(next(case.put()))
    loops: dict[str, Iterator[Any]] = {ALONE: _repeat(ready)}
    loops |= {name: iter(loader) for name, loader in loaders.items()}
    loops[BY_HAND] = case.by_hand()
    work = Work(checks.one_axis(), ready)
    steps = {asked: work.step(asked) for asked in STEPS}
    times: dict[float, dict[str, list[float]]] = {s: {name: [] for name in loops} for s in steps}
    try:
        for r in range(-1, rounds):
            for asked, step in steps.items():
                for name, loop in loops.items():
                    each = _loop(loop, step, work.start, seconds)
                    if r >= 0:
                        times[asked][name].append(each)
    finally:
        for loader in loaders.values():
            loader.close()
    found = []
    for asked, loop_times in times.items():
        medians = {name: float(np.median(parts)) for name, parts in loop_times.items()}
        found.append(Steps(case.name, asked, medians.pop(ALONE), medians))
    return found


def _repeat(batch: Any) -> Iterator[Any]:
    while True:
        yield batch


def _loop(batches: Iterator[Any], step: Step, carry: Any, seconds: float) -> float:
    """Runs a loop for this many seconds, and returns the mean seconds per step."""
    under_way: deque[Any] = deque()  # results of steps that may still run
    for _ in range(SKIP):
        carry = step(carry, next(batches))
    jax.block_until_ready(carry)
    n, began = 0, time.perf_counter()
    while n < LEAST or time.perf_counter() - began < seconds:
        carry = step(carry, next(batches))
        under_way.append(carry)
        n += 1
        if len(under_way) > 1:
            jax.block_until_ready(under_way.popleft())
    jax.block_until_ready(carry)
    return (time.perf_counter() - began) / n
