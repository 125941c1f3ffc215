"""What a process does before its first batch reaches the others, by name."""

from __future__ import annotations

from pathlib import Path

from tests.distributed.job import Job
from tests.python.players import ALIKE, DIFFER

HANG = 300


def test_a_program_that_ends_without_a_loader(tmp_path: Path) -> None:
    """The others do not wait for `agree_timeout`."""
    env = {"MESHFEED_EARLY": "fails"}
    with Job("tests.distributed.early_player", [1, 1], tmp_path, env=env) as job:
        assert job.processes[0].wait(HANG) == 0, job.logs()
        mine, theirs = job.log(0), job.log(1)
    error = next(line for line in theirs.splitlines() if "NotFoundError" in line)
    ended = f"process 1 has ended: {error.split(': ', 1)[1]}\n"
    assert f"PeerError 1: mf.Loader: {ended}" in mine
    assert f"check 1: mf.check_replicas: in call 1 with name='arrays', {ended}" in mine


def test_an_option_of_jax(tmp_path: Path) -> None:
    """Before the first step, which would end in a crash of the transport."""
    with Job(
        "tests.distributed.early_player", [1, 1], tmp_path, env={"MESHFEED_EARLY": "x64"}
    ) as job:
        job.wait(HANG)
        logs = [job.log(0), job.log(1)]
    text = DIFFER.replace("'train'", "0 of processes 0-1")
    text += f"jax_enable_x64 is False on process 0, True on process 1{ALIKE}"
    assert [text in log for log in logs] == [True, True], logs
