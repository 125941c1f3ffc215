"""A loader delivers the same batches in all modes of JAX."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from tests.python.samples import assert_sharded

P = PartitionSpec
MESH = jax.make_mesh((4, 2), ("data", "model"))
SPECS = {"x": P("data", "model"), "nan": P(), "id": P("data")}


def source() -> dict[str, np.ndarray[Any, Any]]:
    return {
        "x": np.arange(64 * 8, dtype=np.float32).reshape(64, 8),
        "nan": np.full(64, np.nan, np.float32),
        "id": np.arange(64),
    }


def loader(**options: Any) -> mf.Loader:
    return mf.Loader(mf.from_arrays(source()), MESH, SPECS, batch_size=8, **options)


def check(it: mf.Loader, *, wide: bool = False) -> None:
    arrays = source()
    arrays["id"] = arrays["id"].astype(np.int64 if wide else np.int32)
    batches = list(it)
    assert len(batches) == 8
    for i, batch in enumerate(batches):
        for name, array in arrays.items():
            whole = array[8 * i : 8 * i + 8]
            assert_sharded(batch[name], whole, NamedSharding(MESH, SPECS[name]))


MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "debug_nans": lambda: jax.debug_nans(True),
    "debug_infs": lambda: jax.debug_infs(True),
    "default_device": lambda: jax.default_device(jax.devices()[3]),
    "disable_jit": jax.disable_jit,
    "checking_leaks": jax.checking_leaks,
    "rank promotion": lambda: jax.numpy_rank_promotion("raise"),
    "set_mesh": lambda: jax.set_mesh(MESH),
    "another mesh": lambda: jax.set_mesh(jax.make_mesh((8,), ("other",))),
    "transfers allowed if explicit": lambda: jax.transfer_guard_host_to_device("disallow"),
}
if hasattr(jax, "thread_guard"):  # not in JAX before 0.10
    MODES["thread_guard"] = lambda: jax.thread_guard(True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("made", ["inside", "outside"])
def test_modes(mode: str, ahead: int, made: str) -> None:
    with ExitStack() as stack:
        if made == "inside":
            stack.enter_context(MODES[mode]())
        it = stack.enter_context(loader(device_prefetch=ahead))
        if made == "outside":
            stack.enter_context(MODES[mode]())
        batches = list(it)
    with loader() as plain:
        for batch, expected in zip(batches, plain, strict=True):
            for name, array in expected.items():
                assert_sharded(batch[name], np.asarray(array), array.sharding)


def test_the_plain_batches_are_right() -> None:
    with loader() as it:
        check(it)


def test_x64() -> None:
    with jax.enable_x64(True), loader() as it:
        check(it, wide=True)


@pytest.mark.parametrize("loading", ["process", "device"])
def test_wide_numbers_are_never_truncated(loading: str) -> None:
    with jax.enable_x64(True):
        it = loader(loading=loading)
        first = next(iter(it))
    text = "array 'id' was planned as int64, with x64, which is off"
    with it, pytest.raises(mf.InvalidStateError, match=f"^mf.Loader: {text}; make the loader and"):
        next(iter(it))
    with jax.enable_x64(True):
        assert first["id"].dtype == np.int64


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_batch_whose_arrays_failed_comes_again(ahead: int) -> None:
    ids: list[int] = []
    with loader(device_prefetch=ahead) as it:
        loop = iter(it)
        ids += next(loop)["id"].tolist()
        with jax.transfer_guard_host_to_device("disallow_explicit"):
            for _ in range(ahead):  # those made ahead
                with suppress(jax.errors.JaxRuntimeError):
                    ids += next(loop)["id"].tolist()
            for _ in range(2):
                with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
                    next(loop)
        for batch in loop:
            ids += batch["id"].tolist()
    assert ids == list(range(64))
