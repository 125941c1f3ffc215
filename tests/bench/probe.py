"""The loop to beat: `np.take` of the permuted records, then one `jax.device_put`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from tests.bench.cases import Case, Data

Take = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def plain(data: Data, case: Case, shardings: dict[str, Any]) -> Iterator[Any]:
    """Takes into memory that NumPy allocates."""
    return _loop(data, case, shardings, lambda array, records: np.take(array, records, axis=0))


def aligned(data: Data, case: Case, shardings: dict[str, Any]) -> Iterator[Any]:
    """Takes into new memory aligned to 64 bytes, which JAX can alias."""

    def take(array: np.ndarray[Any, Any], records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        shape = (len(records), *array.shape[1:])
        out = aligned_bytes(int(np.prod(shape)) * array.itemsize).view(array.dtype).reshape(shape)
        return np.take(array, records, axis=0, out=out, mode="clip")

    return _loop(data, case, shardings, take)


def aligned_bytes(size: int) -> np.ndarray[Any, Any]:
    """Returns new memory aligned to 64 bytes."""
    whole = np.empty(size + 64, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + size]


def _loop(data: Data, case: Case, shardings: dict[str, Any], take: Take) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    while True:
        order = rng.permutation(case.rows)
        for start in range(0, case.rows - case.batch + 1, case.batch):
            records = order[start : start + case.batch]
            batch = {name: take(array, records) for name, array in data.items()}
            yield jax.device_put(batch, shardings)
