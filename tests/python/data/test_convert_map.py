"""`meshfeed convert --map`: rows of a function in files, in parts, killed and continued."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meshfeed as mf
from meshfeed._native import calls

pytestmark = pytest.mark.plain

ROWS = 1000
PREPARE = """
import os, pathlib, time

def tokenize(rows):
    if "STOP" in os.environ and "document 600" in rows["text"]:
        pathlib.Path(os.environ["STOP"]).touch()
        time.sleep(3600)
    tokens = [list(text.encode()) for text in rows["text"]]
    return {"tokens": tokens, "length": [len(t) for t in tokens]}

def fails(rows):
    return {"n": [1 // (len(text) - 12) for text in rows["text"]]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = [f"document {k}" for k in range(ROWS)]
    data = pa.table({"text": texts, "at": pa.array(range(ROWS)).cast(pa.timestamp("s"))})
    pq.write_table(data, tmp_path / "in.parquet", row_group_size=50)
    (tmp_path / "prepare.py").write_text(PREPARE)
    return tmp_path


def start(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "meshfeed", "convert", "--map", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def convert(folder: Path, *arguments: str, code: int = 0) -> str:
    """Runs the command and returns what it prints."""
    running = start(folder, *arguments)
    printed, told = running.communicate(timeout=240)
    assert running.returncode == code, told
    return printed if code == 0 else told


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("rows-*"))}


def test_parts_that_are_killed_write_the_same_files(folder: Path) -> None:
    command = "prepare:tokenize", "--columns", "tokens,length,at", "--rows-per-file", "100"
    assert "the folder is finished" in convert(folder, *command, "in.parquet", "whole")
    whole = contents(folder / "whole")
    assert len(whole) == 10
    first = convert(folder, *command, "--part", "1/2", "in.parquet", "parts")
    assert "other parts have yet to write 5" in first
    second = *command, "--part", "2/2", "in.parquet", "parts"
    killed = start(folder, *second, STOP=str(folder / "reached"))
    until = time.monotonic() + 240
    while not (folder / "reached").exists():
        assert killed.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    with pytest.raises(mf.NotFoundError, match=r"meshfeed convert --map prepare:tokenize"):
        mf.open(str(folder / "parts"))
    assert "the folder is finished" in convert(folder, *second)
    assert contents(folder / "parts") == whole
    with mf.open(str(folder / "parts")) as ds:
        assert list(ds.schema) == ["tokens", "length", "at"]
        assert bytes(ds[612]["tokens"].tolist()) == b"document 612"
        assert ds[:]["length"].tolist() == [len(f"document {k}") for k in range(ROWS)]
        assert str(ds[7]["at"]) == "1970-01-01T00:00:07.000"


def test_errors_say_what_to_do(folder: Path) -> None:
    told = convert(folder, "prepare:fails", "in.parquet", "out", code=2)
    assert "return {" in told  # the line of the function
    assert "in.parquet: record 100: the function prepare.fails failed: ZeroDivisionError" in told
    for name in "prepare", "prepare:nothing", "nothing:tokenize":
        told = convert(folder, name, "in.parquet", "out2", code=2)
        assert "give module:function" in told
    printed = convert(folder, "prepare:tokenize", "in.parquet", "out3")
    assert printed.startswith("1,000 records in 1 file: wrote 1 file with ")
    told = convert(folder, "prepare:tokenize", "--columns", "length", "in.parquet", "out3", code=2)
    assert "the folder holds a conversion with" in told
    assert "meshfeed convert --map prepare:tokenize in.parquet out3" in told
    with mf.open(str(folder / "in.parquet")) as ds:
        with pytest.raises(mf.InvalidArgumentError, match='unknown field "rows"'):
            calls.dataset_convert(ds.handle, str(folder / "out4"), rows=1)
    (folder / "prepare.py").write_text(PREPARE.replace("text.encode()", "text.lower().encode()"))
    told = convert(folder, "prepare:tokenize", "in.parquet", "out3", code=2)
    assert "or the function of its map has changed since this conversion began" in told
