"""Batches and datasets for pyarrow, polars, DuckDB and pandas."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import duckdb
import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

import meshfeed as mf
from meshfeed._native.library import library

Array = np.ndarray[Any, Any]

# Every element type, with the type of NumPy that Arrow's values have.
TYPES = {
    **{name: name for name in ("bool", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128")},
    "bfloat16": "float32",
}


def made(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Returns an array of any type, with values that every type can hold."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values: Array = rng.integers(0, 2 if name == "bool" else 100, shape)
    return (values + 1j * rng.integers(0, 100, shape) if dtype.kind == "c" else values).astype(
        dtype
    )


def all_types(rows: int, seed: int) -> dict[str, Array]:
    """Returns an array of each type, with rows of random shapes."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(rng.integers(1, 4, rng.integers(0, 4)).tolist()) for _ in TYPES]
    return {
        name: made(name, (rows, *shape), rng) for name, shape in zip(TYPES, shapes, strict=True)
    }


def of_arrow(column: Any, like: Array) -> Array:
    """Returns the values of a column of pyarrow, in the shape and type of an array."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    while isinstance(values, pa.FixedSizeListArray):
        values = values.flatten()
    flat: Array = values.to_numpy(zero_copy_only=False)
    if like.dtype.kind == "c":
        flat = flat.view(like.dtype)
    return flat.reshape(like.shape).astype(like.dtype)


def of_polars(column: pl.Series, like: Array) -> Array:
    values: Array = column.to_numpy()
    if like.dtype.kind == "c":
        values = np.ascontiguousarray(values).view(like.dtype)
    return values.reshape(like.shape).astype(like.dtype)


def check_values(read: Any, arrays: dict[str, Array]) -> None:
    """Compares what pyarrow and polars read from an object with the arrays."""
    table, frame = pa.table(read), pl.DataFrame(read)
    assert table.column_names == frame.columns == list(arrays)
    assert table.num_rows == frame.height == len(next(iter(arrays.values())))
    for name, array in arrays.items():
        np.testing.assert_array_equal(of_arrow(table[name], array), array, err_msg=name)
        np.testing.assert_array_equal(of_polars(frame[name], array), array, err_msg=name)


def test_batches_of_every_type(seed: int) -> None:
    arrays = all_types(10, seed)
    with mf.Loader(mf.from_arrays(arrays), batch_size=4, remainder="pad", arrow=True) as loader:
        batches = list(loader)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    for i, batch in enumerate(batches):
        assert batch.column_names == list(arrays)  # without the mask
        check_values(batch, {name: array[4 * i : 4 * i + 4] for name, array in arrays.items()})


def test_dataset_of_every_type(seed: int) -> None:
    arrays = all_types(1000, seed)
    with mf.from_arrays(arrays) as ds:
        check_values(ds, arrays)
        check_values(ds.slice(17, 400), {name: array[17:400] for name, array in arrays.items()})


def test_types_of_columns() -> None:
    """pyarrow and polars read rows with a shape as they write them themselves."""
    arrays = {
        "image": np.zeros((4, 3, 2), np.float32),
        "flag": np.zeros(4, bool),
        "time": np.zeros(4, "datetime64[us]"),
        "span": np.zeros(4, "timedelta64[s]"),
        "day": np.zeros(4, "datetime64[D]"),  # 64 bits, which Arrow's dates have not
        "z": np.zeros(4, np.complex64),
        "b": np.zeros(4, ml_dtypes.bfloat16),
    }
    schema = pa.schema(
        {
            "image": pa.list_(pa.list_(pa.float32(), 2), 3),
            "flag": pa.bool_(),
            "time": pa.timestamp("us"),
            "span": pa.duration("s"),
            "day": pa.int64(),
            "z": pa.list_(pa.float32(), 2),
            "b": pa.float32(),
        }
    )
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, batch_size=4, arrow=True) as loader:
        batch = loader.peek()
        assert pa.schema(ds) == pa.schema(batch) == pa.table(ds).schema == schema
        assert pa.record_batch(batch).schema == schema
        assert pl.DataFrame(ds).schema["image"] == pl.Array(pl.Float32, (3, 2))
        assert str(batch) == "RecordBatch of 4 rows: image, flag, time, span, day, z, b"


def nullable() -> pa.Table:
    """Returns a table with nulls in rows and in elements, and all types of dates and times."""
    n = 100
    numbers = pa.array([None if i % 7 == 3 else i for i in range(n)], pa.int64())
    times = {
        str(kind): numbers.cast(pa.int32()).cast(kind)
        for kind in (pa.date32(), pa.time32("s"), pa.time32("ms"))
    } | {
        str(kind): numbers.cast(kind)
        for kind in (
            *(pa.timestamp(unit, "Europe/Berlin") for unit in ("s", "ms", "us", "ns")),
            *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
            *(pa.time64("us"), pa.time64("ns"), pa.date64(), pa.timestamp("ns")),
        )
    }
    lists = [None if i % 5 == 1 else [i, None if i % 3 == 0 else i + 1] for i in range(n)]
    return pa.table(
        {
            "flag": pa.array([None if i % 11 == 0 else i % 2 == 0 for i in range(n)]),
            "float": numbers.cast(pa.float32()),
            "half": numbers.cast(pa.float16()),
            "pair": pa.array(lists, pa.list_(pa.int16(), 2)),
            "nested": pa.array([None if v is None else [v, v] for v in lists]).cast(
                pa.list_(pa.list_(pa.float64(), 2), 2)
            ),
            "whole": pa.array(range(n), pa.uint8()),
            **times,
        }
    )


def test_nulls_times_and_files(tmp_path: Path) -> None:
    """What pyarrow wrote comes back equal, from memory and from files."""
    table = nullable()
    with mf.from_arrow(table) as ds:
        assert pa.table(ds).equals(table)
        assert pl.DataFrame(ds).drop("half").equals(pl.DataFrame(table).drop("half"))
    for compression in (None, "zstd"):
        path = tmp_path / f"{compression}.arrow"
        options = pyarrow.ipc.IpcWriteOptions(compression=compression)
        with pyarrow.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=30)
        with mf.open(path) as ds:
            assert pa.table(ds).equals(table)


def test_record_batches_are_bounded() -> None:
    """A stream of 100 MB has record batches of at most 16 MiB, and each is read when asked for."""
    x = np.arange(25_000_000, dtype=np.int32).reshape(-1, 50)
    with mf.from_arrays({"x": x}) as ds:
        reader = pa.RecordBatchReader.from_stream(ds)
        first = reader.read_next_batch()
        assert first.num_rows == 2**24 // 200
        assert library().mf_live_bytes() < 2**25
        sizes, total = [first.nbytes], first.num_rows
        for batch in reader:
            assert batch["x"][0].as_py() == x[total].tolist()
            sizes.append(batch.nbytes)
            total += batch.num_rows
        assert total == len(x)
        assert max(sizes) <= 2**24
    row = np.zeros((2, 5_000_000), np.int64)  # of 40 MB
    with mf.from_arrays({"x": row}) as ds:
        assert [b.num_rows for b in pa.RecordBatchReader.from_stream(ds)] == [1, 1]


def test_other_libraries() -> None:
    arrays = {"x": np.arange(12.0).reshape(6, 2), "y": np.arange(6)}
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, batch_size=3, arrow=True) as loader:
        for read, total in ((ds, 15), (loader.peek(), 3)):
            sums = duckdb.sql("SELECT sum(y), sum(x[1]) FROM read")
            assert sums is not None
            assert sums.fetchall() == [(total, 2 * total)]
            assert pd.DataFrame.from_arrow(read)["y"].sum() == total
            again = mf.from_arrow(read)
            assert again.schema["x"].shape == (2,)
            again.close()


def buffer(batch: Any, column: str) -> int:
    values = pa.record_batch(batch)[column]
    while isinstance(values, pa.FixedSizeListArray):
        values = values.flatten()
    address: int = values.buffers()[1].address
    return address


def test_memory_is_not_copied() -> None:
    arrays = {"x": np.zeros((8, 3), np.float32), "z": np.zeros(8, complex), "b": np.zeros(8, bool)}
    with mf.Loader(mf.from_arrays(arrays), batch_size=8, arrow=True) as loader:
        batch = loader.peek()
        assert buffer(batch, "x") == buffer(batch, "x")
        assert buffer(batch, "z") == buffer(batch, "z")
        keep = pa.record_batch(batch)["b"].buffers()[1]
        assert keep.address != buffer(batch, "b")  # packed into bits, in memory of its own


def test_memory_outlives_the_loader() -> None:
    """The memory is released when the last array is dropped, on any thread."""
    x = np.arange(64, dtype=np.int64).reshape(8, 8)
    ds = mf.from_arrays({"x": x})
    loader = mf.Loader(ds, batch_size=8, arrow=True)
    kept = [pa.record_batch(next(iter(loader)))["x"], pl.DataFrame(ds), pa.table(ds)["x"]]
    loader.close()
    ds.close()
    del loader, ds
    assert library().mf_live_batches() == 3
    assert kept[0].to_pylist() == kept[2].to_pylist() == kept[1]["x"].to_list() == x.tolist()
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert library().mf_live_batches() == 0
    assert library().mf_live_bytes() == 0
    assert library().mf_live_handles() == 0


def test_unused_capsules() -> None:
    """Capsules that no library takes release everything."""
    with mf.from_arrays({"x": np.arange(6)}) as ds, mf.Loader(ds, batch_size=3, arrow=True) as it:
        batch = next(iter(it))
        capsules = [
            *batch.__arrow_c_array__(),
            batch.__arrow_c_stream__(),
            batch.__arrow_c_schema__(),
            ds.__arrow_c_stream__(),
            ds.__arrow_c_schema__(),
        ]
        before = library().mf_live_handles()
        del batch
        assert library().mf_live_batches() == 1
        capsules.clear()
        assert (library().mf_live_batches(), library().mf_live_handles()) == (0, before - 1)


def test_release_while_an_exception_is_set() -> None:
    """The last owner of NumPy arrays may be a capsule that an error drops."""

    def stream(array: Array) -> Any:
        with mf.from_arrays({"x": array}) as ds:
            return ds.__arrow_c_stream__()

    array = np.arange(5)
    gone = weakref.ref(array)
    with pytest.raises(TypeError, match=r"^object of type 'PyCapsule' has no len\(\)$"):
        len(stream(array))
    del array
    gc.collect()
    assert gone() is None


def test_a_stream_may_end_early() -> None:
    with mf.from_arrays({"x": np.zeros((3, 3_000_000))}) as ds:
        reader = pa.RecordBatchReader.from_stream(ds)
    assert reader.read_next_batch().num_rows == 1
    del reader
    assert library().mf_live_handles() == 0
    assert library().mf_live_bytes() == 0


def test_errors_of_a_stream(tmp_path: Path) -> None:
    """An error has the text of meshfeed. It comes with its batch, not before."""
    path = tmp_path / "x.arrow"
    table = pa.table({"x": pa.array(np.zeros(9_000_000))})
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000_000)
    with mf.open(path, io="read") as ds:
        reader = pa.RecordBatchReader.from_stream(ds)
        assert reader.read_next_batch().num_rows == 2**20
        with path.open("r+b") as file:
            file.truncate(30_000_000)
        with pytest.raises(OSError, match=r"arrowio: .*x\.arrow.*; "):
            reader.read_all()
        with pytest.raises(OSError, match="arrowio: "):  # and again
            reader.read_next_batch()
        del reader


def test_skipped_columns(caplog: pytest.LogCaptureFixture) -> None:
    many = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with mf.from_arrow(pa.table({"x": [1], "map": many})) as ds:
        assert pa.table(ds).to_pylist() == [{"x": 1}]
        reason = ds.skipped[0].reason.partition("; ")[0]
    assert caplog.messages == [
        f"columns that cannot be arrays are not in the Arrow stream: 'map' ({reason}); "
        "print(ds) lists them"
    ]
    with mf.from_arrow(pa.table({"map": many})) as ds:
        with pytest.raises(mf.InvalidArgumentError, match="the dataset has no field, because"):
            pa.table(ds)


def ragged(rng: np.random.Generator, rows: int) -> pa.Table:
    """Returns a table of ragged columns with nulls at every level."""

    def value(kind: pa.DataType) -> Any:
        if rng.random() < 0.2:
            return None
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return [value(kind.value_type) for _ in range(rng.integers(0, 4))]
        if pa.types.is_fixed_size_list(kind):
            return [int(rng.integers(100)) for _ in range(kind.list_size)]
        text = "ab€\0"[: rng.integers(0, 5)] * int(rng.integers(1, 9))
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return text.encode()
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return text
        return bool(rng.integers(2)) if pa.types.is_boolean(kind) else int(rng.integers(100))

    # pyarrow makes large lists of a list of its own only
    plain = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
    inner = (pa.bool_(), pa.int32(), pa.float16(), pa.timestamp("us"), pa.list_(pa.int8(), 2))
    lists = [pa.list_(kind) for kind in (*inner, *plain, pa.list_(pa.int64()))]
    kinds = (*plain, *lists, pa.list_(pa.list_(pa.string())), pa.int64())
    return pa.table({str(k): pa.array([value(k) for _ in range(rows)], k) for k in kinds})


def test_ragged_columns(tmp_path: Path, seed: int) -> None:
    """Every value comes back, with types and nulls, from memory, from a file, and from views."""
    table = ragged(np.random.default_rng(seed), 300)
    assert table.num_columns == 16
    with mf.from_arrow(table) as ds:
        assert pa.table(ds).equals(table)
        assert pl.DataFrame(ds.select(["string", "list<item: string>"])).equals(
            pl.DataFrame(table.select(["string", "list<item: string>"]))
        )
        assert pa.table(ds.slice(7, 30)).equals(table.slice(7, 23))
        assert pa.table(ds.slice(7, 7)).equals(table.slice(7, 0))
        assert pl.DataFrame(ds.slice(7, 7)).shape == (0, 16)
        assert pa.table(ds.take([5, 5, 2])).equals(table.take([5, 5, 2]))
        assert pa.schema(ds) == table.schema
    path = tmp_path / "x.arrow"
    with pyarrow.ipc.new_file(
        path, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(table, max_chunksize=70)
    with mf.open(path) as ds:
        assert pa.table(ds).equals(table)


def test_ragged_record_batches_are_bounded() -> None:
    """A stream of 60 MB of text has record batches of about 16 MiB, also if rows vary in size."""
    texts = ["x" * (1 + 4000 * (i % 1000 == 0)) for i in range(10_000)] + ["y" * 20_000_000] * 3
    with mf.from_arrow(pa.table({"text": texts})) as ds:
        reader = pa.RecordBatchReader.from_stream(ds)
        lengths = [batch.num_rows for batch in reader]
        assert lengths == [10_000, 1, 1, 1]
        assert pa.table(ds)["text"].to_pylist() == texts


def test_loader_arguments() -> None:
    ds = mf.from_arrays({"x": np.arange(64)})
    refused = mf.InvalidArgumentError
    mesh, spec = jax.make_mesh((1,), ("data",)), jax.sharding.PartitionSpec("data")
    layout = mf.layout({"data": 1}, mf.P("data"), ds, batch_size=4)
    for options, expected in (
        (
            {"mesh": mesh, "specs": spec, "batch_size": 8},
            "mf.Loader: arrow=True gives whole batches in host memory, but array 'x' has a spec; "
            "leave out mesh and specs, or give a list of field names",
        ),
        (
            {"batch_size": (2, 4)},
            "mf.Loader: batch_size=(2, 4): expected a number beside arrow=True: a record batch has "
            "one dimension of rows",
        ),
        (
            {"layout": layout, "process": 0},
            "mf.Loader: arrow= beside layout=, which contains specs, batch size, remainder, mask, "
            "extras and loading; leave that out, or make another layout with mf.layout",
        ),
    ):
        with pytest.raises(refused) as raised:
            mf.Loader(ds, arrow=True, **options)
        assert str(raised.value) == expected
    with mf.Loader(ds, specs=["x"], batch_size=8, arrow=True, extras=("key", "record")) as loader:
        batch = pa.record_batch(loader.peek())
        assert batch["record"].to_pylist() == [[i, 0] for i in range(8)]
        assert list(loader.element_spec) == batch.schema.names == ["x", "key", "record"]
        assert len(list(loader.one_epoch(remainder="pad"))) == 8
    ds.close()


EXIT = """
import numpy as np, polars as pl, pyarrow as pa, meshfeed as mf
ds = mf.from_arrays({"x": np.zeros((3, 3_000_000)), "b": np.zeros(3, bool)})
it = mf.Loader(ds, batch_size=1, arrow=True)
batch = next(iter(it))
kept = [pa.table(ds), pl.DataFrame(batch), batch]
kept += [batch.__arrow_c_array__(), ds.__arrow_c_stream__()]
reader = pa.RecordBatchReader.from_stream(ds)
first = reader.read_next_batch()
CLOSE
print("done")
"""


@pytest.mark.parametrize("close", ["", "it.close(); ds.close(); del it, ds"])
def test_exit(close: str) -> None:
    """A program may end while Arrow's libraries hold batches, streams and capsules."""
    run = subprocess.run(
        [sys.executable, "-c", EXIT.replace("CLOSE", close)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
