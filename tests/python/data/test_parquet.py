"""Parquet files of several writers have the values that pyarrow reads, or a column is refused.

The matrix has every encoding, codec, page version and size that the writers offer, row groups of
several sizes, nested lists, dictionaries and nulls. MESHFEED_DEEP=1 tests all combinations.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meshfeed as mf
from meshfeed._data.dataset import units
from tests.python.programs import run
from tests.writers import FILES, ROWS
from tests.writers.columns import INTEGERS, TABLES, N

CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]

# Columns that cannot be arrays, with words of the reason.
REFUSED = {
    "price": "arrays have no decimal type",
    "pair": "a struct has no single type",
    "nothing": "it holds nothing but nulls",
    "map": "a map",
}
PADDED = 8  # rows of varying length have at most as many elements


def values(column: pa.Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Returns what pyarrow reads as an array, with zeros for nulls."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    rows = column.to_pylist()
    if pa.types.is_fixed_size_binary(column.type):
        rows = [None if v is None else list(v) for v in rows]

    def filled(value: Any, shape: tuple[int, ...]) -> Any:
        if value is None:
            return np.zeros(shape, dtype)
        return [filled(v, shape[1:]) for v in value] if shape else dtype.type(value)

    return np.array([filled(row, shape) for row in rows], dtype).reshape(len(rows), *shape)


def compare(path: Path, want: pa.Table | None = None) -> None:
    """Compares every field with what pyarrow reads, and the refused columns with REFUSED."""
    want = want or pq.read_table(path)
    with mf.open(path) as ds:
        for skipped in ds.skipped:
            assert REFUSED[skipped.name] in skipped.reason, skipped
        assert {*ds.schema, *(s.name for s in ds.skipped)} == set(want.column_names)
        view = ds
        ragged = {name for name, field in ds.schema.items() if field.ragged}
        assert ragged <= {"text", "code", "raw", "ragged", "fixed"}
        for name in ragged:
            view = view.pad(name, length=PADDED)
        fill = {name: False if f.dtype == "bool" else 0 for name, f in view.schema.items()}
        with mf.Loader(view, batch_size=len(want), fill=fill) as loader:
            batch = loader.peek()
        for name, field in ds.schema.items():
            column = want[name].combine_chunks()
            if name in ragged:
                compare_ragged(column, batch[name], batch[f"{name}_length"])
                continue
            expected = values(column, field.shape, batch[name].dtype)
            np.testing.assert_array_equal(batch[name], expected, err_msg=name)
            if pa.types.is_temporal(column.type):
                assert field.logical == str(column.type)


def compare_ragged(column: pa.Array, rows: np.ndarray, lengths: np.ndarray) -> None:
    """Compares padded rows with what pyarrow reads. Null rows have the length 0."""
    for want, row, length in zip(column.to_pylist(), rows, lengths, strict=True):
        elements = want.encode() if isinstance(want, str) else want or b""
        assert list(row) == [*elements, *[0] * (PADDED - len(elements))]
        assert length == len(elements)


def pyarrow_options(deep: bool) -> Iterator[dict[str, Any]]:
    """Yields options of pyarrow's writer: each value of each option, or all combinations.

    The codecs take turns, so that each of them meets each value of the other options.
    """
    options: dict[str, list[Any]] = {
        "compression": CODECS,
        "data_page_version": ["1.0", "2.0"],
        "use_dictionary": [True, False],
        "data_page_size": [None, 300],
        "row_group_size": [N, 150],
        "store_schema": [True, False],
        "write_page_checksum": [True, False],
    }
    if deep:
        codecs = options.pop("compression")
        for i, combination in enumerate(itertools.product(*options.values())):
            codec = codecs[(i + i // len(codecs)) % len(codecs)]
            yield dict(zip(options, combination, strict=True)) | {"compression": codec}
        return
    for i, codec in enumerate(CODECS):
        choice = {name: v[(i >> k) % len(v)] for k, (name, v) in enumerate(options.items())}
        yield choice | {"compression": codec}


def test_pyarrow(tmp_path: Path, deep: bool) -> None:
    path = tmp_path / "x.parquet"
    for nulls, options in itertools.product(TABLES, pyarrow_options(deep)):
        options["write_batch_size"] = 20 if options["data_page_size"] else None
        pq.write_table(TABLES[nulls], path, **options)
        compare(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_encodings(tmp_path: Path, version: str) -> None:
    path = tmp_path / "x.parquet"
    encodings = {
        "PLAIN": [*INTEGERS, "float32", "float64", "fixed", "vector"],
        "DELTA_BINARY_PACKED": [*INTEGERS, "sorted", "list"],
        "BYTE_STREAM_SPLIT": ["float16", "float32", "float64", "int32", "int64", "fixed", "vector"],
        "DELTA_BYTE_ARRAY": ["fixed", "text"],
        "RLE": ["bool"],
    }
    for (encoding, names), nulls in itertools.product(encodings.items(), TABLES):
        part = TABLES[nulls].select(names)
        for size in (None, 200):
            nested = {"vector": "vector.list.element", "list": "list.list.element"}
            chosen = {nested.get(name, name): encoding for name in names}
            pq.write_table(
                part,
                path,
                column_encoding=chosen,
                use_dictionary=False,
                data_page_version=version,
                data_page_size=size,
                write_batch_size=10,
            )
            found = pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
            assert encoding in found
            compare(path)


PAGED = {
    "v1": {"compression": "snappy"},
    "v2": {"compression": "zstd", "data_page_version": "2.0", "use_dictionary": ["few", "text"]},
    "small": {"data_page_size": 300, "use_dictionary": False, "write_page_checksum": True},
    "content": {"use_content_defined_chunking": True},
}


@pytest.mark.parametrize("options", PAGED.values(), ids=PAGED)
def test_page_index(tmp_path: Path, options: dict[str, Any]) -> None:
    """Row groups of 32 MB with a page index are divided, and have the rows of whole ones.

    Without the index the other tests compare them with pyarrow.
    """
    rng = np.random.default_rng(1)
    width = 2**25 // N
    filler = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), N, [None, pa.py_buffer(rng.bytes(width * N))]
    )
    for part in TABLES.values():
        table = part.append_column("filler", filler)
        options = {"write_batch_size": 20, **options}
        whole, divided = tmp_path / "whole.parquet", tmp_path / "divided.parquet"
        pq.write_table(table, whole, **options)
        pq.write_table(table, divided, **options, write_page_index=True)
        with mf.open(whole) as want, mf.open(divided) as got:
            assert cast(dict[str, int], units(want))["count"] == 1
            assert cast(dict[str, int], units(got))["count"] >= 2
            assert pa.table(got).equals(pa.table(want))
            for size in (1, 10, 300):
                some = rng.integers(0, N, size).tolist()
                assert pa.table(got.take(some)).equals(pa.table(want.take(some)))
            with mf.Loader(
                got.select(["int64"]), batch_size=100, order="blocks", epochs=1, fill={"int64": 0}
            ) as loader:
                seen = np.concatenate([batch["int64"] for batch in loader])
            values = part["int64"].fill_null(0).to_numpy()
            np.testing.assert_array_equal(np.sort(seen), np.sort(values))


@pytest.mark.parametrize(
    "day", ["1677-09-20", "1677-09-21", "2262-04-11", "2262-04-12", "9999-12-31"]
)
def test_timestamps_of_96_bits(day: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    times = pa.array(np.array([f"{day}T12:00:00", "2006-01-02T03:04:05"], "M8[us]"))
    table = pa.table({"t": times, "id": [1, 2]})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    with mf.open(path) as ds:
        if "1677-09-21" <= day <= "2262-04-11":
            assert ds[:]["t"].astype("M8[us]").tolist() == times.to_pylist()
            return
        with pytest.raises(mf.OutOfRangeError) as caught:
            ds[1]
        assert str(caught.value) == (
            f'Dataset: {path}: field "t": row group 0: the timestamp {day}T12:00:00 is outside of '
            "the years 1678 to 2261, which 64 bits of nanoseconds hold; leave the column out, or "
            "write it with another type: pyarrow writes timestamps in microseconds without "
            "use_deprecated_int96_timestamps"
        )
        assert ds.select(["id"])[:]["id"].tolist() == [1, 2]


def test_like_spark(tmp_path: Path) -> None:
    """Old lists, timestamps of 96 bits, and a schema of Parquet alone."""
    path = tmp_path / "x.parquet"
    for nulls, version in itertools.product(TABLES, ["1.0", "2.4"]):
        pq.write_table(
            TABLES[nulls].drop_columns(["map", "nothing"]),
            path,
            flavor="spark",
            version=version,
            use_compliant_nested_type=False,
            store_schema=False,
            compression="snappy",
        )
        compare(path)


def test_polars(tmp_path: Path, deep: bool) -> None:
    path = tmp_path / "x.parquet"
    names = [*INTEGERS, "float32", "float64", "few", "sorted", "bool", "at_ms", "at_us", "day"]
    names += ["vector", "matrix", "image", "list", "lists", "text", "raw", "pair", "ragged"]
    sizes = [(N, None), (150, 500)] if deep else [(150, 500)]
    codecs = ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]
    for nulls, codec, (group, page) in itertools.product(TABLES, codecs, sizes):
        frame = pl.from_arrow(TABLES[nulls].select(names))
        assert isinstance(frame, pl.DataFrame)
        frame.write_parquet(path, compression=codec, row_group_size=group, data_page_size=page)
        compare(path)


def test_duckdb(tmp_path: Path, deep: bool) -> None:
    """Compares with the table that was written: pyarrow 26 cannot read all differences of DuckDB.

    DuckDB 2.0 writes null arrays with wrong levels, which pyarrow and meshfeed refuse.
    """
    path = tmp_path / "x.parquet"
    names = [*INTEGERS, "float32", "float64", "few", "sorted", "bool", "at_us", "day"]
    names += ["list", "lists", "text", "raw", "ragged"]
    codecs = ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"]
    versions = ["V1", "V2"]
    for nulls, (i, codec) in itertools.product(TABLES, enumerate(codecs)):
        part = TABLES[nulls].select(names if nulls else [*names, "vector", "matrix", "image"])
        with duckdb.connect() as db:
            db.register("part", part)
            for version in versions if deep else [versions[i % 2]]:
                how = f"FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version}"
                db.execute(f"COPY part TO '{path}' ({how}, ROW_GROUP_SIZE 2048)")
                compare(path, part)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.parquet")), ids=lambda path: path.stem)
def test_spark_and_arrow_rs(path: Path) -> None:
    """Files that `tests.writers` made with Spark (parquet-mr) and with DataFusion (arrow-rs).

    Those of arrow-rs are compared with the table that was written, because pyarrow 26 does not
    read dictionaries in DELTA_BYTE_ARRAY.
    """
    want = None
    if path.stem.startswith("arrow-rs"):
        part = TABLES[0.1 if path.stem.endswith("-nulls") else 0.0]
        want = part.drop_columns(["nothing"]).slice(0, ROWS)
    compare(path, want)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
@pytest.mark.deep
def test_memory_of_small_files_with_many_values(tmp_path: Path) -> None:
    """Files of 1 MB have row groups of 256 MiB, and shuffled rows need all of them many times.

    Go's heap has up to 1.6 GiB: 1 GiB of decodings, 256 MiB that are kept, and garbage. Go returns
    the pages of freed row groups to the system late, so the process has up to 2.5 GiB.
    """
    rows = 1 << 25
    zeros = pa.table({"x": np.zeros(rows, np.int64)})
    delta = {"use_dictionary": False, "column_encoding": {"x": "DELTA_BINARY_PACKED"}}
    for options in (delta, {"use_dictionary": True}):
        path = tmp_path / "x.parquet"
        with pq.ParquetWriter(path, zeros.schema, **options) as writer:
            for _ in range(8):
                writer.write_table(zeros, row_group_size=rows)
        assert path.stat().st_size < 2 << 20
        code = f"""
            import re, warnings
            import meshfeed as mf

            def peak():
                return int(re.search("VmHWM:(.*) kB", open("/proc/self/status").read())[1]) << 10

            warnings.simplefilter("ignore")  # that this is slow
            with mf.open({str(path)!r}, cache="memory") as ds:
                before = peak()
                loader = mf.Loader(ds, batch_size=64, shuffle=True, seed=1)
                for _, _ in zip(range(3), loader):
                    pass
                loader.close()
            print(peak() - before)
        """
        assert int(run(dedent(code))) < 3 << 30


def test_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    part = TABLES[0.0].select(["int32", "vector", "bool"])
    for empty in (part.slice(0, 0), part.schema.empty_table(), part.select([])):
        pq.write_table(empty, path)
        with mf.open(path) as ds:
            assert len(ds) == 0
            assert list(ds.schema) == empty.column_names
    with pq.ParquetWriter(path, part.schema) as writer:
        writer.write_table(part.slice(0, 10))
        writer.write_table(part.slice(0, 0))
        writer.write_table(part.slice(10))
    compare(path)


def test_empty_lists_are_not_nulls(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    tokens = pa.array([[1, 2], [], [3]], pa.list_(pa.int32()))
    for statistics in (True, False):
        pq.write_table(pa.table({"tokens": tokens}), path, write_statistics=statistics)
        with mf.open(path) as ds, mf.Loader(ds.pad("tokens", length=2), batch_size=3) as loader:
            batch = next(iter(loader))
        assert batch["tokens"].tolist() == [[1, 2], [0, 0], [3, 0]]
        assert batch["tokens_length"].tolist() == [2, 0, 1]


def test_without_statistics(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"id": [7, 7, 8, 8], "pair": [[1, 2], [3, 4], [5, None], None]})
    pq.write_table(table, path, write_statistics=False, row_group_size=2)
    with mf.open(path) as ds:
        assert ds.schema["id"].nullable
        with mf.Loader(ds, specs=["id"], batch_size=4) as loader:
            assert next(iter(loader))["id"].tolist() == [7, 7, 8, 8]
        assert len(ds.window(2, within="id")) == 2
        with mf.Loader(ds, batch_size=2) as loader:
            batches = iter(loader)
            assert next(batches)["pair"].tolist() == [[1, 2], [3, 4]]
            with pytest.raises(mf.InvalidArgumentError) as caught:
                next(batches)
        assert str(caught.value) == (
            f'mf.Loader: step 1 of epoch 0: {path}: field "pair": record 2 holds a null, and '
            'arrays cannot; give the field a fill value (fill={"pair": -1}), or leave out the '
            "records that have nulls (ds.filter)"
        )
        with pytest.raises(mf.InvalidArgumentError, match='"pair": record 2 holds a null, so rec'):
            ds.window(2, within="pair")


def test_encrypted_columns(tmp_path: Path) -> None:
    import pyarrow.parquet.encryption as pe

    class Plain(pe.KmsClient):  # type: ignore[misc]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return key.hex().encode()

        def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
            return bytes.fromhex(wrapped.decode())

    for plain in (True, False):
        config = pe.EncryptionConfiguration(
            footer_key="f", column_keys={"c": ["x"]}, plaintext_footer=plain
        )
        factory = pe.CryptoFactory(Plain)
        how = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
        path = tmp_path / "x.parquet"
        with pq.ParquetWriter(path, pa.schema({"x": pa.int32()}), encryption_properties=how) as w:
            w.write_table(pa.table({"x": pa.array([1, 2], pa.int32())}))
        with pytest.raises(mf.UnsupportedError, match="encrypted"):
            mf.open(path)


def test_several_files(tmp_path: Path) -> None:
    """A glob and a directory of Parquet files, one of which has another schema."""
    part = TABLES[0.0].select(["int64", "vector"])
    pq.write_table(part.slice(0, 300), tmp_path / "a.parquet", row_group_size=70)
    pq.write_table(part.slice(300), tmp_path / "b.parquet")
    want = part["int64"].to_numpy()
    for place in (tmp_path, tmp_path / "*.parquet"):
        with mf.open(place) as ds, mf.Loader(ds, batch_size=100, shuffle=True, epochs=1) as loader:
            got = np.concatenate([batch["int64"] for batch in loader])
            assert sorted(got) == sorted(want)
    pq.write_table(part.select(["int64"]), tmp_path / "c.parquet")
    with pytest.raises(mf.IncompatibleError, match='there is no column "vector", which'):
        mf.open(tmp_path)
