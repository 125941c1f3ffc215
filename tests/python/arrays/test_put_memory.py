"""Memory that `mf.put` copies, and memory that JAX may use."""

from __future__ import annotations

import collections
import gc
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec

import meshfeed as mf
from meshfeed._jax import put as placing
from meshfeed._native import library
from tests.python.arrays.putting import (
    Host,
    P,
    frozen,
    grid,
    is_within,
    memory,
)
from tests.python.interrupts import trials

SPECS = [P("a"), P("a", None), P(("a", "b")), P()]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_writable_memory_is_copied(spec: PartitionSpec) -> None:
    """The array does not change when the caller writes to the memory right after the call."""
    mesh, host = grid(4, 2), memory((64, 1024))
    want = host.copy()
    views = [host, host[:], np.lib.stride_tricks.as_strided(host, host.shape, host.strides)]
    views[2].setflags(write=False)  # `host` itself can still be written
    for view in views:
        got = mf.put(view, mesh, spec)
        host[...] = -1
        assert np.array_equal(np.asarray(got), want)
        host[...] = want
        assert not is_within(got, host)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_writable_memory_is_shared_if_it_may_be(spec: PartitionSpec) -> None:
    """JAX uses the memory and keeps it alive, so the array changes when the caller writes to it."""
    mesh, host = grid(4, 2), memory((64, 1024))
    want = host.copy()
    got = mf.put(host, mesh, spec, may_alias=True)
    assert is_within(got, host)
    host[5] = want[5] = -1
    del host
    gc.collect()
    assert np.array_equal(np.asarray(got), want)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_no_memory_is_shared_if_it_may_not_be(spec: PartitionSpec) -> None:
    mesh, host = grid(4, 2), frozen((64, 1024))
    got = mf.put(host, mesh, spec, may_alias=False)
    assert np.array_equal(np.asarray(got), host)
    assert not is_within(got, host)


def test_may_alias_belongs_to_a_call() -> None:
    """A plan of another call with the same arrays does not decide."""
    mesh, writable, fixed = grid(4, 2), memory((64, 1024)), frozen((64, 1024))
    for _ in range(2):
        for may_alias, wanted in {
            None: (False, True),
            True: (True, True),
            False: (False,) * 2,
        }.items():
            got = mf.put([writable, fixed], mesh, P("a"), may_alias=may_alias)
            assert (is_within(got[0], writable), is_within(got[1], fixed)) == wanted


def test_memory_that_may_be_shared_but_cannot_be_is_copied_before_the_call_returns() -> None:
    mesh = grid(4, 2)
    for host in (memory((64, 4096), offset=4), memory((64, 8192))[:, ::2], memory((4096, 64)).T):
        for spec in SPECS:
            want = host.copy()
            got = mf.put(host, mesh, spec, may_alias=True)
            host[...] = -1
            assert np.array_equal(np.asarray(got), want)
            host[...] = want


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_read_only_memory_is_shared(spec: PartitionSpec) -> None:
    """JAX uses aligned memory that cannot be written, and keeps it alive."""
    mesh, host = grid(4, 2), frozen((64, 1024))
    want = host.copy()
    got = mf.put(host, mesh, spec)
    assert is_within(got, host)
    del host
    gc.collect()
    assert np.array_equal(np.asarray(got), want)


@pytest.mark.parametrize(
    ("host", "spec"),
    [
        (frozen((64, 1024), offset=4), P("a")),  # not aligned
        (frozen((64, 1024)), P(None, "a")),  # blocks with gaps
        (frozen((8, 12)), P("a")),  # the second block is not aligned
        (frozen((1024, 64)).T, P("a")),
        (frozen((64, 1024))[::2], P("a")),
    ],
    ids=["offset", "columns", "short rows", "transposed", "stepped"],
)
def test_other_read_only_memory_is_copied(host: Host, spec: PartitionSpec) -> None:
    got = mf.put(host, grid(4, 2), spec)
    assert np.array_equal(np.asarray(got), host)
    assert not is_within(got, host)


@pytest.mark.parametrize(
    ("host", "spec"),
    [
        (frozen((64, 1024)), P(None, "a")),
        (frozen((64, 1024))[::32], P()),
        (frozen((64, 64)).T, P()),
    ],
    ids=["columns", "stepped", "transposed"],
)
def test_blocks_with_gaps_are_not_left_to_jax(host: Host, spec: PartitionSpec) -> None:
    """JAX copies them too, but more slowly, and after the call has returned."""
    mf.put(host, grid(4, 2), spec, may_alias=True)
    (plan,) = placing.plans.values()
    assert plan.shared == []


def test_blocks_behind_dimensions_of_size_one_are_shared() -> None:
    host = frozen((1, 1, 64, 32))
    assert is_within(mf.put(host, grid(4, 2), P(None, None, "b")), host)
    assert is_within(mf.put(host[0, :, None], grid(4, 2), P(None, None, "b")), host)
    assert not is_within(mf.put(host, grid(4, 2), P(None, None, None, "b")), host)


def test_read_only_memory_of_python_is_shared_if_it_cannot_be_written(tmp_path: Path) -> None:
    mesh, path = grid(2), tmp_path / "x.npy"
    np.save(path, memory((64, 64)))
    mapped = np.load(path, mmap_mode="r")
    for host, is_shared in (
        (mapped, mapped.ctypes.data % 64 == 0),
        (np.frombuffer(mmap.mmap(-1, 4096, access=mmap.ACCESS_READ), np.uint8), True),
        (np.frombuffer(memoryview(bytearray(4096)).toreadonly(), np.uint8), False),
    ):
        got = mf.put(host, mesh, P("a"))
        assert is_within(got, np.asarray(host)) == is_shared
        assert np.array_equal(np.asarray(got), host)


def test_memory_outlives_the_tree_and_returns_to_the_library() -> None:
    """What is read later from the arrays is right while other batches use the same pool."""
    mesh, kept = grid(4, 2), collections.deque[Any](maxlen=5)
    for n in range(40):
        tree = {"x": np.full((8, 512), n), "y": np.full((512, 8), n, np.uint8)}
        kept.append((n, mf.put(tree, mesh, {"x": P("a", "b"), "y": P(None, "b")})))
        del tree
        for value, placed in kept:
            assert np.asarray(placed["x"]).tolist() == [[value] * 512] * 8
            assert set(np.asarray(placed["y"]).flat) == {value}


def test_a_tree_that_is_put_once_leaves_no_memory_behind() -> None:
    lib = library.library()
    before = lib.mf_live_handles()
    got = mf.put(memory((64, 64)), grid(2), P("a"))
    assert lib.mf_live_handles() == before
    assert np.asarray(got)[63, 63] == 4095
    again = mf.put(memory((64, 64)), grid(2), P("a"))
    assert lib.mf_live_handles() == before + 1
    assert len(placing.plans) == 1
    del got, again


def test_ctrl_c_at_any_point_loses_no_memory() -> None:
    mesh, host = grid(4, 2), memory((64, 64))
    for _ in range(2):
        mf.put(host, mesh, P("a"))
    places = 0
    for trial in trials(lambda: lambda: mf.put(host, mesh, P("a"))):
        places += trial.caught is not None
        assert np.array_equal(mf.put(host, mesh, P("a")), host), trial.where
    assert places > 10


def test_arrays_of_one_kind_may_be_shared_or_not() -> None:
    """The address, and the array that owns the memory, are not part of a plan."""
    mesh, host = grid(4, 2), frozen((64, 1024))
    view = memory((64, 1024))[:]
    view.setflags(write=False)
    for _ in range(2):
        assert is_within(mf.put(host, mesh, P("a")), host)
        assert not is_within(mf.put(view, mesh, P("a")), view)
        other = frozen((64, 1024), offset=4)
        assert not is_within(mf.put(other, mesh, P("a")), other)
    got = mf.put([host, view, other, host], mesh, P("a"))
    wanted = zip(got, [host, view, other, host], strict=True)
    assert [is_within(x, array) for x, array in wanted] == [True, False, False, True]
