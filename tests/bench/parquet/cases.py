"""The Parquet files. Their rows are in the order of the labels."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

Batch = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One dataset. The label of row r is r, so a batch shows its records and how they mix.

    Attributes:
        name: of the case and its directory.
        rows: their number; a multiple of `files * group`.
        field: the field beside the label.
        width: the number of elements of its rows.
        dtype: of its elements; their values are below `below`.
        batch: the rows of a batch, which divide a row group.
        group: the rows of a row group.
        window: the row groups that are mixed.
        codec: the compression.
    """

    name: str
    rows: int
    field: str
    width: int
    dtype: str
    below: int
    batch: int
    group: int
    window: int
    codec: str = "snappy"
    files: int = 8

    @property
    def steps(self) -> int:
        return self.rows // self.batch

    @property
    def buffer(self) -> int:
        """The rows that every loop mixes."""
        return self.window * self.group

    @property
    def row_bytes(self) -> int:
        return self.width * np.dtype(self.dtype).itemsize + 4

    def paths(self, folder: Path) -> list[Path]:
        """Returns the files, written at first use."""
        at = folder / self.name.replace(" ", "-").replace(",", "")
        paths = [at / f"part-{n}.parquet" for n in range(self.files)]
        at.mkdir(parents=True, exist_ok=True)
        for n, path in enumerate(paths):
            if not path.exists():
                scratch = path.with_suffix(".part")
                self._write(scratch, n)
                os.replace(scratch, path)
        return paths

    def arrow(self, folder: Path) -> list[Path]:
        """Returns Arrow files of the same rows, written at first use."""
        sources = self.paths(folder)
        paths = [source.with_suffix(".arrow") for source in sources]
        for source, path in zip(sources, paths, strict=True):
            if not path.exists():
                table = pq.read_table(source)
                scratch = path.with_suffix(".part")
                with pa.ipc.new_file(scratch, table.schema) as writer:
                    writer.write_table(table, max_chunksize=self.group)
                os.replace(scratch, path)
        return paths

    def values(self, labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the first two elements of rows, by which a batch is checked."""
        return np.stack([labels % self.below, labels // self.below % self.below], axis=1)

    def _write(self, path: Path, file: int) -> None:
        rows = self.rows // self.files
        labels = np.arange(file * rows, (file + 1) * rows, dtype=np.int32)
        values = np.random.default_rng(file).integers(0, self.below, (rows, self.width), self.dtype)
        values[:, :2] = self.values(labels)
        offsets = np.arange(0, rows * self.width + 1, self.width, dtype=np.int32)
        lists = pa.ListArray.from_arrays(offsets, values.reshape(-1))
        table = pa.table({self.field: lists, "label": labels})
        pq.write_table(table, path, row_group_size=self.group, compression=self.codec)


CASES = [
    Case("tokens, snappy", 24_576, "tokens", 2_049, "int32", 32_768, 64, 256, 48),
    Case("images, snappy", 49_152, "image", 3_072, "uint8", 256, 512, 512, 48),
    Case("tokens, zstd, 537 MB", 65_536, "tokens", 2_049, "int32", 32_768, 64, 256, 48, "zstd"),
]
TINY = Case("tiny", 256, "image", 48, "uint8", 256, 16, 32, 2, files=2)
SMALL = replace(CASES[0], name="tokens, small", rows=8_192, window=16)


def named(name: str) -> Case:
    """Returns a case by its name."""
    return next(case for case in [*CASES, TINY, SMALL] if case.name == name)


if __name__ == "__main__":  # writes the files of a case: CASE FOLDER
    named(sys.argv[1]).arrow(Path(sys.argv[2]))
    print("{}")
