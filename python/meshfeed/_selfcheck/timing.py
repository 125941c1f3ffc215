"""Measures the time of `next` and the rows per second, of meshfeed and of loops without it.

All loops deliver the same: global arrays with the same sharding, ready on their devices. They run
in turns: every round runs each loop for a short time. Other work on the machine therefore slows
all loops equally. Ratios compare loops of the same round.

- meshfeed: `next`, with the default options;
- by hand: `np.take` of the permuted rows, then one `jax.device_put`: the same work;
- put: repeated `jax.device_put` of one batch in ordinary memory: less work;
- pinned: the same from memory that the device can read directly ("pinned_host"). CPU devices use
  the host's memory: there the batch is aligned, and JAX aliases it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._selfcheck import checks
from meshfeed._selfcheck.report import Rates

Data = dict[str, checks.Array]
Loop = Iterator[dict[str, jax.Array]]

WINDOW = 2  # batches that a pipelined loop has under way
SKIP = 3  # batches that may be ready before a measurement begins
LEAST = 5  # batches of a measurement, however long they take


@dataclass(frozen=True)
class Case:
    """Data of one kind."""

    name: str  # in the report
    data: Data  # the arrays, by field
    batch: int  # rows of a batch

    @property
    def batch_bytes(self) -> int:
        """The bytes of a batch."""
        return self.batch * sum(int(array[0].nbytes) for array in self.data.values())

    def shardings(self) -> dict[str, NamedSharding]:
        """Returns the sharding of every array: rows over all devices."""
        return dict.fromkeys(self.data, NamedSharding(checks.one_axis(), P("data")))

    def loader(self, **options: Any) -> mf.Loader:
        """Returns a shuffled loader without end."""
        return mf.Loader(
            mf.from_arrays(self.data),
            specs=self.shardings(),
            batch_size=self.batch,
            shuffle=True,
            epochs=-1,
            **options,
        )

    def by_hand(self) -> Loop:
        """Yields the batches of a loop with NumPy and JAX only."""
        rng, split = np.random.default_rng(0), self.shardings()
        rows = len(next(iter(self.data.values())))
        while True:
            order = rng.permutation(rows)
            for start in range(0, rows - self.batch + 1, self.batch):
                records = order[start : start + self.batch]
                batch = {name: np.take(array, records, 0) for name, array in self.data.items()}
                yield jax.device_put(batch, split)

    def put(self) -> Loop:
        """Yields one batch from ordinary memory, again and again."""
        split = self.shardings()
        batch = {name: array[: self.batch].copy() for name, array in self.data.items()}
        while True:
            yield jax.device_put(batch, split)

    def pinned(self) -> Loop | None:
        """Yields one batch from memory that its devices can read directly, if there is any."""
        split = self.shardings()
        if jax.devices()[0].platform == "cpu":
            batch: Any = {name: _aligned(array[: self.batch]) for name, array in self.data.items()}
        else:
            kinds = [memory.kind for memory in jax.devices()[0].addressable_memories()]
            if "pinned_host" not in kinds:
                return None
            there = {name: s.with_memory_kind("pinned_host") for name, s in split.items()}
            rows = {name: array[: self.batch] for name, array in self.data.items()}
            batch = jax.block_until_ready(jax.device_put(rows, there))
        return _again(lambda: jax.device_put(batch, split))


def _again(make: Callable[[], Any]) -> Loop:
    while True:
        yield make()


def _aligned(array: checks.Array) -> checks.Array:
    """Copies to memory at a multiple of 64 bytes, which JAX on CPU aliases."""
    whole = np.empty(array.nbytes + 64, np.uint8)
    start = -whole.ctypes.data % 64
    out = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(out, array)
    return out


def cases(shrink: int = 1) -> list[Case]:
    """Returns the data that is measured.

    Args:
        shrink: a divisor for the rows of dataset and batch.
    """
    rng = np.random.default_rng(0)
    tokens, images, features = (checks.round_up(max(n // shrink, 1)) for n in (256, 256, 1024))

    def rows(n: int, batch: int) -> int:
        return max(n // shrink, 2 * batch)

    def labels(n: int) -> checks.Array:
        return rng.integers(0, 1000, n).astype(np.int32)

    text = rng.integers(0, 50000, (rows(16384, tokens), 2048), np.int32)
    n = rows(1024, images)
    pictures = {"image": rng.integers(0, 256, (n, 224, 224, 3), np.uint8), "label": labels(n)}
    n = rows(262144, features)
    vectors = {"x": rng.standard_normal((n, 16), np.float32), "label": labels(n)}
    return [
        Case("images, uint8 [224, 224, 3]", pictures, images),
        Case("tokens, int32 [2048]", {"tokens": text}, tokens),
        Case("features, float32 [16]", vectors, features),
    ]


# ---- measuring in turns ----


@dataclass(frozen=True)
class Times:
    """The times of one loop in one round."""

    closed: list[float]  # seconds of each `next` until its batch was ready
    closed_rate: float  # batches per second if each is ready before the next one is asked for
    pipelined_rate: float  # batches per second with two batches under way


def run(loop: Loop, seconds: float) -> Times:
    """Runs a loop for this time, closed and then pipelined (see `Times`)."""
    for _ in range(SKIP):
        jax.block_until_ready(next(loop))
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < LEAST or time.perf_counter() - began < seconds / 2:
        before = time.perf_counter()
        jax.block_until_ready(next(loop))
        times.append(time.perf_counter() - before)
    closed = len(times) / (time.perf_counter() - began)
    return Times(times, closed, _pipelined(loop, seconds / 2))


def _pipelined(loop: Loop, seconds: float) -> float:
    under_way: deque[Any] = deque()
    n, began = 0, time.perf_counter()
    while n < LEAST or time.perf_counter() - began < seconds:
        under_way.append(next(loop))
        n += 1
        if len(under_way) > WINDOW:
            jax.block_until_ready(under_way.popleft())
    jax.block_until_ready(list(under_way))
    return n / (time.perf_counter() - began)


def bare_copy(case: Case, seconds: float) -> Callable[[], float]:
    """Returns a function that measures how often per second the host copies a batch."""
    source = np.zeros(case.batch_bytes, np.uint8)
    target = np.ones_like(source)

    def copies() -> float:
        n, began = 0, time.perf_counter()
        while n < LEAST or time.perf_counter() - began < seconds:
            np.copyto(target, source)
            n += 1
        return n / (time.perf_counter() - began)

    return copies


def measure(case: Case, seconds: float, rounds: int) -> Rates:
    """Measures one case.

    Args:
        case: the data.
        seconds: the time of each loop in each round.
        rounds: the number of rounds. One more round runs first, and is not counted.
    """
    loader = case.loader()
    loops: dict[str, Loop] = {
        "meshfeed": iter(loader),
        "by hand": case.by_hand(),
        "put": case.put(),
    }
    if (pinned := case.pinned()) is not None:
        loops["pinned"] = pinned
    copy = bare_copy(case, seconds / 2)
    times: dict[str, list[Times]] = {name: [] for name in loops}
    copied: list[float] = []
    names = list(loops)
    with loader:
        for r in range(-1, rounds):
            shift = r % len(names)
            for name in names[shift:] + names[:shift]:
                part = run(loops[name], seconds)
                if r >= 0:
                    times[name].append(part)
            if r >= 0:
                copied.append(copy())
    return summary(case, times, copied)


def summary(case: Case, times: dict[str, list[Times]], copies: list[float]) -> Rates:
    """Summarizes the rounds of a case.

    Args:
        case: the data.
        times: for every loop its times, one element per round.
        copies: for every round, how often per second the host copied a batch.
    """
    p50, p99 = np.percentile([t for part in times["meshfeed"] for t in part.closed], [50, 99])

    def rates(kind: str) -> dict[str, float]:
        return {name: float(np.median([getattr(p, kind) for p in times[name]])) for name in times}

    def ratio(kind: str) -> tuple[float, float, float]:
        pairs = zip(times["meshfeed"], times["by hand"], strict=True)
        ratios = [getattr(ours, kind) / getattr(theirs, kind) for ours, theirs in pairs]
        low, middle, high = np.percentile(ratios, [10, 50, 90])
        return float(middle), float(low), float(high)

    return Rates(
        case.name,
        case.batch,
        case.batch_bytes,
        float(p50),
        float(p99),
        rates("closed_rate"),
        rates("pipelined_rate"),
        ratio("closed_rate"),
        ratio("pipelined_rate"),
        sorted(copies)[len(copies) // 2],
    )
