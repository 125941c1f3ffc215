"""The page of a demo's report: one HTML file without a network, whose pictures follow the theme."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

mpl.use("Agg")

# matplotlib accepts no CSS variables. Plots use these colors, which CSS variables then replace.
INK, FAINT, LINE, CURVE, SECOND, STOP = (f"#0{n}0{n}0{n}" for n in range(1, 7))
THEME = {INK: "text", FAINT: "faint", LINE: "line", CURVE: "curve", SECOND: "second", STOP: "stop"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>meshfeed demo: {title}</title>
<style>
:root {{ color-scheme: light dark; --text: #1d2733; --page: #fff; --faint: #51606f;
        --line: #e4e9ee; --curve: #2f6fb0; --second: #b26a00; --stop: #c2302e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e3e9ef; --page: #0f141a; --faint: #9aa7b4; --line: #2a333d;
          --curve: #7fb4ee; --second: #e8b04a; --stop: #f4796b; }}
}}
body {{ font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
       max-width: 56rem; margin: 2.5rem auto; padding: 0 1.25rem; }}
h1 {{ font-size: 1.7rem; margin-bottom: .2rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }}
.lead {{ color: var(--faint); margin-top: 0; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 600; }}
th, td {{ padding: .3rem 1.6rem .3rem 0; border-bottom: 1px solid var(--line); }}
td:last-child, .numbers :is(th, td):not(:first-child) {{ text-align: right; }}
:is(th, td):last-child {{ padding-right: 0; }}
figure {{ margin: 1rem 0; overflow-x: auto; }}
svg {{ max-width: 100%; min-width: 34rem; height: auto; }} /* narrower pictures are illegible */
figcaption {{ color: var(--faint); font-size: .9rem; }}
</style></head><body>
<h1>{title}</h1>
<p class="lead">{lead}</p>
{body}
</body></html>
"""


def write(path: Path, title: str, lead: str, *body: str) -> None:
    """Writes a page. `body` is HTML, `title` and `lead` are text."""
    filled = PAGE.format(
        title=html.escape(title), lead=html.escape(lead), body="\n".join(filter(None, body))
    )
    path.write_text(filled, encoding="utf-8")


def facts(rows: dict[str, str]) -> str:
    """Returns a table of names and values."""
    return f"<table>{''.join(_row('td', row) for row in rows.items())}</table>"


def numbers(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    """Returns a table with a head, and with numbers in all columns but the first."""
    body = "".join(_row("td", row) for row in rows)
    return f'<figure><table class="numbers">{_row("th", head)}{body}</table></figure>'


def _row(cell: str, texts: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(text)}</{cell}>' for text in texts)}</tr>"


def figure(title: str, picture: str, caption: str = "") -> str:
    """Returns a section with a picture, which is HTML, and a caption."""
    caption = caption and f"<figcaption>{html.escape(caption)}</figcaption>"
    return f"<h2>{html.escape(title)}</h2><figure>{picture}{caption}</figure>"


def plot(draw: Callable[[Axes], None], height: float = 3.2) -> str:
    """Draws a plot of 8 by `height` inches as SVG."""
    with mpl.rc_context(dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), INK)):
        drawn, axes = plt.subplots(figsize=(8, height))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=LINE, linewidth=0.8)
        axes.set_axisbelow(True)
        draw(axes)
        axes.tick_params(which="both", color=INK, labelcolor=INK)
        drawn.tight_layout()
    text = io.StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(drawn)
    svg = text.getvalue()
    for stand_in, name in THEME.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return svg[svg.index("<svg") :]
