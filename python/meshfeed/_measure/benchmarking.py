"""Benchmarks of input: the time of a training loop over batches, of meshfeed or any iterable."""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meshfeed._io.arguments import Checks, cut, getattr_or_none, repr_short
from meshfeed._io.notebook import Preformatted
from meshfeed._measure import tables
from meshfeed._measure.timing import Lap, Loop, is_source

if TYPE_CHECKING:
    pass

_MOST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Benchmark(Preformatted):
    """The times of a loop over batches. `mf.benchmark` returns it.

    Printing it shows a table; so does a notebook. A number that is not known is None.

    Attributes:
        batches: how many batches were timed.
        warmup: how many batches came before them.
        epochs: how often the iteration began, 1 if the first one had enough batches.
        closed: whether the loop waited for the end of every step.
        seconds: the time of every timed batch: the wait for it, and its step.
        wait_seconds: the part of `seconds` in which the loop waited for the batch.
        ms: the median of `seconds` in milliseconds.
        mean_ms: the mean, which a few slow batches raise.
        spread_ms: the lower and the upper quartile: half of the batches are between them.
        rows_per_second: rows of the global batch, over the time of all timed batches.
        bytes_per_second: bytes of all arrays of the global batch, over the same time.
        waited: the share of the time in which the loop waited for batches. A step that was
            dispatched before may run meanwhile.
        step_ms: the mean time of the step with a batch that is ready.
        faster: the factor by which the loop would be faster if batches cost no time.
        first_batch_ms: the time of the first batch, with the start of the iteration.
        first_step_ms: the time of the first call of the step, which compiles it.
        memory: bytes on the device of this process that has the most. Computed from shapes and
            shardings: "batch" and "carry". Measured by the device: "peak" since the start of the
            process, and "limit".
        notes: sentences, such as that there were fewer batches than asked for.
    """

    batches: int
    warmup: int
    epochs: int
    closed: bool
    seconds: Sequence[float]
    wait_seconds: Sequence[float]
    ms: float
    mean_ms: float
    spread_ms: tuple[float, float]
    rows_per_second: float | None
    bytes_per_second: float | None
    waited: float
    step_ms: float | None
    faster: float | None
    first_batch_ms: float
    first_step_ms: float | None
    memory: Mapping[str, int | None]
    notes: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns all attributes, in a form that `json.dumps` writes."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        head, rows = self._lines()
        return "\n".join([head, *(f"  {name:<11} {text}" for name, text in rows)])

    def _lines(self) -> tuple[str, list[tuple[str, str]]]:
        """Returns the heading and the lines of the table."""
        regime = "closed" if self.closed else "pipelined"
        regime = regime if self.first_step_ms is not None else "without a step"
        head = f"{_count(self.batches, 'batch')} after {self.warmup} to warm up, {regime}"
        low, high = (tables.digits(ms) for ms in self.spread_ms)
        rates = [f"{self.rows_per_second:,.0f} rows/s"] if self.rows_per_second else []
        rates += [f"{tables.size(self.bytes_per_second)}/s"] if self.bytes_per_second else []
        waiting = [f"{100 * self.waited:.1f} % of the time"]
        if self.step_ms is not None:
            waiting.append(f"the step alone takes {tables.digits(self.step_ms)} ms")
        if self.faster is not None:
            waiting.append(f"without the input {self.faster:.2f} times as fast")
        first = [f"batch {tables.digits(self.first_batch_ms)} ms"]
        if self.first_step_ms is not None:
            first.append(f"step {tables.digits(self.first_step_ms)} ms")
        memory = [f"{name} {tables.size(n)}" for name, n in self.memory.items() if n is not None]
        median = f", median {tables.digits(self.ms)} ms (half of them {low} to {high} ms)"
        median = median if self.batches > 1 else ""
        lines = [
            ("time", f"{tables.digits(self.mean_ms)} ms per batch{median}"),
            ("throughput", ", ".join(rates)),
            ("waiting", "; ".join(waiting) if self.first_step_ms is not None else ""),
            ("first", ", ".join(first)),
            ("per device", ", ".join(memory)),
            *(("note", note) for note in self.notes),
        ]
        return head, [(name, text) for name, text in lines if text]


@dataclasses.dataclass(frozen=True)
class SweepPoint:
    """One point of a sweep.

    Attributes:
        values: the arguments of `make`.
        result: the benchmark; None if the point failed.
        error: the error in one line; None if the point did not fail.
        traceback: the error with its traceback.
    """

    values: Mapping[str, Any]
    result: Benchmark | None
    error: str | None = None
    traceback: str | None = None


class Sweep(Preformatted):
    """Benchmarks over meshes, device counts, batch sizes and the like: a table.

    `mf.benchmark.sweep` returns it. Printing it shows the table; so does a notebook.

    Attributes:
        points: one `SweepPoint` for every combination of values, in the order of the sweep.
    """

    def __init__(self, points: Sequence[SweepPoint]) -> None:
        self.points = points

    def to_dict(self) -> dict[str, Any]:
        """Returns the points, in a form that `json.dumps` writes. Values become texts."""
        points = [
            {
                "values": {name: _plain(value) for name, value in point.values.items()},
                "result": point.result.to_dict() if point.result else None,
                "error": point.error,
            }
            for point in self.points
        ]
        return {"points": points}

    def __str__(self) -> str:
        head, rows, errors = self._table()
        return "\n".join([tables.text_table(head, rows), *errors])

    def __repr__(self) -> str:
        failed = sum(point.result is None for point in self.points)
        return f"Sweep({_count(len(self.points), 'point')}, {failed} failed)"

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Returns the heading, the rows and the errors below them."""
        names = list(self.points[0].values)
        head = [*names, "ms per batch", "half of them", "rows/s", "MB/s", "waited", "MB per device"]
        rows, errors = [], []
        for point in self.points:
            labels = [tables.label(point.values[name]) for name in names]
            if point.result is None:
                rows.append([*labels, "failed", "", "", "", "", ""])
                errors.append(f"failed: {tables.point_name(point.values)}: {point.error}")
                continue
            r = point.result
            low, high = (tables.digits(ms) for ms in r.spread_ms)
            batch, rate = r.memory["batch"], r.bytes_per_second
            rows.append(
                [
                    *labels,
                    tables.digits(r.mean_ms),
                    f"{low} to {high}",
                    "" if r.rows_per_second is None else f"{r.rows_per_second:,.0f}",
                    "" if rate is None else tables.digits(rate / 1e6),
                    f"{100 * r.waited:.1f} %",
                    "" if batch is None else tables.digits(batch / 1e6),
                ]
            )
        return head, rows, errors


class _BenchmarkFunction:
    """The type of `mf.benchmark`: a function, and `sweep`, which calls it at several points."""

    def __init__(self) -> None:
        self.__doc__ = type(self).__call__.__doc__
        self.__name__ = self.__qualname__ = "benchmark"

    def __repr__(self) -> str:
        return "<function mf.benchmark>"

    def __call__(
        self,
        source: Iterable[Any],
        /,
        step: Callable[..., Any] | None = None,
        *,
        carry: Any = None,
        batches: int = 50,
        warmup: int = 5,
        closed: bool = False,
    ) -> Benchmark:
        """Times a training loop, the wait for every batch and the step on it.

        The clock runs while the loop waits for a batch, so slow input counts. JAX dispatches
        computations asynchronously, so a clock around the call of a step alone measures the
        dispatch. There are two ways to wait for the computation:

        - Pipelined, the default: the loop takes the next batch and dispatches its step, and then
          waits for the end of the step before. So batches are loaded while the devices compute, and
          at most two steps are under way. This is the speed of a training loop that does not read
          its results after every step.
        - Closed, with ``closed=True``: the loop waits until the batch is on its devices, then for
          the end of its step, and only then takes the next batch. This is the speed of a loop that
          prints the loss after every step. Nothing overlaps but what the loader reads ahead, so the
          shares of the input and of the step are exact.

        Afterwards the step is repeated with the last batch, to measure what it costs without input.
        Without a step, the loop waits for batches only.

        The benchmark takes `warmup` + `batches` batches. If the iteration ends before, it begins
        again, as for the next epoch. A loader continues after these batches, and stays open. In a
        job of several processes each one calls this with the same numbers, and gets its own times.

        Args:
            source: a loader, or any iterable of batches: of PyTorch, Grain or tf.data, or a
                generator. Batches are trees of `jax.Array`s, NumPy arrays or tensors.
            step: a function of a batch, ``step(batch)``; or with `carry` of both,
                ``step(carry, batch)``. All `jax.Array`s that it returns are waited for. It may
                donate the carry. Other libraries' asynchronous computations are not waited for.
            carry: what the step takes and returns, such as the parameters. The step returns the
                new carry, or a tuple that begins with it, such as ``(params, loss)``.
            batches: how many batches to time.
            warmup: how many batches come before them, at least 1. The first one compiles the step
                and is reported apart.
            closed: whether to wait for the end of every step before the next batch. Use it in a job
                of several processes with several CPU devices each: there, steps that overlap can
                wait for each other forever in Gloo, JAX's library for communication on CPUs.

        Raises:
            InvalidArgumentError: an argument is wrong, or there is no batch.

        Examples:
            >>> import jax, meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.ones((64, 8), "f4")}), batch_size=16)
            >>> result = mf.benchmark(loader, jax.jit(lambda batch: batch["x"].sum()), batches=10)
            >>> result.batches, result.epochs, result.rows_per_second > 0
            (10, 4, True)

            A step with parameters:

            >>> update = jax.jit(lambda w, batch: (w + 1, batch["x"].sum()))
            >>> mf.benchmark(loader, update, carry=np.float32(0), batches=2, warmup=1).batches
            2
        """
        with Checks("mf.benchmark") as check:
            asked = _checked(check, batches, warmup, closed=closed)
            loop = Loop(check, source, step, carry, closed=closed)
            return _measure(check, loop, *asked)

    def sweep(
        self,
        make: Callable[..., Any],
        points: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
        *,
        batches: int = 50,
        warmup: int = 5,
        closed: bool = False,
    ) -> Sweep:
        """Times loops over meshes, device counts, batch sizes or anything else, as a table.

        Args:
            make: a function that is called with the values of a point, such as
                ``make(devices=4, batch_size=64)``. It returns the loader, ``(loader, step)`` or
                ``(loader, step, carry)``. If the loader has a method `close`, it is closed after
                its benchmark.
            points: the values of every argument, such as
                ``{"devices": [1, 2, 4, 8], "batch_size": [64, 128]}``, of which all combinations
                are tried; or a list of dicts, one for every point.
            batches: as for `mf.benchmark`.
            warmup: as for `mf.benchmark`.
            closed: as for `mf.benchmark`.

        Returns:
            The table. If a point raises an exception, its row has the error, and the sweep goes on.

        Raises:
            InvalidArgumentError: an argument is wrong.
            Exception: all points failed; this is the error of the first one.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> data = mf.from_arrays({"x": np.ones((64, 8), "f4")})
            >>> def make(batch_size):
            ...     return mf.Loader(data, batch_size=batch_size)
            >>> table = mf.benchmark.sweep(make, {"batch_size": [16, 32, 65]}, batches=2, warmup=1)
            >>> [point.result is not None for point in table.points]
            [True, True, False]
        """
        with Checks("mf.benchmark.sweep") as check:
            if not callable(make):
                hint = (
                    "such as: def make(batch_size): return mf.Loader(data, batch_size=batch_size)"
                )
                raise check.wrong("make", make, "a function that returns a loader", hint)
            _checked(check, batches, warmup, closed=closed)
            combinations = _points(check, points)
        found, first = [], None
        for values in combinations:
            try:
                result = self._point(make, values, batches=batches, warmup=warmup, closed=closed)
                found.append(SweepPoint(values, result))
            except Exception as error:  # `make` and the step may raise any exception
                first = first or error
                text = cut(" ".join(f"{type(error).__name__}: {error}".split()), 300)
                found.append(SweepPoint(values, None, text, traceback.format_exc()))
        if first is not None and all(point.result is None for point in found):
            raise first
        return Sweep(found)

    def _point(
        self, make: Callable[..., Any], values: Mapping[str, Any], **options: Any
    ) -> Benchmark:
        """Times one point of a sweep."""
        given = make(**values)
        several = isinstance(given, tuple) and len(given) > 0
        has_step = several and len(given) in (2, 3) and (given[1] is None or callable(given[1]))
        if several and not has_step and (any(map(callable, given)) or is_source(given[0])):
            with Checks("mf.benchmark.sweep") as check:
                message = f"make returned {repr_short(given)}"
                if len(given) in (2, 3):
                    message += ", whose second value is not a function"
                hint = "return (loader, step) or (loader, step, carry)"
                raise check.misfit(message, hint)
        source, step, carry = (*given, None)[:3] if has_step else (given, None, None)
        try:
            return self(source, step, carry=carry, **options)
        finally:
            close = getattr_or_none(source, "close")
            if callable(close):
                close()


benchmark = _BenchmarkFunction()


def _checked(check: Checks, batches: Any, warmup: Any, *, closed: Any) -> tuple[int, int]:
    """Checks the numbers of batches."""
    check.boolean("closed", closed)
    timed = check.integer("batches", batches, 1, _MOST)
    hint = "the first batch compiles the step, so it is never timed with the others"
    return timed, check.integer("warmup", warmup, 1, _MOST, hint)


def _points(check: Checks, points: Any) -> list[dict[str, Any]]:
    """Returns the values of every point of a sweep."""
    hint = 'such as {"devices": [1, 2, 4], "batch_size": [64, 128]}'
    try:
        if isinstance(points, Mapping):
            values = itertools.product(*map(list, points.values()))
            found = [dict(zip(points, combination, strict=True)) for combination in values]
        else:
            found = [dict(point) for point in points]
    except (TypeError, ValueError):
        raise check.wrong("points", points, "the values of every argument", hint) from None
    if not found or not found[0]:
        raise check.wrong("points", points, "at least one point", hint)
    if any(list(point) != list(found[0]) for point in found):
        raise check.wrong("points", points, "the same arguments in every point", hint)
    return found


def _measure(check: Checks, loop: Loop, batches: int, warmup: int) -> Benchmark:
    """Runs a loop."""
    laps = loop.laps(loop.again(), batches + warmup)
    if not laps:
        hint = "a used generator, and a loader after its last epoch, are empty; make a new one"
        raise check.wrong("source", loop.source, "at least one batch", hint)
    skipped = warmup if len(laps) > warmup else len(laps) // 2
    timed, notes = laps[skipped:], []
    if len(laps) < batches + warmup:
        there = "there was 1 batch" if len(laps) == 1 else f"there were {len(laps)} batches"
        notes.append(f"{there} instead of {batches + warmup}")
    if skipped == 0 and loop.step is not None:
        notes.append("the time of the only batch includes the compilation of the step")
    seconds = [lap.seconds for lap in timed]
    total = sum(seconds)
    rates = [_rate(timed, name, total) for name in ("rows", "bytes")]
    if any(lap.rows is None for lap in timed):
        notes.append("the arrays of a batch have different first dimensions, or none")
    alone = loop.alone(min(len(timed), 20)) if skipped else None
    low, middle, high = np.percentile(seconds, [25, 50, 75]).tolist()
    first = laps[0]
    return Benchmark(
        batches=len(timed),
        warmup=skipped,
        epochs=loop.epochs,
        closed=loop.closed,
        seconds=seconds,
        wait_seconds=[lap.waited for lap in timed],
        ms=1e3 * middle,
        mean_ms=1e3 * total / len(timed),
        spread_ms=(1e3 * low, 1e3 * high),
        rows_per_second=rates[0],
        bytes_per_second=rates[1],
        waited=sum(lap.waited for lap in timed) / total if total else 0.0,
        step_ms=None if alone is None else 1e3 * alone,
        faster=max(1.0, total / len(timed) / alone) if alone else None,
        first_batch_ms=1e3 * first.waited,
        first_step_ms=None if loop.step is None else 1e3 * first.called,
        memory=loop.memory(),
        notes=notes,
    )


def _rate(laps: Sequence[Lap], name: str, total: float) -> float | None:
    """Returns rows or bytes per second; None if their number per batch is not known."""
    numbers = [getattr(lap, name) for lap in laps]
    return sum(numbers) / total if total and None not in numbers else None


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}es" if noun.endswith("ch") else f"{number} {noun}s"


def _plain(value: Any) -> Any:
    """Returns a value of a point as `json.dumps` writes it."""
    if isinstance(value, np.generic):
        return value.item()
    known = value is None or isinstance(value, bool | int | float | str)
    return value if known else tables.label(value)
