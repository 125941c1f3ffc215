"""The dataset of the jobs, in three Arrow files, and its correct batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]

RECORDS, BATCH = 164, 48  # three whole batches and 20 records
TOKENS = 49  # inputs are the first 48, targets the last 48


def fields() -> dict[str, Array]:
    """Makes fields without equal elements, except for the flags."""
    image = np.arange(RECORDS * 64, dtype=np.float32).reshape(RECORDS, 8, 8)
    tokens = np.arange(RECORDS * TOKENS, dtype=np.int32).reshape(RECORDS, TOKENS)
    label = np.arange(RECORDS, dtype=np.int32) * 1000 + 7
    return {"image": image + 0.5, "tokens": tokens * 3, "label": label, "flag": label % 3 == 0}


def write(folder: Path) -> None:
    """Writes the records into files of several record batches each."""
    columns = [_column(array) for array in fields().values()]
    table = pa.table(columns, names=list(fields()))
    for i, (start, stop) in enumerate([(0, 50), (50, 51), (51, RECORDS)]):
        with pa.ipc.new_file(folder / f"part-{i}.arrow", table.schema) as file:
            file.write_table(table.slice(start, stop - start), max_chunksize=32)


def write_compressed(folder: Path) -> None:
    """Writes labels and noise of 100 MB into a Parquet file, which takes a moment to decode."""
    noise = np.random.default_rng(0).integers(0, 256, (RECORDS, 600_000), np.uint8)
    image = pa.FixedSizeListArray.from_arrays(pa.array(noise.ravel()), noise.shape[1])
    table = pa.table({"label": pa.array(fields()["label"]), "image": image})
    pq.write_table(table, folder / "part.parquet", row_group_size=16, compression="zstd")


def _column(array: Array) -> pa.Array:
    if array.ndim == 1:
        return pa.array(array)
    if array.ndim == 3:
        return pa.FixedShapeTensorArray.from_numpy_ndarray(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def batch(field: str, records: Array, columns: list[tuple[int, int]] | None, dims: Any) -> Array:
    """Makes an array of the global batch from the data alone.

    Args:
        field: the field.
        records: the batch's records, -1 for padding.
        columns: ranges of the row's first dimension.
        dims: the batch dimensions.
    """
    rows = fields()[field][np.maximum(records, 0)]
    rows[records < 0] = 0
    if columns is not None:
        rows = np.concatenate([rows[:, start:stop] for start, stop in columns], axis=1)
    return rows.reshape(*dims, *rows.shape[1:])
