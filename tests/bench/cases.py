"""The datasets, the meshes and the partition specs."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import NamedSharding, PartitionSpec

Data = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Case:
    """One dataset. In row r, the first element of `key` is r, so a batch shows its records."""

    name: str
    rows: int
    batch: int
    field: str
    shape: tuple[int, ...]
    dtype: str
    label: bool = True

    @property
    def key(self) -> str:
        return "label" if self.label else self.field

    def make(self) -> Data:
        rng = np.random.default_rng(0)
        values = np.empty((self.rows, *self.shape), self.dtype)
        for start in range(0, self.rows, 10_000):
            part = values[start : start + 10_000]
            part[...] = rng.integers(0, 256, part.shape, np.uint8)
        data = {self.field: values}
        numbers = np.arange(self.rows, dtype=np.int32)
        if self.label:
            data["label"] = numbers
        else:
            values[:, 0] = numbers
        return data

    @property
    def file_name(self) -> str:
        return f"{self.name.replace(' ', '-')}.arrow"

    @property
    def batch_bytes(self) -> int:
        each = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        return self.batch * (each + (4 if self.label else 0))

    def records(self, batch: dict[str, Any]) -> np.ndarray[Any, Any]:
        """Returns the records of a batch."""
        key = np.asarray(batch[self.key])
        return key if self.label else key[:, 0]

    def file(self, folder: Path) -> Path:
        """Returns the data as one Arrow file, written at first use."""
        path = folder / self.file_name
        if path.exists():
            return path
        scratch = path.with_suffix(".part")
        table = _table(self.make())
        with pa.ipc.new_file(scratch, table.schema) as writer:
            writer.write_table(table, max_chunksize=len(table))
        os.replace(scratch, path)
        return path

    def mapped(self, path: Path) -> Data:
        """Returns NumPy arrays over the mapped file, without copying."""
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        out: Data = {}
        for name in table.column_names:
            values = table[name].chunk(0)
            while pa.types.is_fixed_size_list(values.type):
                values = values.flatten()
            shape = self.shape if name == self.field else ()
            out[name] = values.to_numpy(zero_copy_only=True).reshape(-1, *shape)
        return out


def _table(data: Data) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, array in data.items():
        columns[name] = pa.array(array.reshape(-1))
        for width in reversed(array.shape[1:]):
            columns[name] = pa.FixedSizeListArray.from_arrays(columns[name], width)
    return pa.table(columns)


CASES = [
    Case("images float32", 1_024, 128, "image", (32, 32, 3), "float32"),
    Case("images uint8", 50_000, 512, "image", (32, 32, 3), "uint8"),
    Case("tokens int32", 100_000, 64, "tokens", (2048,), "int32", label=False),
    Case("matrix float32", 1_000_000, 4_096, "matrix", (40,), "float32"),
]

# A file of 4 GB, to be read with half of that in memory.
LARGE = Case("many tokens int32", 500_000, 64, "tokens", (2048,), "int32", label=False)

MESHES: dict[str, tuple[tuple[int, ...], tuple[str, ...], PartitionSpec]] = {
    '(8,) P("data")': ((8,), ("data",), PartitionSpec("data")),
    '(4, 2) P("data")': ((4, 2), ("data", "model"), PartitionSpec("data")),
    '(4, 2) P("data", "model")': ((4, 2), ("data", "model"), PartitionSpec("data", "model")),
}


def named(name: str) -> Case:
    """Returns a case by its name."""
    return next(case for case in [*CASES, LARGE] if case.name == name)


def shardings(case: Case, mesh: str) -> dict[str, NamedSharding]:
    """Returns the sharding of every array of a batch."""
    sizes, axes, spec = MESHES[mesh]
    devices = jax.make_mesh(sizes, axes)
    out = {case.field: NamedSharding(devices, spec)}
    if case.label:
        out["label"] = NamedSharding(devices, PartitionSpec("data"))
    return out


if __name__ == "__main__":  # writes the file of a case: CASE FOLDER
    print(json.dumps(str(named(sys.argv[1]).file(Path(sys.argv[2])))))
