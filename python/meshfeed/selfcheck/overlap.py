"""How much of a batch's transfer runs during the step before it.

A step of some milliseconds reads a little of the batch and then computes on its devices. The loop
waits for the step before the last, as a training loop does whose metrics are read late. What a
step takes beyond the same step on a batch that is there already is the input's share.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meshfeed.selfcheck import checks
from meshfeed.selfcheck.timing import LEAST, SKIP, Case
from meshfeed.selfcheck.work import Step, Work

STEPS = (0.0, 0.001, 0.010)  # seconds of computation
AHEAD = (0, 1, 2)  # values of device_prefetch
ALONE, BY_HAND = "alone", "by hand"


@dataclass(frozen=True)
class Overlap:
    """The times of one length of step.

    Attributes:
        asked: seconds of computation that the step was set for.
        seconds: median seconds of a step by loop: "alone", "device_prefetch=0" and so on,
            "by hand".
    """

    asked: float
    seconds: dict[str, float]


def prefetching(ahead: int) -> str:
    """Gives the name of meshfeed's loop with so many batches sent ahead."""
    return f"device_prefetch={ahead}"


def measure(case: Case, seconds: float, rounds: int) -> list[Overlap]:
    """Measures all steps over one case.

    Args:
        case: the data.
        seconds: of each loop and step in each round.
        rounds: how many; one more goes before and is not counted.
    """
    loaders = {prefetching(n): case.loader(device_prefetch=n) for n in AHEAD}
    ready = jax.block_until_ready(next(case.put()))
    loops: dict[str, Iterator[Any]] = {ALONE: _repeat(ready)}
    loops |= {name: iter(loader) for name, loader in loaders.items()}
    loops[BY_HAND] = case.by_hand()
    work = Work(checks.line(), ready)
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
    return [
        Overlap(asked, {name: float(np.median(parts)) for name, parts in found.items()})
        for asked, found in times.items()
    ]


def _repeat(batch: Any) -> Iterator[Any]:
    while True:
        yield batch


def _loop(batches: Iterator[Any], step: Step, carry: Any, seconds: float) -> float:
    """Gives the seconds of a step, over a loop of so many seconds."""
    under_way: deque[Any] = deque()
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
