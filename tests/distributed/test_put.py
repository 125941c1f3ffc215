"""`mf.put` and `mf.place_batches` in four real processes with a backend without collectives."""

from __future__ import annotations

import os
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.job import Job

HANG = 300
Got = list[dict[str, Any]]


@pytest.fixture(scope="module")
def got(tmp_path_factory: pytest.TempPathFactory) -> Got:
    """Returns what every process found."""
    return played([2, 2, 2, 2], tmp_path_factory.mktemp("put"))


def played(devices: list[int], folder: Path) -> Got:
    """Runs a job, and returns what every process found."""
    seed = os.environ.get("MESHFEED_SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"MESHFEED_SEED={seed}")
    with Job("tests.distributed.put_player", devices, folder, env={"MESHFEED_SEED": seed}) as job:
        job.wait(HANG)
    files = [folder / f"got-{p}.pickle" for p in range(len(devices))]
    return [pickle.loads(file.read_bytes()) for file in files]


@pytest.mark.deep
@pytest.mark.parametrize("devices", [[4, 4], [3, 5], [1, 1, 6], [1] * 8], ids=str)
def test_random_arrays_of_other_jobs(devices: list[int], tmp_path: Path) -> None:
    """Also of processes with different numbers of devices."""
    assert [each["wrong"] for each in played(devices, tmp_path)] == [[]] * len(devices)


def test_random_arrays(got: Got) -> None:
    assert [each["wrong"] for each in got] == [[]] * 4


def test_the_number_of_rows_follows_from_what_they_are(got: Got) -> None:
    assert [each["ways"] for each in got] == [[(8, 2), (32, 2), (8, 2)]] * 4


def test_streams_of_each_process(got: Got) -> None:
    assert [each["streamed"] for each in got] == [["8 arrays"]] * 4


def test_jax_arrays(got: Got) -> None:
    for each in got:
        assert each["arrays"] == {
            "one": "",
            "local": "",
            "outside": "",
            "again": True,
            "again local": True,
            "moved": "mf.put: the array is a jax.Array on devices of several processes; reshard "
            "it in a jitted function with out_shardings, which all processes call",
            "own keys": 2,
            "keys": "mf.put: the array holds PRNG keys, which cannot go to devices of several "
            "processes; give jax.random.key_data(keys), and use jax.random.wrap_key_data in the "
            "program",
        }


WHOLE = (
    "so no process has rows of its own; read the same batch in every process and give "
    'rows="all", or cut dimension 0 by an axis whose devices are in several processes'
)
EACH = "process 0 gives {0}, process 1 gives {0}, process 2 gives {0}, process 3 gives {0}"
BOTH = "processes 0 and 2 give the same {0}, processes 1 and 3 give the same {0}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all whole", f"every process holds all rows of array 'x', {WHOLE}"),
        ("columns", f"every process holds all rows of the array, {WHOLE}"),
        (
            "uneven",
            "array 'x' has 3 rows in process PROCESS, whose devices hold 2 of the 8 equal parts of "
            "its rows, but 3 rows do not divide into 2 parts; "
            f"for 8 in all, {EACH.format(2)}; for 16 in all, {EACH.format(4)}",
        ),
        (
            "shared",
            "array 'x' has 3 rows in process PROCESS, whose devices hold 2 of the 4 equal parts of "
            "its rows, but 3 rows do not divide into 2 parts; "
            f"for 4 in all, {BOTH.format(2)}; for 8 in all, {BOTH.format(4)}",
        ),
        (
            "not cut",
            "array 'y' has 4 local rows, as many as 'x', but its spec does not cut rows over "
            "processes: every process must have all 4 rows of 'y', and only its own of 'x'; name "
            "the same axes for dimension 0 of both, or put this array by a call of its own with "
            'rows="all"',
        ),
        ("unknown axis", 'axis "z" of array "x" is not in Mesh(\'a\': 8); use "a"'),
        (
            "indivisible",
            'dimension 0 of array "x" of shape (3, 4) is split 8 ways by axis "a" (size 8), but '
            "3 % 8 = 3; the nearest sizes that divide: 8; or partition another dimension",
        ),
    ],
)
def test_wrong_rows(got: Got, name: str, text: str) -> None:
    for process, each in enumerate(got):
        assert each["errors"][name] == f"mf.put: {text}".replace("PROCESS", str(process))


def test_a_process_without_a_device_does_not_know_the_number_of_rows(got: Got) -> None:
    assert [each["errors"]["outside"] for each in got] == [""] * 3 + [
        "mf.put: process 3 has no device in the mesh, so its rows of the array do not tell how "
        'many there are in all; rows="all" places an array that every process has whole'
    ]


def test_shared_rows_are_noticed_once(got: Got) -> None:
    """Nothing is logged if no process has the rows of another one, or if all are in one."""
    notice = (
        "these processes hold the same rows of array 'x': 0 and 2; 1 and 3, and must give equal "
        "rows in the same order; JAX does not compare them, mf.check_replicas does"
    )
    notices = [notice, notice.replace("array 'x'", "the array")]
    assert [each["noticed"] for each in got] == [notices] * 4


def test_other_numbers_of_rows_are_found_by_a_comparison(got: Got) -> None:
    """A call cannot notice them, because it waits for no process."""
    assert [each["counts"] for each in got] == [
        "mf.check_replicas: the processes have different trees: array 'x' has the shape [8, 4] on "
        "processes 0, 1 and 2, [16, 4] on process 3; give every process the same tree, with the "
        "same shardings"
    ] * 4


def test_uneven_iterables_are_logged(got: Got) -> None:
    """The process with fewer batches is named, and the counts when all have ended their loops."""
    title = r"loader 'mf.place_batches in put_player.py, line \d+, loop 1': "
    left = f"{title}mf.Loader: process 3 has closed the loader after 2 batches, and this process "
    left += "takes another; end the loops of all processes at the same batch"
    counts = f"{title}processes 0, 1 and 2 have taken 3 batches, and process 3 has taken 2 batches"
    for process, each in enumerate(got):
        found = [text for text in each["uneven"] if not re.match(counts, text)]
        assert len(found) == (process < 3)
        assert all(re.fullmatch(left, text) for text in found)
    assert any(re.match(counts, text) for each in got for text in each["uneven"])
