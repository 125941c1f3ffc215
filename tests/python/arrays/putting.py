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

# The types of arrays that JAX 0.8 has, too.
_NAMES = "bfloat16 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
_NAMES += "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int2 uint2 int4 uint4"
_SMALL = ("bool", "int2", "int4", "uint2", "uint4", "float4")
_KINDS = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16"
DTYPES = [np.dtype(kind) for kind in _KINDS.split()]
DTYPES += [np.dtype(getattr(ml_dtypes, name)) for name in _NAMES.split()]


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
    with np.errstate(over="ignore"):  # a float16 counts to 65504
        found[...] = np.arange(found.size).reshape(shape).astype(dtype)
    return found


def frozen(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Host:
    """Returns such an array. No part of it can be written."""
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
    check_equal(got, jax.device_put(host, sharding))


def check_equal(got: jax.Array, want: jax.Array, what: str = "") -> None:
    """Compares two arrays shard by shard, and bit by bit."""
    facts = [(x.shape, x.dtype, x.sharding, x.committed) for x in (got, want)]
    assert facts[0] == facts[1], what
    for a, b in zip(got.addressable_shards, want.addressable_shards, strict=True):
        assert (a.device, a.index, a.replica_id) == (b.device, b.index, b.replica_id), what
        assert np.asarray(a.data).tobytes() == np.asarray(b.data).tobytes(), what


def drawn_mesh(r: random.Random) -> Mesh:
    """Draws a mesh of 1 to 8 devices in any order, and the types of its axes."""
    devices = r.sample(jax.devices(), r.randint(1, 8))
    sizes: list[int] = []
    rest = len(devices)
    while rest > 1 and len(sizes) < 2:
        sizes.append(r.choice([n for n in range(1, rest + 1) if rest % n == 0]))
        rest //= sizes[-1]
    sizes.append(rest)
    r.shuffle(sizes)
    kinds = tuple(r.choice([AxisType.Auto, AxisType.Explicit]) for _ in sizes)
    return Mesh(np.array(devices).reshape(sizes), tuple("abc"[: len(sizes)]), axis_types=kinds)


def drawn_spec(r: random.Random, mesh: Mesh) -> tuple[PartitionSpec, tuple[int, ...]]:
    """Draws a spec, and a shape that fits it."""
    rank = r.randint(0, 4)
    axes = list(mesh.axis_names)
    r.shuffle(axes)
    entries: list[Any] = [()] * rank
    for axis in axes:
        if rank and r.random() < 0.7:
            d = r.randrange(rank)
            entries[d] = (*entries[d], axis)
    shape = tuple(
        math.prod(mesh.shape[axis] for axis in entry) * r.choice([0, 1, 1, 2, 3, 5, 16])
        for entry in entries
    )
    while entries and not entries[-1] and r.random() < 0.5:
        entries.pop()  # a dimension without an entry is whole
    single = r.random() < 0.5  # an axis, or a tuple of one axis
    written = (e[0] if len(e) == 1 and single else e or None for e in entries)
    return P(*written), shape


def drawn_memory(r: random.Random, shape: tuple[int, ...]) -> Host:
    """Draws an array of a shape with any type, strides and alignment."""
    dtype, rank = r.choice(DTYPES), len(shape)
    steps = [r.choice([1, 1, 2]) for _ in shape]
    wide = tuple(n * step for n, step in zip(shape, steps, strict=True))
    host = memory(wide, dtype, r.choice([0, 0, 16]))
    random_bytes = np.random.default_rng(r.getrandbits(32))
    if dtype.itemsize < 8 and not dtype.name.startswith(_SMALL):
        flat = host.reshape(-1).view(np.uint8)
        flat[...] = random_bytes.integers(0, 256, flat.shape)
    else:  # not all bytes are numbers, or can be narrowed
        host[...] = random_bytes.integers(0, 2, wide).astype(dtype)
    if r.random() < 0.5:
        host = host[tuple(slice(None, None, step) for step in steps)]
    else:
        host = host[tuple(slice(n) for n in shape)]
    if r.random() < 0.3:
        host = np.flip(host, tuple(d for d in range(rank) if r.random() < 0.5))
    if r.random() < 0.3:
        order = r.sample(range(rank), rank)
        host = np.transpose(host.transpose(order).copy(), np.argsort(order).tolist())
    if r.random() < 0.2:
        first = tuple(slice(1) if r.random() < 0.5 else slice(None) for _ in shape)
        host = np.broadcast_to(host[first], shape) if host.size else host
    if r.random() < 0.3:
        host = host.copy()
        host.setflags(write=False)
    return host


def wrong(
    tree: Any, *arguments: Any, kind: type[mf.Error] = mf.InvalidArgumentError, **options: Any
) -> str:
    with pytest.raises(kind) as caught:
        mf.put(tree, *arguments, **options)
    return str(caught.value)
