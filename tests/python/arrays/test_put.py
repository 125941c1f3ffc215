"""Trees of arrays on a mesh of one process, compared with `jax.device_put`, and wrong calls."""

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
from meshfeed._layout.localrows import Parts
from tests.python.arrays.putting import (
    P,
    check_equal,
    drawn_memory,
    drawn_mesh,
    drawn_spec,
    frozen,
    grid,
    same,
    wrong,
)
from tests.python.loader.test_traced import EAGER, TRACED


def test_random_arrays_are_those_of_device_put(seed: int) -> None:
    """For any mesh, spec, type and memory, with and without x64, all bits and shards are equal."""
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


# ---- errors ----


X = np.zeros((8, 6), np.float32)


SHAPE = 'array "x/y" of shape (6, 4) is split 4 ways by axis "a" (size 4), but 6 % 4 = 2'


LEAVES = "a leaf is a NamedSharding, another sharding or a spec"


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        (
            P("a"),
            f"dimension 0 of {SHAPE}; the nearest sizes that divide: 4 or 8; or partition "
            f"another dimension",
        ),
        (
            P("a", "b", None),
            "spec P('a', 'b', None) of array \"x/y\" has 3 entries, but shape (6, 4) has rank 2; "
            "give at most one entry per dimension",
        ),
        (P("z"), 'axis "z" of array "x/y" is not in Mesh(\'a\': 4, \'b\': 2); use one of "a", "b"'),
        (
            P("a", "a"),
            'axis "a" partitions dimension 0 and dimension 1 of array "x/y"; an axis can '
            "partition one dimension once",
        ),
        (
            {"x": P(None, "a"), "z": P()},
            "specs have ['z'], which tree does not have; give one sharding, or a tree with the "
            "keys of tree",
        ),
        (
            {"x": {"y": [P()]}},
            "specs have the type list for tree['x']['y'], which has the type ndarray; give one "
            "sharding, or a tree with the keys of tree",
        ),
        (
            {"x": {"y": None}},
            "array 'x/y' has no spec; PartitionSpec() puts the whole array on every device",
        ),
        (
            None,
            "specs are missing; give one spec for all arrays, such as PartitionSpec('data'), or "
            "a tree of specs",
        ),
        ("data", "specs have the leaf 'data'; a spec is written PartitionSpec('data')"),
        ({"x": {"y": 3}}, f"specs have the leaf 3; {LEAVES}"),
        (np.ones(3), f"specs have the leaf array([1., 1., 1.]); {LEAVES}"),
    ],
    ids=str,
)
def test_specs_that_do_not_fit(specs: Any, text: str) -> None:
    """The errors are the same as for a loader's layout, and name the path of the leaf."""
    tree = {"x": {"y": np.zeros((6, 4), np.float32)}}
    assert wrong(tree, grid(4, 2), specs) == f"mf.put: {text}"


def test_an_error_shows_no_other_exception() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for tree in (np.zeros(3), endless):
        with pytest.raises(mf.InvalidArgumentError) as raised:
            mf.put(tree, grid(4, 2), P("a"))
        assert raised.value.__context__ is None


def test_specs_in_place_of_the_mesh() -> None:
    batch, mesh = np.zeros((4, 2), np.float32), grid(4, 2)
    assert wrong(batch, NamedSharding(mesh, P("a")), None) == (
        "mf.put: specs are missing; the mesh is a sharding, so write specs= before it"
    )
    assert wrong(batch, P("a"), None) == (
        "mf.put: specs are missing; the mesh is a spec, so write specs= before it"
    )


def test_a_tree_that_is_one_array_has_no_name() -> None:
    """An array below the key "tree" has one."""
    text = 'of shape (6,) is split 4 ways by axis "a" (size 4), but 6 % 4 = 2; the nearest sizes'
    assert wrong(np.zeros(6), grid(4), P("a")).startswith(
        f"mf.put: dimension 0 of the array {text}"
    )
    named = wrong({"tree": np.zeros(6)}, grid(4), P("a"))
    assert named.startswith(f'mf.put: dimension 0 of array "tree" {text}')
    assert wrong("cat", grid(2), P("a")).startswith("mf.put: the array is 'cat', which is text")
    with pytest.raises(mf.OutOfRangeError, match="the array holds 2147483648, which"):
        mf.put(2**31, grid(2), P())


@pytest.mark.parametrize(
    ("tree", "where"),
    [({1: X, "x": X}, "tree"), ({"x": [X, ({"y": {}}, {2: X, "y": X})]}, "tree['x'][1][1]")],
)
def test_keys_that_cannot_be_sorted(tree: Any, where: str) -> None:
    assert wrong(tree, grid(2), P("a")) == (
        f"mf.put: the keys of the dict {where} are of the types int, str; JAX sorts them, so give "
        "keys of one type, such as str"
    )
    assert wrong(X, grid(2), {1: P(), "x": P()}) == (
        "mf.put: the keys of the dict specs are of the types int, str; JAX sorts them, so give "
        "keys of one type, such as str"
    )


def test_keys_that_cannot_be_sorted_in_a_tree_that_contains_itself() -> None:
    loop: dict[Any, Any] = {1: X, "x": X}
    loop["loop"] = loop
    assert "the argument tree contains itself" in wrong(loop, grid(2), P("a"))


def test_an_error_of_a_container_is_raised_as_it_is() -> None:
    class Broken:
        pass

    def flatten(_: Broken) -> Any:
        raise ValueError("no leaves today")

    jax.tree_util.register_pytree_node(Broken, flatten, lambda *_: Broken())
    with pytest.raises(ValueError, match="no leaves today"):
        mf.put({"x": Broken()}, grid(2), P())


def test_a_list_of_numbers_is_no_array() -> None:
    assert wrong({"x": X, "label": [3, 4]}, grid(2), P("a")) == (
        "mf.put: array 'label/0' is a number in a list, but its spec has dimensions; a list holds "
        "arrays; give np.asarray(list) for one array"
    )


def test_other_arguments_that_do_not_fit() -> None:
    for leaf in (X, jax.numpy.zeros(8)):  # the second one has no host memory
        mf.put(leaf, grid(2), P("a"))  # has another plan than the other calls
        assert wrong(leaf, grid(2), P("a"), rows="mine") == (
            'mf.put: rows=\'mine\': expected "all" or "local"'
        )
        assert wrong(leaf, grid(2), P("a"), may_alias="yes") == (
            "mf.put: may_alias='yes': expected True or False"
        )
    assert wrong(X, {"a": 2}, P("a")).startswith("mf.put: mesh={'a': 2}: expected a jax.sharding")
    assert wrong(X, None, P("a")) == (
        "mf.put: a PartitionSpec was given without a mesh; pass mesh=, or call jax.set_mesh(mesh) "
        "first"
    )
    mixed = {"x": NamedSharding(grid(2), P()), "y": NamedSharding(grid(4), P())}
    assert "the arrays are on two meshes" in wrong({"x": X, "y": X}, None, mixed)
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    assert wrong(loop, grid(2), P()).startswith("mf.put: the argument tree contains itself")


@pytest.mark.parametrize("way", TRACED)
def test_a_put_cannot_become_part_of_a_program(way: str) -> None:
    def step(x: Any) -> Any:
        return x * np.asarray(mf.put(np.ones(8), grid(8), P("a")))[0]

    with pytest.raises(mf.InvalidStateError) as caught:
        TRACED[way](step)
    assert str(caught.value).startswith("mf.put: a batch was asked for inside of a function that")


def test_notice_of_rows_in_several_processes() -> None:
    """Processes with equal parts are named; others only share some of their rows."""
    must = "must give equal rows in the same order; JAX does not compare them, "
    must += "mf.check_replicas does"
    same = Parts({"a": 2, "b": 2}, np.array([[0, 1], [2, 3]]), ["b"])
    text = f"these processes hold the same rows of array 'x': 0 and 2; 1 and 3, and {must}"
    assert same.notice("x") == text
    some = Parts({"a": 3, "b": 2}, np.array([[0, 1], [1, 2], [2, 0]]), ["a"])
    text = f"some rows of array 'x' are in several processes, which {must}"
    assert some.notice("x") == text
