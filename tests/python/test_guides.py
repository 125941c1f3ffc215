"""The guide to many processes runs, and its output is the committed one."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "distributed.py"
HANG = 600  # seconds; it takes about 20


def test_the_guide_to_many_processes(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "docs" / "render.py"), str(GUIDE), "--out", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for suffix in (".ipynb", ".html"):
        new = (tmp_path / GUIDE.name).with_suffix(suffix).read_text()
        old = GUIDE.with_suffix(suffix).read_text()
        changes = difflib.unified_diff(old.splitlines(), new.splitlines(), "committed", "now", n=0)
        assert new == old, "\n".join(["make docs, and read the changes", *changes])


def test_the_notebook_is_one() -> None:
    notebook = json.loads(GUIDE.with_suffix(".ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    kinds = {cell["cell_type"] for cell in notebook["cells"]}
    assert kinds == {"markdown", "code"}
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    drawn = [out["data"]["image/svg+xml"] for out in outputs if "data" in out]
    assert len(drawn) >= 5
    assert all(svg.startswith("<svg ") for svg in drawn)
