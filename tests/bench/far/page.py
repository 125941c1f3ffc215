"""The section of docs/benchmarks.md on files far away."""

from __future__ import annotations

from statistics import median
from typing import Any

HEAD = """\
## Files far away

`python -m tests.bench.far` measures this section. {processor}, {cores} cores, {system};
{versions}. Measured {date}, commit {commit}. A web server on the same machine answers after 30 ms,
with 50 MB/s on each connection, and shares the cores with the loops. Rows have 1,024 tokens of
int32, in Parquet with zstd, and end as global arrays on eight devices; batches have 256. A run is a
fresh process with an empty cache. *first* is from opening the files to the first batch. *second*
opens the files again in the same process, with a request for each, and takes an epoch. *times* is
the rate of the first loop in the first epoch, divided by the loop's, ✗ if the loop is faster. Only
the first two loops shuffle. In the case *faults*, 5 % of the requests are refused with 503 or cut
in the middle. Not run: MosaicML Streaming needs PyTorch and an older NumPy, and tf.data
reads no Parquet.\
"""

COLUMNS = (
    "rows/s",
    "times",
    "first, ms",
    "requests",
    "of the bytes",
    "second: rows/s",
    "requests",
    "peak, MB",
)


def section(held: dict[str, Any]) -> str:
    """Writes the section."""
    facts = {"date": held["date"], "commit": held["commit"], **held["machine"]}
    return HEAD.format(**facts) + "\n\n" + tables(held["cases"])


def tables(cases: dict[str, Any]) -> str:
    """Writes a table for each case."""
    return "\n\n".join(_table(name, case) for name, case in cases.items())


def _table(name: str, case: dict[str, Any]) -> str:
    title = f"{name}: {case['rows']:,} rows, {case['mb']:,.0f} MB"
    lines = [[title, *COLUMNS], ["---", *["--:"] * len(COLUMNS)]]
    ours = _rate(next(iter(case["loops"].values())))
    for loop, all_runs in case["loops"].items():
        runs = [run for run in all_runs if "failed" not in run]
        failed = len(all_runs) - len(runs)
        loop += f" (failed in {failed} of {len(all_runs)} runs)" if failed else ""
        if not runs:
            lines.append([loop, *["-"] * len(COLUMNS)])
            continue
        times = ours / _rate(runs)
        first, second = ([run[epoch] for run in runs] for epoch in ("first", "second"))
        lines.append(
            [
                loop,
                f"{_rate(runs):,.0f}",
                f"{times:.2f}" + (" ✗" if times < 1 else ""),
                f"{median(e['first_ms'] for e in first):,.0f}",
                f"{median(e['requests'] for e in first):,.0f}",
                f"{median(e['mb'] for e in first) / case['mb']:.2f}",
                f"{median(e['rows_per_second'] for e in second):,.0f}",
                f"{median(e['requests'] for e in second):,.0f}",
                f"{median(run['peak_mb'] for run in runs):,.0f}",
            ]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _rate(runs: list[dict[str, Any]]) -> float:
    rates = [run["first"]["rows_per_second"] for run in runs if "failed" not in run]
    return median(rates) if rates else float("nan")
