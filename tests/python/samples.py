"""Datasets and meshes of the tests, and comparisons of batches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax.sharding import Mesh

import meshfeed as mf

Arrays = dict[str, np.ndarray[Any, Any]]

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
)


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def filled(shape: tuple[int, ...], name: str, start: int = 0) -> np.ndarray[Any, Any]:
    """Returns an array of any type. Neighboring values differ."""
    numbers = np.arange(start, start + int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if name == "bool":
        return np.asarray(numbers % 3 == 0)
    if name.startswith(("float16", "bfloat16", "int8", "uint8")):
        return np.asarray((numbers % 127).astype(dtype(name)))
    return np.asarray(numbers.astype(dtype(name)))


def digits(n: int = 50) -> Arrays:
    return {
        "image": filled((n, 8, 8), "float32"),
        "label": filled((n,), "int32", start=7),
    }


def taken(arrays: Arrays, records: np.ndarray[Any, Any]) -> Arrays:
    """Returns the rows of these records; zeros for record -1."""
    rows = {name: array[np.maximum(records, 0)] for name, array in arrays.items()}
    for array in rows.values():
        array[records < 0] = 0
    return rows


def assert_sharded(array: jax.Array, whole: np.ndarray[Any, Any], sharding: Any) -> None:
    """Asserts that the array is `whole` with this sharding, shard by shard."""
    assert array.shape == whole.shape
    assert array.dtype == whole.dtype
    assert array.sharding == sharding
    shards = {shard.device: shard for shard in array.addressable_shards}
    wanted = sharding.addressable_devices_indices_map(whole.shape)
    assert set(shards) == set(wanted)
    for device, index in wanted.items():
        shard = shards[device]
        assert shard.index == index
        np.testing.assert_array_equal(np.asarray(shard.data), whole[index])


def values(batches: Any, name: str = "x") -> list[list[int]]:
    return [np.asarray(batch[name]).tolist() for batch in batches]


def numbers(n: int) -> mf.Dataset:
    """Returns a dataset. Record i of its field x is i."""
    return mf.from_arrays({"x": np.arange(n, dtype=np.int32)})


FIRST, SECOND = [0, 1, 2, 3], [4, 5, 6, 7]  # the batches of `loader()`


def loader(n: int = 10, size: Any = 4, **kwargs: Any) -> mf.Loader:
    """Returns a loader of NumPy arrays over the records 0 to n - 1."""
    with numbers(n) as ds:
        return mf.Loader(ds, batch_size=size, **kwargs)


def flat(lists: Iterable[list[int]]) -> list[int]:
    return [x for part in lists for x in part]


def same(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Asserts that the arrays are equal in type, shape and bytes."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.tobytes() == wanted.tobytes()


def mesh_of(
    shape: tuple[int, ...] = (4, 2),
    names: tuple[str, ...] = ("data", "model", "z"),
    *,
    types: Any = None,
    order: Any = None,
) -> Mesh:
    """Returns a mesh of the first devices, or of the devices in this order."""
    devices = np.array(jax.devices())[list(range(8)) if order is None else order]
    devices = devices[: math.prod(shape)].reshape(shape)
    return Mesh(devices, names[: len(shape)], axis_types=types)


def wrong(value: Any) -> Any:
    """Hides a value's type from the type checker."""
    return value
