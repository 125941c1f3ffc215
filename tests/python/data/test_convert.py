"""`meshfeed convert`: what loaders deliver, processes that are killed, and the recipes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meshfeed as mf
from tests.python import ROOT

pytestmark = pytest.mark.plain

RECIPES = ROOT / "docs/recipes"
COMMAND = [sys.executable, "-m", "meshfeed", "convert"]


def convert(*arguments: str | Path) -> str:
    """Runs the command and returns what it prints."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    tokens = pa.array(rng.integers(0, 1000, rows * 8, dtype=np.int32))
    lists = [list(range(k % 4)) if k % 7 else None for k in range(rows)]
    return pa.table(
        {
            "tokens": pa.FixedSizeListArray.from_arrays(tokens, 8),
            "score": pa.array(rng.random(rows), mask=rng.random(rows) < 0.2),
            "at": pa.array(rng.integers(0, 2**40, rows)).cast(pa.timestamp("us", tz="UTC")),
            "text": [f"text {k}" if k % 5 else None for k in range(rows)],
            "lists": pa.array(lists, pa.list_(pa.float32())),
            "kind": pa.array([f"kind {k % 3}" for k in range(rows)]).dictionary_encode(),
        }
    )


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(table(1000), tmp_path / "in.parquet", row_group_size=64)
    return tmp_path / "in.parquet"


def batches(ds: mf.Dataset) -> list[dict[str, Any]]:
    specs = ["tokens", "score", "at"]
    options: dict[str, Any] = {"fill": {"score": -1.0}, "seed": 7, "remainder": "pad"}
    with mf.Loader(ds, specs=specs, batch_size=96, order="shuffle", **options) as loader:
        return [{k: np.array(v) for k, v in batch.items()} for batch in loader.one_epoch()]


def test_a_loader_delivers_the_same_batches(parquet: Path, tmp_path: Path) -> None:
    printed = convert("--rows-per-file", "300", parquet, tmp_path / "out")
    assert printed.startswith("1,000 records in 4 files: wrote 4 files with ")
    with mf.open(parquet) as before, mf.open(tmp_path / "out") as after:
        assert len(after) == len(before)
        assert dict(after.schema) == dict(before.schema)
        assert pa.table(after).equals(pa.table(before))
        one, other = batches(before), batches(after)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_arrow_reads_what_was_written(parquet: Path, tmp_path: Path) -> None:
    convert(parquet, tmp_path / "out")
    with pa.memory_map(str(tmp_path / "out/rows-00000-of-00001.arrow")) as file:
        read = pa.ipc.open_file(file).read_all()
        read.validate(full=True)
        want = pq.read_table(parquet)
        for name in want.column_names:
            assert read[name].equals(want[name].cast(read[name].type)), name
        for batch in read.to_batches():
            for column in batch.columns:
                assert {b.address % 64 for b in column.buffers() if b is not None} == {0}


def test_features_of_hugging_face(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "image": datasets.Array2D((2, 3), "float32"),
            "ids": datasets.List(datasets.Value("int32")),
        }
    )
    rows = [
        {"label": k % 2, "image": np.full((2, 3), k, np.float32), "ids": [k] * (k % 3)}
        for k in range(50)
    ]
    source = datasets.Dataset.from_list(rows, features=features)
    datasets.DatasetDict({"train": source, "test": source.select(range(5))}).save_to_disk(
        tmp_path / "saved"
    )
    convert("--split", "train", tmp_path / "saved", tmp_path / "out")
    with mf.open(tmp_path / "out") as ds:
        assert ds.schema["label"].names == ("cat", "dog")
        assert ds.schema["image"].shape == (2, 3)
        assert len(ds) == 50
    files = {"train": f"{tmp_path}/out/*.arrow"}
    loaded = datasets.load_dataset("arrow", data_files=files, cache_dir=str(tmp_path / "cache"))
    loaded = loaded["train"]
    assert loaded.features["label"].names == ["cat", "dog"]
    assert loaded["ids"][:] == [row["ids"] for row in rows]
    np.testing.assert_array_equal(loaded["image"][:], [row["image"] for row in rows])


def test_processes_that_are_killed(tmp_path: Path) -> None:
    pq.write_table(table(4000), tmp_path / "in.parquet", row_group_size=100)
    arguments = ["--rows-per-file", "10", str(tmp_path / "in.parquet")]
    convert(*arguments, tmp_path / "whole")
    out, draw = tmp_path / "out", random.Random()
    seen: dict[str, tuple[int, int]] = {}
    for goal in (20, 140):
        process = subprocess.Popen([*COMMAND, *arguments, str(out)])
        while process.poll() is None and len(list(out.glob("rows-*"))) < goal:
            time.sleep(draw.random() / 100)
        process.kill()
        if process.wait() == 0:
            break  # it was faster than the test
        with pytest.raises(mf.NotFoundError, match=r"not finished, and lacks [0-9]+ of 400 files"):
            mf.open(out)
        now = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in out.glob("rows-*")}
        assert now.items() >= seen.items()
        seen = now
    assert seen
    printed = convert(*arguments, out)
    assert f"; {len(seen)} were there" in printed
    now = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in out.glob("rows-*")}
    assert now.items() >= seen.items()
    assert contents(out) == contents(tmp_path / "whole")  # no scratch file is left


def test_the_recipe_of_an_array_job(parquet: Path, tmp_path: Path) -> None:
    shared = tmp_path / "bin"
    shared.mkdir()
    program = shared / "meshfeed"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m meshfeed "$@"\n')
    program.chmod(0o700)
    env = os.environ | {"PATH": f"{shared}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_MAX": "3"}
    arguments = ["--rows-per-file", "70", str(parquet)]
    command = ["bash", str(RECIPES / "convert.sh"), *arguments, str(tmp_path / "out")]
    tasks = [
        subprocess.Popen(command, env=env | {"SLURM_ARRAY_TASK_ID": str(task)}) for task in (3, 1)
    ]
    assert [task.wait() for task in tasks] == [0, 0]
    with pytest.raises(mf.NotFoundError, match="lacks 5 of 15 files"):
        mf.open(tmp_path / "out")
    subprocess.run(command, env=env | {"SLURM_ARRAY_TASK_ID": "2"}, check=True)
    convert(*arguments, tmp_path / "whole")
    one, other = contents(tmp_path / "out"), contents(tmp_path / "whole")
    assert one == other
    done = subprocess.run(command, env=env | {"SLURM_ARRAY_TASK_ID": "0"}, capture_output=True)
    assert done.returncode == 2  # --array=0-3 by mistake
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_the_recipe_for_ray(parquet: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    arguments = ["--rows-per-file", "70", str(parquet)]
    command = [sys.executable, str(RECIPES / "convert_ray.py"), "3", *arguments]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    subprocess.run([*command, str(tmp_path / "out")], env=env, check=True, timeout=300)
    convert(*arguments, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
