"""Columns that cannot be arrays and input that is not a table: the errors, and their remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import mesh_of


def rows(ds: mf.Dataset, **kwargs: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Loads all records in order."""
    with mf.Loader(ds, specs=list(ds.schema), batch_size=len(ds), **kwargs) as loader:
        return {name: np.array(array) for name, array in next(iter(loader)).items()}


def write(path: Path, table: pa.Table) -> Path:
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def reasons(ds: mf.Dataset) -> dict[str, str]:
    return {s.name: f"{s.type}: {s.reason}" for s in ds.skipped}


WIDE = pl.DataFrame({"a": [1, 2], "i": pl.Series([1, 2], dtype=pl.Int128), "b": [0.5, 1.5]})


def test_an_unknown_type_is_skipped_alone(tmp_path: Path) -> None:
    with mf.from_arrow(WIDE) as ds:
        assert reasons(ds) == {
            "i": 'unknown type "_pli128": its type is not known here; '
            "cast it to a type of numbers, or leave it out"
        }
        assert rows(ds, fill={"a": 0, "b": 0.0})["b"].tolist() == [0.5, 1.5]
    WIDE.write_ipc(tmp_path / "x.arrow")
    with mf.open(tmp_path / "x.arrow") as ds:
        assert reasons(ds) == {
            "i": "int128: arrays have no type int128; cast it to int64 or float64, or leave it out"
        }
    with mf.from_arrow(WIDE.with_columns(pl.col("i").cast(pl.Int64))) as ds:
        assert list(ds.schema) == ["a", "i", "b"]
    with mf.from_arrow(WIDE.select(pl.concat_list("i"), "a")) as ds:  # also inside of lists
        assert list(ds.schema) == ["a"]


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        (
            pl.DataFrame({"e": pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"]))}),
            lambda t: t.with_columns(pl.col("e").to_physical()),
        ),
        (
            pl.DataFrame({"e": pl.Series(["b", "a"], dtype=pl.Categorical)}),
            lambda t: t.with_columns(pl.col("e").to_physical()),
        ),
        (
            pd.DataFrame({"e": pd.Categorical(["b", "a"])}),
            lambda t: t.assign(e=t["e"].cat.codes),
        ),
        (
            pa.table({"e": pa.array(["b", "a"]).dictionary_encode()}),
            lambda t: pa.table({"e": t["e"].combine_chunks().indices}),
        ),
    ],
    ids=["Enum", "Categorical", "pandas", "pyarrow"],
)
def test_categories_of_text_have_numbers(table: Any, codes: Callable[[Any], Any]) -> None:
    with mf.from_arrow(table) as ds, pytest.raises(mf.UnsupportedError) as caught:
        mf.Loader(ds, specs=["e"], batch_size=1)
    remedy = "column.combine_chunks().indices in pyarrow, to_physical() in polars"
    assert f"; store the indices instead: {remedy}" in str(caught.value)
    with mf.from_arrow(codes(table)) as ds:
        assert len(set(rows(ds, fill={"e": 0})["e"].tolist())) == 2


def test_objects_of_polars_are_refused() -> None:
    table = pl.DataFrame({"a": [1], "o": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow(table)
    message = "mf.from_arrow: column 'o' holds Python objects; leave it out: table.drop('o')"
    assert str(caught.value) == message
    with mf.from_arrow(table.drop("o")) as ds:
        assert list(ds.schema) == ["a"]


def test_encoded_images_are_named(tmp_path: Path) -> None:
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    features = datasets.Features({"img": datasets.Image(), "label": datasets.Value("int64")})
    whole = datasets.Dataset.from_dict(
        {"img": [{"bytes": b"never looked at", "path": None}], "label": [1]}, features=features
    )
    whole.save_to_disk(tmp_path / "encoded")
    with mf.open(tmp_path / "encoded") as ds, pytest.raises(mf.UnsupportedError) as caught:
        mf.Loader(ds, specs=["img"], batch_size=1)
    assert str(caught.value) == (
        "mf.Loader: array 'img' takes column 'img', which is not an array: its rows are bytes of "
        'different lengths; store decoded elements, give them a shape: ds.reshape("img", …), '
        'or give them one length: ds.pad("img", length=…)'
    )
    feature = datasets.Features({"img": datasets.Array3D((4, 4, 3), "uint8")})
    datasets.Dataset.from_dict({"img": [pixels]}, features=feature).save_to_disk(tmp_path / "raw")
    with mf.open(tmp_path / "raw") as ds:
        np.testing.assert_array_equal(rows(ds)["img"][0], pixels)


def test_skipped_columns_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    data = pa.table({"x": [1, 2], "t": ["a", "b"], "d": pa.array([None, None])})
    with mf.from_arrow(data) as ds, ds.slice(0, 1) as part:
        mf.Loader(ds, specs=["x"], batch_size=1).close()
        assert caplog.messages == []
        for _ in range(2):
            mf.Loader(ds, batch_size=1).close()
            mf.Loader(part, mesh_of((1,)), P(), batch_size=1).close()
    assert caplog.messages == [
        "columns that cannot be arrays are not in the batches: 't' (its rows are text of different "
        "lengths), 'd' (it holds nothing but nulls); "
        "specs that name fields, such as a list of names, avoid this warning"
    ]


def test_a_fill_value_for_a_skipped_column() -> None:
    with mf.from_arrow(pa.table({"x": [1], "t": ["a"]})) as ds:
        with pytest.raises(mf.UnsupportedError) as caught:
            mf.Loader(ds, batch_size=1, fill={"t": 0})
    assert str(caught.value) == (
        "mf.Loader: fill={'t': 0}: column 't' is not an array: its rows are text of "
        "different lengths; store token ids, or give the bytes one length: "
        'ds.pad("t", length=…)'
    )


@pytest.mark.parametrize(
    ("shapes", "file", "memory"),
    [
        (
            {"x": (4,)},
            'field "x" cannot have rows of shape [4]: 2 lists hold 6 values, 3 each, where the '
            "shape of the rows needs 4; leave its shape out, correct it, or pad or cut the lists "
            "to one length",
            'field "x": record 0 has a list of 3 values in dimension 0, where the shape [4] of '
            "the rows needs 4; pad or cut the lists to one length, or give the right shape",
        ),
        (
            {"x": (-1, 3)},
            "shapes['x'][0]=-1: expected an integer from 0 to 2^63-1; give every length: none is "
            "computed from the others",
            None,
        ),
        (
            {"t": (1,)},
            'field "t" holds text, whose rows have no shape; leave its shape out, or correct it',
            None,
        ),
        (
            {"f": (2, 3)},
            'field "f" has rows of 4 values, but shape [2 3] needs 6; '
            "leave its shape out, or correct it",
            None,
        ),
        (
            {"y": (1,)},
            'a shape is given for "y", but there is no such column; there are "x", "t", "f"',
            None,
        ),
    ],
    ids=["too long", "-1", "of text", "folded", "of nothing"],
)
def test_shapes_that_do_not_fit(
    shapes: dict[str, tuple[int, ...]], file: str, memory: str | None, tmp_path: Path
) -> None:
    fixed = pa.array([[1, 2, 3, 4]] * 2, pa.list_(pa.int32(), 4))
    data = pa.table({"x": [[1, 2, 3], [4, 5, 6]], "t": ["a", "b"], "f": fixed})
    path = write(tmp_path / "x.arrow", data)
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.open(path, shapes=shapes)
    assert str(caught.value) == f"mf.open: {file}"
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow(data, shapes=shapes)
    assert str(caught.value) == f"mf.from_arrow: {memory or file}"


IMAGES = np.arange(4 * 12, dtype=np.float32).reshape(4, 3, 4)
PIXELS = [image.tobytes() for image in IMAGES]
TYPES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(48)]


def sources(path: Path, table: pa.Table, **given: Any) -> Iterator[mf.Dataset]:
    """Opens a table in memory, and in files."""
    pq.write_table(table, path / "x.parquet", row_group_size=2)
    for one in (
        mf.from_arrow(table, **given),
        mf.open(write(path / "x.arrow", table), **given),
        mf.open(path / "x.parquet", **given),
    ):
        with one as ds:
            yield ds


@pytest.mark.parametrize("typ", TYPES, ids=str)
def test_bytes_have_a_shape(typ: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"b": pa.array(PIXELS).cast(typ)})
    utf8 = np.frombuffer(b"".join(PIXELS), np.uint8).reshape(4, 12, 4)
    for given, want in (
        (jax.ShapeDtypeStruct((3, 4), "float32"), IMAGES),
        ((12, 4), utf8),
        (jax.ShapeDtypeStruct((24,), jnp.bfloat16), utf8.view(jnp.bfloat16).reshape(4, 24)),
    ):
        for ds in sources(tmp_path, table, shapes={"b": given}):
            np.testing.assert_array_equal(ds[:]["b"], want)
            np.testing.assert_array_equal(rows(ds)["b"], want)
            with mf.Loader(
                ds, mf.make_mesh({"data": 4, "model": 2}), P("data"), batch_size=4
            ) as cut:
                np.testing.assert_array_equal(next(iter(cut))["b"], want)
        shape, dtype = (given, None) if isinstance(given, tuple) else (given.shape, given.dtype)
        for ds in sources(tmp_path, table):
            with ds.slice(1, 4).reshape("b", shape, dtype=dtype) as view:
                np.testing.assert_array_equal(rows(view.take([2, 0]))["b"], want[[3, 1]])


def test_bytes_of_another_size(tmp_path: Path) -> None:
    table = pa.table({"b": [*PIXELS[:3], None, b"short"], "id": range(5)})
    given = {"b": jax.ShapeDtypeStruct((3, 4), "float32")}
    for number, ds in enumerate(sources(tmp_path, table, shapes=given)):
        whole = ds.slice(0, 4)
        np.testing.assert_array_equal(
            rows(whole, fill={"b": -1.0})["b"][2:], [IMAGES[2], [[-1.0] * 4] * 3]
        )
        np.testing.assert_array_equal(ds.pad("b", length=5)[1]["b"][3:], np.zeros((2, 4)))
        with pytest.raises(mf.InvalidArgumentError) as caught:
            rows(ds, fill={"b": 0.0})
        assert (f"{tmp_path}/x." in str(caught.value)) == (number > 0)
        assert str(caught.value).endswith(
            'field "b": record 4 has 5 bytes, but rows of shape [3 4] and type float32 have 48; '
            "give the shape that the rows have, or leave out this record (ds.filter)"
        )


def test_lists_of_another_size_are_named_by_a_view(tmp_path: Path) -> None:
    for number, ds in enumerate(sources(tmp_path, pa.table({"l": [[1, 2, 3, 4], [5], None]}))):
        view = ds.reshape("l", (2, 2))
        assert rows(view.take([0, 2]), fill={"l": 0})["l"].tolist() == [
            [[1, 2], [3, 4]],
            [[0, 0]] * 2,
        ]
        with pytest.raises(mf.InvalidArgumentError) as caught:
            rows(view, fill={"l": 0})
        assert str(caught.value).startswith("mf.Loader: step 0 of epoch 0: ")
        assert (f"{tmp_path}/x." in str(caught.value)) == (number > 0)
        assert (
            'field "l": record 1 has 8 bytes, but rows of shape [2 2] and type int64 have 32'
            in str(caught.value)
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("b", (3, 4))], "shapes=[('b', (3, 4))]: expected the shape of a row for every field"),
        ({"b": 4}, "shapes['b']=4: expected the lengths of a row, such as (16, 16, 3)"),
        ({"b": jax.ShapeDtypeStruct((3, 4), "bool")}, "shapes['b'].dtype=dtype('bool'): expected"),
        ({"b": np.dtype(">f4")}, "shapes['b']=dtype('>f4'): expected the lengths of a row"),
        ({"b": mf.Field((2,), ">f4", name="b")}, "shapes['b'].dtype='>f4': expected a little-"),
        ({"b": (3, 0)}, 'field "b" cannot have rows of shape [3 0]'),
        ({"l": jax.ShapeDtypeStruct((1,), "int16")}, 'field "l" holds no binary values, so its'),
        ({"f": jax.ShapeDtypeStruct((2,), "int16")}, '"f" has rows of 3 bytes, but rows of shape'),
        ({"f": (2,)}, 'field "f" has rows of 3 elements in dimension 0 by its type'),
    ],
)
def test_shapes_that_bytes_cannot_have(given: Any, message: str) -> None:
    table = pa.table({"b": [b"x"], "l": [[1, 2]], "f": pa.array([b"abc"], pa.binary(3))})
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow(table, shapes=given)
    assert message in str(caught.value)


def test_a_reader_is_read_once() -> None:
    data = pa.table({"x": [1, 2]})
    reader = data.to_reader()
    with mf.from_arrow(reader) as ds:
        assert len(ds) == 2
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow(reader)
    assert str(caught.value) == (
        "mf.from_arrow: the RecordBatchReader has no records left; "
        "a reader is read once: give the table, or a new reader"
    )
    with mf.from_arrow(data[:0]) as ds:
        assert len(ds) == 0


def test_other_objects_name_a_remedy() -> None:
    data = pa.table({"x": [1, 2]})
    messages = {}
    for name, given in (
        ("list", data.to_batches()),
        ("array", pa.array([1])),
        ("series", WIDE["a"]),
    ):
        with pytest.raises(mf.Error) as caught:
            mf.from_arrow(given)
        messages[name] = str(caught.value)
    alone = (
        "mf.from_arrow: the stream cannot be read: the stream holds arrays of int64, not record "
        "batches; pass an object that gives record batches, such as a table that has the array "
        "as a column"
    )
    assert messages == {
        "list": "mf.from_arrow: list has neither __arrow_c_stream__ nor __arrow_c_array__; "
        "give pyarrow.Table.from_batches(batches)",
        "array": alone,
        "series": alone,
    }
    with mf.from_arrow(pa.Table.from_batches(data.to_batches())) as ds:
        assert len(ds) == 2


def test_the_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "x.arrow", pa.table({"x": [1, 2]}))
    for path in ("~/x.arrow", "~/*.arrow", Path("~/x.arrow")):
        with mf.open(path) as ds:
            assert len(ds) == 2
    with pytest.raises(mf.NotFoundError) as caught:
        mf.open("~no-such-user/x.arrow")
    assert str(caught.value) == (
        "mf.open: ~no-such-user/x.arrow: there is no such file or directory; "
        "~ is not replaced here: write the whole path"
    )


WORDS = [
    "short",
    "a text of more than 12 bytes",
    None,
    "",
    "ünïcode, which is longer than 12 bytes",
]


def test_text_of_polars(tmp_path: Path) -> None:
    """Polars writes views of text, in memory and in files, also in lists and dictionaries."""
    raw = [word.encode() if word else None for word in WORDS]
    table = pl.DataFrame(
        {
            "text": WORDS,
            "raw": raw,
            "kind": pl.Series(WORDS, dtype=pl.Categorical),
            "many": [WORDS, [], None, ["x"], [""]],
        }
    )
    table.write_ipc(tmp_path / "x.arrow")
    table.write_ipc_stream(tmp_path / "x.arrows", compression="zstd")
    length = max(len(word.encode()) for word in WORDS if word)
    padded = [list((word or "").encode().ljust(length, b"\0")) for word in WORDS]
    for ds in (
        mf.from_arrow(table),
        mf.from_arrow(pl.concat([table, table], rechunk=False).slice(5, 5)),
        mf.open(tmp_path / "x.arrow"),
        mf.open(tmp_path / "x.arrow", io="read"),
        mf.open(tmp_path / "x.arrows"),
    ):
        assert [ds.schema[name].ragged for name in table.columns] == [1, 1, 1, 2]
        assert ds.lengths("many").tolist() == [5, 0, -1, 1, 1]
        for name in ("text", "raw", "kind"):
            lengths = [
                -1 if w is None or (name == "raw" and not w) else len(w.encode()) for w in WORDS
            ]
            assert ds.lengths(name).tolist() == lengths
            got = rows(ds.pad(name, length=length).select([name]))[name]
            assert got.tolist() == padded
