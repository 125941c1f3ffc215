"""Plots of benchmarks. They need matplotlib, which only the functions import."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshfeed._io.arguments import cut, is_integer
from meshfeed._measure.tables import digits, label, point_name
from meshfeed.drawing import Drawing
from meshfeed.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    import os

    from meshfeed.benchmarking import Benchmark, Sweep, SweepPoint

# Colors of data have a contrast of 3 or more on both backgrounds, so both schemes share them.
_STEP, _WAIT = "#3b76af", "#c07a1a"
_LINES = ("#3b76af", "#c8553d", "#588b5a", "#8a5fa8", "#b8860b", "#4f9da6", "#7a7a7a", "#a0527d")
_DARK, _GRID, _BACKGROUND = "#3c4043", "#dadce0", "#ffffff"
# These colors have another value in the dark scheme. Drawings have the same background there.
_NAMED = {_DARK: "--mf-ink", _GRID: "--mf-grid", _BACKGROUND: "--mf-back"}
_THEMES = """<style>
.mf-plot{--mf-ink:#3c4043;--mf-grid:#dadce0;--mf-back:#ffffff}
@media (prefers-color-scheme:dark){.mf-plot{--mf-ink:#e3e9ef;--mf-grid:#333d49;--mf-back:#151b22}}
</style>"""
_FORMATS = ("svg", "png", "pdf")


class Plot(Drawing):
    """A plot. A notebook shows it above the table of its numbers."""

    def __init__(self, numbers: Benchmark | Sweep, svg: str) -> None:
        super().__init__(str(numbers), svg)
        self._numbers = numbers

    def _repr_html_(self) -> str:
        return self.to_svg() + self._numbers._repr_html_()


def of_batches(result: Benchmark, path: str | os.PathLike[str]) -> Plot:
    """Draws the time of every batch, and the part of it in which the loop waited."""
    figure = _figure("Benchmark.plot", path)
    axes = figure.add_subplot()
    waits = [1e3 * s for s in result.wait_seconds]
    rests = [max(0.0, 1e3 * s - w) for s, w in zip(result.seconds, waits, strict=True)]
    numbers = range(1, result.batches + 1)
    rest = "the step, and the rest of the loop" if result.first_step_ms is not None else "the loop"
    style = {"width": 1.0, "edgecolor": _BACKGROUND, "linewidth": 0.4}
    axes.bar(numbers, waits, color=_WAIT, label="waiting for the batch", **style)
    axes.bar(numbers, rests, color=_STEP, label=rest, bottom=waits, **style)
    text = f"mean {digits(result.mean_ms)} ms"
    axes.axhline(result.mean_ms, color=_DARK, linewidth=1, label=text)
    if result.step_ms is not None:
        text = f"the step alone, {digits(result.step_ms)} ms"
        axes.axhline(result.step_ms, color=_DARK, linewidth=1, linestyle=":", label=text)
    axes.set_xlim(0.5, result.batches + 0.5)
    axes.set_xlabel("batch")
    axes.set_ylabel("ms")
    axes.grid(visible=True, axis="y", color=_GRID, linewidth=0.6)
    rate = result.rows_per_second
    rows = "" if rate is None else f", {rate:,.0f} rows/s"
    return _finish(figure, axes, f"{digits(result.mean_ms)} ms per batch{rows}", path, result)


def of_sweep(sweep: Sweep, path: str | os.PathLike[str]) -> Plot:
    """Draws the rows per second of the points, as lines or as bars."""
    figure = _figure("Sweep.plot", path)
    axes = figure.add_subplot()
    known = [point for point in sweep.points if point.result is not None]
    by_rows = all(point.result and point.result.rows_per_second for point in known)
    rates = [_rates(point, by_rows=by_rows) for point in known]
    unit = "rows/s" if by_rows else "batches/s"
    first = next(iter(sweep.points[0].values))
    numbers = {point.values[first] for point in known if _number(point.values[first])}
    if len(numbers) > 1 and all(_number(point.values[first]) for point in known):
        _lines(axes, first, sorted(numbers), known, rates)
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(_short)
        axes.grid(visible=True, axis="y", color=_GRID, linewidth=0.6)
        title = f"{unit} by {first}; the bands hold half of the batches"
    else:
        figure.set_figheight(1.5 + 0.35 * len(known))
        _bars(axes, known, rates)
        axes.set_xlabel(unit)
        axes.xaxis.set_major_formatter(_short)
        axes.grid(visible=True, axis="x", color=_GRID, linewidth=0.6)
        title = f"{unit} by {', '.join(sweep.points[0].values)}"
    failed = [point_name(p.values) for p in sweep.points if p.result is None]
    if failed:
        title += f"\nfailed: {cut('; '.join(failed), 90)}"
    return _finish(figure, axes, title, path, sweep)


def _rates(point: SweepPoint, *, by_rows: bool) -> tuple[float, float, float]:
    """Returns the rate of a point, and the rates of the middle half of its batches."""
    result = point.result
    assert result is not None
    total = sum(result.seconds)
    rate = result.rows_per_second if by_rows else result.batches / total
    assert rate is not None
    per_batch = rate * total / result.batches  # rows, or 1
    fast, slow = result.spread_ms
    return rate, 1e3 * per_batch / slow, 1e3 * per_batch / fast


def _lines(
    axes: Any,
    first: str,
    numbers: Sequence[Any],
    points: Sequence[SweepPoint],
    rates: Sequence[tuple[float, float, float]],
) -> None:
    """Draws a line for every combination of the values beside the first one."""
    groups: dict[str, list[tuple[Any, tuple[float, float, float]]]] = {}
    for point, rate in zip(points, rates, strict=True):
        rest = {name: value for name, value in point.values.items() if name != first}
        groups.setdefault(point_name(rest), []).append((point.values[first], rate))
    for color, (name, group) in zip(_cycle(), groups.items(), strict=False):
        group.sort(key=lambda pair: pair[0])
        xs = [x for x, _ in group]
        low, high = [r[1] for _, r in group], [r[2] for _, r in group]
        axes.fill_between(xs, low, high, color=color, alpha=0.15, linewidth=0)
        ys = [r[0] for _, r in group]
        axes.plot(xs, ys, color=color, marker="o", markersize=5, label=name or None)
    if min(numbers) > 0 and max(numbers) / min(numbers) >= 4:
        axes.set_xscale("log", base=2)
    axes.set_xticks(numbers, [str(n) for n in numbers])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(first)


def _bars(
    axes: Any, points: Sequence[SweepPoint], rates: Sequence[tuple[float, float, float]]
) -> None:
    """Draws a bar for every point, the first one at the top."""
    positions = range(len(points))
    values = [rate for rate, _, _ in rates]
    axes.barh(positions, values, color=_STEP, height=0.7)
    for position, value in zip(positions, values, strict=True):
        axes.annotate(
            f"{value:,.0f}",
            (value, position),
            (4, 0),
            textcoords="offset points",
            va="center",
            color=_DARK,
            fontsize=9,
        )
    single = len(points[0].values) == 1
    names = [label(*p.values.values()) if single else point_name(p.values) for p in points]
    axes.set_yticks(positions, names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.15 * max(values))


def _cycle() -> Iterator[str]:
    while True:
        yield from _LINES


def _number(value: Any) -> bool:
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _short(x: float, _: int) -> str:
    """Writes a number on an axis.

    Examples:
        >>> [_short(x, 0) for x in (0, 0.5, 999, 120000, 2.5e6, 3e9)]
        ['0', '0.5', '999', '120k', '2.5M', '3G']
    """
    for power, unit in ((9, "G"), (6, "M"), (3, "k")):
        if x >= 10**power:
            return f"{x / 10**power:g}{unit}"
    return f"{x:g}"


def _figure(call: str, path: str | os.PathLike[str]) -> Any:
    """Makes an empty figure, which is in no list of pyplot's and needs no window.

    Raises:
        UnsupportedError: matplotlib is not installed.
        InvalidArgumentError: the suffix of the path is no format.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = "pip install matplotlib; the table needs none"
        raise UnsupportedError("plots need matplotlib", op=call, hint=hint) from None
    if Path(path).suffix.removeprefix(".").lower() not in _FORMATS:
        message = f"path={str(path)!r}: expected a file name that ends in .svg, .png or .pdf"
        raise InvalidArgumentError(message, op=call)
    return Figure(figsize=(7.2, 3.8), dpi=150, layout="constrained")


def _finish(
    figure: Any, axes: Any, title: str, path: str | os.PathLike[str], numbers: Benchmark | Sweep
) -> Plot:
    """Adds the title and the styles that all plots share, and saves the figure."""
    import matplotlib as mpl

    axes.set_title(title, loc="left", fontsize=10, color=_DARK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(_DARK)
    axes.set_axisbelow(True)
    axes.tick_params(color=_DARK, labelcolor=_DARK, labelsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(color=_DARK, fontsize=9)
    if axes.get_legend_handles_labels()[0]:
        legend = {"ncols": 2, "frameon": False, "fontsize": 9, "labelcolor": _DARK}
        figure.legend(loc="outside lower left", **legend)
    svg = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "meshfeed"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(path, format=Path(path).suffix.removeprefix(".").lower())
    return Plot(numbers, _themed(svg.getvalue(), title))


def _themed(document: str, title: str) -> str:
    """Makes a plot follow the light or dark preference of the viewer, as drawings do."""
    attributes, body = document[document.index("<svg") + 4 :].split(">", 1)
    for color, name in _NAMED.items():
        body = body.replace(color, f"var({name})")
    fit = 'class="mf-plot" role="img" style="max-width:100%;height:auto"'
    return f"<svg {fit}{attributes}><title>{html.escape(title)}</title>{_THEMES}{body}"
