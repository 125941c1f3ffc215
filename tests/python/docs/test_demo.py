"""The pictures in the report of `make demo` follow the reader's theme."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tests.python import ROOT


def test_report_has_the_colors_of_its_theme(tmp_path: Path) -> None:
    write = runpy.run_path(str(ROOT / "docs" / "demo" / "report.py"))["write"]
    page = tmp_path / "report.html"
    write(page, facts={"a": "1 < 2"}, losses=[2, 1, 0.5], resumed_at=1, layouts={"x": "", "y": ""})
    text = page.read_text(encoding="utf-8")
    assert "<td>1 &lt; 2</td>" in text
    curve = text[text.index("<svg") : text.index("</svg>")]
    assert re.findall(r"#[0-9a-f]{3,6}\b", curve) == []
    assert set(re.findall(r"var\((--\w+)\)", curve)) == {"--text", "--line", "--curve", "--stop"}
    light, dark = (re.findall(r"(--\w+):", part) for part in text.split("@media")[:2])
    assert light == dark
