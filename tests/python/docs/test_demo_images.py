"""The demo of images: it continues exactly on other meshes, and reports it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT

DEMO = ROOT / "docs" / "demo-images" / "images.py"
HANG = 1500  # seconds; on two cores it takes about 60


@pytest.mark.deep
def test_the_whole_demo(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(DEMO), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in (
        r"480 JPEG files for training, 120 for the test",
        r"train on one device to step 70, then stop",
        r"steps 1 to 120: 2,460 blocks on devices have the bytes of an undisturbed run",
        r"Recognized in the test +\d+ of 120 pieces",
        r"Loss +\d\.\d\d → 0\.\d\d\n",
    ):
        assert re.search(text, done.stdout), done.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!#|data:)', page) == []  # it needs no network
    assert page.count("<svg") == 5
