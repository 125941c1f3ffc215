"""The README's program for several processes, run twice with one state by four processes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.distributed.job import Job
from tests.python.docs.test_readme import RECORDS, write_digits

HANG = 240  # seconds


def test_the_program_runs_and_goes_on(tmp_path: Path) -> None:
    write_digits(tmp_path / "data")
    for epochs in (1, 2):
        with Job("tests.distributed.printed", devices=[2, 2, 2, 2], folder=tmp_path) as job:
            job.wait(HANG)
        saved = json.loads((tmp_path / "run.state").read_text())
        assert (saved["epoch"], saved["position"]) == (epochs, 0)
        assert saved["records"] == sum(RECORDS)
        states = {(tmp_path / f"state-{rank}").read_text() for rank in range(4)}
        assert states == {str(saved)}
