"""The numbers as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Row = dict[str, Any]
Column = Callable[[Row], str]

HEAD = """# Benchmarks

Made by `make bench`. The end point is the same for all: global `jax.Array`s ready on eight CPU
devices, shuffled. Every cell ran in a process of its own, the loops in turns, {rounds} rounds
each; before a number counts, every record was delivered once, every shard and replica was equal
to `batch[index]`, and kept batches did not change.

The probe is `np.take` of the permuted records followed by one `jax.device_put` of the dict;
"aligned" takes into fresh 64-byte-aligned memory. F: the bare `make_array_from_callback` calls for
the same leaves over buffers that stand ready. G: the gather alone. Times are p50 in µs, with the
range of the rounds' medians behind meshfeed and the probe; p10 is what other programs on the
machine disturb least. Measured on CPU only.

{machine}
"""


def markdown(result: dict[str, Any]) -> str:
    """Writes the whole page."""
    parts = [HEAD.format(rounds=result["rounds"], machine=result["machine"])]
    parts.append("## Warm, closed: block on each batch\n")
    parts.append(_table(CLOSED, result["cells"]))
    parts.append("## Warm, pipelined, and what it costs\n")
    parts.append(_table(FLOW, result["cells"]))
    for title, rows in result["rows"].items():
        parts.append(f"## G by the size of a row, {title}\n")
        parts.append(_table(ROWS, rows))
    parts.append("## Cold, and larger than memory\n")
    parts.append(_table(COLD, result["cold"]))
    parts.append("## Targets that were missed\n")
    parts.append("\n".join(f"- {line}" for line in missed(result)) or "None.")
    return "\n".join(parts).rstrip() + "\n"


def missed(result: dict[str, Any]) -> list[str]:
    """Lists what the numbers do not reach, by cell."""
    lines = [line for cell in result["cells"] for line in _cell_missed(cell)]
    for title, rows in result["rows"].items():
        for row in rows:
            wanted = 1.5 if row["size"] >= 2048 and title.startswith("larger") else 1.0
            if (ratio := row["take"] / row["G"]) < wanted:
                lines.append(f"rows of {row['size']} B, {title}: {ratio:.2f} times, not {wanted}")
    return lines


def _cell_missed(cell: Row) -> Iterator[str]:
    name, p50 = f"{cell['case']}, {cell['source']}, {cell['mesh']}", cell["meshfeed"]["p50"]
    if p50 > _bound(cell):
        yield f"{name}: p50 {p50:.0f} µs, bound {_bound(cell):.0f} µs"
    if (ratio := _ratio(cell)) < 1.5:
        yield f"{name}: {ratio:.2f} times the probe" + (", a defect" if ratio < 1 else "")
    if cell["first_ms"] > (20 if cell["source"] == "memory" else 50):
        yield f"{name}: first batch after {cell['first_ms']:.0f} ms"
    if cell["allocated"] > max(64 << 10, cell["batch_bytes"] // 10):
        yield f"{name}: {cell['allocated']} bytes allocated per batch"


def _bound(cell: Row) -> float:
    return 1.15 * max(float(cell["F"]["p50"]), float(cell["G"])) + 25


def _ratio(cell: Row) -> float:
    return float(cell["probe"]["p50"] / cell["meshfeed"]["p50"])


def _number(*path: str, form: str = ".0f") -> Column:
    """Makes the column of a number that stands at path."""

    def text(row: Row) -> str:
        value: Any = row
        for key in path:
            if key not in value:
                return ""
            value = value[key]
        return format(value, form)

    return text


def _spread(loop: str) -> Column:
    def text(row: Row) -> str:
        low, high = row[loop]["spread"]
        return f"{row[loop]['p50']:.0f} ({low:.0f} to {high:.0f})"

    return text


CELL: dict[str, Column] = {
    "case": lambda c: str(c["case"]),
    "from": lambda c: str(c["source"]),
    "mesh": lambda c: f"`{c['mesh']}`",
}

CLOSED = CELL | {
    "meshfeed": _spread("meshfeed"),
    "probe": _spread("probe"),
    "aligned": _number("probe aligned", "p50"),
    "Grain": _number("grain", "p50"),
    "times the probe": lambda c: f"{_ratio(c):.2f}",
    "F": _number("F", "p50"),
    "G": _number("G"),
    "wait": _number("wait"),
    "1.15·max(F, G) + 25": lambda c: f"{_bound(c):.0f}",
    "p10": _number("meshfeed", "p10"),
    "probe p10": _number("probe", "p10"),
    "F p10": _number("F", "p10"),
    "p99": _number("meshfeed", "p99"),
    "probe p99": _number("probe", "p99"),
}

FLOW = CELL | {
    "rows/s closed": _number("meshfeed", "closed_rows_per_second", form=",.0f"),
    "probe": _number("probe", "closed_rows_per_second", form=",.0f"),
    "rows/s pipelined": _number("meshfeed", "rows_per_second", form=",.0f"),
    "probe ": _number("probe", "rows_per_second", form=",.0f"),
    "Grain": _number("grain", "rows_per_second", form=",.0f"),
    "CPU s per million rows": _number("meshfeed", "cpu_seconds_per_million_rows", form=".2f"),
    "probe  ": _number("probe", "cpu_seconds_per_million_rows", form=".2f"),
    "first batch, ms": _number("first_ms", form=".1f"),
    "grown by, MB": _number("grown_mb", form=".1f"),
    "allocated per batch, KiB": lambda c: f"{c['allocated'] / 1024:.1f}",
}

ROWS: dict[str, Column] = {
    "bytes": _number("size", form=","),
    "rows": _number("rows", form=","),
    "G, µs": _number("G"),
    "np.take, µs": _number("take"),
    "contiguous memcpy, µs": _number("memcpy"),
    "times np.take": lambda r: f"{r['take'] / r['G']:.2f}",
}

COLD: dict[str, Column] = {
    "case": lambda c: str(c["case"]),
    "": lambda c: {"dropped": "cache dropped", "limited": "twice the limit"}[c["kind"]],
    "loop": lambda c: str(c["loop"]),
    "rows/s": _number("rows_per_second", form=",.0f"),
    "p50, ms": _number("p50_ms", form=".1f"),
    "p99, ms": _number("p99_ms", form=".1f"),
    "left out": lambda c: str(c.get("left_out", "")),
}


def _table(columns: dict[str, Column], rows: Iterable[Row]) -> str:
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[text(row) for text in columns.values()] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
