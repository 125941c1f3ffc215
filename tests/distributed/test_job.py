"""A job ends whatever its processes do, and shows their output."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.distributed.job import ROOT, Job, JobError

HANG = 60  # seconds after which something that ends at once counts as hanging


def job(how: str, folder: Path) -> Job:
    env = {"MESHFEED_MISBEHAVE": how}
    return Job("tests.distributed.misbehave", [1, 1], folder, env=env)


def test_a_failure_shows_all_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.distributed.job.GRACE", 1.0)
    with pytest.raises(JobError) as failed, job("raise", tmp_path) as started:
        started.wait(HANG)
    text = str(failed.value)
    assert text.startswith("the processes ended with [1, None], expected [0, 0]")
    assert "---- process 0 of tests.distributed.misbehave\nthis is process 0\nTraceback" in text
    assert "RuntimeError: as asked" in text
    assert text.endswith("this is process 1\n")
    assert [process.returncode for process in started.processes] == [1, -9]


def test_a_hang_is_ended(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"ended with \[None, None\]"):
        with job("hang", tmp_path) as started:
            started.wait(0.1)
    assert [process.returncode for process in started.processes] == [-9, -9]


def test_a_killed_process_is_expected(tmp_path: Path) -> None:
    with job("hang", tmp_path) as started:
        started.kill(0)
        started.kill(1)
        started.wait(HANG, expect=[-9, -9])


def test_no_orphans(tmp_path: Path) -> None:
    """The children of a process end with the job, also if the process ended before."""
    with job("orphan", tmp_path) as started:
        started.wait(HANG)
    gone(int((tmp_path / "orphan").read_text()))


def test_the_job_dies_with_its_test_run(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from tests.distributed.test_job import job
with job("hang", Path({str(tmp_path)!r})) as started:
    print("started", flush=True)
    started.wait(1000)
"""
    run = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == b"started\n"
        pids = [int(appears(tmp_path / f"pid-{rank}")) for rank in range(2)]
    finally:
        run.kill()
        run.communicate()
    for pid in pids:
        gone(pid)


def appears(path: Path) -> str:
    """Waits until a file has a text."""
    late = time.monotonic() + HANG
    while not path.exists() or not path.read_text():
        assert time.monotonic() < late, f"{path} does not appear"
        time.sleep(0.01)
    return path.read_text()


def gone(pid: int) -> None:
    """Waits until a process has ended; a zombie has ended."""
    late = time.monotonic() + HANG
    while _state(pid) not in ("Z", ""):
        assert time.monotonic() < late, f"process {pid} is still running"
        time.sleep(0.01)


def _state(pid: int) -> str:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return ""
