"""The blocks of the guide run in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(blocks) == len(re.findall(r"^```py", text, re.MULTILINE)) > 10
    for block in blocks:
        above = text.count("\n", 0, block.start(1))
        code = "\n" * above + block.group(1)  # so that a traceback names the line of the page
        exec(compile(code, "docs/guide.md", "exec"), names)
