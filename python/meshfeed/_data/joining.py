"""Joins datasets: the records of one after the records of another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from meshfeed._data.dataset import Dataset, origin
from meshfeed._data.fields import Origin
from meshfeed._io.arguments import Checks
from meshfeed._native import calls

_FULL = (
    "datasets[%d] compares every byte of its files between processes, but datasets[%d] is in "
    "memory and has no files"
)


def concat(datasets: Iterable[Dataset]) -> Dataset:
    """Returns a view of the records of several datasets, one dataset after the other.

    Their fields must have the same names, types of values and shapes; `Dataset.select` and
    `Dataset.rename` make them so. They have the order of the first dataset. Text agrees with
    text, and bytes with bytes, whatever the Arrow types that store them. Lists of several lengths
    become a ragged field. A field may hold nulls if it may in one of the datasets. A dataset may
    occur several times.

    Args:
        datasets: at least one dataset.

    Raises:
        InvalidArgumentError: two datasets have different fields; the message names the first
            difference and the positions of both datasets.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> old, new = (mf.from_arrays({"x": np.arange(n)}) for n in (3, 2))
        >>> with mf.Loader(mf.concat([old, new]), batch_size=5, shuffle=False) as loader:
        ...     next(iter(loader))["x"].tolist()
        [0, 1, 2, 0, 1]
    """
    with Checks("mf.concat") as check:
        listed: list[Any] = list(datasets) if _several(datasets) else []
        if not listed:
            raise check.wrong("datasets", datasets, "a list of at least one dataset")
        for i, ds in enumerate(listed):
            if not isinstance(ds, Dataset):
                raise check.wrong(f"datasets[{i}]", ds, "a dataset")
        shared = joined(check, [origin(ds) for ds in listed])
        handle = calls.dataset_view("concat", [ds.handle for ds in listed])
        return Dataset(handle, shared)


def _several(datasets: Any) -> bool:
    return hasattr(datasets, "__iter__") and not isinstance(datasets, Dataset | str | bytes)


def joined(check: Checks, origins: list[Origin]) -> Origin:
    """Returns what a joined dataset shares with its parts."""
    compared = [i for i, below in enumerate(origins) if below.compared]
    in_memory = [i for i, below in enumerate(origins) if not below.files]
    if compared and in_memory:
        hint = 'open the files without fingerprint="full", or write the records to a file'
        raise check.misfit(_FULL % (compared[0], in_memory[0]), hint)
    return Origin(
        files=[path for below in origins for path in below.files],
        packed={path: how for below in origins for path, how in below.packed.items()},
        compared=bool(compared),
        repeats=max(below.repeats for below in origins),
        warned=all(below.warned for below in origins),
        uncached=[path for below in origins for path in below.uncached],
        scattered=next((below.scattered for below in origins if below.scattered), ""),
        functions=tuple(function for below in origins for function in below.functions),
    )
