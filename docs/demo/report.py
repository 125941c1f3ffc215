"""The demo's report: one HTML file with the layouts and the loss curve."""

from __future__ import annotations

import html
import io
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

mpl.use("Agg")

# matplotlib accepts no CSS variables. The plot uses these colors, which CSS variables then replace.
INK, LINE, CURVE, STOP = "#010101", "#020202", "#030303", "#040404"
THEME = {INK: "var(--text)", LINE: "var(--line)", CURVE: "var(--curve)", STOP: "var(--stop)"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>meshfeed demo: handwritten digits</title>
<style>
:root {{ color-scheme: light dark; --text: #1d2733; --page: #fff; --faint: #51606f;
        --line: #e4e9ee; --curve: #2f6fb0; --stop: #c2502e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e3e9ef; --page: #0f141a; --faint: #9aa7b4; --line: #2a333d;
          --curve: #7fb4ee; --stop: #f08a65; }}
}}
body {{ font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
       max-width: 56rem; margin: 2.5rem auto; padding: 0 1.25rem; }}
h1 {{ font-size: 1.7rem; margin-bottom: .2rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }}
.lead {{ color: var(--faint); margin-top: 0; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
td {{ padding: .3rem 1.6rem .3rem 0; border-bottom: 1px solid var(--line); }}
td:last-child {{ text-align: right; padding-right: 0; }}
figure {{ margin: 1rem 0; overflow-x: auto; }}
svg {{ max-width: 100%; min-width: 34rem; height: auto; }} /* narrower pictures are illegible */
figcaption {{ color: var(--faint); font-size: .9rem; }}
</style></head><body>
<h1>Handwritten digits on eight devices</h1>
<p class="lead">Trained on a {first} mesh, stopped in the middle of an epoch,
resumed on a {second} mesh.</p>
<table>{rows}</table>
<h2>Loss</h2>
<figure>{curve}<figcaption>The run was stopped and resumed at the vertical line. The global
batches continue exactly there, so the curve has no step.</figcaption></figure>
{layouts}
</body></html>
"""


def write(
    path: Path,
    *,
    facts: dict[str, str],
    losses: list[float],
    resumed_at: int,
    layouts: dict[str, str],
) -> None:
    """Write the report. `layouts` maps a mesh's name to the picture of its layout as SVG."""
    rows = "".join(
        f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in facts.items()
    )
    pictures = "".join(
        f"<h2>Layout on {html.escape(name)}</h2><figure>{svg}</figure>"
        for name, svg in layouts.items()
    )
    first, second = (html.escape(name) for name in layouts)
    page = PAGE.format(
        first=first, second=second, rows=rows, curve=_curve(losses, resumed_at), layouts=pictures
    )
    path.write_text(page, encoding="utf-8")


def _curve(losses: list[float], resumed_at: int) -> str:
    with mpl.rc_context(dict.fromkeys(("axes.edgecolor", "axes.labelcolor"), INK)):
        figure, axes = plt.subplots(figsize=(8, 3.2))
    axes.plot(range(1, len(losses) + 1), losses, color=CURVE, linewidth=1.4)
    axes.axvline(resumed_at + 0.5, color=STOP, linewidth=1, linestyle="--")
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", color=INK, labelcolor=INK)
    axes.grid(color=LINE, linewidth=0.8)
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    svg = text.getvalue()
    for stand_in, color in THEME.items():
        svg = svg.replace(stand_in, color)
    return svg[svg.index("<svg") :]
