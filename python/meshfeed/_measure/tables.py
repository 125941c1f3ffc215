"""Texts and tables of benchmarks, for terminals and notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed._io.arguments import attribute, cut

# Notebooks have rules for cells, with selectors of two classes.
_STYLE = """<style>
.mf-table{overflow-x:auto;font:14px/1.5 system-ui,sans-serif}
.mf-table table{border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit}
.mf-table caption{caption-side:top;text-align:left;padding:4px 8px;color:inherit}
.mf-table.mf-table :is(th,td){padding:2px 8px;text-align:left;vertical-align:top}
.mf-table.mf-table .n{text-align:right;white-space:nowrap}
</style>"""


def digits(x: float) -> str:
    """Writes a number with three digits or more.

    Examples:
        >>> [digits(x) for x in (0.01234, 0.9999, 1.2345, 12.345, 123.45, 12345.6)]
        ['0.0123', '1.00', '1.23', '12.3', '123', '12,346']
    """
    rounded = float(f"{x:.3g}")
    if rounded == 0:
        return "0"
    return f"{x:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def size(n: float) -> str:
    """Writes a number of bytes. A GB has 10^9.

    Examples:
        >>> size(12), size(393216), size(1.25e9)
        ('12 B', '393 kB', '1.25 GB')
    """
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if n >= 10**power:
            return f"{digits(n / 10**power)} {unit}"
    return f"{n:.0f} B"


def label(value: Any) -> str:
    """Writes a value of a sweep: of a mesh its axes, of a list of devices their number."""
    shape = attribute(value, "shape") if attribute(value, "axis_names") is not None else value
    if isinstance(shape, Mapping):
        return " x ".join(f"{name} {n}" for name, n in shape.items()) or "no axes"
    if isinstance(value, list | tuple) and value and attribute(value[0], "platform"):
        return f"{len(value)} devices"
    return cut(" ".join(str(value).split()), 40)


def point_name(values: Mapping[str, Any]) -> str:
    """Writes the values of a point, such as "devices=4, batch_size=64"."""
    return ", ".join(f"{name}={label(value)}" for name, value in values.items())


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lays out a table with columns aligned to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
    return "\n".join(lines)


def html_list(rows: Sequence[tuple[str, str]], caption: str) -> str:
    """Returns texts with a name in front of each as HTML, below their caption."""
    parts = [f"<caption>{html.escape(caption)}</caption>"]
    for name, text in rows:
        cells = f'<th scope="row">{html.escape(name)}</th><td>{html.escape(text)}</td>'
        parts.append(f"<tr>{cells}</tr>")
    return _html_table(parts)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Returns a table of numbers as HTML, with notes below it."""
    lines = [("th", head), *(("td", row) for row in rows)]
    parts = [
        "".join(f'<{tag} class="n">{html.escape(cell)}</{tag}>' for cell in row)
        for tag, row in lines
    ]
    return _html_table([f"<tr>{part}</tr>" for part in parts], notes)


def _html_table(parts: Sequence[str], notes: Sequence[str] = ()) -> str:
    table = f'{_STYLE}<div class="mf-table" tabindex="0"><table>{"".join(parts)}</table></div>'
    return table + "".join(f"<p>{html.escape(note)}</p>" for note in notes)
