"""The table that `jax.debug.visualize_array_sharding` prints, without the package rich.

The sizes follow `visualize_sharding` of JAX 0.10. The widths and line breaks follow rich's tables
without colors, which JAX prints if its output is not a terminal.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

_WIDTH = 80  # columns of the whole table
_HEIGHT = 10  # lines of the whole array
_LEAST = 9  # columns of a part


@dataclasses.dataclass(frozen=True)
class _Cell:
    """A part of the array: a text in the middle, and space around it."""

    text: str
    top: int
    bottom: int
    left: int
    right: int

    def measure(self, width: int) -> int:
        """Returns the width that the cell takes of an available width."""
        space = self.left + self.right
        if width - space < 1:
            return width
        return min(min(len(self.text), width) + space, width)

    def lines(self, width: int) -> list[str]:
        """Returns the lines of the cell in a column of a width."""
        if width < 1:
            return []
        inner = width - self.left - self.right
        texts = _wrapped(self.text, min(len(self.text), inner)) if inner > 0 else []
        around = " " * self.left, " " * self.right
        body = [around[0] + text + around[1] for text in _centered(texts, inner)]
        blank = " " * width
        return [_cut(line, width) for line in [blank] * self.top + body + [blank] * self.bottom]


def _cut(line: str, width: int) -> str:
    return line[:width].ljust(width)


def _centered(texts: Sequence[str], width: int) -> list[str]:
    return [
        " " * ((width - len(text)) // 2) + text.ljust(width - (width - len(text)) // 2)
        for text in texts
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """Breaks a text between words. A line that is too long ends with an ellipsis."""
    lines = [""]
    for word in text.replace(" ", " \n").split("\n"):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [_shortened(line.rstrip(), width).ljust(width) for line in lines]


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def visualized(shape: Sequence[int], kind: str, parts: Mapping[int, Sequence[slice]]) -> str:
    """Draws the parts of an array of one or two dimensions.

    Args:
        shape: the shape of the array.
        kind: the platform of the devices, such as "cpu".
        parts: for every device id, the part of the array that it has.
    """
    aspect = (shape[1] if len(shape) == 2 else 1) / shape[0]
    base = int(_HEIGHT * aspect)
    groups: dict[tuple[int, ...], list[int]] = {}
    shares: dict[tuple[int, ...], tuple[float, float | None]] = {}
    for device, index in parts.items():
        spans = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        share = [(stop - start) / size for (start, stop), size in zip(spans, shape, strict=True)]
        at = tuple(start // max(stop - start, 1) for start, stop in spans)
        if len(shape) == 1:
            at = (0, *at)
            shares[at] = share[0], None
        else:
            shares[at] = share[1], share[0]
        groups.setdefault(at, []).append(device)
    rows = max(i for i, _ in groups) + 1
    cols = max(j for _, j in groups) + 1
    cells = [
        [_cell(f"{kind.upper()} {_joined(groups[i, j])}", base, *shares[i, j]) for j in range(cols)]
        for i in range(rows)
    ]
    return _table(cells)


def _joined(devices: Sequence[int]) -> str:
    return ",".join(map(str, sorted(devices)))


def _cell(text: str, base: int, wide: float, high: float | None) -> _Cell:
    height = 1 if high is None else int(high * _HEIGHT)
    width = min(max(int(wide * base * 2.5), _LEAST), _WIDTH)
    left, odd = divmod(width - len(text) - 2, 2)
    top, odd_line = divmod(height - 2, 2)
    return _Cell(text, *(max(n, 0) for n in (top, top + odd_line, left, left + odd)))


def _table(cells: Sequence[Sequence[_Cell]]) -> str:
    widths = _widths(cells, _WIDTH - len(cells[0]) - 1)

    def rule(left: str, between: str, right: str) -> str:
        return left + between.join("─" * width for width in widths) + right

    out = [rule("┌", "┬", "┐")]
    for i, row in enumerate(cells):
        if i:
            out.append(rule("├", "┼", "┤"))
        columns = [cell.lines(width) for cell, width in zip(row, widths, strict=True)]
        height = max(1, *map(len, columns))
        blanks = [" " * width for width in widths]
        for k in range(height):
            line = [c[k] if k < len(c) else blank for c, blank in zip(columns, blanks, strict=True)]
            out.append("│" + "│".join(line) + "│")
    return "\n".join([*out, rule("└", "┴", "┘")])


def _widths(cells: Sequence[Sequence[_Cell]], space: int) -> list[int]:
    """Returns the widths of the columns. If they exceed the space, the widest ones shrink first."""
    columns = list(zip(*cells, strict=True))
    widths = [max(cell.measure(space) for cell in column) or 1 for column in columns]
    if sum(widths) <= space:
        return widths
    while sum(widths) > space:
        widest = max(widths)
        second = max((w for w in widths if w != widest), default=0)
        excess = sum(widths) - space
        widths = _reduced(widths, excess, widest - second, [w == widest for w in widths])
    return [
        max(cell.measure(width) for cell in column)
        for column, width in zip(columns, widths, strict=True)
    ]


def _reduced(widths: Sequence[int], total: int, most: int, chosen: Sequence[bool]) -> list[int]:
    """Takes a total from the chosen widths in equal parts, at most `most` from each."""
    left, count, out = total, sum(chosen), []
    for width, choose in zip(widths, chosen, strict=True):
        if choose and count > 0:
            taken = min(most, total, round(left / count))
            width -= taken
            left -= taken
            count -= 1
        out.append(width)
    return out
