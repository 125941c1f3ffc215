"""A machine with a simulated clock and device, so that every time is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import meshfeed as mf

BATCH = {"image": np.ones((8, 4), np.float32), "label": np.zeros(8, np.int32)}
ROWS, BYTES = 8, 8 * 4 * 4 + 8 * 4


class Machine:
    """A host with a clock, and a device that runs steps one after the other.

    Times are milliseconds. An input takes `input_ms` of the host's time per batch, a call of the
    step `dispatch_ms`, and the step `step_ms` of the device's time.
    """

    def __init__(self, input_ms: float, step_ms: float, dispatch_ms: float = 1) -> None:
        self.input_ms, self.step_ms, self.dispatch_ms = input_ms, step_ms, dispatch_ms
        self.now = 1e6  # of the host
        self.free = 0.0  # when the device has finished
        self.most = 0  # steps that were under way at the same time
        self.ends: list[float] = []

    def clock(self) -> float:
        return self.now / 1e3

    def batches(self, count: int = 1 << 20) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            self.now += self.input_ms
            yield BATCH

    def step(self, batch: Any) -> Result:
        assert batch is BATCH
        self.now += self.dispatch_ms
        self.free = max(self.free, self.now) + self.step_ms
        self.ends.append(self.free)
        self.most = max(self.most, sum(end > self.now for end in self.ends))
        return Result(self, self.free)


class Result:
    """The result of a step, which is ready when the device has computed it."""

    def __init__(self, machine: Machine, end: float) -> None:
        self.machine, self.end = machine, end

    def block_until_ready(self) -> Result:
        self.machine.now = max(self.machine.now, self.end)
        return self


def swept(machine: Callable[..., Machine]) -> mf.Sweep:
    def make(devices: int, rows: int) -> Any:
        if (devices, rows) == (2, 16):
            raise RuntimeError("no\n  memory")
        host = machine(1.3, 64 / devices * rows / 8)
        return host.batches(), host.step

    points = {"devices": [1, 2, 4], "rows": [8, 16]}
    return mf.benchmark.sweep(make, points, batches=4, warmup=2)
