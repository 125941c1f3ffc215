"""Directories with keys and values as names, in the layout of Hive."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import meshfeed as mf

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture(params=["parquet", "feather"])
def directory(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    cities = ["Oslo", "a b/c", "é=1%"]
    columns = {
        "x": list(range(60)),
        "year": [2020 + k % 3 if k % 7 else None for k in range(60)],
        "city": [cities[k % 4 % 3] for k in range(60)],
    }
    pyarrow.dataset.write_dataset(
        pa.table(columns),
        tmp_path,
        format=request.param,
        partitioning=["year", "city"],
        partitioning_flavor="hive",
    )
    return tmp_path


def test_equals_pyarrow(directory: Path) -> None:
    form = "parquet" if list(directory.rglob("*.parquet")) else "feather"
    want = pyarrow.dataset.dataset(directory, format=form, partitioning="hive").to_table()
    with mf.open(directory) as ds:
        assert pa.table(ds).to_pydict() == want.to_pydict()
        assert str(ds.schema["year"]) == "year: int64"
        assert ds.schema["year"].nullable
        assert ds.schema["city"].logical == "string"
        fingerprint = ds.fingerprint()
    with mf.open(f"{directory}/*/city=*/*.{form}") as ds:
        assert ds.fingerprint() == fingerprint


def test_views_and_loaders(directory: Path) -> None:
    form = "parquet" if list(directory.rglob("*.parquet")) else "feather"
    want = pyarrow.dataset.dataset(directory, format=form, partitioning="hive").to_table()
    years = np.asarray(want["year"].fill_null(-1))
    with mf.open(directory) as whole, whole.pad("city", length=8) as ds:
        specs = ["x", "year", "city"]
        with mf.Loader(ds, specs=specs, batch_size=60, seed=3, fill={"year": -1}) as loader:
            batch = {name: np.asarray(array) for name, array in next(iter(loader)).items()}
        order = np.argsort(batch["x"])
        by_record = np.argsort(np.asarray(want["x"]))
        np.testing.assert_array_equal(batch["year"][order], years[by_record])
        cities = [bytes(row).rstrip(b"\0").decode() for row in batch["city"][order]]
        assert cities == np.asarray(want["city"])[by_record].tolist()
    with mf.open(f"{directory}/year=20*/*/*") as ds, ds.window(2, within="year") as windows:
        with mf.Loader(windows, specs=["year"], batch_size=len(windows)) as loader:
            pairs = np.asarray(next(iter(loader))["year"])
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert set(pairs[:, 0].tolist()) == {2020, 2021, 2022}


ONE = pa.table({"x": [1], "y": [0.5]})


@pytest.mark.parametrize(
    ("names", "pyarrow_agrees"),
    [
        (["k=1", "k=10", "k=2"], True),
        (["k=01", "k=2"], False),  # pyarrow reads the number 1
        (["k=9223372036854775807", "k=-5"], False),  # text in pyarrow
        (["k=1", f"k={NULL}"], True),
        (["k=1", "k=a"], True),
        (["k=+5", "k=-0"], True),
        (["k=1.5"], True),
        (["k="], True),
        (["k=a%20b", "k=c+d", "k=%zz", "k=b%C3%A9"], True),
        (["x=7", "x=8"], None),  # an error in pyarrow
        (["x=a", "x=8"], None),
    ],
)
def test_equals_duckdb(tmp_path: Path, names: list[str], pyarrow_agrees: bool | None) -> None:
    """DuckDB has the same values of the same types, also where files have the column."""
    for name in names:
        (tmp_path / name).mkdir()
        pa.parquet.write_table(ONE, tmp_path / name / "a.parquet")
    pattern = f"{tmp_path}/*/*.parquet"
    query = f"SELECT * FROM read_parquet('{pattern}', hive_partitioning=true)"
    relation = duckdb.sql(query)
    assert relation is not None
    want = relation.to_arrow_table()
    with mf.open(tmp_path) as ds:
        got = pa.table(ds)
    assert rows(got) == rows(want)
    for name in got.column_names:
        assert got.schema.field(name).type == want.schema.field(name).type
    if pyarrow_agrees is not None:
        other = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
        assert (rows(got) == rows(other)) == pyarrow_agrees


def test_keys_are_decoded(tmp_path: Path) -> None:
    """As pyarrow does; DuckDB and polars keep k%20y."""
    (tmp_path / "k%20y=1").mkdir()
    pa.parquet.write_table(ONE, tmp_path / "k%20y=1" / "a.parquet")
    with mf.open(tmp_path) as ds:
        want = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
        assert pa.table(ds).to_pydict() == want.to_pydict()


def rows(table: pa.Table) -> list[Mapping[str, Any]]:
    return sorted(table.to_pylist(), key=str)


def test_columns_that_polars_writes_twice(tmp_path: Path) -> None:
    """polars keeps the key as a column of the files: the value of the directory is used."""
    frame = pl.DataFrame({"k": [1, 2, 1, 3], "x": [10, 20, 30, 40]})
    frame.write_parquet(tmp_path, partition_by="k")
    with mf.open(tmp_path) as ds:
        assert sorted(zip(*pa.table(ds).to_pydict().values(), strict=True)) == [
            (10, 1),
            (20, 2),
            (30, 1),
            (40, 3),
        ]


def test_windows_within_text(directory: Path) -> None:
    """A key of text divides the records into runs, as the same column of text does."""
    with mf.open(directory) as ds:
        cities = pa.table(ds)["city"].to_pylist()
        stored = mf.from_arrow(pa.table({"x": range(60), "city": cities}))
        with stored, ds.window(2, within="city") as keys, stored.window(2, within="city") as text:
            inside = sum(a == b for a, b in itertools.pairwise(cities))
            assert len(keys) == len(text) == inside
            pairs = [keys[k]["x"].tolist() for k in range(inside)]
        x = pa.table(ds)["x"].to_pylist()
        assert pairs == [[x[k], x[k + 1]] for k in range(59) if cities[k] == cities[k + 1]]
