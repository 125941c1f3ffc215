"""Processes with different datasets name the component that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import meshfeed as mf
from meshfeed._jobs.components import Component, described, difference
from meshfeed._native import calls

N = 100


def write(path: Path, *, first: int = 0, n: int = N, batch: int = 10, kind: str = "int32") -> str:
    """Writes an Arrow file of consecutive numbers; returns its path."""
    table = pa.table({"x": np.arange(first, first + n, dtype=kind)})
    path.parent.mkdir(exist_ok=True)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=batch)
    return str(path)


def components(ds: mf.Dataset) -> Component:
    with ds, mf.Loader(ds, batch_size=1) as loader:
        found: Component = calls.loader_components(loader._engine.cursor.handle.value)
        assert found["hash"] == ds.fingerprint()[:16]
        return found


def lists(value: int = 0, length: int = 3) -> mf.Dataset:
    ragged = pa.array([[1, 2], [3], []], pa.list_(pa.int32()))
    return mf.from_arrow(pa.table({"t": ragged})).pad("t", length=length, value=value)


def numbers(n: int = N) -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(n, dtype=np.int32)})


def files(folder: Path) -> Iterator[tuple[str, mf.Dataset, mf.Dataset]]:
    """Yields what differs, and two datasets of files."""
    a, b = write(folder / "a.arrow"), write(folder / "b.arrow", first=N)
    c, d = write(folder / "c.arrow", n=50), write(folder / "d.arrow", batch=25)
    other = write(folder / "other/a.arrow", first=1)
    wide = write(folder / "wide.arrow", kind="int64")
    yield "the order of the files", mf.open([a, c]), mf.open([c, a])
    yield "the order of the files", mf.open([a, b]), mf.open([b, a])  # of one size
    more = "the number of the files: 2 and 3, and only one has c.arrow"
    yield more, mf.open([a, b]), mf.open([a, b, c])
    yield "the record batches of file 1 (b.arrow and d.arrow)", mf.open([a, b]), mf.open([a, d])
    yield "the bytes of file 0 (a.arrow)", mf.open([a, b]), mf.open([other, b])
    yield "the schema", mf.open(a), mf.open(wide)
    joined, another = (mf.concat([numbers(), mf.open(path)]) for path in (a, other))
    yield "the bytes of file 0 (a.arrow) in dataset 1", joined, another
    roots = [folder / name for name in ("first", "second", "third")]
    for root, year in zip(roots, (1, 1, 2), strict=True):
        root.mkdir()
        write(root / f"year={year}/a.arrow")
    yield "", mf.open(str(roots[0])), mf.open(str(roots[1]))
    yield "the directory keys of file 0 (a.arrow)", mf.open(str(roots[0])), mf.open(str(roots[2]))
    table = pa.table({"x": np.arange(N)})
    for rows, name in ((10, "p.parquet"), (20, "q.parquet")):
        pyarrow.parquet.write_table(table, folder / name, row_group_size=rows)
    p, q = (mf.open(str(folder / name)) for name in ("p.parquet", "q.parquet"))
    yield "the record batches of file 0 (p.parquet and q.parquet)", p, q


def test_files(tmp_path: Path) -> None:
    for want, here, there in files(tmp_path):
        a, b = components(here), components(there)
        assert (a["hash"] == b["hash"]) == (want == "")
        assert want == "" or difference(a, b) == want


even = np.arange(N) % 2 == 0

VIEWS: dict[str, Callable[[], tuple[mf.Dataset, mf.Dataset]]] = {
    "the filter": lambda: (numbers().filter(even), numbers().filter(~even)),
    "the slice": lambda: (numbers().slice(0, 10), numbers().slice(1, 11)),
    "the take": lambda: (numbers().take([1, 2]), numbers().take([2, 1])),
    "the pad": lambda: (lists(), lists(7)),
    "the window": lambda: (numbers().window(4), numbers().window(5)),
    "the order of the concatenation": lambda: (
        mf.concat([numbers(), numbers(9)]),
        mf.concat([numbers(9), numbers()]),
    ),
    "the number of the concatenation: 2 and 3": lambda: (
        mf.concat([numbers()] * 2),
        mf.concat([numbers()] * 3),
    ),
    "the choice of fields": lambda: (
        numbers().rename({"x": "y"}),
        numbers().rename({"x": "z"}),
    ),
    "the values": lambda: (
        numbers().filter(even).slice(0, 10),
        mf.from_arrays({"x": np.arange(1, N + 1, dtype=np.int32)}).filter(even).slice(0, 10),
    ),
    "the filter, which is values there": lambda: (
        numbers().filter(even).slice(0, 10),
        numbers().slice(0, 10),
    ),
}


@pytest.mark.parametrize("want", VIEWS)
def test_views(want: str) -> None:
    here, there = VIEWS[want]()
    assert difference(components(here), components(there)) == want


def test_processes_are_named() -> None:
    a, b, c = (components(numbers(n)) for n in (10, 11, 12))
    assert described([([0, 3], a), ([1], b), ([2], c), ([4], a)]) == [
        "dataset differs in the values, between processes 0 and 3 and process 1",
        "dataset differs in the values, between processes 0 and 3 and process 2",
    ]


def test_a_tree_is_bounded(tmp_path: Path) -> None:
    """For more than 256 files the tree has no components, so that messages stay small."""
    paths = [write(tmp_path / f"{i}.arrow", n=1) for i in range(260)]
    here, there = components(mf.open(paths)), components(mf.open([paths[1], paths[0], *paths[2:]]))
    assert [below["label"] for below in here["below"]] == ["schema", "files", "files"]
    assert difference(here, there) == "the files"
