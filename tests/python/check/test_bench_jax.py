"""`meshfeed bench --jax`: batches of a layout as arrays on devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from meshfeed._selfcheck import bench

LAYOUT = {
    "meshfeed": 1,
    "mesh": {"axes": [["data", 4], ["model", 2]]},
    "arrays": {
        "x": {"shape": ["B", 2, 4], "dtype": "float32", "spec": ["data", None, "model"]},
        "y": {"shape": ["B"], "dtype": "int32", "spec": ["data"]},
    },
    "batch": {"size": 16},
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(800, np.float32)), 8)
    table = pa.table({"x": x, "y": pa.array(np.arange(100, dtype=np.int32))})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "layout.json").write_text(json.dumps(LAYOUT))
    return str(tmp_path / "layout.json"), str(tmp_path / "a.arrow")


def test_the_command(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--jax", "--shapes", "x=2x4", "--batches", "7", "--order", "blocks"]
    assert bench.main([*options, *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith("7 batches after 5 to warm up, without a step\n")
    assert "rows/s" in out
    assert bench.main([*options, "--json", *files]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["benchmark"]["batches"] == 7
    assert measured["report"]["batches"] > 0


def test_a_time(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--jax", "--shapes", "x=2x4", "--time", "0.001ms", "--cache", "memory", "--json"]
    assert bench.main([*options, *files]) == 0
    measured = json.loads(capsys.readouterr().out)["benchmark"]
    assert measured["batches"] == 5  # the fewest


def test_a_process_is_refused(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--jax", "--process", "1", *files]) == 2
    assert capsys.readouterr().err == (
        "meshfeed: bench --jax: --process chooses whose blocks to load without devices, and these "
        "are the devices of this process\n  leave out --process, or --jax\n"
    )


def test_wrong_arguments(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, data = files
    small = tmp_path / "small.json"
    small.write_text(json.dumps({**LAYOUT, "mesh": {"axes": [["data", 2], ["model", 1]]}}))
    for arguments, text in (
        (
            [str(small), data],
            "meshfeed: bench --jax: the mesh of the layout has 2 devices, but JAX sees 8; on CPUs, "
            "JAX_NUM_CPU_DEVICES=2 makes so many\n",
        ),
        ([layout, "absent.arrow"], "absent.arrow"),
        (["absent.json", data], "absent.json"),
        ([data, data], "meshfeed: "),
    ):
        assert bench.main(arguments) == 2
        assert text in capsys.readouterr().err
    for arguments in (
        ["--batches", "0", *files],
        ["--shapes", "x=a", *files],
        ["--time", "0s", *files],
        ["--time", "1.1.1s", *files],
        ["--time", "3", *files],
        ["--time", "3s", "--batches", "3", *files],
        [layout],
    ):
        with pytest.raises(SystemExit):
            bench.main(arguments)


def test_it_is_a_part_of_the_command(files: tuple[str, str]) -> None:
    run = [sys.executable, "-m", "meshfeed", "bench", "--jax", "--shapes", "x=2x4", *files]
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)
    assert "50 batches" in done.stdout
