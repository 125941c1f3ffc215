"""The demo's data: scikit-learn's handwritten digits as Arrow files.

1,797 real images of 8 x 8 pixels, written as several files of different sizes
with record batches of different lengths, like most real data sets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits

TEST_RECORDS = 360
FILE_SHARES = (0.45, 0.3, 0.15, 0.1)  # of the training records, per file
BATCH_ROWS = (64, 100, 37, 250)  # rows per record batch, per file


def write(folder: Path) -> tuple[list[Path], Path]:
    """Write train-*.arrow and test.arrow; return the training files and the test file."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = (digits.images[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    train = len(labels) - TEST_RECORDS
    bounds = np.rint(np.cumsum((0, *FILE_SHARES)) * train).astype(int)
    files = []
    for i, rows in enumerate(BATCH_ROWS):
        part = slice(bounds[i], bounds[i + 1])
        files.append(folder / f"train-{i}.arrow")
        _write_file(files[-1], images[part], labels[part], rows)
    _write_file(folder / "test.arrow", images[train:], labels[train:], 128)
    return files, folder / "test.arrow"


def _write_file(path: Path, images: np.ndarray, labels: np.ndarray, rows: int) -> None:
    tensor = pa.fixed_shape_tensor(pa.float32(), (8, 8))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64)
    image = pa.ExtensionArray.from_storage(tensor, flat)
    table = pa.table({"image": image, "label": pa.array(labels)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
