"""The outcome of a self-check: as Markdown, as JSON, and as a summary of three sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

MIB = 2**20


@dataclass(frozen=True)
class Result:
    """The outcome of one check."""

    name: str
    passed: bool
    text: str  # facts, or the reason for the failure
    seconds: float


@dataclass(frozen=True)
class Rates:
    """The speed of loading one kind of data; times in seconds, rates in batches per second.

    *Closed* loops wait for each batch before they request the next one. *Pipelined* loops have two
    batches under way. Ratios are to the loop by hand: median, 10th and 90th percentile of rounds.
    """

    case: str  # the name of the data
    batch_rows: int
    batch_bytes: int
    next_p50: float  # the median time of a `next` until its batch is ready, in the closed loop
    next_p99: float
    closed: dict[str, float]  # by the name of the loop, and so are the others
    pipelined: dict[str, float]
    closed_ratio: tuple[float, float, float]
    pipelined_ratio: tuple[float, float, float]
    copy: float  # copies of the bytes of a batch on the host

    def bandwidth(self, rate: float) -> float:
        """Returns the GB/s of a rate."""
        return rate * self.batch_bytes / 1e9


@dataclass(frozen=True)
class Steps:
    """How much time the input adds to a step. All times are seconds."""

    case: str  # the name of the data
    asked: float  # the computation that the step was set for
    alone: float  # the step on a batch that is already on its devices
    loops: dict[str, float]  # a step with its input, by the name of the loop

    def added(self, loop: str) -> str:
        """Describes what the input adds to the step in a loop. Less than 2 % is noise."""
        more = self.loops[loop] - self.alone
        return _ms(more) if more > 0.02 * self.alone else "nothing measurable"


@dataclass
class Report:
    """The outcome of a self-check."""

    machine: dict[str, str]  # versions, devices and processor
    checks: list[Result] = field(default_factory=list)
    rates: list[Rates] = field(default_factory=list)
    steps: list[Steps] = field(default_factory=list)
    shared: bool = False  # whether the devices use the host's memory, so nothing is transferred
    untimed: str = ""  # the reason if there are no measurements
    minutes: float = 0.0  # that the self-check took

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> str:
        """Returns the report as one JSON document."""
        return json.dumps({"passed": self.passed, "verdict": self.verdict(), **asdict(self)})

    def verdict(self) -> str:
        """Returns a summary of three sentences: correctness, speed, overlap."""
        return " ".join([self._correctness(), *self._speed(), *self._overlap()])

    def _correctness(self) -> str:
        failed = [check.name for check in self.checks if not check.passed]
        if not failed:
            return f"All {len(self.checks)} checks passed on {self.machine['devices']}."
        return (
            f"{len(failed)} of {len(self.checks)} checks FAILED on {self.machine['devices']} "
            f"({', '.join(failed)}): do not train on these batches, and report this page."
        )

    def _speed(self) -> Iterable[str]:
        if not self.rates:
            yield f"Nothing was measured: {self.untimed}."
            return
        rates = max(self.rates, key=lambda r: r.batch_bytes)
        best = "pinned" if "pinned" in rates.closed and not self.shared else "put"
        yield (
            f"A batch of {_size(rates.batch_bytes)} is ready {_ms(rates.next_p50)} after "
            f"`next` is called (99th percentile {_ms(rates.next_p99)}), "
            f"{_ratio(rates.closed_ratio)} times the speed of np.take with jax.device_put; "
            f"that is {rates.bandwidth(rates.closed['meshfeed']):.1f} GB/s, where a transfer "
            f"without any loading reaches {rates.bandwidth(rates.closed[best]):.1f} GB/s."
        )

    def _overlap(self) -> Iterable[str]:
        if not self.steps:
            return
        longest = max(self.steps, key=lambda s: s.asked)
        ours = {name: t for name, t in longest.loops.items() if name != "by hand"}
        mine = min(ours, key=lambda name: ours[name])
        yield (
            f"Beside a step of {_ms(longest.alone)} the input of such a batch adds "
            f"{longest.added(mine)} with {mine}, and {longest.added('by hand')} by hand."
        )

    def markdown(self) -> str:
        """Returns the report as a page that can be pasted into an issue."""
        return "\n".join(
            [
                f"# meshfeed selfcheck: {'passed' if self.passed else 'FAILED'}\n",
                self.verdict() + "\n",
                *self._machine(),
                *self._checks(),
                *self._rates(),
                *self._steps(),
            ]
        )

    def _machine(self) -> Iterable[str]:
        yield _table("what | value", ([name, text] for name, text in self.machine.items()))

    def _checks(self) -> Iterable[str]:
        yield "## Checks\n"
        rows = (
            [check.name, "ok" if check.passed else "**FAILED**", check.text, f"{check.seconds:.1f}"]
            for check in self.checks
        )
        yield _table("check | outcome | facts | seconds", rows)

    def _rates(self) -> Iterable[str]:
        if not self.rates:
            return
        yield "## Speed\n"
        yield _SPEED
        rows = (
            [
                r.case,
                _size(r.batch_bytes),
                f"{_ms(r.next_p50)}, {_ms(r.next_p99)}",
                f"{r.closed['meshfeed'] * r.batch_rows:,.0f}",
                _ratio(r.closed_ratio),
                f"{r.pipelined['meshfeed'] * r.batch_rows:,.0f}",
                _ratio(r.pipelined_ratio),
            ]
            for r in self.rates
        )
        yield _table(
            "data | batch | `next` p50, p99 | rows/s closed | times by hand "
            "| rows/s pipelined | times by hand",
            rows,
        )
        yield "GB/s of the same bytes:\n"
        names = ["meshfeed", "by hand", "put", "pinned"]
        heads = [f"{name} {kind}" for kind in ("closed", "pipelined") for name in names]
        bandwidths = (
            [
                r.case,
                *(_bandwidth(r, of.get(name)) for of in (r.closed, r.pipelined) for name in names),
                _bandwidth(r, r.copy),
            ]
            for r in self.rates
        )
        yield _table(" | ".join(["data", *heads, "host copy"]), bandwidths)

    def _steps(self) -> Iterable[str]:
        if not self.steps:
            return
        yield "## Transfer during a step\n"
        yield _STEPS
        names = list(self.steps[0].loops)
        rows = (
            [s.case, f"{s.asked * 1e3:g} ms", _ms(s.alone), *(_ms(s.loops[n]) for n in names)]
            for s in self.steps
        )
        yield _table(" | ".join(["data", "step set for", "alone", *names]), rows)


_SPEED = """Global arrays, rows split over all devices, shuffled, ready on their devices. *Closed*:
each batch is awaited before the next one is requested. *Pipelined*: two batches are under way. *By
hand*: `np.take`, then one `jax.device_put`. *put* and *pinned* load nothing: `jax.device_put` of
one batch in ordinary memory, and in memory that the device can read directly (on
CPU: aligned memory, which JAX aliases). Ratios are taken round by round: median (10th to
90th percentile).
"""

_STEPS = """Time of a step with its input, in a loop that awaits the step before the last; *alone*
on a batch that is already on its devices.
"""


def _bandwidth(rates: Rates, rate: float | None) -> str:
    return "none" if rate is None else f"{rates.bandwidth(rate):.2f}"


def _size(size: int) -> str:
    return f"{size / MIB:,.1f} MiB" if size >= MIB else f"{size / 1024:,.1f} KiB"


def _ms(seconds: float) -> str:
    digits = 1 if seconds >= 0.1 else 2 if seconds >= 0.001 else 3
    return f"{seconds * 1e3:.{digits}f} ms"


def _ratio(ratio: tuple[float, float, float]) -> str:
    middle, low, high = ratio
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _table(head: str, rows: Iterable[list[str]]) -> str:
    names = head.split(" | ")
    lines = [names, ["---"] * len(names), *([_cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
