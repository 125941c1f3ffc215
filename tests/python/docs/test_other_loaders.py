"""The guide for users of other loaders runs their programs too, where they are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT

GUIDE = ROOT / "docs/guides/coming_from.py"
LOADERS = ROOT / ".build/loaders"
PINS = {
    "make test": (ROOT / "pyproject.toml").read_text(),
    "make test-deep": (ROOT / "tools/loaders.txt").read_text(),
}
ROW = re.compile(r"^# \| (\w+) \| ([\d.]+) \| `(.+)` \|$", re.MULTILINE)
HANG = 600  # seconds: 20 times what the guide takes with all loaders of this test


def test_the_guide_states_the_versions_that_the_tests_install() -> None:
    stated = ROW.findall(GUIDE.read_text())
    assert [name for name, _, _ in stated] == ["grain", "datasets", "tensorflow", "datarax"]
    for name, version, suite in stated:
        assert re.search(rf"\b{name}(-cpu)?=={re.escape(version)}\b", PINS[suite])


@pytest.mark.deep
def test_the_programs_of_other_loaders_compute_the_same(tmp_path: Path) -> None:
    if not (LOADERS / ".ready").exists():
        pytest.skip("make loaders installs TensorFlow and Datarax")
    done = subprocess.run(
        [sys.executable, GUIDE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{LOADERS}{os.pathsep}{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, version, _ in ROW.findall(GUIDE.read_text()):
        assert f"{name} {version}\n" in done.stdout
    assert re.findall("^skipped: (.+) is not installed", done.stdout, re.MULTILINE) in (
        ["torch"],  # which is 4 GB
        [],
    )
