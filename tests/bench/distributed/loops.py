"""The loops: the same shuffled batches as global arrays, by meshfeed and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grain
import jax
import numpy as np
from jax.sharding import NamedSharding

import meshfeed as mf
from tests.bench.cases import Case, Data
from tests.bench.grain import Rows

Shardings = dict[str, NamedSharding]

QUICK = 1000  # steps of a turn if a step takes less than a millisecond: the scheduler's slices for
# processes that share a processor take some milliseconds


@dataclass(frozen=True)
class Loop:
    """An endless loop.

    Attributes:
        batches: the batches.
        gathered: returns the bytes that this process gathered for each batch.
        steps: the steps of a turn.
    """

    batches: Iterator[Any]
    gathered: Callable[[], float]
    steps: int


def loops(case: Case, shardings: Shardings, data: Data, path: Path) -> dict[str, Loop]:
    """Makes all loops of a case, by name."""
    return {
        "meshfeed": meshfeed(case, shardings, path),
        "by hand": by_hand(case, shardings, data),
        "device_put": whole(case, shardings, data),
        "Grain": by_grain(case, shardings, data),
    }


def meshfeed(case: Case, shardings: Shardings, path: Path) -> Loop:
    """Yields the batches of meshfeed, from the file."""
    size, split = case.batch, dict(shardings)
    loader = mf.Loader(mf.open(path), None, split, batch_size=size, shuffle=True, epochs=-1)

    def gathered() -> float:
        stats = loader.stats()
        return float(stats["bytes"] / stats["batches"])

    return Loop(iter(loader), gathered, QUICK)


def by_hand(case: Case, shardings: Shardings, data: Data) -> Loop:
    """Takes the rows of this process with NumPy, by hand-written indexes for the mesh."""
    shapes = {name: (case.batch, *array.shape[1:]) for name, array in data.items()}
    mine = {name: local_rows(shardings[name], shape) for name, shape in shapes.items()}
    bytes_of = Bytes()

    def batches() -> Iterator[Any]:
        for records in shuffled(case):
            yield {
                name: jax.make_array_from_process_local_data(
                    shardings[name],
                    bytes_of.add(np.take(array, records[mine[name]], axis=0)),
                    shapes[name],
                )
                for name, array in data.items()
            }

    return Loop(batches(), lambda: bytes_of.per_batch(len(data)), QUICK)


def whole(case: Case, shardings: Shardings, data: Data) -> Loop:
    """Takes the whole batch in every process; JAX compares and distributes it."""
    bytes_of = Bytes()

    def batches() -> Iterator[Any]:
        for records in shuffled(case):
            batch = {
                name: bytes_of.add(np.take(array, records, axis=0)) for name, array in data.items()
            }
            yield jax.device_put(batch, shardings)

    return Loop(batches(), lambda: bytes_of.per_batch(len(data)), 6)


def by_grain(case: Case, shardings: Shardings, data: Data) -> Loop:
    """Yields every n-th record with Grain, which is right if the mesh follows the processes."""
    rank, count = jax.process_index(), jax.process_count()
    bytes_of = Bytes()
    rows = grain.MapDataset.source(Rows(data, case.rows)).seed(0).shuffle()[rank::count].repeat()
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    local = rows.batch(case.batch // count, drop_remainder=True).to_iter_dataset(options)

    def batches() -> Iterator[Any]:
        for batch in local:
            yield {
                name: jax.make_array_from_process_local_data(
                    shardings[name], bytes_of.add(part), (case.batch, *part.shape[1:])
                )
                for name, part in batch.items()
            }

    return Loop(batches(), lambda: bytes_of.per_batch(len(data)), 20)


class Bytes:
    """Counts the bytes of arrays."""

    def __init__(self) -> None:
        self.total = self.arrays = 0

    def add(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.total += array.nbytes
        self.arrays += 1
        return array

    def per_batch(self, arrays: int) -> float:
        """Returns the mean per batch of a number of arrays."""
        return self.total / self.arrays * arrays


def shuffled(case: Case) -> Iterator[np.ndarray[Any, Any]]:
    """Yields the records of batches, the same in every process."""
    rng = np.random.default_rng(0)
    while True:
        order = rng.permutation(case.rows)
        for start in range(0, case.rows - case.batch + 1, case.batch):
            yield order[start : start + case.batch]


def local_rows(sharding: NamedSharding, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Lists the rows of a global array that this process holds, in ascending order."""
    parts = sharding.addressable_devices_indices_map(shape).values()
    return np.unique(np.concatenate([np.arange(shape[0])[index[0]] for index in parts if index]))
