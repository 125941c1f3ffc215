"""The arguments of a loader, checked and written as the C library reads them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from meshfeed.dataset import Dataset
from meshfeed.errors import InvalidArgumentError

State = dict[str, Any]


def check_source(source: Any) -> None:
    """Refuses what is no dataset."""
    if not isinstance(source, Dataset):
        message = f"a loader reads a meshfeed.Dataset, but was given {type(source).__name__}"
        hint = "make one with mf.open, mf.from_arrow or mf.from_arrays"
        raise InvalidArgumentError(message, op="loader", hint=hint)


def fills(fill: Any) -> dict[str, Any] | None:
    """Gives the values that replace nulls, by field; None where there are none."""
    if fill is not None and not isinstance(fill, Mapping):
        hint = 'give a value for each field that may hold nulls, such as {"label": -1}'
        raise InvalidArgumentError(f"fill is {fill!r}", op="loader", hint=hint)
    return {name: plain(value) for name, value in fill.items()} if fill else None


def needed(batch_size: Any) -> Any:
    """Refuses a loader without a batch size."""
    if batch_size is None:
        message = "batch_size is not given"
        hint = "give the rows of the global batch, over all processes"
        raise InvalidArgumentError(message, op="loader", hint=hint)
    return batch_size


def ignores(dataset: str) -> bool:
    """Says whether a state of another dataset is accepted."""
    if dataset not in ("check", "ignore"):
        message = f"dataset is {dataset!r}"
        hint = 'use "check", or "ignore" to accept the state of another dataset'
        raise InvalidArgumentError(message, op="loader", hint=hint)
    return dataset == "ignore"


def plain(value: Any) -> Any:
    """Writes a fill value as the C library reads it: NumPy's scalars, infinities, NaN, complex."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_state(state: Mapping[str, Any] | str | os.PathLike[str]) -> State:
    """Reads a state, or the file that holds one."""
    if isinstance(state, Mapping):
        return dict(state)
    if not isinstance(state, str | os.PathLike):
        hint = "give what state() gave, or the path that save_state() wrote"
        raise InvalidArgumentError(f"the state is {state!r}", op="loader", hint=hint)
    loaded: State = json.loads(Path(state).read_text())
    return loaded
