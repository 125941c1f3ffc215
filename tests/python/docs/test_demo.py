"""The pictures in the reports of the demos follow the reader's theme."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from tests.python import ROOT


def test_report_has_the_colors_of_its_theme(tmp_path: Path) -> None:
    page = runpy.run_path(str(ROOT / "docs" / "demo" / "page.py"))
    colors = [page[name] for name in ("INK", "FAINT", "LINE", "CURVE", "SECOND", "STOP")]

    def draw(axes: Any) -> None:
        for number, color in enumerate(colors):
            axes.plot([1, 2], [number, 0], color=color)
        axes.set(xlabel="step", yscale="symlog")

    report = tmp_path / "report.html"
    figure = page["figure"]("Loss", page["plot"](draw), "a < b")
    page["write"](report, "Title", "1 < 2", page["facts"]({"a": "1 < 2"}), figure)
    text = report.read_text(encoding="utf-8")
    assert "<td>1 &lt; 2</td>" in text
    assert "<figcaption>a &lt; b</figcaption>" in text
    curve = text[text.index("<svg") : text.index("</svg>")]
    assert re.findall(r"#[0-9a-f]{3,6}\b", curve) == []
    light, dark = (re.findall(r"(--\w+):", part) for part in text.split("@media")[:2])
    assert light == dark
    assert set(light) - {"--page"} == set(re.findall(r"var\((--\w+)\)", curve))
