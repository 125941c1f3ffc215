"""Real processes are preempted, killed and joined by others: the batches continue exactly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import meshfeed as mf
from docs.drill.leftovers import in_shared_memory, left_since
from tests.distributed import data
from tests.distributed.job import ROOT, Job

HANG = 300  # seconds; a job takes ten

Batch = tuple[int, int, list[int]]  # epoch, position, labels
Sizes = tuple[list[int], list[int], list[int]]  # devices by process, of three jobs


def job(
    folder: Path,
    devices: list[int],
    what: str,
    steps: int = 0,
    state: Any = None,
    cache: Any = None,
) -> Job:
    folder.mkdir()
    data.write(folder)
    if cache:
        data.write_compressed(folder)
    orders = {"what": what, "steps": steps, "state": state and str(state)}
    orders["cache"] = cache and str(cache)
    (folder / "orders.json").write_text(json.dumps(orders))
    return Job("tests.distributed.elastic_player", devices, folder)


def wait_for(job: Job, ranks: range) -> None:
    """Waits until processes have reached the step that they report."""
    late = time.monotonic() + HANG
    while not all((job.folder / f"ran-{rank}").exists() for rank in ranks):
        assert time.monotonic() < late, job.logs()
        assert not any(process.poll() for process in job.processes), job.logs()
        time.sleep(0.01)


def read(folder: Path) -> list[Batch]:
    """Assembles the batches from the logs of all processes."""
    whole: dict[tuple[int, int], dict[int, list[int]]] = {}
    for log in folder.glob("log-*.jsonl"):
        for text in log.read_text().splitlines():
            line = json.loads(text)
            rows = whole.setdefault((line["epoch"], line["position"]), {})
            for start, labels in line["rows"].items():
                assert rows.setdefault(int(start), labels) == labels
    return [
        (epoch, position, [label for start in sorted(rows) for label in rows[start]])
        for (epoch, position), rows in sorted(whole.items())
    ]


def undisturbed(folder: Path, steps: int) -> list[Batch]:
    """Returns the batches of an undisturbed run, from the data."""
    labels, out = data.fields()["label"], []
    options: dict[str, Any] = {"batch_size": data.BATCH, "shuffle": True, "seed": 5}
    with mf.open(str(folder / "*.arrow")) as ds, mf.Loader(ds, **options) as loader:
        for step in range(steps):
            epoch, row = divmod(step, data.RECORDS // data.BATCH)
            position = row * data.BATCH
            out.append((epoch, position, labels[loader.records(epoch, position)].tolist()))
    return out


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """Fails a test that leaves shared memory, or a scratch file in a job's folder."""
    before = in_shared_memory()
    yield
    assert [*left_since(before), *map(str, tmp_path.glob("*/.*"))] == []


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(([2, 2], [2], [1] * 3), id="2, 1 and 3"),
        pytest.param(([2] * 4, [2, 2], [1] * 8), id="4, 2 and 8", marks=pytest.mark.deep),
    ],
)
def test_some_are_preempted_fewer_go_on_then_more(sizes: Sizes, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "fewer", "more"))
    with job(first, sizes[0], "preempted") as preempted:
        wait_for(preempted, range(len(sizes[0])))
        preempted.processes[1].send_signal(signal.SIGTERM)
        preempted.wait(HANG)
    with job(second, sizes[1], "run", 4, first / "state.json") as fewer:
        fewer.wait(HANG)
    with job(third, sizes[2], "run", 4, second / "state.json") as more:
        more.wait(HANG)
    got = [read(folder) for folder in (first, second, third)]
    assert [len(batches) for batches in got[1:]] == [4, 4]
    assert [batch for batches in got for batch in batches] == undisturbed(first, len(got[0]) + 8)


@pytest.mark.deep
def test_one_is_killed_and_two_go_on(tmp_path: Path) -> None:
    first, second = tmp_path / "four", tmp_path / "two"
    with job(first, [2, 2, 2, 2], "killed") as four:
        wait_for(four, range(4))
        four.kill(2)
        aborted = -signal.SIGABRT  # JAX aborts the others
        four.wait(HANG, expect=[aborted, aborted, -signal.SIGKILL, aborted])
    state = json.loads((first / "state.json").read_text())
    assert (state["epoch"], state["position"]) == (1, data.BATCH)  # of step 4; 6 were run
    with job(second, [2, 2], "run", 6, first / "state.json") as two:
        two.wait(HANG)
    assert read(first) == undisturbed(first, 6)
    assert read(second) == undisturbed(first, 10)[4:]


@pytest.mark.deep
def test_one_is_killed_while_it_decodes(tmp_path: Path) -> None:
    """The others end, and a job over the same cache gets the rows of an undisturbed run."""
    first, second, cache = tmp_path / "three", tmp_path / "two", tmp_path / "cache"
    with job(first, [1] * 3, "decoding", 100_000, cache=cache) as three:
        late = time.monotonic() + HANG
        while not any(cache.rglob("*.scratch")):
            assert time.monotonic() < late, three.logs()
            assert not any(process.poll() for process in three.processes), three.logs()
        three.kill(2)
        aborted = -signal.SIGABRT  # JAX aborts the others
        three.wait(HANG, expect=[aborted, aborted, -signal.SIGKILL])
    logs = [log.read_text().splitlines() for log in first.glob("log-*.jsonl")]
    whole = undisturbed(first, max(7, *map(len, logs)))
    for line in (json.loads(text) for lines in logs for text in lines):
        labels = whole[line["epoch"] * 3 + line["position"] // data.BATCH][2]
        for start, rows in line["rows"].items():
            assert labels[int(start) : int(start) + len(rows)] == rows
    with job(second, [2, 2], "run", 7, cache=cache) as two:
        two.wait(HANG)
    assert read(second) == whole[:7]
    assert not any(cache.rglob("*.scratch"))


def test_survivors_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "four"
    with job(folder, [2, 2, 2, 2], "survive", 9) as four:
        wait_for(four, range(4))
        four.kill(3)
        for rank in (1, 2):
            assert four.processes[rank].wait(HANG) == 0, four.logs()
        assert four.processes[0].poll() is None, four.logs()
        four.kill(0)
    for rank in range(3):
        assert json.loads((folder / f"survived-{rank}").read_text()) == [0, 1, 2]
    assert read(folder) == undisturbed(folder, 9)
    for rank in range(3):  # six devices with eight rows each, from the fifth step on
        lines = (folder / f"log-{rank}.jsonl").read_text().splitlines()
        assert [len(json.loads(line)["rows"]) for line in lines] == [2] * 9
        assert {len(v) for line in lines[4:] for v in json.loads(line)["rows"].values()} == {8}


@pytest.mark.deep
def test_the_drill(tmp_path: Path) -> None:
    drill: list[str | Path] = [
        sys.executable,
        ROOT / "docs" / "drill" / "drill.py",
        "--out",
        tmp_path,
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(drill, env=env, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all batches match an undisturbed run" in done.stdout
    picture = ET.parse(tmp_path / "drill.svg")
    words = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "process 2 killed by SIGKILL" in words
