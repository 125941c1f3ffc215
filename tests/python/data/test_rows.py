"""Rows of a dataset by number, and a dataset as a source of other loaders."""

from __future__ import annotations

import base64
import datetime as dt
import io
import itertools
import random
import re
import signal
import threading
from pathlib import Path
from typing import Any

import grain
import ml_dtypes
import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import meshfeed as mf
from meshfeed._data import masks, preview

NOW = dt.datetime(2026, 1, 2, 3, 4, 5)

COLUMNS: dict[str, pa.Array] = {
    "i": pa.array([1, 2, 3, 4], pa.int32()),
    "null": pa.array([1.5, None, 2.5, None]),
    "bool": pa.array([True, False, None, True]),
    "half": pa.array(np.arange(4, dtype=np.float16)),
    "vector": pa.array([[1, 2], [3, None], None, [None, None]], pa.list_(pa.int16(), 2)),
    "text": pa.array(["a", None, "", "ä\U0001f600"]),
    "bytes": pa.array([b"\x00", b"", None, b"xy"], pa.large_binary()),
    "word": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "tokens": pa.array([[1, 2], [], None, [3, None]]),
    "words": pa.array([["a", None], [], None, ["b"]]),
    "nested": pa.array([[[1], [2, 3]], [], None, [None, []]], pa.list_(pa.list_(pa.int8()))),
    "points": pa.array([[[1, 2], None], [], None, [[3, 4]]], pa.list_(pa.list_(pa.int8(), 2))),
    "seen": pa.array([NOW, None, NOW, NOW], pa.timestamp("us", "UTC")),
    "day": pa.array([NOW.date()] * 4, pa.date32()),
    "late": pa.array([NOW] * 4, pa.date64()),
    "took": pa.array([1, 2, 3, 4], pa.duration("ms")),
    "time": pa.array([1, 2, 3, 4], pa.time32("s")),
    "fixed": pa.array([b"abc"] * 4, pa.binary(3)),
}


def plain(value: Any) -> Any:
    """Returns a value of a row as pyarrow's `to_pylist` would."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, np.ma.MaskedArray | np.ndarray | np.generic):
        value = value.tolist()
        return (
            [
                None if isinstance(v, list) and v and not any(v) and v[0] is None else v
                for v in value
            ]
            if isinstance(value, list)
            else value
        )
    return value


def want(name: str, row: int) -> Any:
    value = COLUMNS[name].to_pylist()[row]
    if name == "vector" and row == 3:
        return None  # a row of nulls is a null
    match name, value:
        case _, None:
            return None
        case "seen", _:
            return NOW
        case "took", _:
            return dt.timedelta(milliseconds=row + 1)
        case "time", _:
            return dt.timedelta(seconds=row + 1)
        case "late", _:
            return dt.datetime(NOW.year, NOW.month, NOW.day)
        case "fixed", _:
            return list(b"abc")
    return value


@pytest.fixture(scope="module")
def ds() -> mf.Dataset:
    return mf.from_arrow(pa.table(COLUMNS))


def test_every_kind_of_column(ds: mf.Dataset) -> None:
    for i in range(4):
        row = ds[i]
        assert list(row) == list(COLUMNS)
        for name, value in row.items():
            assert plain(value) == want(name, i), (name, i)
    several = ds[[3, 0]]
    for name, column in several.items():
        found = [plain(v) for v in column] if isinstance(column, list) else plain(column)
        expected = [want(name, i) for i in (3, 0)]
        assert [plain(v) for v in found] == expected, name
    assert several["i"].dtype == np.int32
    assert several["half"].dtype == np.float16
    assert several["bool"].dtype == np.bool_
    assert isinstance(several["null"], np.ma.MaskedArray)
    assert not isinstance(several["i"], np.ma.MaskedArray)
    assert isinstance(ds[:0]["null"], np.ma.MaskedArray)
    assert several["seen"].dtype == "M8[us]"
    assert several["day"].dtype == "M8[D]"
    assert [len(ds[:0][name]) for name in COLUMNS] == [0] * len(COLUMNS)


def test_types_that_arrow_has_not() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "bf16": rng.random((5, 2, 3), np.float32).astype(ml_dtypes.bfloat16),
        "complex": (rng.random((5, 2)) + 1j).astype(np.complex64),
        "one": np.arange(5) * 1j,
        "flags": rng.random((5, 9)) < 0.5,
        "when": np.arange(5).astype("M8[h]"),
        "huge": np.arange(5, dtype=np.uint64) + 2**63,
        "empty": np.zeros((5, 0, 3), np.int8),
    }
    with mf.from_arrays(arrays) as ds:
        for name, found in ds[[4, 4, 1]].items():
            assert found.dtype == arrays[name].dtype or name == "when"
            assert found.tolist() == arrays[name][[4, 4, 1]].tolist()
            assert found.shape == arrays[name][[4, 4, 1]].shape
        assert ds[1]["bf16"].shape == (2, 3)


def test_indices_are_those_of_numpy() -> None:
    x = np.arange(100)
    with mf.from_arrays({"x": x}) as ds:
        draw = random.Random(seed := random.randrange(2**32))
        for _ in range(200):
            a, b, c = (draw.choice([None, draw.randint(-120, 120)]) for _ in range(3))
            index = slice(a, b, c or None)
            assert ds[index]["x"].tolist() == x[index].tolist(), (seed, index)
        numbers = [draw.randint(-100, 99) for _ in range(50)]
        for given in (numbers, np.array(numbers, np.int8), tuple(numbers), pa.array(numbers)):
            assert ds[given]["x"].tolist() == x[numbers].tolist()
        assert ds[np.uint64(7)]["x"] == ds[np.array(7)]["x"] == 7
        assert ds[x % 3 == 0]["x"].tolist() == x[x % 3 == 0].tolist()
        assert ds[[]]["x"].tolist() == []
        assert [row["x"] for row in ds] == x.tolist()
        assert [row["x"] for row in ds.__getitems__([3, -1])] == [3, 99]
        assert ds.head(2)["x"].tolist() == [0, 1]
        assert ds.head(1000)["x"].tolist() == x.tolist()
        rows = ds[:2]
        rows["x"][0] = 7  # copies
        assert ds[0]["x"] == 0


def test_indices_of_small_types() -> None:
    x = np.arange(1000)
    with mf.from_arrays({"x": x}) as ds:
        for given in (np.array([200, 0], np.uint8), np.array([-1, 127], np.int8)):
            assert ds[given]["x"].tolist() == x[given].tolist()
        assert ds[np.int8(-1)]["x"] == ds[np.array([999], np.uint64)]["x"][0] == 999
        assert ds[x.astype(object)[:3]]["x"].tolist() == [0, 1, 2]


def test_each_index_out_of_range() -> None:
    with mf.from_arrays({"x": np.arange(10)}) as ds:
        for index in (10, -11, 2**80, [2**80], [0, 10], np.array([2**63 + 1], np.uint64)):
            with pytest.raises(mf.OutOfRangeError, match=r"is not one of the 10 records"):
                ds[index]
        masked = np.ma.array([1, 2], mask=[False, True])
        for wrong in (slice(1.5, 2), slice(0, 5, 0), masked, 1j):
            with pytest.raises(mf.InvalidArgumentError, match=r"Dataset: index="):
                ds[wrong]
    with mf.from_arrays({"x": np.arange(0)}) as empty:
        with pytest.raises(IndexError, match=r"the 0 records of the dataset$"):
            empty[0]
        assert list(empty) == []
        assert len(empty.filter(lambda rows: rows["x"] > 0)) == 0


def test_text_that_is_not_utf8() -> None:
    offsets, data = pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")
    table = pa.table({"t": pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])})
    with mf.from_arrow(table) as ds:
        assert ds[0] == {"t": "a"}
        with pytest.raises(mf.DataLossError) as error:
            ds[1]
        assert str(error.value) == (
            "Dataset: a row of the field 't' is not UTF-8: b'\\xff\\xfe'; write the column as "
            "binary, or correct the file"
        )
        assert "is not UTF-8" in ds._repr_html_()


def memory(array: np.ndarray[Any, Any]) -> int:
    """Returns the bytes that an array keeps, its own and the bytes of what it is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes


def test_a_loop_reads_few_rows_at_once_and_keeps_one() -> None:
    records = 500
    sizes = np.full(records, 100_000)
    tokens = pa.ListArray.from_arrays(
        np.r_[0, sizes.cumsum()].astype(np.int32), np.zeros(sizes.sum(), np.int8)
    )
    columns = {"tokens": tokens, "x": [[1, 2], None] * (records // 2)}
    with mf.from_arrow(pa.table(columns), shapes={"x": (2,)}) as ds:
        batches = [stop - start for start, stop, _ in ds._reader.batches(ds.handle, records)]
        assert batches[:2] == [16, 41]  # at most 4 MiB after the first
        assert sum(batches) == records
        for row in itertools.islice(ds, 2):
            assert memory(row["tokens"]) == 100_000
            assert row["x"] is None or memory(row["x"]) == 16


def test_rows_live_longer_than_their_dataset() -> None:
    x = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    with mf.from_arrays({"x": x}) as ds:
        rows, one = ds[:512]["x"], ds[1023]["x"]
    rows[0] = 7  # the large array is lent, the small one copied; both may be changed
    one[0] = 7
    assert (rows[1:] == x[1:512]).all()
    assert (one[1:] == x[1023, 1:]).all()
    assert x[0, 0] == 0


def test_wrong_indices(ds: mf.Dataset) -> None:
    for index, text in (
        (4, "record 4 is not one of the 4 records of the dataset; give numbers from -4 to 3"),
        (
            [0, -5],
            "record -5 is not one of the 4 records of the dataset; give numbers from -4 to 3",
        ),
    ):
        with pytest.raises(IndexError) as error:
            ds[index]
        assert str(error.value) == f"Dataset: {text}"
    expected = "expected a record number, a slice, a list of numbers or a mask"
    for wrong, text in (
        ("i", f"index='i': {expected}; ds.select(['i'])[:] has the rows of a field"),
        (1.5, f"index=1.5: {expected}"),
        (None, f"index=None: {expected}"),
        ([[1]], f"index=[[1]]: {expected}"),
        (
            [True],
            f"index=[True]: {expected}; a mask has one value for each of the 4 records, and this "
            "has 1",
        ),
    ):
        with pytest.raises(mf.InvalidArgumentError) as refused:
            ds[wrong]
        assert str(refused.value) == f"Dataset: {text}"
    with mf.from_arrow(pa.table({"x": pa.nulls(3)})) as none:
        with pytest.raises(mf.InvalidArgumentError, match="'x'"):
            none[0]
    with mf.from_arrays({"x": np.arange(3)}) as closed:
        pass
    with pytest.raises(mf.InvalidStateError, match="closed"):
        closed[0]


def test_threads(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(1000), "t": [f"record {i}" for i in range(1000)]})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    failed = []
    with mf.open(tmp_path / "x.arrow") as ds:

        def visit(first: int) -> None:
            for i in range(first, 1000, 4):
                if ds[i] != {"x": i, "t": f"record {i}"}:
                    failed.append(i)  # noqa: PERF401

        threads = [threading.Thread(target=visit, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []


def test_a_function_filters(tmp_path: Path) -> None:
    x = np.arange(10_000)
    with mf.from_arrow(pa.table({"x": x, "text": [f"{i:x}" for i in x]})) as ds:
        calls = []

        def even(rows: dict[str, Any]) -> Any:
            calls.append(len(rows["x"]))
            assert list(rows) == ["x"]
            return rows["x"] % 2 == 0

        kept = ds.filter(even, fields=["x"])
        assert kept[:3]["x"].tolist() == [0, 2, 4]
        assert (len(kept), sum(calls)) == (5000, 10_000)
        assert len(calls) > 1
        assert kept.fingerprint() == ds.filter(x % 2 == 0).fingerprint()
        words = ds.filter(lambda rows: np.array([t == "ff" for t in rows["text"]]))
        assert words[0]["x"] == 255
        with pytest.raises(mf.InvalidArgumentError) as wrong:
            ds.filter(lambda rows: rows["x"])
        assert str(wrong.value) == (
            "Dataset.filter: for records 0 to 15, the function returned int64[16]: expected one "
            "boolean for each of the 16 rows; compare the arrays of the batch, as in "
            "rows['label'] == 3"
        )
        with pytest.raises(mf.InvalidArgumentError, match="combine with & and"):
            ds.filter(lambda rows: np.bool_(True), fields=["x"])
        with pytest.raises(mf.InvalidArgumentError, match=r"rows\['text'\] is a list: \[value == "):
            ds.filter(lambda rows: rows["text"] == "ff", fields=["text"])
        with pytest.raises(mf.InvalidArgumentError, match="fields= is for a function"):
            ds.filter(x == 0, fields=["x"])
        with pytest.raises(ZeroDivisionError) as error:
            ds.filter(lambda rows: rows["x"] >= 1 // int(16 not in rows["x"]))
        assert error.value.__notes__ == ["the function got records 16 to 143"]
    nulls = mf.from_arrow(pa.table({"x": [1, None]}))
    with pytest.raises(
        mf.InvalidArgumentError, match=r"missing values; return mask\.filled\(False\)"
    ):
        nulls.filter(lambda rows: rows["x"] > 0)


def test_a_filter_logs_its_progress(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masks, "PROGRESS", -1)
    with caplog.at_level("INFO", "meshfeed"), mf.from_arrays({"x": np.arange(150)}) as ds:
        assert len(ds.filter(lambda rows: rows["x"] > 0)) == 149
        assert caplog.messages == [f"Dataset.filter: {n} of 150 records" for n in (16, 144, 150)]


def test_ctrl_c_ends_a_filter() -> None:
    seen = []

    def interrupted(rows: dict[str, Any]) -> Any:
        seen.append(len(rows["x"]))
        signal.raise_signal(signal.SIGINT)
        return rows["x"] > 0

    with mf.from_arrays({"x": np.arange(150)}) as ds:
        with pytest.raises(KeyboardInterrupt):
            ds.filter(interrupted)
        assert seen == [16]
        assert len(ds.filter(lambda rows: rows["x"] > 0)) == 149


def test_a_source_of_grain() -> None:
    x = np.arange(24, dtype=np.float32).reshape(12, 2)
    with mf.from_arrays({"x": x, "y": np.arange(12)}) as ds:
        batches = list(grain.MapDataset.source(ds).shuffle(seed=1).batch(4))
        assert [b["x"].shape for b in batches] == [(4, 2)] * 3
        assert sorted(np.concatenate([b["y"] for b in batches]).tolist()) == list(range(12))
        for batch in batches:
            assert batch["x"].tolist() == x[batch["y"]].tolist()
        read = (
            grain.MapDataset.source(ds).to_iter_dataset(grain.ReadOptions(num_threads=4)).batch(5)
        )
        assert [b["y"].tolist() for b in read] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
        twice = grain.MapDataset.source(ds).repeat(2)
        assert [row["y"] for row in twice._getitems([1, 13, 23])] == [1, 1, 11]
        assert len(twice[2:8]) == 6
        sampler = grain.samplers.IndexSampler(12, shuffle=True, num_epochs=1, seed=0)
        loader = grain.DataLoader(data_source=ds, sampler=sampler, worker_count=0)
        assert sorted(int(row["y"]) for row in loader) == list(range(12))


def test_grain_drops_masks_as_the_guide_says() -> None:
    """When this fails, Grain keeps masks, and the guide's warning can go."""
    rows = pa.array([[1, None], [None, 4], [2, 3]], pa.list_(pa.int32(), 2))
    with mf.from_arrow(pa.table({"x": rows})) as ds:
        (batch,) = grain.MapDataset.source(ds).batch(3)
        assert np.ma.getdata(batch["x"]).tolist() == [[1, 0], [0, 4], [2, 3]]
        assert not np.ma.is_masked(batch["x"])
        whole = ds.filter(lambda rows: ~np.ma.getmaskarray(rows["x"]).any(axis=1))
        (batch,) = grain.MapDataset.source(whole).batch(1)
        assert batch["x"].tolist() == [[2, 3]]


def test_a_table_in_a_notebook(ds: mf.Dataset) -> None:
    shown = ds._repr_html_()
    assert "Dataset of 4 records, 18 fields" in shown
    assert "ä\U0001f600" in shown
    assert shown.count("<tr>") == 5
    assert "… and 6 more fields" in shown
    ramp = np.linspace(0, 1, 64).reshape(8, 8)
    fields = {
        "gray": (np.stack([ramp] * 9) * 255).astype(np.uint8),
        "rgb": np.random.default_rng(0).random((9, 3, 400, 300), np.float32),
        "matrix": np.stack([ramp] * 9) - 1,
        "nan": np.stack([np.where(ramp > 0.5, np.nan, ramp)] * 9),
        "flat": np.zeros((9, 8, 8), np.float32),
        "tall": np.zeros((9, 1000, 8), np.uint8),
    }
    with mf.from_arrays(fields) as images:
        text = images._repr_html_()
        assert text.count("<img ") == 2 * 5
        assert 'alt="rgb, 3 x 400 x 300"' in text
        assert "[8, 8]: -1, -0.9841" in text
        assert "[8, 8]: 0, 0, 0, 0, 0, 0, …" in text
        assert "[1000, 8]: 0, 0, 0, 0, 0, 0, …" in text
        assert "… and 4 more records" in text
    assert "InvalidState" not in text
    assert "is closed" in images._repr_html_()
    with mf.from_arrow(pa.table({"<b>": ["<script>" + "x" * 100], "s": [{"a": 1}]})) as hostile:
        text = hostile._repr_html_()
        assert "<script>" not in text
        assert "<b>" not in text
        assert "… (108 characters)" in text
        assert "no fields: s (" in text
    with mf.from_arrow(pa.table({"x": pa.nulls(1)})) as none:
        assert "it holds nothing but nulls" in none._repr_html_()


def test_pictures_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    images = {f"c{c}": rng.integers(0, 255, (1, 20, 30, c), np.uint8) for c in (1, 3, 4)}
    images["large"] = np.repeat(np.repeat(images["c3"], 8, 1), 8, 2)
    stored = io.BytesIO()
    PIL.Image.fromarray(images["c3"][0]).save(stored, "JPEG")
    files = [stored.getvalue(), b"\xff\xd8\xff" + bytes(1 << 17)]  # the second is too long
    fields = {name: list(a[0].reshape(1, -1)) for name, a in images.items()}
    table = pa.table({**fields, "jpeg": pa.array(files[:1]), "long": pa.array(files[1:])})
    shapes = {name: a.shape[1:] for name, a in images.items()}
    with mf.from_arrow(table, shapes=shapes) as ds:
        found = re.findall(r'src="data:image/(\w+);base64,([^"]*)"', ds._repr_html_())
    assert [kind for kind, _ in found] == ["png"] * 4 + ["jpeg"]
    data = [base64.b64decode(text) for _, text in found]
    pixels = [np.asarray(PIL.Image.open(io.BytesIO(file))) for file in data]
    assert (pixels[0] == images["c1"][0, :, :, 0]).all()
    assert (pixels[1] == images["c3"][0]).all()
    assert (pixels[2] == images["c4"][0]).all()
    means = images["large"][0, :159, :240].reshape(53, 3, 80, 3, 3).mean((1, 3))
    assert np.abs(pixels[3] - means).max() <= 0.5
    assert data[4] == files[0]


def test_a_table_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (5, 112, 112, 4), np.uint8)
    with mf.from_arrays({f"image{i}" * 50: noise for i in range(40)}) as ds:
        text = ds._repr_html_()
        assert len(text) < 600_000
        assert 5 <= text.count("<img ") < 60
        assert "… and 28 more fields" in text
        monkeypatch.setattr(preview, "table", lambda *_: 1 / 0)
        text = ds._repr_html_()
        assert len(text) < 4000
        assert "division by zero" in text
    with mf.from_arrow(pa.table({"x": [[["x" * 100] * 50] * 50]})) as deep:
        assert len(deep._repr_html_()) < 6000
