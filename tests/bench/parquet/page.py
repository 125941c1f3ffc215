"""The section of docs/benchmarks.md on Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, median
from typing import Any

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "benchmarks-parquet.json"

HEAD = """## Parquet files, shuffled

`python -m tests.bench.parquet` measures this section. {processor}, {cores} cores, {system};
{versions}, datasets {datasets}. Measured {dates}, commit {commits}.{load}

Each run of a loop is a fresh process of two epochs over eight files, whose pages are in memory. The
loops take turns, {rounds} rounds of them; Hugging Face's take part in one. An epoch counts only if
it delivered every row once, and two of its batches had the sharding and the values of the files.
The loop waits for each batch, and copies its labels.
*first epoch* and *first batch* begin with the opening of the files. Before that, the process runs
the loop over a small dataset, so imports do not count. Numbers are medians of the rounds, with
their range.

The rows are in the order of their labels, so the variance of the batches' mean label says how well
they are mixed: 1 is a full shuffle. It is the mean of all epochs, and varies much if an epoch has
few windows. *first* and *second* are how many times as fast meshfeed is in that epoch, round by
round. *read* are the bytes that calls of `read` returned in each epoch. *peak* is the largest
growth of the memory that belongs to no file.

**Loops.** *meshfeed* is the order "blocks" over row groups, with a window of {window} of them;
256 MiB of decoded rows stay in memory (`cache="memory"`). *meshfeed, disk* keeps them in a folder,
which is empty at first. *meshfeed, Arrow* reads Arrow files of the same rows, which need no
decoding: it shows what the second epoch can reach. All others but two mix as many rows. *Grain*
interleaves the files (`ParquetIterDataset`), mixes with `WindowShuffleIterDataset`, and reads four
batches ahead in a thread. *Hugging Face* is `load_dataset("parquet", streaming=True)` in the
format "numpy", and *1,000* has the default buffer of 1,000 rows; the 5 s that it sleeps at the end
of an epoch are left out. *pyarrow, window* collects the batches of `pyarrow.dataset` from permuted
row groups in NumPy arrays, and takes rows of a permutation. *pyarrow, row groups* places the
batches as they come, which mixes no rows of a row group. All but meshfeed use one `jax.device_put`
of the dict.
"""


def section(held: dict[str, Any]) -> list[str]:
    """Writes the section, or nothing without measurements."""
    cases = held["cases"]
    if not cases:
        return []
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
    return [HEAD.format(**held["machine"], **facts, load=load), *tables(cases)]


def read() -> list[str]:
    """Writes the section from the stored results, if there are any."""
    return section(json.loads(RESULTS.read_text())) if RESULTS.exists() else []


def tables(cases: dict[str, Any]) -> list[str]:
    """Writes a table for each case, and which rows lost."""
    return [part for name, case in cases.items() for part in _case(name, case)]


def _case(name: str, case: dict[str, Any]) -> list[str]:
    title = (
        f"**{name}**: {case['rows']:,} rows, {case['rows_mb']:,.0f} MB decoded, "
        f"{case['files_mb']:,.0f} MB of files, row groups of {case['group']} rows, batches of "
        f"{case['batch']}.\n"
    )
    columns = ["loop", *COLUMN, "first", "second"]
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)]]
    for loop, runs in case["loops"].items():
        lines.append([loop, *(text(runs) for text in COLUMN.values()), *_ratios(case, loop)])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    return [title, table, verdict(case)]


def ratios(case: dict[str, Any], ours: str, loop: str, epoch: int) -> list[float]:
    """Returns how many times as fast a loop is as another in an epoch, in increasing order."""
    pairs = zip(case["loops"][ours], case["loops"][loop], strict=False)
    return sorted(
        mine["epochs"][epoch]["rows_per_second"] / other["epochs"][epoch]["rows_per_second"]
        for mine, other in pairs
    )


def _ratios(case: dict[str, Any], loop: str) -> list[str]:
    """Writes how many times as fast meshfeed is in either epoch, round by round."""
    if loop.startswith("meshfeed"):
        return ["", ""]
    texts = []
    for epoch in (0, 1):
        each = ratios(case, "meshfeed", loop, epoch)
        middle = median(each)
        text = f"**{middle:.2f} ✗**" if middle < 1 else f"{middle:.2f}"
        texts.append(text if len(each) == 1 else f"{text} ({each[0]:.2f} to {each[-1]:.2f})")
    return texts


def verdict(case: dict[str, Any]) -> str:
    """Compares meshfeed with the fastest of the others, and with the fastest that mixes as well."""
    others = [loop for loop in case["loops"] if not loop.startswith("meshfeed")]
    same = [loop for loop in others if loop not in UNEQUAL]
    sentences = []
    for ours in (loop for loop in DECODING if loop in case["loops"]):
        for epoch, word in enumerate(("first", "second")):
            for loops, what in ((same, "that mixes as many rows"), (others, "of all")):
                times, best = min((median(ratios(case, ours, o, epoch)), o) for o in loops)
                sentences.append(
                    f"*{ours}*, {word} epoch: {times:.2f} times as fast as {best}, "
                    f"the fastest {what}."
                )
        if ARROW in case["loops"]:
            each = ratios(case, ours, ARROW, 1)
            low, high = f"{each[0]:.2f}", f"{each[-1]:.2f}"
            sentences.append(
                f"*{ours}*, second epoch: {median(each):.2f} ({low} to {high}) times as fast as "
                "from Arrow files."
            )
    return " ".join(sentences) + "\n"


DECODING = ("meshfeed", "meshfeed, disk")
ARROW = "meshfeed, Arrow"
UNEQUAL = ("Hugging Face, 1,000", "pyarrow, row groups")  # they mix fewer rows


def _ranged(values: list[float], form: str = ",.0f") -> str:
    text = f"{median(values):{form}}"
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return text if low == high else f"{text} ({low} to {high})"


def _rows(epoch: int) -> Any:
    return lambda runs: _ranged([run["epochs"][epoch]["rows_per_second"] for run in runs])


def _read(runs: list[Any]) -> str:
    return " + ".join(f"{median(run['epochs'][e]['read_mb'] for run in runs):,.0f}" for e in (0, 1))


def _variance(runs: list[Any]) -> str:
    return f"{mean(epoch['variance'] for run in runs for epoch in run['epochs']):.1f}"


COLUMN: dict[str, Any] = {
    "rows/s, first epoch": _rows(0),
    "rows/s, second epoch": _rows(1),
    "first batch, ms": lambda runs: _ranged([run["epochs"][0]["first_ms"] for run in runs]),
    "read, MB": _read,
    "peak, MB": lambda runs: _ranged([run["peak_mb"] for run in runs]),
    "variance": _variance,
}
