"""Datasets from files, Arrow objects and NumPy."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import weakref
from pathlib import Path
from typing import Any

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.ipc
import pytest

import meshfeed as mf
from meshfeed._loader import decoding
from tests.python.samples import DTYPES, digits, filled, taken


def rows(ds: mf.Dataset, **kwargs: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Returns all records, in order, through a loader."""
    with mf.Loader(ds, batch_size=len(ds), **kwargs) as loader:
        return {name: np.array(array) for name, array in next(iter(loader)).items()}


def write(path: Path, table: pa.Table, *, stream: bool = False, chunk: int | None = None) -> Path:
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return path


def table(n: int = 20, start: int = 0) -> pa.Table:
    images = filled((n, 4, 3), "float32", 12 * start)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 3)
    return pa.table(
        {
            "image": pa.FixedSizeListArray.from_arrays(flat, 4),
            "label": pa.array(np.arange(start, start + n, dtype=np.int32)),
        }
    )


WHOLE = {"image": filled((20, 4, 3), "float32"), "label": np.arange(20, dtype=np.int32)}


def assert_rows(ds: mf.Dataset, whole: dict[str, np.ndarray[Any, Any]]) -> None:
    got = rows(ds)
    assert got.keys() == whole.keys()
    for name, array in whole.items():
        np.testing.assert_array_equal(got[name], array)
        assert got[name].dtype == array.dtype


# ---- files ----


@pytest.mark.parametrize("stream", [False, True])
def test_a_file(tmp_path: Path, stream: bool) -> None:
    path = write(tmp_path / "x.arrow", table(), stream=stream, chunk=7)
    with mf.open(path) as ds:
        assert_rows(ds, WHOLE)
        assert repr(ds) == "Dataset of 20 records\n  image: float32[4, 3]\n  label: int32"


def test_globs_lists_and_directories_are_sorted_by_name(tmp_path: Path) -> None:
    for i, n in enumerate((5, 1, 14)):
        start = (0, 5, 6)[i]
        write(tmp_path / f"part-{i}.arrow", table(n, start))
    paths = sorted(tmp_path.iterdir())
    for what in (str(tmp_path / "part-*.arrow"), tmp_path, paths, [str(p) for p in paths]):
        with mf.open(what) as ds:
            assert_rows(ds, WHOLE)


@pytest.mark.parametrize("io", ["auto", "map", "read"])
def test_every_way_of_reading(tmp_path: Path, io: Any) -> None:
    with mf.open(write(tmp_path / "x.arrow", table()), io=io) as ds:
        assert_rows(ds, WHOLE)


def test_directories_of_hugging_face(tmp_path: Path) -> None:
    rows_ = {"tokens": [[i, i + 1, i + 2] for i in range(10)], "label": list(range(10))}
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("int32")),
            "label": datasets.Value("int64"),
        }
    )
    whole = datasets.Dataset.from_dict(rows_, features=features)
    whole.save_to_disk(tmp_path / "hf", num_shards=3, num_proc=None)
    with mf.open(tmp_path / "hf") as ds:
        assert_rows(
            ds,
            {
                "tokens": np.array(rows_["tokens"], np.int32),
                "label": np.arange(10),
            },
        )


def test_a_dataset_dict_is_an_error_that_names_its_splits(tmp_path: Path) -> None:
    part = datasets.Dataset.from_dict({"x": [1, 2]})
    datasets.DatasetDict({"train": part, "test": part}).save_to_disk(tmp_path / "hf")
    with pytest.raises(mf.InvalidArgumentError, match="train"):
        mf.open(tmp_path / "hf")
    with mf.open(tmp_path / "hf" / "train") as ds:
        assert len(ds) == 2


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        mf.open(tmp_path / "none.arrow")
    assert isinstance(caught.value, mf.NotFoundError)
    assert str(tmp_path / "none.arrow") in str(caught.value)


def test_an_open_file_that_is_overwritten_is_an_error_with_its_times(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "x.arrow", table())
    os.utime(path, (0, 1_000_000_000))
    with mf.open(path, io="map") as ds, mf.Loader(ds, batch_size=5, prefetch=0) as loader:
        next(iter(loader))
        with path.open("r+b") as file:
            file.write(path.read_bytes())
        os.utime(path, (0, 1_000_000_060))
        with pytest.raises(mf.DataLossError) as caught:
            list(loader)
    assert str(caught.value) == (
        f"mf.Loader: step 1 of epoch 0: {path} has changed since it was opened: its "
        "modification time is 2001-09-09T01:47:40Z, and was 2001-09-09T01:46:40Z; do not write "
        "to a file while it is read: write another and rename it; open the dataset again to read "
        "what the file holds now"
    )


def test_a_file_given_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", table(3))
    (tmp_path / "b.arrow").symlink_to(path)
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.open(tmp_path)
    assert str(caught.value) == (
        f'mf.open: {path} (path 1, "{tmp_path}") and {tmp_path}/b.arrow (path 1, "{tmp_path}") '
        "are the same file, so its records would come twice; leave one out, or pass "
        'duplicates="allow"'
    )
    with mf.open([path, path], duplicates="allow") as ds:
        assert len(ds) == 6


def test_the_error_of_a_damaged_file_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.arrow", table())
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(mf.Error) as caught:
        mf.open(path)
    assert isinstance(caught.value, mf.DataLossError)
    assert str(path) in str(caught.value)


def test_shapes_give_lists_a_shape(tmp_path: Path) -> None:
    pixels = pa.table({"image": [None, list(range(6)), list(range(6, 12))]})
    shapes = {"image": (3, 2)}
    path = write(tmp_path / "x.arrow", pixels)
    with mf.open(path, shapes=shapes) as file, mf.from_arrow(pixels, shapes=shapes) as memory:
        for ds in (file, memory):
            images = rows(ds, fill={"image": -1})["image"].tolist()
            assert images[0] == [[-1, -1]] * 3
            assert images[2] == [[6, 7], [8, 9], [10, 11]]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_shuffling_compressed_files_is_a_warning(
    compression: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding, "DECODED", 20 * 4 * 4 * 3)  # the images of 20 records
    packed, plain = tmp_path / "packed.arrow", write(tmp_path / "plain.arrow", table(40))
    pyarrow.feather.write_feather(table(40), packed, compression=compression)
    with mf.open([plain, packed]) as both, both.slice(0, 40) as part, mf.open(plain) as fast:
        assert repr(both).startswith("Dataset of 80 records, encoded\n")
        assert repr(fast).startswith("Dataset of 40 records\n")
        mf.Loader(fast, batch_size=4, shuffle=True).close()
        mf.Loader(part, batch_size=4).close()
        mf.Loader(part, specs=["label"], batch_size=4, shuffle=True, extras=("key",)).close()
        assert caplog.messages == []
        mf.Loader(part, batch_size=4, shuffle=True).close()
    (message,) = caplog.messages
    assert message.startswith(
        f"{packed} is encoded ({compression}), and its order is random: 960 of 2080 "
        "decoded bytes are kept"
    )
    assert 'use order="blocks", or' in message
    assert message.endswith("without compression: meshfeed convert FILE… FOLDER")


@pytest.mark.parametrize(
    ("order", "window", "decoded"),
    [
        ("blocks", 0, 0),
        (mf.Blocks(window=5), 0, 0),  # 4 windows of 4 record batches
        (mf.Blocks(window=6), 6 * 5, 6 * 5),
        (mf.Blocks(window=4, records=5), 0, 0),
        (mf.Blocks(window=1, records=10), 0, 0),
        (mf.Blocks(window=4, records=1), 4, 4 * 5),
        (mf.Blocks(window=3, records=7), 3 * 7, 3 * 10),
        ("blocks.1:1000:1:0", 80, 80),
    ],
)
def test_blocks_that_are_decoded_again_are_a_warning(
    order: Any,
    window: int,
    decoded: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = 4 * 4 * 3
    monkeypatch.setattr(decoding, "DECODED", 25 * row)
    path = tmp_path / "packed.arrow"
    pyarrow.feather.write_feather(table(80), path, compression="zstd", chunksize=5)
    with mf.open(path) as ds:
        mf.Loader(ds, specs=["image"], batch_size=1, order=order).close()
    expected = (
        f"{path} is encoded (zstd), and shuffled in blocks: a window of {window * row} bytes takes "
        f"the decoding of record batches or row groups of {decoded * row} bytes, and {25 * row} "
        "are kept; give mf.Blocks a smaller window, and no records=, so that the blocks are what "
        "is decoded together"
    )
    assert caplog.messages == ([expected] if decoded else [])


def test_columns_that_are_no_fields_are_listed() -> None:
    mixed = pa.table({"pair": [{"a": 1}, {"a": 2}], "x": pa.array([1, 2], pa.int8())})
    with mf.from_arrow(mixed) as ds:
        assert list(ds.schema) == ["x"]
        (skipped,) = ds.skipped
        assert skipped.name == "pair"
        assert skipped.reason


def test_ragged_fields_are_in_the_schema(tmp_path: Path) -> None:
    """Text, bytes and lists of several lengths are fields, but not arrays of a loader."""
    columns = {
        "x": pa.array([1, 2, 3], pa.int8()),
        "text": ["a", None, "bc"],
        "tokens": [[1], [], [2, 3]],
        "boxes": pa.array([[[1.0, 2.0]], [], None], pa.list_(pa.list_(pa.float32(), 2))),
        "words": [["a"], ["b", "c"], []],
    }
    path = tmp_path / "x.arrow"
    pyarrow.feather.write_feather(pa.table(columns), path, compression="uncompressed")
    listing = (
        "Dataset of 3 records\n"
        "  x: int8\n"
        "  text: uint8[…] (string) (may hold nulls)\n"
        "  tokens: int64[…]\n"
        "  boxes: float32[…, 2] (may hold nulls)\n"
        "  words: uint8[…, …] (string)"
    )
    for ds in (mf.open(path), mf.from_arrow(pa.table(columns))):
        with ds, mf.Loader(ds, batch_size=3) as loader:
            assert repr(ds) == listing
            assert [f.ragged for f in ds.schema.values()] == [0, 1, 1, 1, 2]
            assert ds.skipped == []
            assert list(next(iter(loader))) == ["x"]


def test_a_column_that_cannot_be_an_array_is_an_error_with_the_reason() -> None:
    """The error does not say that the column is missing."""
    message = "array 't' takes column 'text', which is not an array: its rows are text of "
    message += "different lengths; store token ids, or give the bytes one length: "
    message += 'ds.pad("text", length=…)'
    specs = {"n": mf.Array("n"), "t": mf.Array("text")}
    with mf.from_arrow(pa.table({"n": [1, 2], "text": ["a", "b"]})) as ds:
        with pytest.raises(mf.UnsupportedError) as e:
            mf.Loader(ds, specs=specs, batch_size=2)
        assert str(e.value) == f"mf.Loader: {message}"
        with pytest.raises(mf.UnsupportedError) as e:
            mf.layout({}, specs, ds, batch_size=2)
        assert str(e.value) == f"mf.layout: {message}"
        assert rows(ds, specs=["n"])["n"].tolist() == [1, 2]


# ---- Arrow objects ----


class OnlyArray:
    """An object that has only `__arrow_c_array__`, as in some libraries."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        capsules: tuple[object, object] = self.batch.__arrow_c_array__(requested_schema)
        return capsules


def arrow_objects() -> dict[str, Any]:
    flat = pa.table({"x": pa.array([3, 1, 2], pa.int32()), "y": pa.array([0.5, 1.5, 2.5])})
    return {
        "pyarrow.Table": flat,
        "pyarrow.RecordBatch": flat.to_batches()[0],
        "pyarrow.RecordBatchReader": flat.to_reader(),
        "array": OnlyArray(flat.to_batches()[0]),
        "polars": pl.DataFrame(flat),
        "duckdb": duckdb.sql(
            "select x::integer as x, y::double as y "
            "from (values (3, 0.5), (1, 1.5), (2, 2.5)) as t(x, y)"
        ),
        "pandas": pd.DataFrame({"x": np.array([3, 1, 2], np.int32), "y": [0.5, 1.5, 2.5]}),
    }


@pytest.mark.parametrize("name", list(arrow_objects()))
def test_any_library(name: str) -> None:
    fill = {"x": 0, "y": 0.0} if name in ("duckdb", "pandas", "polars") else None
    with mf.from_arrow(arrow_objects()[name]) as ds:
        got = rows(ds, fill=fill)
    np.testing.assert_array_equal(got["x"], np.array([3, 1, 2], np.int32))
    np.testing.assert_array_equal(got["y"], [0.5, 1.5, 2.5])


def test_arrow_memory_is_released_when_it_is_no_longer_needed() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    data = pa.table({"x": pa.array(range(100_000), pa.int64())})
    held = pa.total_allocated_bytes() - before
    assert held >= 800_000
    ds = mf.from_arrow(data)
    loader = mf.Loader(ds, batch_size=100)
    del data
    ds.close()
    gc.collect()
    assert pa.total_allocated_bytes() - before >= held
    assert next(iter(loader))["x"][99] == 99
    loader.close()
    gc.collect()
    assert pa.total_allocated_bytes() - before < held


def test_an_object_without_arrow() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow([1, 2])
    assert str(caught.value) == (
        "mf.from_arrow: list has neither __arrow_c_stream__ nor __arrow_c_array__; "
        "give a table of pyarrow, polars, duckdb or pandas, or use mf.from_arrays"
    )


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (
            datasets.DatasetDict(train=datasets.Dataset.from_dict({"x": [1]})),
            'give one of its splits, such as splits["train"]',
        ),
        (pyarrow.dataset.dataset(pa.table({"x": [1]})), "give what its to_table() returns"),
        (pl.LazyFrame({"x": [1]}), "give what its collect() returns"),
    ],
)
def test_the_remedy_for_an_object_without_arrow(data: Any, remedy: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrow(data)
    assert str(caught.value).endswith(f" nor __arrow_c_array__; {remedy}")


@pytest.mark.parametrize("format", [None, "numpy", "arrow"])
def test_hugging_face_dataset_keeps_its_order(format: str | None) -> None:  # noqa: A002
    rows = {"x": list(range(9)), "pair": [[i, -i] for i in range(9)]}
    feature = datasets.Features(
        {"x": datasets.Value("int32"), "pair": datasets.List(datasets.Value("int64"))}
    )
    whole = datasets.Dataset.from_dict(rows, features=feature)
    shuffled = whole.shuffle(seed=1).select(range(1, 8)).with_format(format)
    assert shuffled.with_format(None)["x"][:] != list(range(1, 8))
    for data in (whole, shuffled, whole.filter(lambda row: row["x"] % 2 == 1)):
        want = data.with_format(None)
        with mf.from_arrow(data) as ds, mf.Loader(ds, batch_size=len(data)) as loader:
            batch = next(iter(loader))
            assert batch["x"].tolist() == want["x"][:]
            assert batch["pair"].tolist() == want["pair"][:]


def test_hugging_face_dataset_is_not_copied() -> None:
    whole = datasets.Dataset.from_dict({"x": np.zeros(1_000_000)})
    before = pa.total_allocated_bytes()
    with mf.from_arrow(whole) as ds:
        assert len(ds) == 1_000_000
        assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_capsule_of_another_kind() -> None:
    class Wrong:
        def __arrow_c_stream__(self) -> object:
            return pa.schema([]).__arrow_c_schema__()

    with pytest.raises(mf.InvalidArgumentError, match="is not a capsule of the name"):
        mf.from_arrow(Wrong())


def test_an_error_of_the_stream_is_passed_on() -> None:
    def broken() -> Any:
        yield table().to_batches()[0]
        message = "the producer has failed"
        raise ValueError(message)

    reader = pa.RecordBatchReader.from_batches(table().schema, broken())
    with pytest.raises(mf.Error, match="the producer has failed"):
        mf.from_arrow(reader)


# ---- NumPy ----


@pytest.mark.parametrize("name", [*DTYPES, "int64", "uint64", "float64", "complex128"])
def test_numpy_types(name: str) -> None:
    whole = {"x": filled((9, 2, 3), name), "y": filled((9,), name)}
    with mf.from_arrays(whole) as ds:
        assert ds.schema["x"] == mf.Field((2, 3), name, name="x")
        assert ds.schema["x"].numpy_dtype == whole["x"].dtype
        assert_rows(ds, whole)


def test_strided_arrays() -> None:
    base = filled((12, 4, 6), "int32")
    whole = {
        "rows": base[::3],
        "backwards": base[3::-1],
        "columns": base[:4, :, ::2],
        "transposed": base[:4].transpose(0, 2, 1),
        "fortran": np.asfortranarray(base[:4]),
        "broadcast": np.broadcast_to(base[0, 0], (4, 6)),
        "unaligned": np.frombuffer(bytes(1) + base[:4].tobytes(), np.int32, offset=1).reshape(
            4, 4, 6
        ),
    }
    with mf.from_arrays(whole) as ds:
        assert_rows(ds, whole)


def test_numpy_memory_is_released_when_it_is_no_longer_needed() -> None:
    array = np.arange(10)
    gone = weakref.ref(array)
    ds = mf.from_arrays({"x": array})
    del array
    loader = mf.Loader(ds, batch_size=5)
    part = ds.slice(0, 5)
    ds.close()
    loader.close()
    gc.collect()
    assert gone() is not None
    part.close()
    gc.collect()
    assert gone() is None


def test_arrays_that_the_library_refuses_are_released() -> None:
    array = np.arange(10)
    gone = weakref.ref(array)
    with pytest.raises(mf.InvalidArgumentError, match="records"):
        mf.from_arrays({"x": array, "y": np.arange(9)})
    del array
    gc.collect()
    assert gone() is None


# ---- datasets ----


def test_slices() -> None:
    whole = digits(10)
    with mf.from_arrays(whole) as ds, ds.slice(3, 7) as part, part.slice(1, 2) as one:
        assert (len(part), len(one)) == (4, 1)
        assert_rows(part, {name: array[3:7] for name, array in whole.items()})
        assert_rows(one, taken(whole, np.array([4])))
        assert part.fingerprint() != ds.fingerprint()
        with pytest.raises(mf.Error):
            ds.slice(3, 11)


def test_the_fingerprint_depends_on_the_content(tmp_path: Path) -> None:
    with mf.from_arrays(digits(10)) as ds, mf.from_arrays(digits(10)) as same:
        assert ds.fingerprint() == same.fingerprint()
        assert len(ds.fingerprint()) == 32
    with mf.from_arrays(digits(11)) as other:
        assert other.fingerprint() != ds_fingerprint()


def test_one_of_a_million_values_in_memory_changes_the_fingerprint() -> None:
    n = 1_000_000
    changed = np.arange(n)
    changed[123_456] = -1
    arrays = [mf.from_arrays({"x": x}) for x in (np.arange(n), changed)]
    tables = [mf.from_arrow(pa.table({"x": x})) for x in (np.arange(n), changed)]
    for ds, other in (arrays, tables):
        assert ds.fingerprint() != other.fingerprint()
        assert ds.fingerprint_covers == 1.0


def test_the_fingerprint_of_data_in_memory_does_not_depend_on_chunks() -> None:
    whole = pa.table({"x": pa.array([*range(500), None]), "y": np.arange(501.0)})
    chunks = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7)])
    coded = pa.table({"x": whole["x"], "y": whole["y"].dictionary_encode()})
    prints = set()
    for same in (whole, chunks, coded):
        with mf.from_arrow(same) as ds:
            prints.add(ds.fingerprint())
    assert len(prints) == 1


def test_files_of_more_than_16_mib_are_sampled_and_hashed_whole_on_request(tmp_path: Path) -> None:
    n = 3_000_000
    changed = np.arange(n)
    changed[n // 2 + 5] = -1
    paths = [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    for path, x in zip(paths, (np.arange(n), changed), strict=True):
        write(path, pa.table({"x": x}))
    with mf.open(paths[0]) as ds, mf.open(paths[1]) as other:
        assert ds.fingerprint() == other.fingerprint()
        assert 0 < ds.fingerprint_covers < 0.02
        each = [hashlib.sha256(path.read_bytes()) for path in paths]
        assert ds.sha256() == hashlib.sha256(each[0].digest()).hexdigest()
        assert other.slice(0, 5).sha256() == hashlib.sha256(each[1].digest()).hexdigest()


def test_data_in_memory_have_no_sha256() -> None:
    with mf.from_arrays(WHOLE) as ds, pytest.raises(mf.UnsupportedError) as caught:
        ds.sha256()
    text = "Dataset.sha256: the dataset is in memory and has no files to hash; "
    assert str(caught.value) == text + "the fingerprint covers data in memory"


def ds_fingerprint() -> str:
    with mf.from_arrays(digits(10)) as ds:
        return ds.fingerprint()


def test_a_closed_dataset_is_an_error() -> None:
    ds = mf.from_arrays(digits(4))
    ds.close()
    ds.close()
    with pytest.raises(mf.InvalidStateError) as caught:
        ds.slice(0, 1)
    assert str(caught.value) == "Dataset.slice: the dataset is closed; make another"


def test_a_dataset_is_not_pickled() -> None:
    with mf.from_arrays(digits(4)) as ds, pytest.raises(mf.InvalidStateError) as caught:
        pickle.dumps(ds)
    assert str(caught.value) == (
        "mf.Dataset: a dataset cannot be pickled: it belongs to this process; "
        "send the paths, and open them in the other process"
    )


def test_nulls_need_a_fill_value() -> None:
    data = pa.table({"x": pa.array([1, None, 3], pa.int32())})
    with mf.from_arrow(data) as ds:
        assert ds.schema["x"].nullable
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, batch_size=3)
        assert str(caught.value) == (
            'mf.Loader: field "x" holds nulls, and arrays cannot; give the field a fill value '
            '(fill={"x": -1}), or leave out the records that have nulls (ds.filter)'
        )
        for view in (ds.filter([True, False, True]), ds.take([2, 0])):  # as the error says
            assert sorted(rows(view)["x"].tolist()) == [1, 3]
        with mf.Loader(ds.slice(0, 2), batch_size=2) as loader:
            with pytest.raises(mf.InvalidArgumentError, match="record 1 holds a null, and arrays"):
                next(iter(loader))
        np.testing.assert_array_equal(rows(ds, fill={"x": -1})["x"], [1, -1, 3])


@pytest.mark.parametrize("value", [0, 2.5, np.nan, -np.inf, np.float32(1.5), np.int64(3)])
def test_fill_values(value: Any) -> None:
    data = pa.table({"x": pa.array([1.0, None])})
    with mf.from_arrow(data) as ds:
        np.testing.assert_array_equal(rows(ds, fill={"x": value})["x"], [1, value])


def test_a_fill_value_that_does_not_fit() -> None:
    data = pa.table({"x": pa.array([1, None], pa.int8())})
    with mf.from_arrow(data) as ds:
        for value in (300, 0.5, True):
            with pytest.raises(mf.InvalidArgumentError, match="cannot hold it"):
                mf.Loader(ds, batch_size=2, fill={"x": value})
