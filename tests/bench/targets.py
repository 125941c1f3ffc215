"""The targets, and a sentence for each one that is missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.bench.derived import CellNumbers, PutNumbers

FIRST_MS = {"memory": 20.0, "file": 50.0}
FAULTS = 1.0  # pages per batch that may be touched for the first time
GROWTH = 1024  # bytes that `next` may allocate for a whole batch beyond those for a quarter


def of_cell(cell: CellNumbers) -> Iterator[str]:
    """Yields a sentence for every target that a warm cell misses."""
    if cell.p50("meshfeed") > cell.target:
        yield f"{cell.name}: {_late(cell)}"
    if cell.ratio < 1:
        yield f"{cell.name}: **slower than the probe, {cell.ratio:.2f}: a defect.** {_parts(cell)}"
    elif cell.ratio < 1.5:
        yield f"{cell.name}: {cell.ratio:.2f} times the probe, not 1.5. {_parts(cell)}"
    if (first := cell.first["first_ms"]) > FIRST_MS[cell.source]:
        yield f"{cell.name}: the first batch after {first:.0f} ms, not {FIRST_MS[cell.source]:.0f}"
    yield from _allocated(cell)
    yield from _worse(cell)


def _late(cell: CellNumbers) -> str:
    """Describes the distance of `next` from its target, and its causes."""
    alone = max(cell.p50("F"), cell.p50("G"))
    together = max(cell.p50("F with G"), cell.p50("G with F"))
    p50 = cell.p50("meshfeed")
    verdict = "within it" if p50 <= cell.together else "beyond that too"
    return (
        f"`next` {p50:.0f} µs, target {cell.target:.0f}. It is {p50 - alone:.0f} above max(F, G): "
        f"{together - alone:+.0f} because F and G slow each other down, "
        f"{p50 - together:+.0f} from meshfeed. With F and G at the same time the target is "
        f"{cell.together:.0f}: {verdict}"
    )


def _parts(cell: CellNumbers) -> str:
    f, wait, p50 = cell.p50("F with G"), cell.p50("meshfeed.wait"), cell.p50("meshfeed")
    best = cell.p50("probe") / max(f, cell.p50("G with F"))
    return (
        f"Of {p50:.0f} µs {f:.0f} are the calls of JAX (F with G), {wait:.0f} waiting for the "
        f"gather, {cell.rest:.0f} the rest; a loop with nothing but F and G at once "
        f"would reach {best:.2f}"
    )


def _allocated(cell: CellNumbers) -> Iterator[str]:
    whole, quarter = cell.costs["whole"], cell.costs["quarter"]
    if whole["faults"] > FAULTS:
        yield f"{cell.name}: {whole['faults']:.1f} new pages per batch"
    if (more := whole["allocated"] - quarter["allocated"]) > GROWTH:
        yield f"{cell.name}: `next` allocates {more} bytes more than with a quarter of the batch"


def _worse(cell: CellNumbers) -> Iterator[str]:
    """Yields a sentence for every number without a target that is worse than the probe's."""
    if (p99 := cell.times["meshfeed"]["p99"]) > (other := cell.times["probe"]["p99"]):
        yield f"{cell.name}: p99 {p99:.0f} µs, the probe's {other:.0f}"
    ours, other = (cell.p50(f"{loop}.cpu_per_million") for loop in ("meshfeed", "probe"))
    if ours > other:
        yield f"{cell.name}: {ours:.2f} CPU seconds per million rows, the probe's {other:.2f}"


def of_row(row: dict[str, Any], title: str, *, large: bool) -> Iterator[str]:
    """Yields a sentence for every target that the gather misses at one size of a row."""
    size, ratio = row["size"], row_ratio(row, "gather")
    name = f"rows of {size:,} B, {title}"
    wanted = 1.5 if large and size >= 2048 else 1.0
    if ratio < wanted:
        yield f"{name}: {ratio:.2f} times `np.take`, not {wanted}"
    gather, copy = row["times"]["gather"]["p50"], row["times"]["memcpy"]["p50"]
    if size == 12288 and not large and gather > (most := 1.15 * copy + 10):
        yield f"{name}: {gather:.0f} µs, 1.15 · memcpy + 10 is {most:.0f}"
    if (slow := row_ratio(row, "G")) < 1:
        best = f"{best_ratio(row, 'G'):.2f} at best"
        yield f"{name}: in a loader {slow:.2f} times `np.take` on the caller's thread, {best}"


def row_ratio(row: dict[str, Any], name: str) -> float:
    """Returns the speed of a loop relative to `np.take`, round by round."""
    pairs = zip(row["times"]["take"]["medians"], row["times"][name]["medians"], strict=True)
    return float(np.median([take / ours for take, ours in pairs]))


def best_ratio(row: dict[str, Any], name: str) -> float:
    """Returns the ratio of the 10th percentiles, which other load disturbs least."""
    return float(row["times"]["take"]["p10"] / row["times"][name]["p10"])


def of_disk(key: str, loops: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    """Yields a sentence for every number worse than the probe's with pages from the disk."""
    kind, case = key.split("/")
    for name, text, better in (
        ("rows_per_second", "rows per second", 1),
        ("p99_ms", "ms p99", -1),
        ("cpu_per_million", "CPU seconds per million rows", -1),
    ):
        ours, other = (float(np.median([run[name] for run in loops[x]])) for x in ORDER)
        if ours * better < other * better:
            yield f"{case}, {KINDS[kind]}: {ours:,.1f} {text}, the probe's {other:,.1f}"


ORDER = ("meshfeed", "probe")
KINDS = {"cold": "cache dropped", "limited": "twice the memory"}


def of_put(cell: PutNumbers) -> Iterator[str]:
    """Yields a sentence if `mf.put` misses its target in a cell."""
    target = 10.0 if cell.leaf == "put/processes" else 1.0
    if cell.ratio < target:
        what = f"{cell.memory} memory, mesh {cell.mesh}" if cell.memory else cell.split
        yield f"{cell.leaf}, {what}: {cell.ratio:.2f} times device_put, not {target:.0f}"
