"""The demo of a language model: it resumes exactly, reports it, and fails if a byte differs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.python import ROOT
from tests.python.docs import whole_demo


@pytest.mark.deep
def test_the_whole_demo(tmp_path: Path) -> None:
    page = whole_demo.run(
        "demo-lm/lm.py",
        tmp_path / "out",
        (
            r"process 1 is killed by SIGKILL after step 11\d",
            r"steps 1 to 160: [\d,]+ blocks on devices have the bytes of an undisturbed run",
            r"steps 101 to 11\d came twice, with the same bytes",
            r"Loss of prose +\d\.\d\d → \d\.\d\d\n",
            r"Mixture +at most [01]\.\d\d rows off its shares",
        ),
    )
    assert re.findall(r'(?:src|href)="(?!#)', page) == []  # it needs no network
    assert page.count("<svg") == 5


def test_other_bytes_and_missing_parts_are_noticed() -> None:
    """Two processes hold row 0, and rows 1 and 2, each cut along the sequence."""
    module = runpy.run_path(str(ROOT / "docs" / "drill" / "blocks.py"))
    digest, compare = module["digest"], module["compare"]

    def blocks(batch: dict[str, np.ndarray]) -> list[tuple[str, list[list[int]], str]]:
        return [
            (name, [rows, columns], digest(array[slice(*rows), slice(*columns)]))
            for name, array in batch.items()
            for rows in ([0, 1], [1, 3])
            for columns in ([0, 2], [2, 4])
        ]

    tokens = np.arange(12).reshape(3, 4)
    batch = {"tokens": tokens, "labels": tokens + 1}
    assert compare(7, batch, blocks(batch)) == 8
    other = batch | {"tokens": np.where(tokens == 11, 0, tokens)}
    message = re.escape("step 7: tokens[[1, 3], [2, 4]] differs from an undisturbed run")
    with pytest.raises(SystemExit, match=message):
        compare(7, batch, blocks(other))
    with pytest.raises(SystemExit, match="step 7: no device got 4 elements of labels"):
        compare(7, batch, blocks(batch)[:-1])
