"""Arguments of a wrong type or size: an error of the package that says what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meshfeed as mf


def numbers() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(16, dtype=np.int32)})


def loader(**kwargs: Any) -> mf.Loader:
    return mf.Loader(numbers(), specs=["x"], batch_size=4, **kwargs)


def wrong(value: Any) -> Any:
    """Hides a value's type from the type checker."""
    return value


SOURCE = "; make one with mf.open, mf.from_arrow or mf.from_arrays"
STATE = "; give what state() gave, or the path that save_state() wrote"
PATHS = "; give a path, a glob, a directory or a list of them"
ARRAYS = (
    'dataset: the arrays are no dict of names and arrays; give a dict, such as {"label": labels}'
)
WIDE = "; give an int of 64 bits"


@pytest.mark.parametrize(
    ("attempt", "text"),
    [
        (
            lambda: mf.Loader(wrong("a.arrow"), batch_size=4),
            "loader: a loader reads a meshfeed.Dataset, but was given str" + SOURCE,
        ),
        (
            lambda: mf.Loader(wrong(None), batch_size=4),
            "loader: a loader reads a meshfeed.Dataset, but was given NoneType" + SOURCE,
        ),
        (
            lambda: loader(fill=3),
            "loader: fill is 3; give a value for each field that may hold nulls, "
            'such as {"label": -1}',
        ),
        (lambda: loader(state=[]), "loader: the state is []" + STATE),
        (lambda: loader().restore(wrong(5)), "loader: the state is 5" + STATE),
        (lambda: mf.open(wrong(5)), "dataset: the paths are 5" + PATHS),
        (lambda: mf.open(wrong(["a", None])), "dataset: the paths are ['a', None]" + PATHS),
        (lambda: mf.from_arrays(wrong(None)), ARRAYS),
        (lambda: mf.from_arrays(wrong({1: np.zeros(3)})), ARRAYS),
        (
            lambda: mf.from_arrays({"a\0b": np.zeros(3)}),
            "dataset: the name 'a\\x00b' has a character that no field name may have; "
            "names are Unicode text without NUL",
        ),
        (
            lambda: mf.from_arrays({"\ud800": np.zeros(3)}),
            "dataset: the name '\\ud800' has a character that no field name may have; "
            "names are Unicode text without NUL",
        ),
        (
            lambda: mf.from_arrays({"x": np.zeros(3, np.longdouble)}),
            f"dataset: field 'x' has the type {np.dtype(np.longdouble)}, which JAX does not have; "
            "give array.astype(np.float64)",
        ),
        (
            lambda: mf.Loader(numbers(), specs=["x"], batch_size=True),
            "layout: batch_size is True; "
            "give the rows of the global batch: an int, or a tuple of ints",
        ),
        (lambda: loader().seek(epoch=2**64), f"meshfeed: epoch is {2**64}" + WIDE),
        (lambda: loader().seek(epoch=0, position=wrong("a")), "meshfeed: position is 'a'" + WIDE),
        (lambda: loader().records(0, 2**64 + 4), f"meshfeed: position is {2**64 + 4}" + WIDE),
        (lambda: loader().one_epoch(2**64), f"meshfeed: epoch is {2**64}" + WIDE),
        (lambda: numbers().slice(0, 2**64 + 4), f"meshfeed: stop is {2**64 + 4}" + WIDE),
        (lambda: numbers().slice(wrong(0.5), 4), "meshfeed: start is 0.5" + WIDE),
    ],
)
def test_a_wrong_argument_is_named(attempt: Callable[[], object], text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        attempt()


def test_scalars_of_numpy_are_numbers() -> None:
    loaders = [
        loader(shuffle=True, seed=3, epochs=2, prefetch=1),
        loader(shuffle=np.bool_(True), seed=np.int64(3), epochs=np.int64(2), prefetch=np.int32(1)),
    ]
    first, second = ([batch["x"].tolist() for batch in one] for one in loaders)
    assert first == second


@pytest.mark.parametrize("columns", [[(3, 2)], [(-1, 2)], [(0, 0)]])
def test_columns_that_are_no_ranges_are_named(columns: list[tuple[int, int]]) -> None:
    text = (
        f"specs: columns of array 'x' are {columns!r}; "
        "give a list of (start, stop) with 0 <= start < stop, such as [(0, 2048)]"
    )
    source = mf.from_arrays({"x": np.zeros((16, 4), np.int32)})
    with pytest.raises(mf.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        mf.Loader(source, specs={"x": mf.Array("x", columns=columns)}, batch_size=4)
