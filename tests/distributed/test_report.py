"""Any process of a job reports on all of them, and names the late process."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.distributed.job import Job

HANG = 300

Got = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def got(tmp_path_factory: pytest.TempPathFactory) -> Got:
    """The reports that every process saw."""
    folder = tmp_path_factory.mktemp("report")
    with Job("tests.distributed.report_player", [1] * 3, folder) as job:
        job.wait(HANG)
    return [pickle.loads((folder / f"report-{p}.pickle").read_bytes()) for p in range(3)]


TAIL = "Look for work that only its program does, such as printing or saving, or for a slower "
TAIL += "machine; its input is not late."
LATE_STEP = [
    "Process 1 is late: in 11 batches the loop waited for data for 2.4 % of the time: 1.0 ms of "
    "42 ms a batch.",
    "Its step takes 41 ms a batch, the step of the others 12 ms; without the difference the job "
    "would be 3.2 times as fast.",
    TAIL,
]
LATE_INPUT = [
    "Process 1 is late: in 11 batches the loop waited for data for 71 % of the time: 30 ms of "
    "42 ms a batch.",
    "Reading the files bounds it, with 30 ms a batch; without it the loop would be 3.5 times as "
    "fast. The other processes wait for it.",
    "Copy the files to a faster disk, such as one of this machine: the storage delivers no more.",
]


@pytest.mark.parametrize(
    ("scene", "cause", "action", "sentences", "bounds"),
    [
        ("late step", "step", "compare-program", LATE_STEP, ["process", "step", "process"]),
        ("late input", "storage", "move-files", LATE_INPUT, ["step", "storage", "step"]),
    ],
)
def test_late_process(
    got: Got, scene: str, cause: str, action: str, sentences: list[str], bounds: list[str]
) -> None:
    """All processes name process 1, with the same words."""
    for report in (each[scene] for each in got):
        assert (report["bound"], report["process"], report["cause"]) == ("process", 1, cause)
        assert (report["action"], report["sentences"]) == (action, sentences)
        assert [row["process"] for row in report["processes"]] == [0, 1, 2]
        assert [row["bound"] for row in report["processes"]] == bounds
        assert report["silent"] == []


def test_a_slow_program(got: Got) -> None:
    """Process 1 works alone before its collective, and the others wait inside of theirs."""
    for report in (each["program"] for each in got):
        assert (report["bound"], report["process"], report["cause"]) == ("process", 1, "step")
        assert report["action"] == "compare-program"
        first, second, third = report["sentences"]
        assert first.startswith("Process 1 is late: ")
        assert second.startswith("The devices of this process have no work for "), report
        assert third == TAIL
        one, late, two = report["processes"]
        assert late["idle_ns"] > max(one["idle_ns"], two["idle_ns"])


def test_reports_fit_their_schema(got: Got) -> None:
    path = Path(__file__).parents[2] / "core/diagnosis/document/diagnosis.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for report in (report for each in got for report in each.values()):
        validator.validate(report)


def test_own_measurements_are_new(got: Got) -> None:
    for p, each in enumerate(got):
        ages = [row["age_ns"] for row in each["late step"]["processes"]]
        assert [age == 0 for age in ages] == [q == p for q in range(3)]


def test_no_late_process(got: Got) -> None:
    for report in (each["alike"] for each in got):
        assert (report["bound"], report["process"], report["action"]) == ("step", None, "nothing")
        assert report["sentences"][3].startswith("Whether the processes wait for the program ")


def test_silent_processes(got: Got) -> None:
    """The call does not wait for processes that have published nothing."""
    for p, each in enumerate(got):
        assert each["silent"]["silent"] == [q for q in range(3) if q != p]
        assert each["silent"]["bound"] == "unknown"
    last = got[0]["silent"]["sentences"][-1]
    assert last == "Processes 1 and 2 have not published any measurements."
