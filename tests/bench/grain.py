"""Grain's MapDataset over the same rows, with threads and no worker processes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import grain
import jax

from tests.bench.cases import Case, Data


class Rows:
    """A random-access source: one dict of rows per record."""

    def __init__(self, data: Data, rows: int) -> None:
        self._data = data
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, record: int) -> dict[str, Any]:
        return {name: array[record] for name, array in self._data.items()}


def loop(data: Data, case: Case, shardings: dict[str, Any]) -> Generator[Any, None, None]:
    """Yields shuffled batches without end."""
    rows = grain.MapDataset.source(Rows(data, case.rows)).seed(0).shuffle().repeat()
    batches = iter(rows.batch(case.batch, drop_remainder=True).to_iter_dataset())
    try:
        for batch in batches:
            yield jax.device_put(batch, shardings)
    finally:
        batches.close()  # its threads would read ahead while others are measured
