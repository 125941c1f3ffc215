"""Unusual but valid Arrow data of pyarrow and of the datasets library.

Every delivered row equals the row that pyarrow reads, from files, streams and memory.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pytest

import meshfeed as mf
from meshfeed._native import arrow

FILL = 1  # for every type, also booleans


def written(path: Path, table: pa.Table, *, stream: bool, compression: str | None) -> Path:
    """Writes the batches unchanged. They may have any size, also 0."""
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with new(path, table.schema, options=options) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return path


def delivered(ds: mf.Dataset) -> dict[str, np.ndarray[Any, Any]]:
    """Returns all records, in order."""
    fill = {
        f.name: bool(FILL) if f.dtype == "bool" else FILL for f in ds.schema.values() if f.nullable
    }
    with mf.Loader(ds, batch_size=len(ds), fill=fill or None) as loader:
        return {name: np.array(array) for name, array in next(iter(loader)).items()}


def flat(value: Any, size: int) -> Iterator[Any]:
    """Returns the elements of a row of this size. A null row has the fill value everywhere."""
    if isinstance(value, list):
        for part in value:
            yield from flat(part, size // len(value))
    else:
        yield from [FILL] * size if value is None else [value]


def assert_as_pyarrow(ds: mf.Dataset, table: pa.Table) -> None:
    assert ds.skipped == []
    assert len(ds) == table.num_rows
    got = delivered(ds)
    assert list(got) == table.column_names
    for name, array in got.items():
        size = int(np.prod(ds.schema[name].shape, dtype=int))
        rows = [list(flat(row, size)) for row in table[name].to_pylist()]
        want = np.array(rows, array.dtype).reshape(array.shape)
        np.testing.assert_array_equal(got[name], want, err_msg=name)


def counted(n: int, arrow: pa.DataType) -> pa.Array:
    """Returns numbers, or bits without a period, which could hide a wrong offset."""
    if arrow == pa.bool_():
        return pa.array((np.arange(n) ** 2 // 3 % 2).astype(bool))
    return pa.array(np.arange(n) % 100).cast(arrow)


def lists(values: pa.Array, length: int, first: int = 0) -> pa.ListArray:
    ends = range(first, len(values) + 1, length)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def holed(array: pa.Array, every: int) -> pa.Array:
    """Returns the array with nulls, over memory that holds other values."""
    gaps = [i % every == every - 1 for i in range(len(array))]
    return array.take(pa.array([None if gap else i for i, gap in enumerate(gaps)], pa.int32()))


NUMBERS = [pa.bool_(), pa.int8(), pa.uint16(), pa.float32(), pa.int64()]


def primitives() -> pa.Table:
    return pa.table({str(t): counted(90, t) for t in NUMBERS})


def nested() -> pa.Table:
    fixed = pa.FixedSizeListArray.from_arrays
    return pa.table(
        {
            "fixed of fixed": fixed(fixed(counted(540, pa.int16()), 3), 2),
            "fixed of bits": fixed(counted(990, pa.bool_()), 11),
            "lists of fixed": lists(fixed(counted(540, pa.float32()), 3), 2),
            "lists of lists": lists(lists(counted(540, pa.uint8()), 3), 2),
            "fixed of lists": fixed(lists(counted(540, pa.bool_()), 3), 2),
            "late lists": lists(counted(277, pa.int32()), 3, 7),
            "lists of codes": lists(counted(180, pa.int32()).dictionary_encode(), 2),
        }
    )


def with_nulls() -> pa.Table:
    fixed = pa.FixedSizeListArray.from_arrays
    columns = {str(t): holed(counted(90, t), 7) for t in NUMBERS}
    columns["fixed"] = holed(fixed(holed(counted(270, pa.int16()), 4), 3), 5)
    columns["lists"] = holed(lists(holed(counted(270, pa.bool_()), 4), 3), 5)
    columns["fixed of lists"] = fixed(holed(lists(counted(540, pa.int8()), 3), 4), 2)
    columns["codes"] = holed(counted(90, pa.int32()), 6).dictionary_encode()
    return pa.table(columns)


def nulls_at_the_end() -> pa.Table:
    return pa.concat_tables([primitives(), with_nulls().select([str(t) for t in NUMBERS])])


def null_lists_with_values() -> pa.Table:
    mask = pa.array([False, True, False, False, True, False])
    ends = pa.array([0, 3, 8, 11, 14, 16, 19], pa.int32())
    return pa.table({"x": pa.ListArray.from_arrays(ends, counted(19, pa.int32()), mask=mask)})


ODD = [primitives, nested, with_nulls, nulls_at_the_end, null_lists_with_values]


def cuts(table: pa.Table) -> list[pa.Table]:
    """Returns the whole table, a slice that begins inside of a byte, and empty batches between."""
    n, batches = table.num_rows, table.to_batches()
    nothing, last = batches[0].slice(0, 0), batches[-1]
    pieces = [nothing, *batches, nothing, nothing, last.slice(1), last.slice(1, 1), nothing]
    return [table, table.slice(1, n - 2), pa.Table.from_batches(pieces, table.schema)]


@pytest.mark.parametrize("make", ODD, ids=lambda make: str(make.__name__))
def test_rows_are_those_that_pyarrow_reads(make: Callable[[], pa.Table], tmp_path: Path) -> None:
    for table in cuts(make()):
        with mf.from_arrow(table) as ds:
            assert_as_pyarrow(ds, table)
        for stream, compression in [(False, None), (True, None), (False, "lz4"), (True, "zstd")]:
            path = written(tmp_path / "x", table, stream=stream, compression=compression)
            for io in ("map", "read"):
                with mf.open(path, io=io) as ds:
                    assert_as_pyarrow(ds, table)


# ---- dictionaries ----


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_indices_of_every_width(sign: str, bits: int, tmp_path: Path) -> None:
    """Large indices of an unsigned type are not negative."""
    values = {"8": 128, "u8": 256, "16": 2**15, "u16": 2**16}.get(f"{sign}{bits}", 1000)
    codes = pa.array([0, values - 1, values // 2, 3], pa.type_for_alias(f"{sign}int{bits}"))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(np.arange(values), pa.int32()))
    table = pa.table({"x": column, "pair": pa.FixedSizeListArray.from_arrays(column, 1)})
    with mf.open(written(tmp_path / "x", table, stream=False, compression=None)) as ds:
        assert_as_pyarrow(ds, table)
    with mf.from_arrow(table) as ds:
        assert_as_pyarrow(ds, table)


def test_dictionaries_that_share_memory() -> None:
    """A dictionary in memory may be a prefix of a later one."""
    values = pa.array([5, 6, 7, 8], pa.int64())
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values.slice(start, count))
        for codes, start, count in [([1, 0], 0, 2), ([2, 3], 0, 4), ([1, 0], 2, 2)]
    ]
    table = pa.table({"x": pa.chunked_array(chunks)})
    with mf.from_arrow(table) as ds:
        assert delivered(ds)["x"].tolist() == [6, 5, 7, 8, 8, 7]


def test_a_dictionary_with_nulls_among_its_values(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None]).dictionary_encode("encode")})
    path = written(tmp_path / "x", table, stream=False, compression=None)
    with mf.open(path) as ds, pytest.raises(mf.UnsupportedError) as caught:
        mf.Loader(ds, batch_size=2)
    assert str(caught.value) == (
        f'mf.Loader: {path}: field "x": its dictionary has nulls among its values; '
        "let the indices be null instead, as pyarrow's dictionary_encode does"
    )
    with mf.from_arrow(table) as ds:
        (skipped,) = ds.skipped
        assert skipped.reason == "its dictionary holds nulls; drop them from the values"


# ---- tensors and names ----


def tensors(permutation: list[int] | None = None) -> pa.Array:
    """Returns seven tensors of shape 2, 3."""
    kind = pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=permutation)
    storage = pa.FixedSizeListArray.from_arrays(counted(42, pa.float32()), 6)
    return pa.ExtensionArray.from_storage(kind, storage)


def test_tensors_in_lists(tmp_path: Path) -> None:
    for stream in (False, True):
        table = pa.table({"x": lists(tensors(), 3)})
        path = written(tmp_path / "x", table, stream=stream, compression=None)
        with mf.open(path) as file, mf.from_arrow(table) as memory:
            for ds in (file, memory):
                assert ds.schema["x"].shape == (3, 2, 3)
                want = np.arange(36, dtype=np.float32).reshape(2, 3, 2, 3)
                np.testing.assert_array_equal(delivered(ds)["x"], want)
        table = pa.table({"x": lists(tensors([1, 0]), 3)})
        with mf.open(written(path, table, stream=stream, compression=None)) as ds:
            (skipped,) = ds.skipped
        assert skipped.reason == "its tensors are stored permuted [1 0]; write them in C order"


def test_tensors_of_two_orders_are_refused(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, pa.table({"x": tensors(p)}), stream=False, compression=None)
        for name, p in (("a", None), ("b", [1, 0]))
    ]
    with pytest.raises(mf.IncompatibleError) as caught:
        mf.open(paths)
    assert str(caught.value) == (
        f'mf.open: {paths[1]}: field "x" has no rows of an array, '
        f"but rows of float32[2 3] in {paths[0]}; "
        "write the column again with one type, such as by table.cast of pyarrow; "
        "or choose the other columns (columns=), or open the files apart"
    )


def test_columns_that_cannot_be_named_are_listed(tmp_path: Path) -> None:
    table = pa.table([pa.array([i]) for i in range(3)], names=["", "WXYZ", "x"])
    path = written(tmp_path / "x", table, stream=False, compression=None)
    path.write_bytes(path.read_bytes().replace(b"WXYZ", b"W\xffYZ"))
    with mf.open(path) as ds:
        assert [(s.name, s.reason) for s in ds.skipped] == [
            ("", "it has no name; give the column one"),
            ("W\ufffdYZ", "its name is not UTF-8; rename the column"),
        ]
        assert delivered(ds)["x"].tolist() == [2]


# ---- arrays of other producers ----


class Altered:
    """An array with changed C structs, as another producer could make them."""

    def __init__(self, array: pa.Array, alter: Callable[[int], None]) -> None:
        self.array = array
        self.alter = alter

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema, array = self.array.__arrow_c_array__(requested_schema)
        self.alter(arrow.address(array, "arrow_array"))
        return schema, array


def number(address: int, member: int) -> ctypes.c_int64:
    """Returns a member of `struct ArrowArray`: length, null_count, offset, and so on."""
    return ctypes.c_int64.from_address(address + 8 * member)


def first_child(address: int) -> int:
    children = ctypes.c_void_p.from_address(address + 48).value
    assert children is not None
    return ctypes.c_void_p.from_address(children).value or 0


def uncount(address: int) -> None:
    number(address, 1).value = -1
    number(first_child(address), 1).value = -1


def ragged_late() -> pa.Table:
    """Returns 1,000 lists of three values, except one of two and a later one of four."""
    lengths = np.full(1000, 3)
    lengths[[990, 995]] = 2, 4
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.arange(3000, dtype=np.int32)))
    return pa.table({"x": lists, "n": np.arange(1000)})


@pytest.mark.parametrize("stream", [False, True])
def test_lists_of_a_file_are_checked_before_the_first_batch(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "x.arrow"
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, ragged_late().schema) as writer:
        writer.write_table(ragged_late(), max_chunksize=64)
    with mf.open(path) as ds:
        assert str(ds.schema["x"]) == "x: int32[…]"
    with mf.open(path, shapes={"x": (3,)}) as ds, ds.slice(0, 990) as even:
        assert str(ds.schema["x"]) == "x: int32[3]"
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, batch_size=8)
        assert str(caught.value) == (
            f'mf.Loader: {path}: field "x": record 990 has a list of 2 values in dimension 0, '
            "where the shape [3] of the rows needs 3; "
            "pad or cut the lists to one length, or give the right shape"
        )
        with mf.Loader(ds, specs=["n"], batch_size=1000) as loader:
            assert len(next(iter(loader))["n"]) == 1000
        with mf.Loader(even, batch_size=990) as loader:
            assert next(iter(loader))["x"][-1].tolist() == [2967, 2968, 2969]


def test_lists_in_memory_are_checked_when_the_dataset_is_made() -> None:
    with mf.from_arrow(ragged_late()) as ds:
        assert [(f.name, f.ragged, f.shape) for f in ds.schema.values()] == [
            ("x", 1, ()),
            ("n", 0, ()),
        ]
    with pytest.raises(mf.InvalidArgumentError, match="record 990 has a list of 2 values"):
        mf.from_arrow(ragged_late(), shapes={"x": (3,)})
    with mf.from_arrow(ragged_late()[:990]) as ds:
        assert str(ds.schema["x"]) == "x: int32[3]"


def test_structs_are_rows() -> None:
    column = pa.StructArray.from_arrays(
        [counted(9, pa.int64()), counted(9, pa.bool_())], ["x", "y"]
    )
    with mf.from_arrow(pa.chunked_array([column.slice(2, 3), column.slice(8)])) as ds:
        got = delivered(ds)
    assert got["x"].tolist() == [2, 3, 4, 8]
    assert got["y"].tolist() == [column[i]["y"].as_py() for i in (2, 3, 4, 8)]


def test_rows_that_are_null_as_a_whole_are_refused() -> None:
    """They are refused also if the producer has not counted them."""
    column = pa.StructArray.from_arrays(
        [counted(4, pa.int64())], ["x"], mask=pa.array([False, True, False, True])
    )
    for array, nulls in [(column, 2), (column.slice(2), 1), (column.slice(1, 2), 1)]:
        for data in (array, Altered(array, uncount)):
            with pytest.raises(mf.UnsupportedError) as caught:
                mf.from_arrow(data)
            assert str(caught.value) == (
                f"mf.from_arrow: record batch 0 of the stream has {nulls} rows "
                "that are null as a whole; drop those rows"
            )
    with mf.from_arrow(Altered(column.slice(2, 1), uncount)) as ds:
        assert delivered(ds)["x"].tolist() == [2]


@pytest.mark.parametrize("null", [0, 2, 3, 63, 64, 66, 67, 99])
def test_uncounted_nulls_are_found(null: int) -> None:
    column = pa.array([None if i == null else i for i in range(100)])
    for start in (0, 3, 8):
        rows = pa.StructArray.from_arrays([column.slice(start)], ["x"])
        with mf.from_arrow(Altered(rows, uncount)) as ds:
            assert ds.schema["x"].nullable == (null >= start)
            want = [FILL if i == null else i for i in range(start, 100)]
            assert delivered(ds)["x"].tolist() == want


def test_a_column_that_is_shorter_than_its_rows() -> None:
    def shorten(address: int) -> None:
        number(first_child(address), 0).value = 3

    rows = pa.StructArray.from_arrays([counted(4, pa.int64())], ["x"]).slice(2)
    with pytest.raises(mf.DataLossError, match="level 0 has 3 values, but 4 are needed"):
        mf.from_arrow(Altered(rows, shorten))


# ---- directories of the datasets library ----


def saved(path: Path) -> Path:
    features = datasets.Features(
        {
            "matrix": datasets.Array2D((2, 3), "int16"),
            "matrices": datasets.List(datasets.Array2D((1, 2), "float32")),
            "fixed": datasets.List(datasets.Value("uint8"), length=4),
            "open": datasets.LargeList(datasets.Value("int32")),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "flag": datasets.Value("bool"),
            "half": datasets.Value("float16"),
        }
    )
    rows = {
        "matrix": [[[i, 1, 2], [3, 4, 5]] for i in range(6)],
        "matrices": [[[[i, 2]], [[3, i]]] for i in range(6)],
        "fixed": [[i] * 4 for i in range(6)],
        "open": [[i, -i] for i in range(6)],
        "label": [0, 1, 1, 0, 0, 1],
        "flag": [True, False, False, True, True, True],
        "half": [i / 2 for i in range(6)],
    }
    whole = datasets.Dataset.from_dict(rows, features=features)
    whole.shuffle(seed=1).select(range(5)).save_to_disk(path, num_shards=3)
    return path


def test_every_feature_of_a_saved_dataset(tmp_path: Path) -> None:
    path = saved(tmp_path / "a path with spaces, [brackets] and *")
    whole = datasets.load_from_disk(path)
    with mf.open(path) as ds:
        shapes = {name: field.shape for name, field in ds.schema.items()}
        got = delivered(ds)
    matrices: dict[str, tuple[int, ...]] = {"matrix": (2, 3), "matrices": (2, 1, 2)}
    assert shapes == matrices | {"fixed": (4,), "open": (2,), "label": (), "flag": (), "half": ()}
    for name, array in got.items():
        assert array.tolist() == whole[name][:]


def test_a_saved_dataset_has_the_order_of_its_list(tmp_path: Path) -> None:
    state = saved(tmp_path / "hf") / "state.json"
    listed = json.loads(state.read_text())
    listed["_data_files"].reverse()
    state.write_text(json.dumps(listed))
    with mf.open(state.parent) as ds:
        got = delivered(ds)["label"].tolist()
    assert got == datasets.load_from_disk(str(state.parent))["label"][:]


def test_a_saved_dataset_without_records(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"x": [1]}).select([]).save_to_disk(tmp_path / "hf")
    with pytest.raises(mf.NotFoundError) as caught:
        mf.open(tmp_path / "hf")
    assert str(caught.value) == (
        f"mf.open: {tmp_path / 'hf'}: state.json lists no data files: "
        "what was saved had no records; save a dataset that has some"
    )


def test_the_unnamed_index_of_a_pandas_table_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = pd.DataFrame({"a": np.arange(6), "b": np.arange(6) * 0.5})
    part = whole[whole.a % 4 != 0]
    path = written(
        tmp_path / "part.arrow", pa.Table.from_pandas(part), stream=False, compression=None
    )
    for ds in (mf.from_arrow(whole), mf.from_arrow(part), mf.open(path)):
        batch = mf.Loader(ds, batch_size=2).peek()
        assert list(batch) == ["a", "b"]
        assert (batch["b"] == batch["a"] * 0.5).all()
    assert caplog.messages == 2 * [
        "columns that cannot be arrays are not in the batches: '__index_level_0__' (it is the "
        "index of a pandas table); specs that name fields, such as a list of names, avoid this "
        "warning"
    ]
    assert list(mf.Loader(mf.from_arrow(part.reset_index()), batch_size=2).peek()) == [
        "index",
        "a",
        "b",
    ]
