"""The documents, the long file and the sources of a mixture.

Each token of a case has its own number, its position in the corpus plus 1. So the batches of an
epoch show which tokens came, and how often.
"""

from __future__ import annotations

import bisect
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf

Array = np.ndarray[Any, Any]
Batch = dict[str, Any]
FIELDS = ("tokens", "segment_ids", "positions")


def rows_sharding() -> NamedSharding:
    """Returns the sharding of every array: rows are split over the eight devices."""
    return NamedSharding(jax.make_mesh((8,), ("data",)), PartitionSpec("data"))


@dataclass(frozen=True)
class Documents:
    """Documents of log-normal lengths. None is longer than a row, because Grain refuses those.

    Attributes:
        name: of the case.
        documents: their number.
        mean: the mean of their lengths, before they are cut to a row.
        sigma: the deviation of the logarithms.
        length: of a row.
        batch: the rows of a batch.
    """

    name: str
    documents: int
    mean: float
    sigma: float
    length: int = 2048
    batch: int = 64

    def lengths(self) -> Array:
        rng = np.random.default_rng(1)
        drawn = rng.lognormal(np.log(self.mean) - self.sigma**2 / 2, self.sigma, self.documents)
        return np.clip(drawn, 1, self.length).astype(np.int64)

    @property
    def tokens(self) -> int:
        return int(self.lengths().sum())

    @property
    def steps(self) -> int:
        """The fewest batches of an epoch."""
        return self.tokens // (self.length * self.batch)

    def packed_rows(self, folder: Path) -> int:
        """Returns the rows of `ds.pack`."""
        with mf.open(self.path(folder, "documents.arrow")) as ds:
            return int(ds.pack("tokens", length=self.length).packing()["rows"])

    def fewest_rows(self) -> int:
        """Returns the rows of best-fit-decreasing over all documents."""
        free = np.zeros(self.length + 1, np.int64)  # by room: how many rows have it left
        rooms: list[int] = []  # in increasing order, those that some row has
        rows = 0
        for n in np.sort(self.lengths())[::-1].tolist():
            at = bisect.bisect_left(rooms, n)
            if at == len(rooms):
                rows, room = rows + 1, self.length
            else:
                room = rooms[at]
                free[room] -= 1
                if not free[room]:
                    del rooms[at]
            if room > n:
                if not free[room - n]:
                    bisect.insort(rooms, room - n)
                free[room - n] += 1
        return rows

    def table(self, folder: Path) -> pa.Table:
        """Maps the documents."""
        return pa.ipc.open_file(pa.memory_map(str(self.path(folder, "documents.arrow")))).read_all()

    def path(self, folder: Path, name: str) -> Path:
        return folder / f"{self.name}-{name}"

    def write(self, folder: Path) -> None:
        """Writes the documents as a file and as a stream, and their packed rows as a file."""
        folder.mkdir(parents=True, exist_ok=True)
        if not (path := self.path(folder, "documents.arrow")).exists():
            ends = np.cumsum(self.lengths())
            offsets = np.concatenate([[0], ends]).astype(np.int32)
            values = np.arange(1, ends[-1] + 1, dtype=np.int32)
            table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, values)})
            _write(self.path(folder, "documents.stream"), table, pa.ipc.new_stream)
            _write(path, table, pa.ipc.new_file)
        if not (path := self.path(folder, "rows.arrow")).exists():
            with mf.open(self.path(folder, "documents.arrow")) as ds:
                packed = ds.pack("tokens", length=self.length)[:]
            lists = {
                name: pa.FixedSizeListArray.from_arrays(packed[name].reshape(-1), self.length)
                for name in FIELDS
            }
            _write(path, pa.table(lists), pa.ipc.new_file)


@dataclass(frozen=True)
class Stream:
    """A file of tokens without documents, as nanoGPT keeps them, and another one of its windows.

    Windows have one token more than `length`.
    """

    name: str
    tokens: int
    length: int = 1024
    batch: int = 64

    @property
    def steps(self) -> int:
        return (self.tokens - 1) // (self.length * self.batch)

    def path(self, folder: Path, suffix: str = "bin") -> Path:
        return folder / f"{self.name}.{suffix}"

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if not self.path(folder, "npy").exists():
            tokens = np.arange(1, self.tokens + 1, dtype=np.uint32)
            tokens.tofile(self.path(folder))
            windows = np.lib.stride_tricks.sliding_window_view(tokens, self.length + 1)
            scratch = self.path(folder, "part.npy")
            np.save(scratch, windows[:: self.length])
            os.replace(scratch, self.path(folder, "npy"))


@dataclass(frozen=True)
class Mixture:
    """Rows of several sources. An epoch takes each row of each source once, as their sizes agree
    with the weights."""

    name: str
    rows: int
    weights: tuple[float, ...] = (0.6, 0.25, 0.1, 0.05)
    length: int = 2048
    batch: int = 64

    @property
    def steps(self) -> int:
        return self.rows // self.batch

    def paths(self, folder: Path) -> list[Path]:
        """Returns a file of rows for each source."""
        return [folder / f"{self.name}-{i}.npy" for i in range(len(self.weights))]

    def write(self, folder: Path) -> None:
        """Writes the sources. All tokens of a row are its number, counted over all sources."""
        folder.mkdir(parents=True, exist_ok=True)
        first = 1
        for path, weight in zip(self.paths(folder), self.weights, strict=True):
            n = round(self.rows * weight)
            if not path.exists():
                numbers = np.arange(first, first + n, dtype=np.int32)
                scratch = path.with_suffix(".part.npy")
                np.save(scratch, np.repeat(numbers, self.length).reshape(n, self.length))
                os.replace(scratch, path)
            first += n


Case = Documents | Stream | Mixture

CASES: list[Case] = [
    Documents("pretraining", 98_304, 700, 1.0),
    Documents("chat", 196_608, 250, 0.8),
    Stream("stream", 48_000_001),
    Mixture("mixture", 24_000),
]
TINY: list[Case] = [
    Documents("tiny", 600, 20, 0.8, 64, 8),
    Stream("tiny-stream", 20_001, 64, 8),
    Mixture("tiny-mixture", 1_000, length=16, batch=8),
]
QUICK: list[Case] = [
    Documents("pretraining-quick", 8_192, 700, 1.0),
    Stream("stream-quick", 4_000_001),
    Mixture("mixture-quick", 4_000),
]


def named(name: str) -> Case:
    """Returns a case by its name."""
    return next(case for case in [*CASES, *TINY, *QUICK] if case.name == name)


def _write(path: Path, table: pa.Table, kind: Any) -> None:
    scratch = path.with_suffix(".part")
    with kind(scratch, table.schema) as writer:
        writer.write_table(table, max_chunksize=len(table))
    os.replace(scratch, path)


if __name__ == "__main__":  # writes the files of a case: CASE FOLDER
    named(sys.argv[1]).write(Path(sys.argv[2]))
    print("{}")
