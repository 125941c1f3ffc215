"""Meshes, host arrays and comparisons for the tests of `mf.put`."""

from __future__ import annotations

import math
import random
from typing import Any

import jax
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf

P = PartitionSpec


Host = npt.NDArray[Any]


DTYPES = [np.dtype(kind) for kind in ("?", "i1", "i2", "i4", "u1", "u4", "f2", "f4", "c8")] + [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")
]


def grid(*sizes: int, names: str = "abc") -> Mesh:
    """Makes a mesh of the first devices."""
    devices = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    return Mesh(devices, tuple(names[: len(sizes)]))


def memory(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Host:
    """Returns an array that begins `offset` bytes after a multiple of 64, with counted numbers."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    whole = np.zeros(size + 128, np.uint8)
    at = -whole.ctypes.data % 64 + offset
    found: Host = whole[at : at + size].view(dtype).reshape(shape)
    found[...] = np.arange(found.size).reshape(shape).astype(dtype)
    return found


def frozen(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Host:
    """Returns such an array, of which no part can be written."""
    found = memory(shape, dtype, offset)
    for owner in (found.base, found):
        assert isinstance(owner, np.ndarray)
        owner.setflags(write=False)
    return found


def pointers(x: jax.Array) -> list[int]:
    """Returns the address of every shard."""
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]


def is_within(x: jax.Array, host: Host) -> bool:
    """Returns whether an array lies in the memory of a host array. Some parts must not do so."""
    start = host.ctypes.data
    (within,) = {start <= at < start + host.nbytes for at in pointers(x)}
    return within


def same(got: jax.Array, host: Any, sharding: NamedSharding) -> None:
    """Compares an array with what `device_put` makes of the host array."""
    want = jax.device_put(host, sharding)
    assert (got.shape, got.dtype, got.sharding) == (want.shape, want.dtype, want.sharding)
    for a, b in zip(got.addressable_shards, want.addressable_shards, strict=True):
        assert (a.device, a.index, a.replica_id) == (b.device, b.index, b.replica_id)
        assert np.asarray(a.data).tobytes() == np.asarray(b.data).tobytes()


def drawn_mesh(r: random.Random) -> Mesh:
    """Draws a mesh of some devices in any order, and the types of its axes."""
    sizes = r.choice([(1,), (8,), (2, 4), (4, 2), (2, 2, 2), (2, 1, 3), (6,), (2, 2)])
    devices = r.sample(jax.devices(), math.prod(sizes))
    kinds = tuple(r.choice([AxisType.Auto, AxisType.Explicit]) for _ in sizes)
    return Mesh(np.array(devices).reshape(sizes), tuple("abc"[: len(sizes)]), axis_types=kinds)


def drawn_leaf(r: random.Random, mesh: Mesh) -> tuple[Host, PartitionSpec]:
    """Draws an array with any strides, and a spec that fits it."""
    rank = r.randint(0, 4)
    axes = list(mesh.axis_names)
    r.shuffle(axes)
    entries: list[Any] = [()] * rank
    for axis in axes:
        if rank and r.random() < 0.7:
            d = r.randrange(rank)
            entries[d] = (*entries[d], axis)
    shape = tuple(
        math.prod(mesh.shape[axis] for axis in entry) * r.choice([0, 1, 1, 2, 3, 5])
        for entry in entries
    )
    dtype = r.choice(DTYPES)
    steps = [r.choice([1, 2]) for _ in shape]
    wide = tuple(n * step for n, step in zip(shape, steps, strict=True))
    bits = np.random.default_rng(r.getrandbits(32)).integers(0, 2, wide, np.uint8)
    host = np.asarray(bits.astype(dtype))
    host = host[tuple(slice(None, None, step) for step in steps)]
    if r.random() < 0.5:
        host = np.flip(host, tuple(d for d in range(rank) if r.random() < 0.5))
    if r.random() < 0.4:
        order = r.sample(range(rank), rank)
        host = np.transpose(host.transpose(order).copy(), np.argsort(order).tolist())
    if r.random() < 0.3:
        host = host.copy()
        host.setflags(write=False)
    return host, P(*(entry or None for entry in entries))


def wrong(
    tree: Any, *arguments: Any, kind: type[mf.Error] = mf.InvalidArgumentError, **options: Any
) -> str:
    with pytest.raises(kind) as caught:
        mf.put(tree, *arguments, **options)
    return str(caught.value)
