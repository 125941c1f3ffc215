"""One process of a real job is wrong, late or broken, and all processes report it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import meshfeed as mf
from tests.distributed.job import Job
from tests.distributed.played import ODD, Kind, Played
from tests.python.jobs.corruptions import FOUND, LOADER_FAULTS, WAYS
from tests.python.players import ALIKE, DIFFER

HANG = 300

Got = list[dict[str, list[str]]]


@pytest.fixture
def got(run: Callable[[Kind], Played]) -> Got:
    """Returns what every process got, by scene. The interpreters exit with an open loader."""
    return run(ODD).read("got")


def heard(step: int, text: str) -> str:
    """Returns the text of process 2's failure in the others."""
    return f"mf.Loader: process 2, at epoch 0, step {step}: {text.removeprefix('mf.Loader: ')}"


def scene(got: Got, name: str) -> list[list[str]]:
    return [each[name] for each in got]


@pytest.mark.parametrize("name", ["alike", "interrupted"])
def test_alike(got: Got, name: str) -> None:
    """Processes 0 and 2 hold rows from 0 on, and 1 and 3 from 8 on, in both loaders."""
    rows = [["0", "16", "32", "48"], ["8", "24", "40", "56"]]
    assert scene(got, name) == [*rows, *rows]


def test_another_seed(got: Got) -> None:
    text = f"{DIFFER}seed is 4 on processes 0, 1 and 3, 5 on process 2{ALIKE}"
    assert scene(got, "another seed") == [["IncompatibleError Error ValueError", text]] * 4


def test_another_position(got: Got) -> None:
    text = f"{DIFFER}position is 32 on processes 0, 1 and 3, 48 on process 2{ALIKE}"
    error = ["IncompatibleError Error ValueError", text]
    rows = [["0", *error, "32"], ["8", *error, "40"]]
    assert scene(got, "another place") == [*rows, *rows]


def test_another_mesh(got: Got) -> None:
    """Processes agree again after a remesh, which gives each four rows of the batch."""
    text = scene(got, "another mesh")[0][2]
    assert text.startswith(
        f"{DIFFER}mesh.devices[0] is (process 0, device 0) on processes 0, 1 and 3, "
    )
    assert text.endswith(ALIKE)
    error = ["IncompatibleError Error ValueError", text]
    first = ["0", "8", "0", "8"]
    rows = [[first[p], *error, str(16 + 4 * p), str(32 + 4 * p)] for p in range(4)]
    assert scene(got, "another mesh") == rows


def test_missing(got: Got) -> None:
    text = (
        "mf.Loader: process 2 has not reached the next batch of loader 'train' within 5 s; every "
    )
    text += (
        "process of the mesh makes the same loaders, and takes their first batches, in the same "
    )
    text += "order; see its log, or raise agree_timeout="
    error = ["PeerError PeerError Error", text]
    assert scene(got, "missing") == [error, error, [], error]


def test_a_process_evaluates_alone(got: Got) -> None:
    """It waits for the others before its first batch, so no step mixes rows of both."""
    text = "mf.Loader: process 2 has begun a pass of one_epoch over loader 'train', and process 0 "
    text += "has not within 0.2 s; run the evaluation in every process, after the same batch; see "
    text += "the logs, or raise agree_timeout="
    for p, rows in enumerate([["0", "0", "0", "16"], ["8", "8", "8", "24"]] * 2):
        told = text if p == 2 else heard(2, text)
        assert got[p]["evaluates alone"] == [*rows, "PeerError PeerError Error", told]


def test_overflow(got: Got) -> None:
    kind, text = got[2]["overflow"][2:]
    assert kind == "OutOfRangeError Error IndexError"
    assert "record 34" in text
    for p, first in [(0, ["0", "16"]), (1, ["8", "24"]), (3, ["8", "24"])]:
        error = ["PeerError PeerError OutOfRangeError", heard(2, text)]
        assert got[p]["overflow"] == [*first, *error]


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("program", ["ZeroDivisionError", "the loss is nan"]),
        ("ctrl-c", ["KeyboardInterrupt", ""]),
    ],
)
def test_the_program_ends(got: Got, name: str, raised: list[str]) -> None:
    """The program gets its own exception, and the others an error in their next batch."""
    assert got[2][name] == ["0", "16", *raised]
    text = heard(2, ": ".join(raised).removesuffix(": "))
    for p, first in [(0, ["0", "16"]), (1, ["8", "24"]), (3, ["8", "24"])]:
        assert got[p][name] == [*first, "PeerError PeerError Error", text]


def test_damaged(got: Got) -> None:
    kind, text = got[2]["damaged"]
    assert kind == "DataLossError Error OSError"
    for p in (0, 1, 3):
        kind, theirs = got[p]["damaged"]
        assert kind == "PeerError PeerError DataLossError"
        assert theirs.startswith(heard(0, text))


def test_one_byte(got: Got) -> None:
    text = (
        "mf.Loader: array 'n', index [0:4], differs between processes 0 and 2 at epoch 0, step 2; "
    )
    text += "compare what these hosts read: meshfeed verify --hash"
    assert got[2]["one byte"] == ["0", "16", "DataLossError Error OSError", text]
    theirs = ["PeerError PeerError DataLossError", heard(2, text)]
    for p, first in [(0, ["0", "16"]), (1, ["8", "24"]), (3, ["8", "24"])]:
        assert got[p]["one byte"] == [*first, *theirs]


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way.__name__, marks=[] if way in LOADER_FAULTS else [pytest.mark.deep])
        for way in WAYS
    ],
)
def test_corrupted(got: Got, way: str) -> None:
    """Process 2 gets other bytes than process 0, and all processes stop."""
    kind, text = got[2][way]
    assert kind == "DataLossError Error OSError"
    found = FOUND.fullmatch(text)
    assert found, text
    assert int(found[2]) in (0, 1)
    for p in (0, 1, 3):
        theirs = ["PeerError PeerError DataLossError", heard(int(found[2]), text)]
        assert got[p][way] == theirs


def test_late(got: Got) -> None:
    line = r"loader 'train': this process has taken 2 batches and has waited for \d+ s: "
    line += r"process 2 has taken 1 and has waited for [\d.]+ s \(consumer\)"
    for p in (0, 1, 3):
        told, *rows = got[p]["late"]
        assert re.fullmatch(line, told)
        assert rows == [["32"], ["40"], [], ["40"]][p]
    assert got[2]["late"] == ["32"]


def test_a_program_that_is_stuck(tmp_path: Path) -> None:
    """A process that waits in a collective for a failed program is ended.

    Its error is one that no other process has. Neither has its loader in a `with` block, or gives
    `on_peer_error`.
    """
    with Job("tests.distributed.stuck_player", [1, 1], tmp_path) as job:
        assert job.processes[1].wait(HANG) == mf.EXIT_PEER_ERROR, job.logs()
        job.kill(0)
        log = job.log(1)
    message = "meshfeed: loader 'train': process 0, at epoch 0, step 1: mf.check_replicas: "
    message += "process 1 has not made call 1 with name='weights' within 0.5 s\n"
    message += "meshfeed: process 1 has not asked for a batch for 0.5 s and ends with status "
    message += "113 (on_peer_error='end')\n"
    assert message in log
    assert "Traceback" not in log  # JAX's own error would leave one
