"""Writes the Parquet files of this folder: python generate_parquet.py."""

import datetime as dt
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent

image = pa.FixedShapeTensorArray.from_storage(
    pa.fixed_shape_tensor(pa.float32(), [2, 3]),
    pa.array([[float(i)] * 6 for i in range(3)], pa.list_(pa.float32(), 6)),
)
table = pa.table(
    {
        "image": image,
        "tokens": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        "ragged": pa.array([[1], [2, 3], []], pa.list_(pa.int64())),
        "label": pa.array([1, 2, 3], pa.uint8()),
        "half": pa.array([1.0, 2.0, 3.0], pa.float32()).cast(pa.float16()),
        "text": ["a", "b", "c"],
        "raw": pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        "when": pa.array([dt.datetime(2024, 1, 1)] * 3, pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2024, 1, 1)] * 3),
        "clock": pa.array([dt.time(1, 2)] * 3, pa.time64("us")),
        "price": pa.array([1, 2, 3], pa.int32()).cast(pa.decimal128(12, 2)),
        "pair": pa.array([{"x": 1, "y": 2.0}] * 3, pa.struct({"x": pa.int32(), "y": pa.float64()})),
        "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())),
        "yes": [True, False, True],
    }
)
pq.write_table(table, HERE / "arrow.parquet", compression="none", row_group_size=2)
pq.write_table(table, HERE / "plain.parquet", compression="none", store_schema=False)
