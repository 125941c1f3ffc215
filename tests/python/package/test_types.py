"""The types that checkers see: `make check` runs mypy over this file.

A wrong `assert_type` is an error of mypy, and so is an ignored error that does not occur any more.
"""

from __future__ import annotations

from typing import Any, assert_type

import jax
import numpy as np
import numpy.typing as npt
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._feed.batches import Batches
from tests.python.samples import numbers

JaxBatch = dict[str, jax.Array]
NumpyBatch = dict[str, npt.NDArray[Any]]


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((2,), ("data",))


def test_batches_of_jax_arrays() -> None:
    with mf.Loader(numbers(8), mesh(), P("data"), batch_size=4, shuffle=True, epochs=1) as it:
        assert_type(it, mf.Loader[JaxBatch])
        assert_type(it.peek(), JaxBatch)
        assert_type(it.reshard(it.peek()), JaxBatch)
        assert_type(it.one_epoch(remainder="pad"), Batches[JaxBatch])
        for batch in it:
            assert_type(batch, JaxBatch)
            assert isinstance(batch["x"], jax.Array)
        for pair in it.with_state():
            assert_type(pair, tuple[JaxBatch, dict[str, Any]])
        assert_type(it.last.epoch, int)
        assert_type(it.remaining, int)
    with mf.Loader(
        numbers(8),
        mesh=mesh(),
        specs={"x": P("data"), "y": mf.Array("x", P())},
        batch_size=4,
        device_prefetch=1,
        on_peer_error="end",
    ) as dicts:
        assert_type(next(iter(dicts)), JaxBatch)
    sharding = NamedSharding(mesh(), P("data"))
    with mf.Loader(numbers(8), specs={"x": sharding}, batch_size=4) as sharded:
        assert_type(next(iter(sharded)), JaxBatch)
    assert_type(mf.load_array(numbers(8), "x", sharding), jax.Array)


def test_batches_of_numpy_arrays() -> None:
    with (
        mf.Loader(numbers(8), batch_size=4) as it,
        mf.Loader(numbers(8), specs=["x"], batch_size=4, remainder="pad", extras=["key"]) as named,
    ):
        assert_type(next(iter(it)), NumpyBatch)
        assert_type(next(iter(named)), NumpyBatch)
        assert isinstance(it.peek()["x"], np.ndarray)


def test_blocks_of_a_process() -> None:
    lay = mf.layout({"data": 2}, mf.P("data"), numbers(8), batch_size=4)
    with mf.Loader(numbers(8), layout=lay, process=0) as it:
        index, block = next(iter(it))["x"][0]
        assert_type(index, tuple[slice, ...])
        assert_type(block, npt.NDArray[Any])


def test_a_layout_on_a_mesh() -> None:
    lay = mf.layout({"data": 1}, mf.P("data"), numbers(8), batch_size=4)
    with mf.Loader(numbers(8), jax.make_mesh((1,), ("data",)), layout=lay) as it:
        assert_type(next(iter(it)), JaxBatch)
        assert isinstance(it.peek()["x"], jax.Array)


def test_a_tree_of_a_custom_type() -> None:
    with mf.Loader(
        numbers(8), mesh(), {"in": {"x": P("data")}, "out": (mf.Array("x", P()),)}, batch_size=4
    ) as it:
        assert_type(it, mf.Loader[Any])
        assert isinstance(next(iter(it))["out"][0], jax.Array)


def any_loader(loader: mf.Loader) -> Any:
    """A loader without type arguments passes strict checks."""
    return next(iter(loader))


def test_states_are_accepted_as_arguments() -> None:
    with mf.Loader(numbers(8), batch_size=4, order="local") as it:
        state = it.state_dict()
        any_loader(it)
        it.load_state_dict(state)
        assert it.state() == state
        with mf.Loader(numbers(8), batch_size=4, order=state["order"], state=state) as again:
            assert again.state() == state


def test_mistakes_that_type_checkers_find() -> None:
    ds = numbers(8)
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, batch_size=4, order="random")  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, {"data": 2}, P("data"), batch_size=4)  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, mesh(), "data", batch_size=4)  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, batch_size="4")  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, mesh(), P("data"))  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.Loader(ds, batch_size=4, remainder="padded")  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        mf.Loader(ds, batch_size=4, shufle=True)  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError):
        mf.layout({"data": "2"}, P("data"), ds, batch_size=4)  # type: ignore[dict-item]
    with mf.Loader(ds, mesh(), P("data"), batch_size=4) as it, pytest.raises(AttributeError):
        next(iter(it))["x"].no_such_method()  # type: ignore[attr-defined]


def test_the_planner() -> None:
    advice = mf.advise("gpt2", mf.strategy.training(batch=8), mf.strategy.cluster(devices=1))
    assert_type(advice, mf.Advice)
    assert_type(advice.candidates[0], mf.Candidate)
    assert_type(advice.layout, mf.Layout | None)
    if advice.best is not None:
        assert_type(advice.best.make_mesh(), jax.sharding.Mesh)
    used = mf.memory({"w": np.zeros(3)})
    assert_type(used.arrays["w"], mf.ArrayMemory)
    assert_type(mf.draw(np.zeros(3)), mf.Drawing)
    with pytest.raises(mf.InvalidArgumentError):
        mf.advise("gpt2", mf.strategy.training(batch=8))  # type: ignore[call-arg]
    with pytest.raises(mf.InvalidArgumentError):
        mf.strategy.preset("gpt2", hiden=3)  # type: ignore[call-arg]
    with pytest.raises(mf.InvalidArgumentError):
        mf.strategy.training(batch=8, schedule="none")  # type: ignore[arg-type]
    with pytest.raises(mf.InvalidArgumentError):
        mf.strategy.cluster(devices=8.0)  # type: ignore[arg-type]
    with pytest.raises(mf.InvalidArgumentError):
        mf.diagram("pipelines")  # type: ignore[arg-type]
