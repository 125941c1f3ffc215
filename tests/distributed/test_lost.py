"""A process of a job is lost, and the others name it instead of each other."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import meshfeed as mf
from tests.distributed.job import Job
from tests.distributed.lost_player import ODD, STEPS

HANG = 300
LEFT = f"loader 'train': process 2 has closed the loader after {STEPS + 1} batches"
MORE = f"meshfeed: {LEFT}, and this process takes another\nmeshfeed: process"
DIED = "loader 'train': process 2 does not answer since "


@pytest.mark.parametrize(
    ("how", "message"),
    [("dies", DIED), ("leaves", LEFT), ("exits", MORE)],
    ids=lambda each: each[:6],
)
def test_lost(how: str, message: str, tmp_path: Path) -> None:
    """It is killed, or leaves its loop or its program, while the others are in a step.

    They end if it has not taken the batch of that step.
    """
    with Job("tests.distributed.lost_player", [1] * 3, tmp_path, env={"MESHFEED_LOST": how}) as job:
        late = time.monotonic() + HANG
        others = [p for p in range(3) if p != ODD]
        while not all(re.search(message, job.log(p)) for p in others):
            assert time.monotonic() < late, job.logs()
            time.sleep(0.05)
        logs = "".join(map(job.log, others))
        if how == "exits":
            ended = [job.processes[p].wait(HANG) for p in others]
            assert ended == [mf.EXIT_PEER_ERROR] * 2
    assert not re.search(r"process [01] does not answer|process [01] has closed", logs)
