"""The guide for users of other loaders runs their programs too, where they are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.python import ROOT, loaders

GUIDE = ROOT / "docs/guides/coming_from.py"
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
    printed = loaders.run(GUIDE, cwd=tmp_path, timeout=HANG)
    for name, version, _ in ROW.findall(GUIDE.read_text()):
        assert f"{name} {version}\n" in printed
    assert re.findall("^skipped: (.+) is not installed", printed, re.MULTILINE) in (
        ["torch"],  # which is 4 GB
        [],
    )
