"""Files of different writers are one dataset if the names and the types of their values agree."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import meshfeed as mf
from tests.python.samples import wrong

N = 7  # rows of a file
TEXTS = ["ab", "", None, "a text of more than twelve bytes", "x", "yy", "zzz"]

# Values, and the types in which writers store them.
STORED: dict[str, tuple[list[Any], list[pa.DataType]]] = {
    "text": (
        TEXTS,
        [
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int32(), pa.large_string()),
            pa.null(),
        ],
    ),
    "bytes": (
        [None if text is None else text.encode() for text in TEXTS],
        [pa.binary(), pa.large_binary(), pa.binary_view(), pa.null()],
    ),
    "lists": (
        [[1, 2], [], [3], None, [4, 5, 6], [7], [8]],
        [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.null()],
    ),
    "lists of text": (
        [["a", "bb"], [], [None, TEXTS[3]], None, ["x"], [""], ["q"]],
        [
            pa.list_(pa.string()),
            pa.large_list(pa.large_string()),
            pa.list_(pa.string_view()),
            pa.null(),
        ],
    ),
    "numbers": (
        [1, 2, None, 4, 5, 6, 7],
        [pa.int64(), pa.dictionary(pa.int8(), pa.int64()), pa.null()],
    ),
    "pairs": (
        [[i, -i] for i in range(N)],
        [pa.list_(pa.float32()), pa.large_list(pa.float32())],
    ),
    "fixed pairs": (
        [[i, -i] for i in range(N)],
        [pa.list_(pa.float32(), 2), pa.null()],
    ),
}


def stored(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Returns values in a type, all of them nulls in the type of nulls."""
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def write(path: Path, form: str, table: pa.Table) -> str:
    """Writes a file of several record batches in a format."""
    path = path.with_suffix("." + form)
    if form == "parquet":
        pq.write_table(table, path, row_group_size=4)
    elif form == "arrows":
        with pa.ipc.new_stream(path, table.schema) as to:
            to.write_table(table, max_chunksize=4)
    else:
        packed = "zstd" if form == "feather" else "uncompressed"
        feather.write_feather(table, path, compression=packed, chunksize=4)
    return str(path)


@contextmanager
def refused(kind: type[mf.Error], *words: str) -> Iterator[None]:
    """Expects an error with some words."""
    with pytest.raises(kind) as error:
        yield
    assert all(word in str(error.value) for word in words), error.value


FORMS = [
    ("arrow", "arrow"),
    ("parquet", "parquet"),
    ("feather", "arrow"),
    ("parquet", "arrow"),
    ("arrows", "feather"),
]


@pytest.mark.parametrize("name", STORED)
def test_types_with_the_same_values_agree(name: str, tmp_path: Path) -> None:
    """Columns have another order in every other file, too."""
    values, kinds = STORED[name]
    for number, (first, second) in enumerate(itertools.product(kinds, kinds)):
        if pa.types.is_null(first) and pa.types.is_null(second):
            continue
        rows = [None if pa.types.is_null(k) else v for k in (first, second, first) for v in values]
        for forms in FORMS[number % 2 :: 2] if first != second else FORMS[:1]:
            one = pa.table({"id": range(N), "c": stored(values, first)})
            two = pa.table({"c": stored(values, second), "id": range(N, 2 * N)})
            try:
                paths = [
                    write(tmp_path / "0", forms[0], one),
                    write(tmp_path / "1", forms[1], two),
                    write(tmp_path / "2", forms[0], one),
                ]
            except pa.ArrowNotImplementedError:
                continue  # this writer does not have the type
            for io in ("map", "read"):
                with mf.open(paths, io=wrong(io)) as ds:
                    got = pa.table(ds)["c"].to_pylist()
                    assert [gone(row) for row in got] == rows, (forms, first, second, io)
                    if name in ("numbers", "pairs", "fixed pairs"):
                        assert loaded(ds, rows) == rows, (forms, first, second, io)


def gone(row: Any) -> Any:
    """Returns None for a null row of fixed size, which the Arrow stream has as one of nulls."""
    return None if isinstance(row, list) and row and row == [None] * len(row) else row


def loaded(ds: mf.Dataset, rows: list[Any]) -> list[Any]:
    """Returns the rows that a loader delivers in shuffled order, in the order of the records."""
    fill = {"c": -99} if None in rows else {}
    with mf.Loader(
        ds, batch_size=len(ds), shuffle=True, seed=1, fill=fill, extras=["record"]
    ) as it:
        batch = {name: np.asarray(a) for name, a in next(iter(it)).items()}
    out = [None] * len(ds)
    for (record, _), row in zip(batch["record"], batch["c"].tolist(), strict=True):
        out[record] = None if row in (-99, [-99, -99]) else row
    return out


@pytest.mark.parametrize("form", ["arrow", "feather", "parquet"])
@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int64()),
        pa.large_list(pa.string()),
        pa.list_(pa.bool_()),
        pa.list_(pa.list_(pa.int8())),
    ],
)
def test_lists_of_nulls_agree_with_lists(form: str, kind: pa.DataType, tmp_path: Path) -> None:
    """A file with only empty lists, or lists of nulls, says nothing about their values."""
    nulls = [[None, None], [], None, [None]] * 3
    other: list[Any] = [None, [], []]
    a = write(tmp_path / "a", form, pa.table({"c": pa.array(nulls, pa.list_(pa.null()))}))
    b = write(tmp_path / "b", form, pa.table({"c": pa.array(other, kind)}))
    for paths, rows in (([a, b], nulls + other), ([b, a], other + nulls)):
        if form == "parquet" and pa.types.is_list(kind.value_type):
            with refused(mf.IncompatibleError, "is list<null>, but list<list<int8>> in"):
                mf.open(paths)
            continue
        with mf.open(paths) as ds:
            assert pa.table(ds)["c"].to_pylist() == rows
            lengths = [-1 if row is None else len(row) for row in rows]
            assert ds.lengths("c").tolist() == lengths


def test_one_union_of_many_writers(tmp_path: Path) -> None:
    """Twelve files in four formats, with two columns that differ: rows, lengths and a pad."""
    texts = STORED["text"][1]
    lists = [kind for kind in STORED["lists"][1] if not pa.types.is_null(kind)]
    paths, want = [], []
    for i, (form, text) in enumerate(itertools.product(["arrow", "arrows", "feather"], texts[:4])):
        rows: dict[str, list[Any]] = {"t": [f"{i}-{k}" * k for k in range(N)]}
        rows["l"] = [[i] * k for k in range(N)]
        columns = {"t": stored(rows["t"], text), "l": stored(rows["l"], lists[i % 2])}
        table = pa.table(columns).select(sorted(columns, reverse=i % 2 == 0))
        paths.append(write(tmp_path / str(i), form, table))
        want += [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    with mf.open(paths) as ds:
        assert ds.schema["t"].logical == "large_string"
        assert ds.lengths("l").tolist() == [len(row["l"]) for row in want]
        assert ds.lengths("t").tolist() == [len(row["t"]) for row in want]
        order = np.random.default_rng(0).permutation(len(ds))
        got = pa.table(ds.take(order)).to_pylist()
        assert got == [want[i] for i in order]
        with mf.Loader(ds.pad("l", length=N), batch_size=len(ds), shuffle=False) as it:
            batch = next(iter(it))
        assert [list(r[:n]) for r, n in zip(batch["l"], batch["l_length"], strict=True)] == [
            row["l"] for row in want
        ]
    command = Path(mf.__file__).parent / "_bin" / "meshfeed"
    subprocess.run([command, "verify", *paths], check=True, capture_output=True)
    subprocess.run([command, "convert", *paths, tmp_path / "one"], check=True, capture_output=True)
    with mf.open(tmp_path / "one") as ds:
        assert pa.table(ds).to_pylist() == want


def test_rows_are_kept_on_disk(tmp_path: Path) -> None:
    """Compressed files with three types of a column, and one of nulls."""
    values, kinds = STORED["text"]
    paths = [
        write(tmp_path / str(i), "feather", pa.table({"c": stored(values, k), "id": [i] * N}))
        for i, k in enumerate(kinds)
    ]
    want = [None if pa.types.is_null(k) else v for k in kinds for v in values]
    for _ in range(2):
        with mf.open(paths, cache=tmp_path / "kept") as ds:
            assert pa.table(ds)["c"].to_pylist() == want
    assert any((tmp_path / "kept").iterdir())


def test_rows_in_memory_are_found_in_each_file(tmp_path: Path) -> None:
    """Once files are in memory, a gather takes rows from their addresses."""
    values = np.arange(N)
    kinds = [pa.int64(), pa.dictionary(pa.int8(), pa.int64())]
    tables = [pa.table({"c": stored((values + i).tolist(), kinds[i % 2])}) for i in range(3)]
    paths = [write(tmp_path / str(i), "arrow", table) for i, table in enumerate(tables)]
    want = sorted([*values, *(values + 1), *(values + 2)])
    with mf.open(paths, io="map") as ds, mf.Loader(ds, batch_size=3 * N, epochs=100) as loader:
        assert all(sorted(np.asarray(batch["c"])) == want for batch in loader)


def test_columns_are_chosen_before_files_are_compared(tmp_path: Path) -> None:
    write(tmp_path / "0", "parquet", pa.table({"x": [1, 2], "y": [1.0, 2.0], "z": ["a", "b"]}))
    write(tmp_path / "1", "parquet", pa.table({"y": [3, 4], "x": [3, 4], "more": [5, 6]}))
    with mf.open(tmp_path / "*.parquet", columns=["x"]) as ds:
        assert pa.table(ds).to_pydict() == {"x": [1, 2, 3, 4]}
    with mf.open(tmp_path / "0.parquet", columns=["z", "x"]) as ds:
        assert pa.table(ds).to_pydict() == {"z": ["a", "b"], "x": [1, 2]}
        assert list(ds.schema) == ["z", "x"]
    with refused(
        mf.IncompatibleError, 'field "y" is int64, but float64 in', "0.parquet", "1.parquet"
    ):
        mf.open(tmp_path, columns=["x", "y"])
    with refused(mf.IncompatibleError, '1.parquet: there is no column "z", which', "0.parquet has"):
        mf.open(tmp_path, columns=["x", "z"])
    with refused(mf.NotFoundError, 'no column "w"; the columns are "x", "y", "z"'):
        mf.open(tmp_path, columns=["w"])
    with refused(mf.IncompatibleError, 'such as columns=["x", "y"], or open the files apart'):
        mf.open(tmp_path)
    for columns in ([], "x", b"x", {"x": 1}, [1], 3):
        with refused(mf.InvalidArgumentError, "columns"):
            mf.open(tmp_path, columns=wrong(columns))
    with refused(mf.InvalidArgumentError, 'the column "x" is named twice'):
        mf.open(tmp_path, columns=["x", "x"])


def test_columns_of_partitions(tmp_path: Path) -> None:
    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        write(tmp_path / f"year={year}" / "a", "parquet", pa.table({"x": [year], "y": [0]}))
    for columns in (["x"], ["year"], ["year", "x"]):
        with mf.open(tmp_path, columns=columns) as ds:
            assert list(ds.schema) == columns
            assert [int(ds[i][columns[0]]) for i in range(2)] == [1, 2]


def test_columns_that_are_no_fields_may_differ(tmp_path: Path) -> None:
    """A column that no file has as a field is skipped, whatever its type; pandas leaves indices."""
    one = pa.table({"x": [1], "__index_level_0__": [7], "s": [{"a": 1}]})
    write(tmp_path / "0", "parquet", one)
    write(tmp_path / "1", "parquet", pa.table({"x": [2], "s": [{"b": "2"}]}))
    with mf.open(tmp_path) as ds:
        assert pa.table(ds).to_pydict() == {"x": [1, 2]}
        assert {column.name for column in ds.skipped} == {"__index_level_0__", "s"}
    with refused(mf.UnsupportedError, 'column "s" of type', "a struct has no single type"):
        mf.open(tmp_path, columns=["s"])
    write(tmp_path / "2", "parquet", pa.table({"x": [2], "s": [2]}))
    with refused(mf.IncompatibleError, 'field "s" is int64, but struct<a: int64> in'):
        mf.open(tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (pa.array([1], pa.int32()), pa.array([1]), 'field "x" is int64, but int32 in'),
        (pa.array(["a"]), pa.array([b"a"]), 'field "x" is binary, but string in'),
        (pa.array([[1]]), pa.array([1]), 'field "x" is int64, but list<int64> in'),
        (pa.array([[1]]), pa.array([[[1]]]), 'field "x" is list<list<int64>>, but list<int64> in'),
    ],
)
def test_other_values_are_refused(
    first: pa.Array, second: pa.Array, words: str, tmp_path: Path
) -> None:
    a = write(tmp_path / "a", "arrow", pa.table({"x": first}))
    b = write(tmp_path / "b", "parquet", pa.table({"x": second}))
    with refused(mf.IncompatibleError, b, words, a, "table.cast of pyarrow", "(columns=)"):
        mf.open([a, b])


def test_a_field_is_one_in_all_files(tmp_path: Path) -> None:
    """A key of metadata that is not known may change the meaning of one file's bytes."""
    plain = pa.table({"x": [1]})
    a = write(tmp_path / "a", "arrow", plain)
    b = write(tmp_path / "b", "arrow", plain.replace_schema_metadata({"ARROW:new": "1"}))
    with refused(
        mf.IncompatibleError,
        f'{b}: column "x" cannot be a field, but it is one in {a}: ',
        "ARROW:new",
    ):
        mf.open([a, b])
    with refused(
        mf.IncompatibleError, f'{a}: column "x" is a field, but cannot be one in {b}: ', "ARROW:new"
    ):
        mf.open([b, a])


def test_concat_has_the_same_rule() -> None:
    kinds = [kind for kind in STORED["text"][1] if not pa.types.is_null(kind)]
    parts = [pa.table({"c": stored(TEXTS, kind), "id": range(N)}) for kind in kinds]
    parts.append(parts[0].select(["id", "c"]))
    ds = mf.concat([mf.from_arrow(part) for part in parts])
    assert ds.schema["c"].logical == "large_string"
    assert pa.table(ds)["c"].to_pylist() == TEXTS * len(parts)
    assert pa.table(ds)["id"].to_pylist() == list(range(N)) * len(parts)
    numbers = [mf.from_arrays({"x": np.zeros(2, kind)}) for kind in (np.int32, np.int64)]
    with refused(mf.InvalidArgumentError, 'field "x" is int32 and int64'):
        mf.concat(numbers)
