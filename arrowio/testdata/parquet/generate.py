"""Writes the files of this folder: python generate.py.

For each Parquet file there is an Arrow file of the same name, with what pyarrow reads from it.
"""

import datetime as dt
import pathlib

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
N = 23  # rows, in row groups of 9


def save(name: str, table: pa.Table, **options: object) -> None:
    """Writes a Parquet file of pyarrow, and what pyarrow reads from it."""
    pq.write_table(
        table, HERE / f"{name}.parquet", row_group_size=9, write_page_checksum=True, **options
    )
    copy(name)


def copy(name: str) -> None:
    """Writes what pyarrow reads as an Arrow file."""
    table = pq.read_table(HERE / f"{name}.parquet").combine_chunks()
    feather.write_feather(table, HERE / f"{name}.arrow", compression="uncompressed")


def holes(array: pa.Array, step: int) -> pa.Array:
    """Replaces every value whose number is a multiple of step by a null."""
    return pa.array(
        [None if i % step == 0 else v for i, v in enumerate(array.to_pylist())], array.type
    )


k = np.arange(N)
numbers = {
    d: pa.array((k * 37 % 113).astype(d))
    for d in ("int8", "uint16", "int32", "uint64", "float16", "float32", "float64")
}
bools = pa.array(k % 3 == 0)
fixed = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(N * 3, dtype="float32")), 3)
small = pa.FixedSizeListArray.from_arrays(pa.array((np.arange(N * 4) % 7).astype("uint8")), 4)
deep = pa.FixedSizeListArray.from_arrays(
    pa.FixedSizeListArray.from_arrays(pa.array(np.arange(N * 4, dtype="int16")), 2), 2
)
lists = pa.array([[i, i + 1] for i in range(N)], pa.list_(pa.int64()))
times = {
    "ms": pa.array(
        [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in range(N)], pa.timestamp("ms")
    ),
    "ns": pa.array(k * 10**15 + 5, pa.timestamp("ns", "UTC")),
    "day": pa.array(k.astype("int32"), pa.date32()),
    "clock": pa.array(k, pa.time64("us")),
}
skipped = {
    "text": pa.array([f"t{i % 4}" for i in range(N)]),
    "price": pa.array(k).cast(pa.decimal128(21, 2)),
    "pair": pa.array([{"a": i} for i in range(N)]),
}

save(
    "plain", pa.table(numbers | {"yes": bools, **skipped}), compression="none", use_dictionary=False
)
save(
    "dictionary",
    pa.table(
        {
            "x": k % 5,
            "f": (k % 3).astype("float32"),
            "l": small,
            "code": pa.array([b"ab", b"cd"] * 11 + [b"ef"], pa.binary(2)),
        }
    ),
    compression="snappy",
)
save(
    "lists",
    pa.table({"fixed": fixed, "deep": deep, "lists": lists}),
    compression="gzip",
    data_page_size=40,
    write_batch_size=4,
)
save(
    "nulls",
    pa.table(
        {
            "x": holes(numbers["int32"], 4),
            "yes": holes(bools, 3),
            "fixed": holes(fixed, 5),
            "deep": holes(deep, 2),
            "lists": holes(lists, 6),
        }
    ),
    compression="lz4",
    data_page_version="2.0",
)
save(
    "delta",
    pa.table(
        {
            "i": k * k - 50,
            "j": pa.array(k.astype("int32")),
            "f": numbers["float32"],
            "raw": pa.array([bytes([i, 1, 2]) for i in range(N)], pa.binary(3)),
        }
    ),
    compression="zstd",
    use_dictionary=False,
    column_encoding={
        "i": "DELTA_BINARY_PACKED",
        "j": "DELTA_BINARY_PACKED",
        "f": "BYTE_STREAM_SPLIT",
        "raw": "DELTA_BYTE_ARRAY",
    },
)
save("times", pa.table(times), compression="brotli", data_page_version="2.0", use_dictionary=False)
save(
    "legacy",
    pa.table({"at": times["ns"], "x": holes(numbers["int8"], 7)}),
    use_deprecated_int96_timestamps=True,
    store_schema=False,
)

pl.DataFrame(
    {
        "x": k,
        "y": k / 3,
        "a": pl.Series(np.arange(2 * N).reshape(N, 2), dtype=pl.Array(pl.Int64, 2)),
        "b": pl.Series([None, *k[1:].tolist()]),
    }
).write_parquet(HERE / "polars.parquet", row_group_size=9)
copy("polars")
query = f"SELECT i AS x, i::FLOAT AS f, [i, i + 1] AS l, i % 2 = 0 AS yes FROM range({N}) t(i)"
duckdb.sql(f"COPY ({query}) TO '{HERE / 'duckdb.parquet'}' (FORMAT parquet)")
copy("duckdb")

# Rows of different lengths, with nulls at every level.
words = ["", "a", "täg", "longer than the others", None]
ragged = {
    "text": pa.array([words[i % 5] for i in range(N)]),
    "raw": pa.array([bytes(range(i % 7)) for i in range(N)], pa.large_binary()),
    "numbers": pa.array([None if i % 6 == 5 else list(range(i % 4)) for i in range(N)]),
    "holes": pa.array([[None, i] * (i % 3) for i in range(N)], pa.list_(pa.float32())),
    "deep": pa.array([[[i] * (k % 3) for k in range(i % 4)] for i in range(N)]),
    "null deep": pa.array([[None, [True, None]] * (i % 3) for i in range(N)]),
    "texts": pa.array([[words[k] for k in range(i % 6)] for i in range(N)]),
    "boxes": pa.array(
        [[[i, k] for k in range(i % 4)] for i in range(N)], pa.list_(pa.list_(pa.int16(), 2))
    ),
    "category": pa.array([words[i % 4] for i in range(N)]).dictionary_encode(),
}
save("ragged", pa.table(ragged), compression="zstd", data_page_size=60, write_batch_size=4)
save("ragged_plain", pa.table(ragged), compression="none", use_dictionary=False, store_schema=False)

# Encoded files of Hugging Face's datasets library, beside which the Arrow file has their bytes.
contents = [None if i % 5 == 2 else bytes(range(i % 7)) for i in range(N)]
members = [pa.field("bytes", pa.binary()), pa.field("path", pa.string())]
solid = [pa.field("bytes", pa.binary(), nullable=False), pa.field("path", pa.null())]
swapped = [pa.field("path", pa.large_string()), pa.field("bytes", pa.large_binary())]
structs = [None if c is None else {"bytes": c, "path": f"{i}.png"} for i, c in enumerate(contents)]
media = {
    "image": pa.array(structs, pa.struct(members)),
    "solid": pa.array([c and {"bytes": c["bytes"]} for c in structs], pa.struct(solid)),
    "swapped": pa.array(structs, pa.struct(swapped)),
    "whole": pa.array([c or {"bytes": b"-"} for c in structs], pa.struct(members)),
}
save("media", pa.table(media), compression="zstd", data_page_size=60, write_batch_size=4)
table = pa.table(
    {
        "image": pa.array(contents, pa.binary()),
        "solid": pa.array(contents, pa.binary()),
        "swapped": pa.array(contents, pa.large_binary()),
        "whole": pa.array([b"-" if c is None else c for c in contents], pa.binary()),
    }
)
feather.write_feather(table, HERE / "media.arrow", compression="uncompressed")

# Row groups of many small pages, with a page index. Pages of different columns do not begin with
# the same rows.
M = 160
j = np.arange(M)
paged = {
    "i": pa.array(j * 7 % 1000),
    "x": pa.array((j * 31 % 97).astype("float32")),
    "few": pa.array([f"w{i % 5}" for i in range(M)]),
    "text": pa.array([None if i % 9 == 4 else f"{i}" * (i % 11) for i in range(M)]),
    "yes": holes(pa.array(j % 3 == 0), 7),
    "small": holes(pa.array((j % 100).astype("int8")), 5),
    "raw": pa.array([bytes([i % 256, 1, 2]) for i in range(M)], pa.binary(3)),
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(M * 3, dtype="float32")), 3),
    "box": holes(
        pa.FixedSizeListArray.from_arrays(pa.array(np.arange(M * 2, dtype="int16")), 2), 4
    ),
    "list": pa.array([None if i % 13 == 5 else list(range(i % 6)) for i in range(M)]),
    "holes": pa.array([[None, i] * (i % 3) for i in range(M)], pa.list_(pa.float64())),
    "deep": pa.array([[[i + k] * (k % 3) for k in range(i % 4)] for i in range(M)]),
    "texts": pa.array([[words[k] for k in range(i % 6)] for i in range(M)]),
    "image": pa.array(
        [
            None if i % 17 == 3 else {"bytes": bytes(range(i % 40)), "path": f"{i}"}
            for i in range(M)
        ],
        pa.struct(members),
    ),
}


def save_paged(name: str, table: pa.Table, **options: object) -> None:
    """Writes a file with a page index, and what pyarrow reads with the bytes of images alone."""
    path = HERE / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=120, write_page_index=True, **options)
    table = pq.read_table(path).combine_chunks()
    image = table["image"].combine_chunks()
    content = pa.array([v and v["bytes"] for v in image.to_pylist()], pa.binary())
    table = table.set_column(table.schema.get_field_index("image"), "image", content)
    feather.write_feather(table, HERE / f"{name}.arrow", compression="uncompressed")


tiny = {"data_page_size": 100, "write_batch_size": 3, "write_statistics": False}
save_paged("paged", pa.table(paged), compression="snappy", **tiny)
save_paged(
    "paged_v2",
    pa.table(paged),
    data_page_version="2.0",
    use_dictionary=["few"],
    compression="none",
    **tiny,
)
save_paged(
    "paged_cdc",
    pa.table(paged),
    compression="zstd",
    write_batch_size=2,
    write_page_checksum=True,
    use_content_defined_chunking={"min_chunk_size": 64, "max_chunk_size": 256, "norm_level": 0},
)
