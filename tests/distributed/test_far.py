"""Processes read the same files of a server in the same versions, or say which differ."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.distributed.far_player import BATCH, FILES, ROWS
from tests.distributed.job import Job
from tests.python.webserver import Hub, WebServer, web_server

WEIGHTS = 1_000_000
LATE = 240  # seconds; far more than the job takes


def files() -> dict[str, bytes]:
    """Parquet files of some records each."""
    found = {}
    for number in range(FILES):
        out = io.BytesIO()
        pq.write_table(pa.table({"x": np.arange(number * ROWS, (number + 1) * ROWS)}), out)
        found[f"{number:03}.parquet"] = out.getvalue()
    return found


def moving() -> Callable[[], dict[str, str]]:
    """Returns the commit of a branch, which moves between the questions of two processes."""
    commits, both = iter(["a" * 40, "b" * 40]), threading.Barrier(2)

    def answer() -> dict[str, str]:
        both.wait(LATE)
        return {"sha": next(commits)}

    return answer


def changing(server: WebServer) -> Callable[[], bool]:
    """Returns a function that changes the second half of the files."""

    def change() -> bool:
        server.etags |= {f"/0/{number:03}.parquet": "2" for number in range(FILES // 2, FILES)}
        return True

    return change


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Runs the job, and returns what each process tells."""
    folder: Path = tmp_path_factory.mktemp("far")
    with web_server() as server:
        hub = Hub(server)
        for sha in "ab":
            hub.commit(sha * 40, {f"{n:03}.parquet": files()[f"{n:03}.parquet"] for n in range(2)})
        server.documents["/api/datasets/org/name/revision/main"] = moving()
        model = Hub(server, "models")
        for sha in "ab":
            np.save(value := io.BytesIO(), np.float32(ord(sha)))
            model.commit(sha * 40, {"w.npy": value.getvalue()})
        server.documents["/api/models/org/name/revision/main"] = moving()
        for name, data in files().items():
            server.files[f"/0/{name}"] = server.files[f"/1/{name}"] = data
        server.etags["/1/001.parquet"] = "other"
        server.documents["/sent"] = lambda: server.sent
        np.save(weights := io.BytesIO(), np.arange(WEIGHTS))
        server.files["/weights.npy"] = weights.getvalue()
        server.documents["/change"] = changing(server)
        env = {"MESHFEED_URL": server.url, "HF_ENDPOINT": server.url}
        env["XDG_CACHE_HOME"] = str(folder)
        with Job("tests.distributed.far_player", [1, 1], folder, env=env) as job:
            job.wait(LATE)
        asked = [path for path in server.requests if "/revision/" in path]
        assert len(asked) == 4
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(2)]


def test_all_processes_read_one_commit(told: list[dict[str, Any]]) -> None:
    """The branch moves between their questions. The commit stays for as long as the job lasts."""
    first, second = told
    assert first["commit"] == second["commit"]
    assert first["model"] == second["model"]
    assert re.fullmatch(r"  from hf://datasets/org/name@(a{40}|b{40})", first["commit"])
    assert first["hub"] == second["hub"] == [2 * ROWS // BATCH, "", ""]


def test_another_version_is_named(told: list[dict[str, Any]]) -> None:
    """All processes name the file and both versions."""
    size = len(files()["001.parquet"])
    expected = (
        f'dataset differs in the bytes of file 1 (001.parquet: {size} bytes, ETag "1" and '
        f'{size} bytes, ETag "other"), between process 0 and process 1; '
    )
    for each in told:
        batches, kind, text = each["versions"]
        assert (batches, kind) == (0, "IncompatibleError")
        assert expected in text


def test_another_file_is_named(told: list[dict[str, Any]]) -> None:
    expected = "the number of the files: 3 and 4, and only one has 003.parquet, between process 0"
    for each in told:
        assert each["files"][:2] == [0, "IncompatibleError"]
        assert expected in each["files"][2]


def test_weights_are_fetched_once(told: list[dict[str, Any]]) -> None:
    """Each process fetches the bytes of its shards."""
    half = WEIGHTS // 2
    assert [each["weights"] for each in told] == [
        [half * (half - 1) // 2],
        [half * (half + WEIGHTS - 1) // 2],
    ]
    assert all(8 * WEIGHTS < each["sent"] < 8 * WEIGHTS + 2 * 2**17 for each in told)


def test_a_change_ends_the_job(told: list[dict[str, Any]]) -> None:
    """Each process raises the error of the file that it reads, or the one of the other process."""
    batches, kinds, texts = zip(*(each["changed"] for each in told), strict=True)
    assert max(batches) == FILES // 2 * ROWS // BATCH
    assert "DataLossError" in kinds
    assert set(kinds) <= {"DataLossError", "PeerError"}
    changed = r'has changed since it was opened: it had ETag "1", and has ETag "2"'
    assert all(re.search(f"/0/012.parquet: the file {changed}", text) for text in texts)
