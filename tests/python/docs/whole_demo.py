"""Runs a whole demo, and checks what it prints and its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.python import ROOT

HANG = 1500  # seconds; on two cores a demo takes about 90


def run(program: str, folder: Path, prints: Sequence[str]) -> str:
    """Runs a program of docs, which has to print the patterns. Returns its page."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "docs" / program), "--out", str(folder)]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in prints:
        assert re.search(text, done.stdout), done.stdout
    return (folder / "report.html").read_text(encoding="utf-8")
