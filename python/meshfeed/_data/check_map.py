"""Checks that the rows of a map depend on themselves alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshfeed._data import returned
from meshfeed._data.dataset import Dataset
from meshfeed._data.rows import Rows, rows_of
from meshfeed._io.arguments import Checks


def check_map(dataset: Dataset, samples: int = 32) -> None:
    """Proves on samples that the rows of a map depend on themselves alone.

    It reads evenly spread records together, in the reverse order, twice, and each of them alone. A
    function that normalizes by the batch, keeps a state, or draws random numbers without keys gives
    other rows. All bytes are compared: a product of matrices may round in another way if it has
    other numbers of rows, and then rows depend on the mesh.

    Args:
        dataset: a dataset with a map, below other views or not.
        samples: how many records are read.

    Raises:
        InvalidArgumentError: a row differs. The message names the record and the field.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> ds = mf.from_arrays({"x": np.arange(6, dtype=np.float32)})
        >>> mf.check_map(ds.map(lambda rows: {"x": rows["x"] / 2}))
        >>> mf.check_map(ds.map(lambda rows: {"x": rows["x"] - rows["x"].mean()}))
        Traceback (most recent call last):
            ...
        meshfeed.InvalidArgumentError: mf.check_map: field 'x': record 0 differs alone...
    """
    with Checks("mf.check_map") as check:
        if not isinstance(dataset, Dataset):
            raise check.wrong("dataset", dataset, "a dataset")
        n = min(check.integer("samples", samples, 1, 1 << 16), len(dataset))
        records = np.linspace(0, max(len(dataset) - 1, 0), n).astype(np.int64)
        together = rows_of(dataset[records], n)
        _compare(check, records, together, rows_of(dataset[records], n), "the second time")
        backward = rows_of(dataset[records[::-1]], n)[::-1]
        _compare(check, records, together, backward, "in another order")
        alone = [dataset[int(record)] for record in records]
        _compare(check, records, together, alone, "alone")


def _compare(
    check: Checks, records: Any, expected: list[Rows], found: list[Rows], how: str
) -> None:
    for record, a, b in zip(records, expected, found, strict=True):
        for name in a:
            if not returned.same(a[name], b[name]):
                message = f"field {name!r}: record {record} differs {how}"
                raise check.misfit(message, "compute each row from that row and its key alone")
