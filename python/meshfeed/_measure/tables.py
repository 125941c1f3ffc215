"""Texts and tables of benchmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed._io.arguments import cut, getattr_or_none


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
    shape = (
        getattr_or_none(value, "shape")
        if getattr_or_none(value, "axis_names") is not None
        else value
    )
    if isinstance(shape, Mapping):
        return " x ".join(f"{name} {n}" for name, n in shape.items()) or "no axes"
    if isinstance(value, list | tuple) and value and getattr_or_none(value[0], "platform"):
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
