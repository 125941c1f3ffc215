"""What the pages that help to decide say of meshfeed is still so."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import grain
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import meshfeed as mf
from tests.python import ROOT

CHOOSE = (ROOT / "docs/choose.md").read_text()
SUPPORT = (ROOT / "docs/support.md").read_text()
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def row(page: str, first: str) -> list[str]:
    """Returns the cells of a row of a table by its first one."""
    (found,) = [line for line in page.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_object_stores() -> None:
    """The table names every scheme."""
    with pytest.raises(mf.UnsupportedError, match=r"only of ([a-z0-9, ]+);") as failed:
        mf.open("az://container/train.arrow")
    schemes = failed.value.message.partition("only of ")[2].split(", ")
    named = re.findall(r"`(\w+)://`", row(CHOOSE, "object stores")[1])
    assert {*named, "http"} == set(schemes) > {"s3", "hf"}


def test_files_that_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"x": [1, 2]}), path)
    assert len(mf.open(path)) == 2
    path.with_suffix(".csv").write_text("x\n1\n")
    with pytest.raises(mf.UnsupportedError, match="text"):
        mf.open(path.with_suffix(".csv"))
    opens = "Arrow IPC, Parquet, JSON Lines, WebDataset, TFRecord, folders of images; tokens in "
    assert row(CHOOSE, "files")[1].startswith(opens)


def test_rows_of_varying_length_need_one_length() -> None:
    ragged = mf.from_arrow(pa.table({"x": pa.array([[1], [1, 2]])}))
    with pytest.raises(mf.InvalidArgumentError, match="lists of different lengths"):
        mf.Loader(ragged, batch_size=2).peek()
    batch = mf.Loader(ragged.pad("x", length=2), batch_size=2).peek()
    assert batch["x"].tolist() == [[1, 0], [1, 2]]
    assert "`ds.pad`" in row(CHOOSE, "rows of varying length")[1]
    assert len(ragged.pack("x", length=3)) == 1
    assert row(CHOOSE, "packing of tokens")[1].startswith("yes: best fit")


def test_what_the_table_says_of_grain() -> None:
    for name in ("map", "filter", "mix", "shuffle", "repeat", "batch"):
        assert hasattr(grain.MapDataset, name)
    for name in ("ElasticIterator", "FirstFitPackIterDataset", "ParquetIterDataset"):
        assert hasattr(grain.experimental, name)


def test_the_state_is_small() -> None:
    ds = mf.from_arrays({"x": np.zeros(1000, np.uint8)})
    options: dict[str, Any] = {"batch_size": 10, "epochs": -1, "order": "local", "seed": 2**53}
    with mf.Loader(ds, **options) as loader:
        loader.seek(epoch=2**50, position=990)
        assert len(json.dumps(loader.state())) < 256
    assert row(CHOOSE, "state")[1].startswith("under 256 bytes")


def test_the_commands_of_support() -> None:
    """Each row names a command that exists, and the pinned JAX is the one of the quick tests."""
    commands = re.findall(r"\| `([^`]+)` \|$", SUPPORT, re.MULTILINE)
    assert len(commands) > 15
    for command in commands:
        program, _, verb = re.sub(r"^\w+=\S+ ", "", command).partition(" ")
        if program == "make":
            assert verb in TARGETS
        else:
            named = re.fullmatch(r"python[\d.t]*|meshfeed", program)
            assert named or (ROOT / program).exists(), command
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(
        p.split("==")
        for p in itertools.chain(*extras["optional-dependencies"].values())
        if "==" in p
    )
    assert f"| JAX {pinned['jax']} | tested |" in SUPPORT
    (libraries,) = re.findall(r"^\| (pyarrow .*?) \| tested", SUPPORT, re.MULTILINE)
    for library in libraries.split(", "):
        name, major = library.split()
        assert pinned[name].split(".")[0] == major


def test_the_platforms_of_support() -> None:
    """The stages of `make check` compile for them."""
    stages = (ROOT / "tests/stages.py").read_text()
    for system, stage in (
        ("Linux arm64", '"linux", "arm64"'),
        ("macOS arm64", '"darwin", "arm64"'),
        ("Windows x86-64", '"windows", "amd64"'),
    ):
        assert system in SUPPORT
        assert f"cross({stage})" in stages


def test_the_releases_of_jax_of_the_slow_suite() -> None:
    versions = (ROOT / "tests/python/package/test_versions.py").read_text()
    (listed,) = re.findall(r"parametrize\(\"version\", (\[.*?\])\)", versions)
    assert f"| JAX {', '.join(json.loads(listed))} | tested now and then |" in SUPPORT
