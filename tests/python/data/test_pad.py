"""`Dataset.pad`: rows of one length from text and lists, in memory, Arrow and Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import meshfeed as mf

RNG = np.random.default_rng(3)
TOKENS = [None if n == 9 else RNG.integers(0, 99, n).tolist() for n in RNG.integers(0, 10, 60)]
TEXT = [None if n == 7 else "äb" * n for n in RNG.integers(0, 8, 60)]
BOXES = [RNG.random((n, 2)).astype("f4").tolist() for n in RNG.integers(0, 4, 60)]
TABLE = pa.table(
    {
        "tokens": pa.array(TOKENS, pa.list_(pa.int32())),
        "text": TEXT,
        "boxes": pa.array(BOXES, pa.list_(pa.list_(pa.float32(), 2))),
        "label": np.arange(60),
    }
)
FIELDS = 'the fields are "tokens", "text", "boxes", "label"'


def arrow(path: Path, table: pa.Table = TABLE) -> mf.Dataset:
    feather.write_feather(table, path, compression="uncompressed", chunksize=17)
    return mf.open(path)


def packed(path: Path, table: pa.Table = TABLE) -> mf.Dataset:
    feather.write_feather(table, path, compression="lz4", chunksize=17)
    return mf.open(path)


def parquet(path: Path, table: pa.Table = TABLE) -> mf.Dataset:
    pq.write_table(table, path, row_group_size=17)
    return mf.open(path)


def memory(path: Path, table: pa.Table = TABLE) -> mf.Dataset:
    return mf.from_arrow(table)


def expected(rows: list[Any], length: int, value: Any, left: bool, dtype: str, *shape: int) -> Any:
    """Pads rows with NumPy."""
    out = np.full((len(rows), length, *shape), value, dtype)
    for to, row in zip(out, rows, strict=True):
        kept = np.array(row or [], dtype).reshape(-1, *shape)[:length]
        at = length - len(kept) if left else 0
        to[at : at + len(kept)] = kept
    return out


@pytest.mark.parametrize("source", [arrow, packed, parquet, memory])
def test_rows_have_one_length(source: Callable[[Path], mf.Dataset], tmp_path: Path) -> None:
    with source(tmp_path / "x") as ds:
        view = ds.pad("tokens", length=8, value=-1, side="left")
        view = view.pad("text", length=12, too_long="truncate").pad("boxes", length=3, value=0.5)
        with view.slice(5, 60) as part:
            assert part.schema["boxes"].shape == (3, 2)
            with mf.Loader(part, batch_size=55, fill={"tokens": 0, "boxes": 0}) as loader:
                batch = next(iter(loader))
    utf8 = [list((text or "").encode()) for text in TEXT]
    wanted = {
        "tokens": expected(TOKENS[5:], 8, -1, True, "i4"),
        "tokens_length": [len(row or []) for row in TOKENS[5:]],
        "text": expected(utf8[5:], 12, 0, False, "u1"),
        "text_length": [min(len(row), 12) for row in utf8[5:]],
        "boxes": expected(BOXES[5:], 3, 0.5, False, "f4", 2),
        "boxes_length": [len(row) for row in BOXES[5:]],
        "label": np.arange(5, 60),
    }
    assert list(batch) == list(wanted)
    for name, rows in wanted.items():
        np.testing.assert_array_equal(batch[name], rows, err_msg=name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"field": "word"}, f'the dataset has no field "word"; {FIELDS}'),
        ({"field": "label"}, 'field "label" has one value in each record, and no length to pad'),
        ({"length": 0}, 'the length of field "tokens" is 0, but must be from 1 to 536870912'),
        ({"value": "x"}, "value='x': expected a number or a boolean"),
        ({"side": "up"}, 'side=\'up\': expected "right" or "left"'),
        ({"too_long": "cut"}, 'too_long=\'cut\': expected "error" or "truncate"'),
        (
            {"value": 0.5},
            'field "tokens" cannot be padded with 0.5: int32 cannot hold it; '
            "give a value of the type of the field",
        ),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"field": "tokens", "length": 8} | given
    with mf.from_arrow(TABLE) as ds, pytest.raises(mf.Error) as caught:
        ds.pad(**arguments)
    assert str(caught.value) == f"Dataset.pad: {message}"


LATE = [[1, 2]] * 2**16 + [[3], [], [4, 5, 6]]  # more lists than are looked at when a file opens


@pytest.mark.parametrize(
    "rows", [[[1, 2, 3]], [[1, 2], None], [[1, 2], [3, 4]], [], [[]], [None], LATE]
)
@pytest.mark.parametrize("source", [arrow, packed, parquet, memory])
def test_lists_that_happen_to_have_one_length(
    source: Callable[..., mf.Dataset], rows: list[Any], tmp_path: Path
) -> None:
    table = pa.table({"x": pa.array(rows, pa.list_(pa.int32()))})
    lengths = [-1 if row is None else len(row) for row in rows]
    with source(tmp_path / "x", table) as ds:
        assert ds.lengths("x").tolist() == lengths
        batch = ds.pad("x", length=4, value=9)[:]
        assert batch["x_length"].tolist() == [max(n, 0) for n in lengths]
        np.testing.assert_array_equal(batch["x"], expected(rows, 4, 9, False, "i4"))
        assert len(ds.filter(ds.lengths("x") > 1)) == sum(n > 1 for n in lengths)
        if rows and None not in rows:
            assert len(ds.window(1, within="x")) == len(rows)
        if rows is LATE and ds.schema["x"].shape == (2,):  # rows of a shape are checked
            with pytest.raises(mf.InvalidArgumentError, match="record 65536 has a list of 1 val"):
                ds[-3:]


def test_lists_of_several_lengths_are_joined() -> None:
    tables = [pa.table({"x": rows}) for rows in ([[1, 2]], [[3, 4, 5]], [[6], [7, 8]])]
    with mf.concat([mf.from_arrow(table) for table in tables]) as ds:
        assert [row.tolist() for row in ds[:]["x"]] == [[1, 2], [3, 4, 5], [6], [7, 8]]
        assert ds.lengths("x").tolist() == [2, 3, 1, 2]
    with mf.concat([mf.from_arrow(tables[0])] * 2) as ds:
        assert ds.schema["x"].shape == (2,)


@pytest.mark.parametrize("source", [arrow, packed, parquet, memory])
def test_lengths_of_rows(source: Callable[[Path], mf.Dataset], tmp_path: Path) -> None:
    def lengths(rows: list[Any]) -> list[int]:
        return [-1 if row is None else len(row) for row in rows]

    utf8 = [None if text is None else text.encode() for text in TEXT]
    with source(tmp_path / "x") as ds, ds.slice(5, 60) as part, ds.slice(3, 3) as none:
        assert ds.lengths("tokens").tolist() == lengths(TOKENS)
        assert ds.lengths("text").tolist() == lengths(utf8)
        assert part.lengths("boxes").tolist() == lengths(BOXES[5:])
        assert none.lengths("text").tolist() == []
        for name, message in (
            ("word", f'the dataset has no field "word"; {FIELDS}'),
            ("label", 'field "label" has one value in each record, and no lengths'),
        ):
            with pytest.raises(mf.Error) as caught:
                ds.lengths(name)
            assert str(caught.value) == f"Dataset.lengths: {message}"


def test_lengths_of_many_rows_take_several_calls() -> None:
    rows = np.arange(2**20 + 5) % 3
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, pa.nulls(int(offsets[-1]), pa.int8()).fill_null(0))
    with mf.from_arrow(pa.table({"x": lists})) as ds:
        np.testing.assert_array_equal(ds.lengths("x"), rows)


def test_a_row_that_is_too_long_is_an_error_of_the_loader() -> None:
    first = next(i for i, row in enumerate(TOKENS) if len(row or []) > 5)
    with mf.from_arrow(TABLE) as ds, pytest.raises(mf.OutOfRangeError) as caught:
        mf.Loader(ds.pad("tokens", length=5), specs=["tokens_length"], batch_size=2)
    assert str(caught.value) == (
        f'mf.Loader: field "tokens": record {first} has {len(TOKENS[first] or [])} elements, but '
        "pad makes rows of 5; give a larger length, or cut longer rows: "
        'too_long="truncate"'
    )
