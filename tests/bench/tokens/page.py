"""The section of docs/benchmarks.md on tokens."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

HEAD = """\
## Tokens: packing, long files, mixtures

`python -m tests.bench.tokens` measures this section. {processor}, {cores} cores, {system};
{versions}, {more}. Measured {dates}, commit {commits}. A run is a fresh process of whole epochs
for at least two seconds, over files in the page cache. The loops take turns, {rounds} rounds of
them (those of TRL and `datasets` one), and numbers are medians with their range. Packed rows are
`tokens`, `segment_ids` and `positions` of 2,048 elements on eight devices. No document is longer,
because Grain refuses those. *meshfeed* shuffles rows; Grain shuffles documents before it packs
them, on the caller's thread, which takes a third of the processor time of 16 threads. *64 bins*
are the batch, as in MaxText. *plain rows* are meshfeed's packed rows, stored with all fields.
*TRL* packs 1,000 documents at a time before the first batch. *group_texts* joins 1,000 and cuts
them there, without segments. So these two read finished rows. *first* is from opening to the
first batch, with the lengths of all documents and all that is packed before. *resume* is from a
state at half an epoch to the first batch, after the opening. A resumed loop must repeat the
batches of the first run. *once* is the share of tokens that an epoch delivered exactly once.
*times* is meshfeed's rate divided by the loop's, round by round: ✗ marks a faster loop. Elsewhere
a ✗ marks a number of meshfeed that another library beats. A mixture's order is random inside 64
draws on purpose, so its deviation is larger there.\
"""

OURS = ("meshfeed, best fit", "meshfeed, window", "meshfeed, mix")
PLAIN = "meshfeed, plain rows"
OF_PLAIN = {"meshfeed, best fit": 0.7, "meshfeed, split": 0.9, "meshfeed, window": 0.9}
PACKERS = ("Grain, best fit", "Grain, first fit", "TRL")


def section(held: dict[str, Any]) -> str:
    """Writes the section."""
    cases = held["cases"]
    commits, dates, rounds = (
        ", ".join(sorted({str(fact) for fact in facts}))
        for facts in (
            (case["commit"] for case in cases.values()),
            (case["date"] for case in cases.values()),
            (max(map(len, case["loops"].values())) for case in cases.values()),
        )
    )
    head = HEAD.format(**held["machine"], commits=commits, dates=dates, rounds=rounds)
    return f"{head}\n\n{tables(cases)}"


def tables(cases: dict[str, Any]) -> str:
    """Writes the table of each case, and the targets."""
    parts = [_table(name, case) for name, case in cases.items()]
    return "\n\n".join([*parts, "### Targets for tokens", _targets(cases)])


def ratios(case: dict[str, Any], loop: str, other: str) -> list[float]:
    """Returns how many times as fast a loop is as another in each round, in increasing order."""
    pairs = zip(case["loops"][loop], case["loops"][other], strict=False)
    return sorted(rate(case, loop, a) / rate(case, other, b) for a, b in pairs)


def rate(case: dict[str, Any], loop: str, run: dict[str, Any]) -> float:
    """Returns the tokens per second without padding."""
    real = case["loops"][loop][0].get("real", 1.0)  # of the first round, which checks
    return float(run["batches_per_second"] * case["tokens"] * real)


def _table(name: str, case: dict[str, Any]) -> str:
    ours = next(loop for loop in OURS if loop in case["loops"])
    columns = [c for c in COLUMNS if c.key in case["loops"][ours][0]]
    lines = [[name, "million tokens/s", "times", *(c.title for c in columns)]]
    lines.append(["---", *["--:"] * (len(lines[0]) - 1)])
    for loop, runs in case["loops"].items():
        rates = sorted(rate(case, loop, run) / 1e6 for run in runs)
        times = ratios(case, ours, loop)
        faster = median(times) < 1 and not loop.startswith("meshfeed")
        lines.append(
            [
                loop,
                _spread(rates, ",.1f"),
                _spread(times, ".2f") + (" ✗" if faster else ""),
                *(
                    _cell(case, loop, c) + (" ✗" if loop == ours and _lost(case, loop, c) else "")
                    for c in columns
                ),
            ]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _spread(found: list[float], form: str) -> str:
    return f"{median(found):{form}} ({found[0]:{form}} to {found[-1]:{form}})"


@dataclass(frozen=True)
class Column:
    """A column of numbers, of which the smaller one is better, or the larger one."""

    title: str
    key: str
    form: str
    larger: bool = False


COLUMNS = [
    Column("tokens, not padding", "real", ".3%", larger=True),
    Column("once", "once", ".2%", larger=True),
    Column("worst deviation, rows", "deviation", ".2f"),
    Column("at multiples of 64", "deviation_64", ".2f"),
    Column("first, ms", "first_ms", ",.0f"),
    Column("resume, ms", "resume_ms", ",.1f"),
    Column("peak, MB", "peak_mb", ",.0f"),
]


def _number(case: dict[str, Any], loop: str, column: Column) -> float | None:
    found = [run[column.key] for run in case["loops"][loop] if run.get(column.key) is not None]
    return median(found) if found else None


def _cell(case: dict[str, Any], loop: str, column: Column) -> str:
    found = _number(case, loop, column)
    return "-" if found is None else f"{found:{column.form}}"


def _lost(case: dict[str, Any], ours: str, column: Column) -> bool:
    """Reports whether another library has a better number, as it is written."""
    mine = _number(case, ours, column)
    for loop in case["loops"]:
        other = _number(case, loop, column)
        if loop.startswith("meshfeed") or mine is None or other is None:
            continue
        if f"{mine:{column.form}}" != f"{other:{column.form}}" and (other > mine) == column.larger:
            return True
    return False


def targets(cases: dict[str, Any]) -> list[tuple[str, str, float, str, float]]:
    """Lists the targets: what and of which case, the number, and its limit with a direction."""
    out = []
    for name, case in cases.items():
        for loop, runs in case["loops"].items():
            if loop.startswith("meshfeed"):
                resume = median(run["resume_ms"] for run in runs)
                out.append((f"resume in ms: {loop}", name, resume, "≤", 20.0))
            if loop in OF_PLAIN:
                part = median(ratios(case, loop, PLAIN))
                out.append((f"times plain rows: {loop}", name, part, "≥", OF_PLAIN[loop]))
        if "rows" in case:
            rows = case["rows"] / case["fewest_rows"]
            out.append(("rows of best-fit-decreasing over all documents", name, rows, "≤", 1.0005))
            peers = [loop for loop in case["loops"] if loop.startswith(PACKERS)]
            least = min(median(ratios(case, OURS[0], peer)) for peer in peers)
            out.append(("times the fastest peer that packs", name, least, "≥", 3.0))
    return out


def _targets(cases: dict[str, Any]) -> str:
    lines = ["| target | case | measured | limit |", "| --- | --- | --: | --: |"]
    for target, name, found, direction, limit in targets(cases):
        missed = found > limit if direction == "≤" else found < limit
        mark = " ✗" if missed else ""
        lines.append(f"| {target} | {name} | {found:.5g}{mark} | {direction} {limit:g} |")
    return "\n".join(lines)
