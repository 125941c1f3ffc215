"""Draws the rows that each process read in each step, before and after a process was killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

# By step, process, and first row of a block in the batch: the records in the rows of the block.
Steps = Mapping[int, Mapping[int, Mapping[int, list[int]]]]

COLORS = ["#56b4e9", "#e69f00", "#2eb398", "#cc79a7"]
CELL, ROW, LEFT, TOP, GAP = 28, 3, 92, 100, 84  # pixels
LABELED = 12  # a box shows the record number of every 12th row


def draw(before: Steps, after: Steps, saved: int, killed: int) -> str:
    """Draws the picture as SVG.

    Args:
        before: the rows that each process read in the run that was killed.
        after: the rows that each process read in the run that continued.
        saved: the last step that was saved.
        killed: the process that was killed.
    """
    rows = max(s + len(r) for read in before[1].values() for s, r in read.items())
    height, last, end = rows * ROW, max(after), max(before)
    width = LEFT + last * CELL + 24
    second = TOP + height + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {second + height + 62}">',
        "<style>text { font-family: system-ui, sans-serif }</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        text(24, 30, "Rows of the global batch that each process read", size=18, weight=600),
        text(
            24,
            52,
            f"Each box is one step of one process; the numbers are the records at rows "
            f"{', '.join(str(r) for r in range(0, rows, LABELED))} of that step.",
            color="#51606f",
        ),
    ]
    out += panel(before, TOP, "before: 4 processes of 2 devices", faded=lambda step: step > saved)
    out += panel(after, second, "after: 2 processes of 4 devices", faded=lambda step: False)
    x = LEFT + end * CELL + 5
    out.append(f'<path d="M{x} {TOP - 6}V{TOP + height + 6}" stroke="#c2302e" stroke-width="2.5"/>')
    out.append(
        text(x + 8, TOP + 16, f"process {killed} killed by SIGKILL", color="#c2302e", weight=600)
    )
    out.append(text(x + 8, TOP + 35, "JAX ends the others", color="#c2302e"))
    out.append(
        text(x + 8, TOP + 62, f"steps {saved + 1} to {end} (pale) were not", color="#51606f")
    )
    out.append(text(x + 8, TOP + 79, "saved: they come again,", color="#51606f"))
    out.append(text(x + 8, TOP + 96, "with the same records", color="#51606f"))
    x = LEFT + saved * CELL
    out.append(
        f'<path d="M{x} {TOP - 6}V{second + height + 6}" stroke="#1d2733" stroke-width="1.5" '
        'stroke-dasharray="5 4"/>'
    )
    note = f"the last save, after step {saved}:"
    out.append(text(x - 10, second - 31, note, anchor="end", weight=600))
    note = "its state fits any number of processes"
    out.append(text(x - 10, second - 12, note, anchor="end", color="#51606f"))
    out.append("</svg>\n")
    return "\n".join(out)


def panel(steps: Steps, top: int, title: str, faded: Callable[[int], bool]) -> list[str]:
    """Draws one run: a column per step, a box per process."""
    first = LEFT + (min(steps) - 1) * CELL
    out = [text(first + 6, top - 12, title, weight=600)]
    names: dict[int, int] = {}
    bottom = top
    for step in sorted(steps):
        x = LEFT + (step - 1) * CELL
        pale = ' opacity="0.4"' if faded(step) else ""
        for process, read in sorted(steps[step].items()):
            whole = merged(read)
            for start, records in whole.items():
                y = top + start * ROW
                names.setdefault(process, y + len(records) * ROW // 2)
                bottom = max(bottom, y + len(records) * ROW)
                box = f'x="{x}" y="{y}" width="{CELL - 1.5}" height="{len(records) * ROW - 1.5}"'
                fill = COLORS[process % len(COLORS)]
                out.append(f'<rect {box} rx="2" fill="{fill}"{pale}/>')
                out += [
                    text(
                        x + CELL / 2 - 0.75,
                        y + row * ROW + 22,
                        str(records[row]),
                        9.5,
                        anchor="middle",
                    )
                    for row in range(0, len(records), LABELED)
                ]
        if step % 5 == 0 or step == min(steps):
            out.append(
                text(x + CELL / 2, bottom + 18, str(step), 11, anchor="middle", color="#51606f")
            )
    out += [text(first - 10, y + 4, f"process {p}", 12, anchor="end") for p, y in names.items()]
    out.append(text(first - 10, bottom + 18, "step", 11, anchor="end", color="#51606f"))
    return out


def merged(read: Mapping[int, list[int]]) -> dict[int, list[int]]:
    """Joins the blocks of adjacent rows."""
    out: dict[int, list[int]] = {}
    for start in sorted(read):
        last = next(reversed(out), None)
        if last is not None and last + len(out[last]) == start:
            out[last] = out[last] + read[start]
        else:
            out[start] = list(read[start])
    return out


def text(
    x: float,
    y: float,
    words: str,
    size: float = 13,
    *,
    anchor: str = "start",
    color: str = "#1d2733",
    weight: int = 400,
) -> str:
    """Returns a text element."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{color}" '
        f'font-weight="{weight}">{words}</text>'
    )
