"""The blocks of each page of the guide run in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.python import ROOT


@pytest.mark.parametrize(("page", "expected"), [("guide", 20), ("jobs", 2)])
def test_every_block_runs(
    page: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert len(blocks) == len(re.findall(r"^ *```py", text, re.MULTILINE)) >= expected
    for block in blocks:
        above = text.count("\n", 0, block.start(1))
        code = "\n" * above + block.group(1)  # so that a traceback names the line of the page
        exec(compile(code, f"docs/{page}.md", "exec"), names)


def test_the_certificate_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "jobs.md").read_text()
    monkeypatch.chdir(tmp_path)
    code = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    (expected,) = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(compile(code, "docs/jobs.md", "exec"), {})
    assert re.sub(r"dataset \w+", "dataset …", capsys.readouterr().out) == expected
