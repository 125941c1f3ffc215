"""The demo of images: it continues exactly on other meshes, and reports it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.python.docs import whole_demo


@pytest.mark.deep
def test_the_whole_demo(tmp_path: Path) -> None:
    page = whole_demo.run(
        "demo-images/images.py",
        tmp_path / "out",
        (
            r"480 JPEG files for training, 120 for the test",
            r"train on one device to step 70, then stop",
            r"steps 1 to 120: 2,460 blocks on devices have the bytes of an undisturbed run",
            r"Recognized in the test +\d+ of 120 pieces",
            r"Loss +\d\.\d\d → 0\.\d\d\n",
        ),
    )
    assert re.findall(r'(?:src|href)="(?!#|data:)', page) == []  # it needs no network
    assert page.count("<svg") == 5
