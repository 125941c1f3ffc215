"""The targets, and which cells miss them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.bench.derived import CellNumbers, PutNumbers

FIRST_MS = {"memory": 20.0, "file": 50.0}
FAULTS = 1.0  # pages per batch that may be touched for the first time
GROWTH = 1024  # bytes that `next` may allocate for a whole batch beyond those for a quarter

Miss = tuple[str, str]  # the target, and the cell with its number


def of_cell(cell: CellNumbers) -> Iterator[Miss]:
    """Yields every target that a warm cell misses."""
    p50 = cell.p50("meshfeed")
    if p50 > cell.target:
        yield "`next` above its target, µs", f"{cell.name} ({p50:.0f}, not {cell.target:.0f})"
    if cell.ratio < 1:
        yield "slower than the probe: a defect", f"{cell.name} ({cell.ratio:.2f})"
    elif cell.ratio < 1.5:
        yield "less than 1.5 times the probe", f"{cell.name} ({cell.ratio:.2f})"
    if (first := cell.first["first_ms"]) > (most := FIRST_MS[cell.source]):
        yield f"first batch later than {most:.0f} ms", f"{cell.name} ({first:.1f})"
    yield from _allocated(cell)
    yield from _worse(cell)


def _allocated(cell: CellNumbers) -> Iterator[Miss]:
    whole, quarter = cell.costs["whole"], cell.costs["quarter"]
    if whole["faults"] > FAULTS:
        yield "new pages per batch", f"{cell.name} ({whole['faults']:.1f})"
    if (more := whole["allocated"] - quarter["allocated"]) > GROWTH:
        yield "bytes that `next` allocates beyond a quarter batch", f"{cell.name} ({more})"


def _worse(cell: CellNumbers) -> Iterator[Miss]:
    """Yields every number without a target that is worse than the probe's."""
    if (p99 := cell.times["meshfeed"]["p99"]) > (other := cell.times["probe"]["p99"]):
        yield "p99 above the probe's, µs", f"{cell.name} ({p99:.0f}, not {other:.0f})"
    ours, other = (cell.p50(f"{loop}.cpu_per_million") for loop in ("meshfeed", "probe"))
    if ours > other:
        what = "CPU seconds per million rows above the probe's"
        yield what, f"{cell.name} ({ours:.2f}, not {other:.2f})"


def of_memory(peaks: dict[str, Any]) -> Iterator[Miss]:
    """Yields every case in which a loader's memory grows more than the probe's."""
    for key, result in peaks.items():
        _, case, loop = key.split("/")
        ours, other = result["peak_mb"], peaks[f"memory/{case}/probe"]["peak_mb"]
        if loop == "meshfeed" and ours > other:
            yield "peak memory above the probe's, MB", f"{case} ({ours:.1f}, not {other:.1f})"


def of_row(row: dict[str, Any], title: str, *, large: bool) -> Iterator[Miss]:
    """Yields every target that the gather misses at one size of a row."""
    size, ratio = f"{title}, {row['size']:,} B", row_ratio(row, "gather")
    wanted = 1.5 if large and row["size"] >= 2048 else 1.0
    if ratio < wanted:
        yield f"gather below {wanted} times `np.take`", f"{size} ({ratio:.2f})"
    gather, copy = row["times"]["gather"]["p50"], row["times"]["memcpy"]["p50"]
    if row["size"] == 12288 and not large and gather > (most := 1.15 * copy + 10):
        yield "gather above 1.15 · memcpy + 10 µs", f"{size} ({gather:.0f}, not {most:.0f})"
    if (slow := row_ratio(row, "G")) < 1:
        yield "gather in a loader below `np.take`", f"{size} ({slow:.2f})"


def row_ratio(row: dict[str, Any], name: str) -> float:
    """Returns the speed of a loop relative to `np.take`, round by round."""
    pairs = zip(row["times"]["take"]["medians"], row["times"][name]["medians"], strict=True)
    return float(np.median([take / ours for take, ours in pairs]))


def of_disk(key: str, loops: dict[str, list[dict[str, float]]]) -> Iterator[Miss]:
    """Yields every number worse than the probe's with pages from the disk."""
    for name, text, better in (
        ("rows_per_second", "rows per second", 1),
        ("p99_ms", "ms p99", -1),
        ("cpu_per_million", "CPU seconds per million rows", -1),
    ):
        ours, other = (float(np.median([run[name] for run in loops[x]])) for x in ORDER)
        if ours * better < other * better:
            yield "from the disk", f"{key}, {text} ({ours:,.1f}, the probe's {other:,.1f})"


ORDER = ("meshfeed", "probe")


def of_put(cell: PutNumbers) -> Iterator[Miss]:
    """Yields the target of `mf.put` if a cell misses it."""
    target = 10.0 if cell.leaf == "processes" else 1.0
    if cell.ratio < target:
        what = f"{cell.memory} memory, mesh {cell.mesh}" if cell.memory else cell.split
        below = f"`mf.put` below {target:.0f} times `device_put`"
        yield below, f"{cell.leaf}, {what} ({cell.ratio:.2f})"
