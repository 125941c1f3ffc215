"""Any process of a job reports on all of them, and names the late process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.distributed.job import Job
from tests.distributed.report_player import STEPS

HANG = 300

Got = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def got(tmp_path_factory: pytest.TempPathFactory) -> Got:
    """The reports that every process saw."""
    folder = tmp_path_factory.mktemp("report")
    with Job("tests.distributed.report_player", [1] * 3, folder) as job:
        job.wait(HANG)
    return [pickle.loads((folder / f"report-{p}.pickle").read_bytes()) for p in range(3)]


def test_late_process(got: Got) -> None:
    """The others wait for process 1 before their batches, and all of them say so."""
    for report in (each["late"] for each in got):
        assert (report["bound"], report["process"], report["cause"]) == ("process", 1, "step")
        assert report["sentences"][0].startswith("Process 1 is late: ")
        assert [row["process"] for row in report["processes"]] == [0, 1, 2]
        assert [row["bound"] for row in report["processes"]] == ["process", "step", "process"]
        assert all(row["batches"] >= STEPS - 2 for row in report["processes"])
        assert report["silent"] == []


def test_own_measurements_are_new(got: Got) -> None:
    for p, each in enumerate(got):
        ages = [row["age_ns"] for row in each["late"]["processes"]]
        assert [age == 0 for age in ages] == [q == p for q in range(3)]


def test_no_late_process(got: Got) -> None:
    assert all(each["alike"]["process"] is None for each in got)


def test_silent_processes(got: Got) -> None:
    """The call does not wait for processes that have published nothing."""
    for p, each in enumerate(got):
        assert each["silent"]["silent"] == [q for q in range(3) if q != p]
        assert each["silent"]["bound"] == "unknown"
    last = got[0]["silent"]["sentences"][-1]
    assert last == "Processes 1 and 2 have not published any measurements."
