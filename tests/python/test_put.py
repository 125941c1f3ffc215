"""Trees of arrays on a mesh of one process, compared with `jax.device_put`."""

from __future__ import annotations

import collections
import os
import random
import threading
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding

import meshfeed as mf
from meshfeed._jax import put as placing
from tests.python.putting import (
    P,
    check_equal,
    drawn_memory,
    drawn_mesh,
    drawn_spec,
    frozen,
    grid,
    same,
)
from tests.python.test_traced import EAGER


def test_random_arrays_are_those_of_device_put(seed: int) -> None:
    """Of any mesh, spec, type and memory, with and without x64, all bits and shards are equal."""
    for n in range(10_000 if os.environ.get("MESHFEED_DEEP") else 150):
        r = random.Random(f"{seed}.{n}")
        mesh = drawn_mesh(r)
        specs = [drawn_spec(r, mesh) for _ in range(r.randint(1, 4))]
        tree = {str(i): drawn_memory(r, shape) for i, (_, shape) in enumerate(specs)}
        given = {str(i): spec for i, (spec, _) in enumerate(specs)}
        with jax.enable_x64(r.random() < 0.3):
            want = {
                key: jax.device_put(host.copy(), NamedSharding(mesh, given[key]))
                for key, host in tree.items()
            }
            for _ in range(3):  # from the second time on with the plan of the first
                options: Any = {"may_alias": r.choice([None, True, False])}
                options["rows"] = r.choice(["all", "local"])
                got = mf.put(tree, mesh, given, **options)
                for key in tree:
                    check_equal(got[key], want[key], f"case {n}: {mesh} {given[key]} {options}")


def test_large_arrays_are_cut_by_several_threads() -> None:
    mesh = grid(4, 2)
    host = np.random.default_rng(0).integers(0, 9, (4096, 2, 512), np.int64)
    for spec in (P("a"), P(None, "b", "a"), P(None, None, "b"), P()):
        assert np.array_equal(mf.put(host, mesh, spec), host)


def test_few_plans_are_kept() -> None:
    for rows in range(1, 50):
        for _ in range(2):
            mf.put(np.zeros(rows, np.int16), grid(1), P("a"))
    assert len(placing.plans) == 32


def test_a_tree_may_have_more_arrays_than_a_layout() -> None:
    tree = {f"x{i}": np.full(8, i, np.int32) for i in range(1025)}
    placed = mf.put(tree, grid(4, 2), P("a"))
    assert [int(placed[name][7]) for name in tree] == list(range(1025))
    tree["x1024"] = np.zeros(3, np.int32)
    with pytest.raises(mf.InvalidArgumentError, match=r'array "x1024" of shape \(3,\)'):
        mf.put(tree, grid(4, 2), P("a"))


def test_threads_place_at_the_same_time() -> None:
    mesh, failed = grid(4, 2), list[BaseException]()

    def work(n: int) -> None:
        try:
            for i in range(30):
                host = np.full((16, 64), 100 * n + i)
                got = mf.put({"x": host, "y": n}, mesh, {"x": P("a", "b"), "y": P()})
                assert set(np.asarray(got["x"]).flat) == {100 * n + i}
                assert int(got["y"]) == n
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


class Pair:
    """A pytree that a program registers."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))


def test_trees_keep_their_kind_and_specs_may_be_a_prefix() -> None:
    Point = collections.namedtuple("Point", "x y")
    mesh, x = grid(4, 2), np.arange(8, dtype=np.float32)
    tree = {"p": Point(x, (x, [x])), "q": Pair(x, None), "none": None, "empty": {}}
    specs = {"p": P("a"), "q": P("b"), "none": P(), "empty": P()}
    got = mf.put(tree, mesh, specs)
    assert type(got["p"]) is Point
    assert [leaf.sharding.spec for leaf in jax.tree.leaves(got)] == [P("a")] * 3 + [P("b")]
    assert (got["none"], got["empty"], got["q"].b) == (None, {}, None)
    assert mf.put({}, mesh, P("a")) == {}


def test_a_plan_belongs_to_a_mesh_and_to_a_tree_of_specs() -> None:
    """The same arrays may have another mesh, or the same specs in other places."""
    x = frozen((8, 8))
    for mesh in (grid(4, 2), grid(2, 4), grid(4, 2)):
        same(mf.put(x, mesh, P("a")), x, NamedSharding(mesh, P("a")))
    mesh, tree = grid(4, 2), {"x": [x, x], "y": [x, x]}
    for specs, wanted in (
        ({"x": [P("a"), P("b")], "y": P(None, "a")}, [P("a"), P("b"), P(None, "a"), P(None, "a")]),
        ({"x": P("a"), "y": [P("b"), P(None, "a")]}, [P("a"), P("a"), P("b"), P(None, "a")]),
    ):
        placed = jax.tree.leaves(mf.put(tree, mesh, specs))
        assert [leaf.sharding.spec for leaf in placed] == wanted


def test_an_empty_tree_needs_no_mesh() -> None:
    assert mf.put({"x": []}, None, P("a")) == {"x": []}


def test_shardings_bring_their_mesh_and_stay_the_objects_of_the_user() -> None:
    mesh = grid(4, 2)
    sharding = NamedSharding(mesh, P("a"), memory_kind="pinned_host")
    got = mf.put({"x": np.arange(8), "y": np.arange(8)}, specs={"x": sharding, "y": sharding})
    assert got["x"].sharding is sharding
    assert got["x"].sharding.memory_kind == "pinned_host"
    same(mf.put(np.ones(8), mesh, mf.P("a")), np.ones(8), NamedSharding(mesh, P("a")))


def test_the_mesh_of_set_mesh_is_used() -> None:
    for mesh in (grid(4, 2), grid(8)):  # the second time not with the plan of the first
        with jax.set_mesh(mesh):
            assert mf.put(np.arange(8), specs=P("a")).sharding == NamedSharding(mesh, P("a"))


@pytest.mark.parametrize("way", EAGER)
@pytest.mark.parametrize("guard", ["allow", "disallow"])
def test_a_function_that_is_not_compiled_may_put(way: str, guard: str) -> None:
    def step(x: Any) -> Any:
        return x * np.asarray(mf.put(np.full(8, 3.0), grid(8), P("a")))[0]

    with jax.transfer_guard(guard):
        got = mf.put({"x": np.ones(8), "y": frozen((8, 16))}, grid(8), P("a"))
    assert float(np.asarray(got["x"])[0]) == 1
    assert EAGER[way](step) is not None
