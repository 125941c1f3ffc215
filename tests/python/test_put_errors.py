"""Specs, meshes and calls that `mf.put` refuses."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding

import meshfeed as mf
from meshfeed._plan.localrows import Parts
from tests.python.putting import (
    P,
    grid,
    wrong,
)
from tests.python.test_traced import TRACED

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
    """The errors are those of a loader's layout, and name the path of the leaf."""
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
        mf.put(leaf, grid(2), P("a"))  # whose plan is not that of the other calls
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
