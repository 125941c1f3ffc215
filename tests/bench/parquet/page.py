"""The section of docs/benchmarks.md on Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median
from typing import Any

HEAD = """\
## Parquet files, shuffled

`python -m tests.bench.parquet` measures this section. {processor}, {cores} cores, {system};
{versions}, datasets {datasets}. Measured {dates}, commit {commits}.{load} A run is a fresh
process of two epochs over eight files in the page cache. The loops take turns, {rounds} rounds of
them (Hugging Face's one), and numbers are medians. An epoch counts only if it delivered every row
once, and two batches had the right sharding and values. Times begin with the opening of the
files.

*meshfeed* is the order "blocks" with a window of {window} row groups. It keeps decoded rows in an
empty folder (*disk*) or 256 MiB of them in memory; *Arrow* reads Arrow files of the same rows.
*Grain* is `ParquetIterDataset` with `WindowShuffleIterDataset`. *Hugging Face* is
`load_dataset("parquet", streaming=True)`, without its 5 s of sleep, and *1,000* has its default
buffer. *pyarrow, window* permutes row groups and rows in NumPy; *row groups* mixes no rows of a
group. *variance* is the batches' mean label's: 1 is a full shuffle.
"""


def section(held: dict[str, Any]) -> str:
    """Writes the section."""
    cases = held["cases"]
    commits, dates, loads, windows, rounds = (
        ", ".join(sorted({str(text) for text in texts if text}))
        for texts in (
            (case["commit"] for case in cases.values()),
            (case["date"] for case in cases.values()),
            (case["load"] for case in cases.values()),
            (case["buffer"] // case["group"] for case in cases.values()),
            (len(case["loops"]["meshfeed"]) for case in cases.values()),
        )
    )
    facts = {"commits": commits, "dates": dates, "window": windows, "rounds": rounds}
    load = f" **{loads}.**" if loads else ""
    return HEAD.format(**held["machine"], **facts, load=load) + "\n" + tables(cases)


def tables(cases: dict[str, Any]) -> str:
    """Writes the table of all cases, and how meshfeed compares with the fastest of the others."""
    head = ["loop", *(f"{name}: {epoch}" for name in cases for epoch in EPOCHS), *BESIDES]
    rates = []
    for loop in dict.fromkeys(loop for case in cases.values() for loop in case["loops"]):
        runs = [case["loops"][loop] for case in cases.values()]
        per_second = [_rate(each, epoch) for each in runs for epoch in range(len(EPOCHS))]
        besides = [" / ".join(column(each) for each in runs) for column in BESIDES.values()]
        rates.append([loop, *per_second, *besides])
    data = "\n".join(
        f"{name}: {case['rows']:,} rows, {case['rows_mb']:,.0f} MB decoded, "
        f"{case['files_mb']:,.0f} MB of files, row groups of {case['group']}, "
        f"batches of {case['batch']}."
        for name, case in cases.items()
    )
    compared = [[name, *verdict(case)] for name, case in cases.items()]
    columns = ["case", *(f"{epoch}, {what}" for epoch in EPOCHS for what in ("mixed", "any"))]
    return "\n\n".join(
        (f"Rows per second. {data}", _table(head, rates), VERDICT, _table(columns, compared))
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ratios(case: dict[str, Any], ours: str, loop: str, epoch: int) -> list[float]:
    """Returns how many times as fast a loop is as another in an epoch, in increasing order."""
    pairs = zip(case["loops"][ours], case["loops"][loop], strict=False)
    return sorted(
        mine["epochs"][epoch]["rows_per_second"] / other["epochs"][epoch]["rows_per_second"]
        for mine, other in pairs
    )


def verdict(case: dict[str, Any]) -> list[str]:
    """Compares meshfeed with the fastest of the others that mixes as well, and with the fastest."""
    others = [loop for loop in case["loops"] if not loop.startswith("meshfeed")]
    same = [loop for loop in others if loop not in UNEQUAL]
    cells = []
    for epoch in range(len(EPOCHS)):
        for loops in (same, others):
            times, best = min((median(ratios(case, OURS, o, epoch)), o) for o in loops)
            each = ratios(case, OURS, best, epoch)
            number = f"**{times:.2f} ✗**" if times < 1 else f"{times:.2f}"
            cells.append(f"{number} ({each[0]:.2f} to {each[-1]:.2f}) times {best}")
    return cells


EPOCHS = ("first", "second")
VERDICT = (
    "How many times as fast *meshfeed, disk* is as the fastest loop that mixes as many rows "
    "(*mixed*), and as the fastest of all (*any*), with the range of the rounds:"
)
OURS = "meshfeed, disk"  # the default for data of this size
UNEQUAL = ("Hugging Face, 1,000", "pyarrow, row groups")  # they mix fewer rows


def _rate(runs: list[Any], epoch: int) -> str:
    return f"{median(run['epochs'][epoch]['rows_per_second'] for run in runs):,.0f}"


def _variance(runs: list[Any]) -> str:
    return f"{mean(epoch['variance'] for run in runs for epoch in run['epochs']):.1f}"


BESIDES: dict[str, Callable[[list[Any]], str]] = {
    "first batch, ms": lambda runs: f"{median(run['epochs'][0]['first_ms'] for run in runs):,.0f}",
    "peak, MB": lambda runs: f"{median(run['peak_mb'] for run in runs):,.0f}",
    "variance": _variance,
}
