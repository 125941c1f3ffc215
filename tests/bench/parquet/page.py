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
files. *meshfeed* is the order "blocks" with a window of {window} row groups. It keeps decoded
rows in an empty folder (*disk*) or 256 MiB of them in memory; *Arrow* reads Arrow files of the
same rows. *Grain* is `ParquetIterDataset` with `WindowShuffleIterDataset`. *Hugging Face* is
`load_dataset("parquet", streaming=True)`, without its 5 s of sleep, and *1,000* has its default
buffer. *pyarrow, window* permutes row groups and rows in NumPy; *row groups* mixes no rows of a
group. *variance* is the batches' mean label's: 1 is a full shuffle.\
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
    """Writes the sizes of all cases, and the table of all loops."""
    head = ["loop", *(f"{name}: {epoch}" for name in cases for epoch in EPOCHS), *BESIDES]
    lines = [head, ["---", *["--:"] * (len(head) - 1)]]
    for loop in dict.fromkeys(loop for case in cases.values() for loop in case["loops"]):
        runs = [case["loops"][loop] for case in cases.values()]
        rates = [_rate(case, loop, epoch) for case in cases.values() for epoch in (0, 1)]
        besides = [" / ".join(column(each) for each in runs) for column in BESIDES.values()]
        lines.append([loop, *rates, *besides])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    data = "\n".join(
        f"{name}: {case['rows']:,} rows, {case['rows_mb']:,.0f} MB decoded, "
        f"{case['files_mb']:,.0f} MB of files, row groups of {case['group']}, "
        f"batches of {case['batch']}."
        for name, case in cases.items()
    )
    return f"{data} {RATES}\n\n{table}"


def ratio(case: dict[str, Any], loop: str, epoch: int) -> float:
    """Returns how many times as fast meshfeed is as a loop, the median of the rounds."""
    pairs = zip(case["loops"][OURS], case["loops"][loop], strict=False)
    return median(
        float(mine["epochs"][epoch]["rows_per_second"] / other["epochs"][epoch]["rows_per_second"])
        for mine, other in pairs
    )


EPOCHS = ("first", "second")
RATES = (
    "Rows per second in the first and the second epoch. A ✗ marks a loop that was faster than "
    "*meshfeed, disk* in the median of the rounds."
)
OURS = "meshfeed, disk"  # the default for data of this size


def _rate(case: dict[str, Any], loop: str, epoch: int) -> str:
    """Writes rows per second with their range: ✗ if the loop is faster than meshfeed."""
    rates = sorted(run["epochs"][epoch]["rows_per_second"] for run in case["loops"][loop])
    text = f"{median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
    wins = not loop.startswith("meshfeed") and ratio(case, loop, epoch) < 1
    return f"{text} ✗" if wins else text


def _variance(runs: list[Any]) -> str:
    return f"{mean(epoch['variance'] for run in runs for epoch in run['epochs']):.1f}"


BESIDES: dict[str, Callable[[list[Any]], str]] = {
    "first batch, ms": lambda runs: f"{median(run['epochs'][0]['first_ms'] for run in runs):,.0f}",
    "peak, MB": lambda runs: f"{median(run['peak_mb'] for run in runs):,.0f}",
    "variance": _variance,
}
