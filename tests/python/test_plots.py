"""Plots of benchmarks: what they show, and that it is legible in light and dark pages."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.python.simulated import Machine, swept


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_plot_of_batches(machine: Callable[..., Machine], tmp_path: Path) -> None:
    host = machine(3, 20)
    found = mf.benchmark(host.batches(), host.step, batches=4)
    drawing = found.plot(tmp_path / "times.svg")
    saved = (tmp_path / "times.svg").read_text()
    for svg in (saved, drawing.to_svg()):
        assert {"20.0 ms per batch, 400 rows/s", "waiting for the batch", "batch"} <= {*texts(svg)}
    assert str(drawing) == str(found)
    assert drawing._repr_html_() == drawing.to_svg() + found._repr_html_()


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colors: WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_a_plot_is_legible_in_both_schemes(machine: Callable[..., Machine], tmp_path: Path) -> None:
    """WCAG 2.2 asks for 4.5 between a text and its background (1.4.3), and 3 for lines (1.4.11)."""
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    host = machine(3, 20)
    found = mf.benchmark(host.batches(), host.step, batches=4)
    plots = [found.plot(tmp_path / "times.svg"), swept(machine).plot(tmp_path / "sweep.svg")]
    for svg in (plot.to_svg() for plot in plots):
        assert svg.startswith('<svg class="mf-plot" role="img"')
        style, body = svg.split("</style>", 1)
        light, dark = [
            dict(re.findall(r"(--mf-\w+):(#\w{6})", line)) for line in style.splitlines()[-2:]
        ]
        shown = set(re.findall(r"#[\da-f]{6}\b", body))
        for scheme in (light, dark):
            assert contrast(scheme["--mf-ink"], scheme["--mf-back"]) >= 4.5
            assert min(contrast(color, scheme["--mf-back"]) for color in shown) >= 3
        assert set(re.findall(r"<text[^>]* fill: ([^;\"]+)", body)) == {"var(--mf-ink)"}
    assert "var(" not in (tmp_path / "times.svg").read_text()


@pytest.mark.parametrize("suffix", ["png", "pdf", "PNG"])
def test_formats_of_plots(machine: Callable[..., Machine], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"sweep.{suffix}"
    swept(machine).plot(path)
    start = {"png": b"\x89PNG", "pdf": b"%PDF"}[suffix.lower()]
    assert path.read_bytes().startswith(start)


def test_a_plot_of_lines(machine: Callable[..., Machine], tmp_path: Path) -> None:
    words = texts(swept(machine).plot(str(tmp_path / "sweep.svg")).to_svg())
    assert {"rows=8", "rows=16", "devices", "rows/s", "failed: devices=2, rows=16"} <= {*words}
    assert {"1", "2", "4"} <= {*words}


def test_a_plot_of_bars(machine: Callable[..., Machine], tmp_path: Path) -> None:
    def make(mesh: dict[str, int]) -> Any:
        host = machine(1, 64 / mesh["data"])
        return ({"text": ["a"]} if mesh["data"] == 8 else batch for batch in host.batches())

    points = [{"mesh": {"data": 4, "model": 2}}, {"mesh": {"data": 2, "model": 2}}]
    table = mf.benchmark.sweep(make, points, batches=3)
    words = texts(table.plot(tmp_path / "sweep.svg").to_svg())
    assert {"data 4 x model 2", "data 2 x model 2", "8,000"} <= {*words}


def test_a_plot_of_batches_per_second(machine: Callable[..., Machine], tmp_path: Path) -> None:
    def make(n: int) -> Any:
        host = machine(n, 0)
        return ({"text": None} if n == 1 else batch for batch in host.batches())

    table = mf.benchmark.sweep(make, {"n": [1, 2]}, batches=3)
    assert "batches/s" in texts(table.plot(tmp_path / "sweep.svg").to_svg())


def test_matplotlib_is_not_installed(
    machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = mf.benchmark(machine(1, 1).batches(), batches=1)
    imported = builtins.__import__

    def without(name: str, *others: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError
        return imported(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(mf.UnsupportedError) as caught:
        found.plot("times.svg")
    assert str(caught.value) == (
        "Benchmark.plot: plots need matplotlib; pip install matplotlib; the table needs none"
    )


def test_a_path_without_a_format(machine: Callable[..., Machine]) -> None:
    found = mf.benchmark(machine(1, 1).batches(), batches=1)
    with pytest.raises(mf.InvalidArgumentError) as caught:
        found.plot("times.txt")
    assert str(caught.value) == (
        "Benchmark.plot: path='times.txt': expected a file name that ends in .svg, .png or .pdf"
    )
