"""The table of the matrix of Parquet files: a column of every type, some of them with nulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

N = 700
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def with_nulls(array: pa.Array, rng: np.random.Generator, share: float) -> pa.Array:
    """Replaces a share of the values by nulls."""
    gone = rng.random(len(array)) < share
    keep = pa.array([None if g else i for i, g in enumerate(gone)], pa.int64())
    return array.take(keep)


def table(nulls: float) -> pa.Table:
    """Returns a table with a column of every type, some of them with nulls."""
    rng = np.random.default_rng(7)
    columns: dict[str, Any] = {}
    for d in INTEGERS:
        i = np.iinfo(d)
        columns[d] = rng.integers(i.min, i.max, N, dtype=d, endpoint=True)
    for d in ("float16", "float32", "float64"):
        columns[d] = rng.standard_normal(N).astype(d)
    columns["few"] = rng.integers(0, 5, N)
    columns["sorted"] = np.arange(N) * 3
    columns["bool"] = rng.random(N) < 0.5
    big = rng.integers(0, 10**9, N)
    for unit, zone in [("s", None), ("ms", None), ("us", "UTC"), ("ns", "Europe/Berlin")]:
        columns[f"at_{unit}"] = pa.array(big, pa.timestamp(unit, zone))
    columns["day"] = pa.array((big % 20000).astype("i4"), pa.date32())
    columns["clock_ms"] = pa.array((big % 86_400_000).astype("i4"), pa.time32("ms"))
    columns["clock_ns"] = pa.array(big, pa.time64("ns"))
    columns["lasts"] = pa.array(big, pa.duration("us"))
    columns["fixed"] = pa.array([rng.bytes(5) for _ in range(N)], pa.binary(5))
    floats = pa.array(rng.random(N * 12).astype("f4"))
    columns["vector"] = pa.FixedSizeListArray.from_arrays(floats, 12)
    pairs = pa.FixedSizeListArray.from_arrays(floats, 3)
    columns["matrix"] = pa.FixedSizeListArray.from_arrays(pairs, 4)
    pixels = pa.array(rng.integers(0, 256, N * 30, dtype="u1"))
    columns["image"] = pa.FixedSizeListArray.from_arrays(pixels, 30)
    columns["list"] = pa.array(rng.integers(0, 9, (N, 4)).tolist(), pa.list_(pa.int64()))
    columns["lists"] = pa.array(rng.random((N, 2, 3)).tolist(), pa.list_(pa.list_(pa.float64())))
    columns["coded"] = pa.array(rng.integers(0, 9, N)).dictionary_encode()
    words = pa.array(["é" * (i % 4) + "x" * (i % 3) for i in range(N)])
    columns["text"], columns["code"] = words, words.dictionary_encode()
    columns["raw"] = pa.array([rng.bytes(i % 7) for i in range(N)])
    columns["price"] = pa.array(big).cast(pa.decimal128(21, 2))
    columns["pair"] = pa.array([{"a": 1, "b": 2.0}] * N)
    columns["nothing"] = pa.nulls(N)
    columns["ragged"] = pa.array([[0] * (i % 3) for i in range(N)])
    columns["map"] = pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int32()))
    if nulls:
        for name in columns:
            if name != "nothing":
                columns[name] = with_nulls(pa.array(columns[name]), rng, nulls)
    return pa.table(columns)


TABLES = {nulls: table(nulls) for nulls in (0.0, 0.1)}
