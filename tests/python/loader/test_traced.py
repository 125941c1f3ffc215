"""Calls of `next` inside of a function that JAX traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import numbers

TRACED: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: jax.jit(f)(1.0),
    "scan": lambda f: jax.lax.scan(lambda c, x: (f(c), x), 1.0, jnp.ones(2)),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0),
    "grad in jit": lambda f: jax.jit(jax.grad(f))(1.0),
}
EAGER: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: jax.grad(f)(1.0),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(2)),
    "disable_jit": lambda f: no_jit(f),
    "constant": lambda f: jax.jit(lambda x: x + constant(f))(1.0),
}


def no_jit(f: Callable[[Any], Any]) -> Any:
    with jax.disable_jit():
        return jax.jit(f)(1.0)


def constant(f: Callable[[Any], Any]) -> Any:
    with jax.ensure_compile_time_eval():
        return f(1.0)


def loader() -> mf.Loader:
    return mf.Loader(numbers(64), jax.make_mesh((8,), ("data",)), P("data"), batch_size=8)


@pytest.mark.parametrize("way", TRACED)
@pytest.mark.parametrize("call", ["mf.Loader", "Loader.peek"])
def test_a_batch_cannot_become_part_of_a_program(way: str, call: str) -> None:
    with loader() as it:
        loop = iter(it)

        def step(x: Any) -> Any:
            batch = it.peek() if call == "Loader.peek" else next(loop)
            return x * np.asarray(batch["x"])[0]

        with pytest.raises(mf.InvalidStateError) as caught:
            TRACED[way](step)
        assert str(caught.value) == (
            f"{call}: a batch was asked for inside of a function that JAX traces: the program "
            "would hold that one batch as a constant, and never get another; take batches outside "
            "of jax.jit, scan and the like, and pass them as arguments"
        )
        assert it.state()["position"] == 0
        assert np.asarray(next(loop)["x"]).tolist() == list(range(8))


@pytest.mark.parametrize("way", EAGER)
@pytest.mark.parametrize("guard", ["allow", "disallow"])
def test_a_function_that_is_not_compiled_gets_a_batch_each_time(way: str, guard: str) -> None:
    with loader() as it:
        loop, got = iter(it), list[int]()

        def step(x: Any) -> Any:
            with jax.transfer_guard_host_to_device(guard):
                got.extend(np.asarray(next(loop)["x"]).tolist())
            return x * got[-1]

        EAGER[way](step)
        EAGER[way](step)
    assert got == list(range(16))
