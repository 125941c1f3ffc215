"""Writes the page: the results as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import targets, texts
from tests.bench.derived import CellNumbers, PutNumbers, spread
from tests.bench.distributed import page as processes
from tests.bench.parquet import page as parquet

Column = Callable[[Any], str]

REMARKS = Path(__file__).with_name("remarks.md")


def markdown(held: dict[str, Any]) -> str:
    """Writes the whole page."""
    records = held["pieces"]
    cells = [CellNumbers(key, r["result"]) for key, r in of_kind(records, "warm")]
    rounds = cells[0].result["rounds"] if cells else 0
    head = texts.HEAD.format(
        **held["machine"],
        dates=_dates(records),
        builds=_builds(records),
        rounds=rounds,
        ms=60,
    )
    sections = [
        head,
        *_summary(cells),
        *(_section("Closed: block on each batch", "Times of `next` in µs.", CLOSED, cells)),
        *(_section("Where the time of a closed `next` goes", texts.SPLIT, PARTS, cells)),
        *(_section("Rows per second, and the slow batches", texts.FLOW, FLOW, cells)),
        *(_section("What it costs", texts.COSTS, COST, cells)),
        *_memory(records),
        *_rows(records),
        *_put(records),
        *_cold(records),
        *_limited(records),
        *parquet.read(),
        *processes.read(),
        "## Targets that were missed\n",
        _missed(records, cells),
    ]
    if REMARKS.exists():
        sections.append(REMARKS.read_text())
    return "\n".join(sections).rstrip() + "\n"


def brief(records: dict[str, Any]) -> str:
    """Writes the closed times, their parts and the rows of a quick run."""
    cells = [CellNumbers(key, r["result"]) for key, r in of_kind(records, "warm")]
    parts = [table(CLOSED, cells), table(PARTS, cells), *_rows(records), _missed(records, cells)]
    return "\n".join(parts)


def of_kind(records: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    """Returns the records of one kind in the order of the page."""
    return [(key, r) for key, r in records.items() if key.startswith(f"{kind}/")]


def table(columns: dict[str, Column], rows: Iterable[Any]) -> str:
    """Writes a table with numbers aligned to the right."""
    aligned = ["---" if name in LEFT else "--:" for name in columns]
    lines = [list(columns), aligned]
    lines += [[text(row) for text in columns.values()] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _section(title: str, text: str, columns: dict[str, Column], rows: list[Any]) -> list[str]:
    return [f"## {title}\n", text.rstrip() + "\n", table(columns, rows)] if rows else []


def _summary(cells: list[CellNumbers]) -> list[str]:
    if not cells:
        return []
    ratios = sorted(cell.ratio for cell in cells)
    numbers = {
        "cells": len(cells),
        "low": ratios[0],
        "middle": ratios[len(ratios) // 2],
        "high": ratios[-1],
        "slower": sum(ratio < 1 for ratio in ratios),
        "short": sum(1 <= ratio < 1.5 for ratio in ratios),
        "reached": sum(cell.p50("meshfeed") <= cell.target for cell in cells),
        "among": sum(cell.p50("meshfeed") <= cell.among for cell in cells),
        "together": sum(cell.p50("meshfeed") <= cell.together for cell in cells),
    }
    return [texts.SUMMARY.format(**numbers)]


def _dates(records: dict[str, Any]) -> str:
    dates = sorted({r["date"] for r in records.values()})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "never"


def _builds(records: dict[str, Any]) -> str:
    builds = {r["build"]: r["commit"] for r in records.values()}
    names = ", ".join(sorted(f"{build} (commit {at})" for build, at in builds.items()))
    if len(builds) == 1:
        return f"build {names}"
    return f"**with {len(builds)} different builds**: {names}"


def _memory(records: dict[str, Any]) -> list[str]:
    cases: dict[str, dict[str, Any]] = {}
    for key, record in of_kind(records, "memory"):
        _, case, loop = key.split("/")
        cases.setdefault(case, {"case": case})[loop] = record["result"]
    return _section("Peak memory beside the data", texts.PEAK, MEMORY, list(cases.values()))


def _rows(records: dict[str, Any]) -> list[str]:
    parts = []
    for megabytes, title in ROW_TITLES.items():
        rows = [r for _, record in of_kind(records, f"rows/{megabytes}") for r in record["result"]]
        rows.sort(key=lambda row: int(row["size"]))
        parts += _section(f"The gather by the size of a row, {title}", texts.ROWS, ROW, rows)
    return parts


def _put(records: dict[str, Any]) -> list[str]:
    alone, together = list[PutNumbers](), list[PutNumbers]()
    for key, record in of_kind(records, "put"):
        name = key.removeprefix("put/")
        cells = [PutNumbers(name, cell) for cell in record["result"]]
        (together if name == "processes" else alone).extend(cells)
    return [
        *_section("Batches of another loader: mf.put", texts.PUT, PUT, alone),
        *_section("mf.put in four processes", texts.PUT_PROCESSES, PUT_PROCESSES, together),
    ]


def _cold(records: dict[str, Any]) -> list[str]:
    rows = [
        {"case": key.split("/")[1], "loop": loop, "runs": runs}
        for key, record in of_kind(records, "cold")
        for loop, runs in record["result"]["loops"].items()
    ]
    return _section("Cache dropped", texts.COLD, DISK, rows)


def _limited(records: dict[str, Any]) -> list[str]:
    for key, record in of_kind(records, "limited"):
        result = record["result"]
        title = "## A file of twice the memory\n"
        if "left_out" in result:
            return [title, f"Left out: {result['left_out']}.\n"]
        loops = result["loops"].items()
        rows = [{"case": key.split("/")[1], "loop": loop, "runs": runs} for loop, runs in loops]
        text = (
            f"Limit: {result['way']}. The cache then holds at most half of the file; *cached* is "
            "the part of the file in the cache at the end.\n"
        )
        return [title, text, table(DISK, rows)]
    return []


def _missed(records: dict[str, Any], cells: list[CellNumbers]) -> str:
    lines = [line for cell in cells for line in targets.of_cell(cell)]
    for megabytes, title in ROW_TITLES.items():
        for _, record in of_kind(records, f"rows/{megabytes}"):
            for row in record["result"]:
                lines += targets.of_row(row, title, large=megabytes > 100)
    for key, record in of_kind(records, "put"):
        cells_of_put = [PutNumbers(key, cell) for cell in record["result"]]
        lines += [line for cell in cells_of_put for line in targets.of_put(cell)]
    for key, record in [*of_kind(records, "cold"), *of_kind(records, "limited")]:
        if "loops" in record["result"]:
            lines += targets.of_disk(key, record["result"]["loops"])
    return "\n".join(f"- {line}" for line in lines) + "\n" if lines else "None.\n"


def _p50(name: str) -> Column:
    return lambda cell: f"{cell.p50(name):.0f}"


def _ranged(name: str) -> Column:
    return lambda cell: f"{cell.p50(name):.0f} ({_range(cell.medians(name))})"


def _range(values: list[float]) -> str:
    low, high = spread(values)
    return f"{low:.0f} to {high:.0f}"


def _ratio(cell: CellNumbers) -> str:
    return f"{mark(cell.ratio)} ({' to '.join(f'{x:.2f}' for x in spread(cell.ratios))})"


def mark(ratio: float) -> str:
    """Writes a ratio: ✗ and bold if the loop is slower, ○ if it is less than 1.5 times as fast."""
    return plain(ratio) + (" ○" if 1 <= ratio < 1.5 else "")


def plain(ratio: float) -> str:
    """Writes a ratio: ✗ and bold if it is below 1."""
    return f"**{ratio:.2f} ✗**" if ratio < 1 else f"{ratio:.2f}"


def _reached(value: float, bound: float) -> str:
    return f"{bound:.0f} " + ("✓" if value <= bound else "✗")


def _disk(name: str, form: str) -> Column:
    """Returns the column of a number of several runs: their median and range."""

    def text(row: Any) -> str:
        values = sorted(float(run[name]) for run in row["runs"])
        middle = median(values)
        return f"{middle:{form}} ({values[0]:{form}} to {values[-1]:{form}})"

    return text


def _mb(loop: str) -> Column:
    return lambda row: f"{row[loop]['peak_mb']:.1f}" if loop in row else ""


def _time(name: str) -> Column:
    return lambda row: f"{row['times'][name]['p50']:.1f}"


LEFT = {"case", "from", "mesh", "loop", "memory", "split"}
ROW_TITLES = {8: "8 MB of data, in the last-level cache", 1024: "1 GB of data"}

CELL: dict[str, Column] = {
    "case": lambda c: str(c.case),
    "from": lambda c: str(c.source),
    "mesh": lambda c: f"`{c.mesh}`",
}

CLOSED = CELL | {
    "meshfeed": _ranged("meshfeed"),
    "probe": _ranged("probe"),
    "aligned": _ranged("aligned"),
    "Grain": _p50("grain"),
    "times the probe": _ratio,
}

PARTS = CELL | {
    "`next`": _p50("meshfeed"),
    "F": _p50("F"),
    "F among": _p50("F among"),
    "F with G": _p50("F with G"),
    "G": _p50("G"),
    "G with F": _p50("G with F"),
    "blocks": _p50("blocks"),
    "wait": _p50("meshfeed.wait"),
    "rest": lambda c: f"{c.rest:.0f}",
    "target": lambda c: _reached(c.p50("meshfeed"), c.target),
    "among": lambda c: _reached(c.p50("meshfeed"), c.among),
    "together": lambda c: _reached(c.p50("meshfeed"), c.together),
}

FLOW = CELL | {
    "closed": lambda c: f"{c.closed_rate('meshfeed'):,.0f}",
    "probe closed": lambda c: f"{c.closed_rate('probe'):,.0f}",
    "Grain closed": lambda c: f"{c.closed_rate('grain'):,.0f}",
    "pipelined": lambda c: f"{c.p50('meshfeed.rows_per_second'):,.0f}",
    "probe pipelined": lambda c: f"{c.p50('probe.rows_per_second'):,.0f}",
    "Grain pipelined": lambda c: f"{c.p50('grain.rows_per_second'):,.0f}",
    "p99, µs": lambda c: f"{c.times['meshfeed']['p99']:,.0f}",
    "probe p99, µs": lambda c: f"{c.times['probe']['p99']:,.0f}",
}

COST = CELL | {
    "CPU s": lambda c: f"{c.p50('meshfeed.cpu_per_million'):.2f}",
    "probe CPU s": lambda c: f"{c.p50('probe.cpu_per_million'):.2f}",
    "Grain CPU s": lambda c: f"{c.p50('grain.cpu_per_million'):.0f}",
    "first batch, ms": lambda c: "{first_ms:.1f} ({process_first_ms:.1f})".format(**c.first),
    "open, ms": lambda c: f"{c.first['open_ms']:.1f}",
    "faults": lambda c: f"{c.costs['whole']['faults']:.2f}",
    "probe faults": lambda c: f"{c.costs['probe']['faults']:.2f}",
    "Python bytes": lambda c: f"{c.costs['whole']['allocated']:,}",
    "of a quarter": lambda c: f"{c.costs['quarter']['allocated']:,}",
    "probe bytes": lambda c: f"{c.costs['probe']['allocated']:,}",
}

MEMORY: dict[str, Column] = {
    "case": lambda row: str(row["case"]),
    "a batch": lambda row: f"{next(v for k, v in row.items() if k != 'case')['batch_mb']:.1f}",
    "meshfeed": _mb("meshfeed"),
    "probe": _mb("probe"),
    "aligned": _mb("aligned"),
    "Grain": _mb("grain"),
}

ROW: dict[str, Column] = {
    "bytes": lambda r: f"{r['size']:,}",
    "rows": lambda r: f"{r['rows']:,}",
    "gather, µs": _time("gather"),
    "np.take": _time("take"),
    "one buffer": _time("one"),
    "memcpy": _time("memcpy"),
    "times np.take": lambda r: plain(targets.row_ratio(r, "gather")),
    "at best": lambda r: plain(targets.best_ratio(r, "gather")),
    "G, µs": _time("G"),
    "G, times": lambda r: plain(targets.row_ratio(r, "G")),
    "G, at best": lambda r: plain(targets.best_ratio(r, "G")),
}

BOTH: dict[str, Column] = {
    "mf.put": lambda c: f"{c.low('meshfeed'):.0f} / {c.middle('meshfeed'):.0f}",
    "device_put": lambda c: f"{c.low('device_put'):.0f} / {c.middle('device_put'):.0f}",
    "times device_put": lambda c: mark(c.ratio),
    "rounds": lambda c: " to ".join(f"{x:.2f}" for x in spread(c.ratios)),
}

PUT: dict[str, Column] = {
    "case": lambda c: str(c.leaf),
    "memory": lambda c: str(c.memory),
    "mesh": lambda c: str(c.mesh),
} | BOTH

PUT_PROCESSES: dict[str, Column] = {"split": lambda c: str(c.split)} | BOTH

DISK: dict[str, Column] = {
    "case": lambda row: str(row["case"]),
    "loop": lambda row: str(row["loop"]),
    "rows/s": _disk("rows_per_second", ",.0f"),
    "first, ms": _disk("first_ms", ".0f"),
    "p50, ms": _disk("p50_ms", ".2f"),
    "p99, ms": _disk("p99_ms", ".1f"),
    "CPU s per million rows": _disk("cpu_per_million", ".1f"),
    "disk, MB": _disk("disk_mb", ",.0f"),
    "rows, MB": _disk("rows_mb", ",.0f"),
    "cached": _disk("cached_after", ".2f"),
}
