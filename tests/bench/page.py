"""Writes the section on JAX in one process: the results as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from tests.bench import targets, texts
from tests.bench.derived import CellNumbers, PutNumbers, spread

Column = Callable[[Any], str]


def markdown(held: dict[str, Any]) -> str:
    """Writes the whole section."""
    records = held["pieces"]
    cells = [CellNumbers(key, r["result"]) for key, r in of_kind(records, "warm")]
    rounds = cells[0].result["rounds"] if cells else 0
    facts = {"dates": _dates(records), "builds": _builds(records), "rounds": rounds, "ms": 60}
    sections = [
        texts.HEAD.format(**held["machine"], **facts),
        *_summary(cells),
        table(BOTH, _pairs(cells)),
        *_put(records),
        *_disk(records),
        "### Targets that were missed\n",
        _missed(records, cells),
    ]
    return "\n".join(sections)


def brief(records: dict[str, Any]) -> str:
    """Writes the closed times, their parts and the rows of a quick run."""
    cells = [CellNumbers(key, r["result"]) for key, r in of_kind(records, "warm")]
    rows = table(ROW, _rows(records))
    return "\n".join([table(CLOSED, cells), table(PARTS, cells), rows, _missed(records, cells)])


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
    return [f"### {title}\n", text, table(columns, rows)] if rows else []


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
    }
    return [texts.SUMMARY.format(**numbers) + texts.CLOSED]


def _dates(records: dict[str, Any]) -> str:
    dates = sorted({r["date"] for r in records.values()})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "never"


def _builds(records: dict[str, Any]) -> str:
    builds = {r["build"]: r["commit"] for r in records.values()}
    commits = ", ".join(sorted(set(builds.values())))
    if len(builds) == 1:
        return f"commit {commits}"
    return f"**with {len(builds)} different builds**: commits {commits}"


def _pairs(cells: list[CellNumbers]) -> list[dict[str, CellNumbers]]:
    """Returns a row for each case and mesh: its cells by where the data are."""
    rows: dict[tuple[str, str], dict[str, CellNumbers]] = {}
    for cell in cells:
        rows.setdefault((cell.case, cell.mesh), {})[cell.source] = cell
    return list(rows.values())


def _rows(records: dict[str, Any]) -> list[dict[int, Any]]:
    """Returns a row for each size: the results by the megabytes of data."""
    sizes: dict[int, dict[int, Any]] = {}
    for megabytes in DATA:
        for _, record in of_kind(records, f"rows/{megabytes}"):
            for row in record["result"]:
                sizes.setdefault(int(row["size"]), {})[megabytes] = row
    return [sizes[size] for size in sorted(sizes)]


def _put(records: dict[str, Any]) -> list[str]:
    alone, together = list[PutNumbers](), list[PutNumbers]()
    for key, record in of_kind(records, "put"):
        name = key.removeprefix("put/")
        cells = [PutNumbers(name, cell) for cell in record["result"]]
        (together if name == "processes" else alone).extend(cells)
    if not alone:
        return []
    ratios = sorted(cell.ratio for cell in alone)
    numbers = {
        "cells": len(ratios),
        "low": ratios[0],
        "middle": median(ratios),
        "high": ratios[-1],
        "slower": sum(ratio < 1 for ratio in ratios),
        "times": ", ".join(f"{cell.ratio:.0f} ({cell.split})" for cell in together),
    }
    return [texts.PUT.format(**numbers)]


def _disk(records: dict[str, Any]) -> list[str]:
    rows, way = list[Any](), "left out"
    for key, record in [*of_kind(records, "cold"), *of_kind(records, "limited")]:
        result = record["result"]
        way = result.get("way", way)
        if "loops" in result:
            rows.append({"case": key, **result["loops"]})
    return _section("Files that are not in memory", texts.COLD.format(way=way), DISK, rows)


def _missed(records: dict[str, Any], cells: list[CellNumbers]) -> str:
    misses = [miss for cell in cells for miss in targets.of_cell(cell)]
    misses += targets.of_memory({key: r["result"] for key, r in of_kind(records, "memory")})
    for megabytes, title in DATA.items():
        for _, record in of_kind(records, f"rows/{megabytes}"):
            for row in record["result"]:
                misses += targets.of_row(row, title, large=megabytes > 100)
    for key, record in of_kind(records, "put"):
        numbers = [PutNumbers(key.removeprefix("put/"), cell) for cell in record["result"]]
        misses += [miss for cell in numbers for miss in targets.of_put(cell)]
    for key, record in [*of_kind(records, "cold"), *of_kind(records, "limited")]:
        if "loops" in record["result"]:
            misses += targets.of_disk(key, record["result"]["loops"])
    by_target: dict[str, list[str]] = {}
    for target, cell in misses:
        by_target.setdefault(target, []).append(cell)
    rows = [{"target": target, "missed by": where} for target, where in by_target.items()]
    return table(MISSED, rows) if rows else "None.\n"


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


def _runs(loop: str, name: str, form: str) -> Column:
    """Returns the column of a number of a loop's runs: their median and range."""

    def text(row: Any) -> str:
        values = sorted(float(run[name]) for run in row[loop])
        middle = median(values)
        return f"{middle:{form}} ({values[0]:{form}} to {values[-1]:{form}})"

    return text


def _of(column: Column, name: str) -> Column:
    """Returns a column of a cell of the row."""
    return lambda row: column(row[name]) if name in row else ""


def _gather(megabytes: int) -> dict[str, Column]:
    """Returns the columns of the gather from data of this size."""

    def in_microseconds(name: str) -> Column:
        return lambda row: f"{row[megabytes]['times'][name]['p50']:.0f}" if megabytes in row else ""

    def times(name: str) -> Column:
        return lambda row: (
            plain(targets.row_ratio(row[megabytes], name)) if megabytes in row else ""
        )

    columns = {
        "gather, µs": in_microseconds("gather"),
        "`np.take`": in_microseconds("take"),
        "times": times("gather"),
        "loader": times("G"),
    }
    return {f"{DATA[megabytes]}: {name}": column for name, column in columns.items()}


LEFT = {"case", "from", "mesh", "memory", "target missed", "by"}
DATA = {8: "8 MB", 1024: "1 GB"}

MISSED: dict[str, Column] = {
    "target missed": lambda row: str(row["target"]),
    "by": lambda row: "; ".join(row["missed by"]),
}

CELL: dict[str, Column] = {
    "case": lambda c: str(c.case),
    "from": lambda c: str(c.source),
    "mesh": lambda c: f"`{c.mesh}`",
}

CLOSED = CELL | {
    "meshfeed": _ranged("meshfeed"),
    "target": lambda c: _reached(c.p50("meshfeed"), c.target),
    "probe": _p50("probe"),
    "aligned": _p50("aligned"),
    "Grain": _p50("grain"),
    "times the probe": _ratio,
    "both p99": lambda c: f"{c.times['meshfeed']['p99']:,.0f}, {c.times['probe']['p99']:,.0f}",
}

BOTH: dict[str, Column] = {
    "case": lambda row: CELL["case"](next(iter(row.values()))),
    "mesh": lambda row: CELL["mesh"](next(iter(row.values()))),
} | {
    f"{source}: {name}": _of(CLOSED[column], source)
    for source in ("memory", "file")
    for name, column in {
        "meshfeed": "meshfeed",
        "target": "target",
        "probe": "probe",
        "Grain": "Grain",
        "times": "times the probe",
        "p99": "both p99",
    }.items()
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

ROW: dict[str, Column] = {
    "bytes": lambda r: f"{next(iter(r.values()))['size']:,}",
    **_gather(8),
    **_gather(1024),
}

DISK: dict[str, Column] = {"case": lambda row: str(row["case"])} | {
    f"{title}{loop.replace('meshfeed', '').replace('probe', ', probe')}": _runs(loop, name, form)
    for title, name, form in (
        ("rows/s", "rows_per_second", ",.0f"),
        ("first, ms", "first_ms", ".0f"),
        ("p50, ms", "p50_ms", ".2f"),
        ("p99, ms", "p99_ms", ".1f"),
        ("CPU s per million rows", "cpu_per_million", ".1f"),
        ("disk, MB", "disk_mb", ",.0f"),
    )
    for loop in targets.ORDER
}
