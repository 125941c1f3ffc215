"""Trees of specs, and the trees of their batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import pytest
from jax.sharding import PartitionSpec

import meshfeed as mf
from meshfeed._data.fields import Skipped
from meshfeed._layout.specs import entries
from meshfeed._layout.trees import resolve

FIELDS = ("image", "label", "tokens")
P = PartitionSpec

pytestmark = pytest.mark.plain


class Pair(NamedTuple):
    left: Any
    right: Any


class Example(NamedTuple):
    image: Any
    label: Any


def names(tree: Any) -> list[tuple[str, str]]:
    return [(leaf.name, leaf.field) for leaf in resolve(tree, FIELDS).leaves]


def test_one_spec_is_for_all_fields() -> None:
    tree = resolve(P("data"), FIELDS)
    assert [leaf.name for leaf in tree.leaves] == list(FIELDS)
    assert all(leaf.spec == ["data"] for leaf in tree.leaves)
    assert tree.build([1, 2, 3]) == {"image": 1, "label": 2, "tokens": 3}


@pytest.mark.parametrize("specs", [None, ["label", "image"], ["label"]])
def test_names_select_fields_as_numpy(specs: Any) -> None:
    tree = resolve(specs, FIELDS)
    assert [leaf.name for leaf in tree.leaves] == (specs or list(FIELDS))
    assert all(leaf.spec is None for leaf in tree.leaves)


def test_nested_names_are_joined_and_the_last_key_is_the_field() -> None:
    specs = {"in": {"image": P("a")}, "out": {"y": mf.Array("label", P("a")), "label": P()}}
    assert names(specs) == [("in/image", "image"), ("out/y", "label"), ("out/label", "label")]
    built = resolve(specs, FIELDS).build([1, 2, 3])
    assert built == {"in": {"image": 1}, "out": {"y": 2, "label": 3}}


def test_tuples_lists_and_named_tuples_keep_their_kind() -> None:
    leaf = mf.Array("label", P())
    assert resolve((leaf, [leaf, Pair(leaf, leaf)]), FIELDS).build([1, 2, 3, 4]) == (
        1,
        [2, Pair(3, 4)],
    )
    assert names((leaf, {"x": leaf})) == [("0", "label"), ("1/x", "label")]


def test_the_names_of_a_named_tuple_are_fields() -> None:
    specs = Example(P("a"), P("a"))
    assert names(specs) == [("image", "image"), ("label", "label")]
    assert resolve(specs, FIELDS).build([1, 2]) == Example(1, 2)


def test_entries_are_those_of_documents() -> None:
    assert entries(P("a", None, ("b", "c"), ())) == ["a", None, ["b", "c"], None]
    assert entries(mf.P("a", ["b"], None)) == ["a", "b", None]
    assert entries(jax.P(("a",))) == ["a"]


def test_p_prints_and_compares_as_in_jax() -> None:
    for parts in [(), ("a",), ("a", None), (("a", "b"), None)]:
        assert repr(mf.P(*parts)) == repr(P(*parts))
    assert mf.P("a") == mf.P("a")
    assert mf.P("a") != mf.P("a", None)
    assert len({mf.P("a"), mf.P("a"), mf.P()}) == 2


ONE_OF = "a leaf is a PartitionSpec, a NamedSharding or mf.Array(field, spec), "
TREE = "and a tree is a dict, a tuple, a list or another pytree of them"


@pytest.mark.parametrize("specs", [None, P()])
def test_a_dataset_without_a_field_says_why(specs: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        resolve(specs, (), [Skipped("text", "string", "text has no fixed size; store tokens")])
    assert str(caught.value) == (
        "the dataset has no field, because no column is an array: "
        "'text': text has no fixed size; store tokens"
    )


@pytest.mark.parametrize(
    ("specs", "error", "text"),
    [
        (3, mf.InvalidArgumentError, f"specs are 3; {ONE_OF}{TREE}"),
        (
            {"image": "data"},
            mf.InvalidArgumentError,
            "array 'image' has 'data' for a spec; "
            "a spec is written PartitionSpec('data'), and a list of field names ['data']",
        ),
        (
            {"image": None},
            mf.InvalidArgumentError,
            "array 'image' has None for a spec; "
            "P() puts the whole array on every device; to leave it out, leave out its name",
        ),
        (
            {"x": mf.Array("lable", P())},
            mf.NotFoundError,
            "array 'x' takes field 'lable', which the dataset does not have; "
            "did you mean 'label'? There are 'image', 'label', 'tokens'",
        ),
        (
            mf.Array("image", P("data")),
            mf.InvalidArgumentError,
            "specs are Array(field='image', spec=P('data',), columns=None); "
            "a batch names its arrays: give a dict, such as {'image': mf.Array(…)}",
        ),
        (
            {"image": ("data", None)},
            mf.InvalidArgumentError,
            "array 'image' has ('data', None); a spec is written "
            "PartitionSpec('data', None), and a list of field names has only names",
        ),
        (
            ["image", 3],
            mf.InvalidArgumentError,
            "specs are ['image', 3]; a spec is written "
            "PartitionSpec('image', 3), and a list of field names has only names",
        ),
        (
            [P("data")],
            mf.NotFoundError,
            "array '0' takes field '0', which the dataset does not have; "
            "there are 'image', 'label', 'tokens'; "
            "name the field of an array with mf.Array(field, spec)",
        ),
        (
            {"pixels": P()},
            mf.NotFoundError,
            "array 'pixels' takes field 'pixels', which the dataset does not have; "
            "there are 'image', 'label', 'tokens'; "
            "name the field of an array with mf.Array(field, spec)",
        ),
        (
            {"a": {"b/c": mf.Array("image", P())}},
            mf.InvalidArgumentError,
            "key 'b/c' holds a \"/\", which joins the names of a nested tree; rename the key",
        ),
        (
            {1: P()},
            mf.InvalidArgumentError,
            "key 1 is not a name; use non-empty strings",
        ),
        (
            {},
            mf.InvalidArgumentError,
            "the tree of specs has no leaf, so a batch would have no array; "
            "name at least one array",
        ),
        (
            {"x": mf.Array("tokens", P(), columns=[3])},  # type: ignore[list-item]
            mf.InvalidArgumentError,
            "columns of array 'x' are [3]; "
            "give a list of (start, stop) with 0 <= start < stop, such as [(0, 2048)]",
        ),
        (
            P(P.UNCONSTRAINED),
            mf.UnsupportedError,
            "P(UNCONSTRAINED,) leaves a dimension unconstrained, "
            "so the compiler chooses the sharding; name the axes, or use None",
        ),
        (
            P("a", unreduced={"b"}),
            mf.UnsupportedError,
            f"{P('a', unreduced={'b'})} is unreduced, which says what is left to sum, "
            "not what a device holds; give the spec without unreduced=",
        ),
        (
            mf.P(("a", ("b",))),  # type: ignore[arg-type]
            mf.InvalidArgumentError,
            "entry ('a', ('b',)) of P(('a', ('b',)),) is neither an axis name, "
            "nor a tuple of them, nor None; name mesh axes by strings",
        ),
    ],
)
def test_other_leaves_are_rejected(specs: Any, error: type[mf.Error], text: str) -> None:
    with pytest.raises(error) as caught:
        resolve(specs, FIELDS)
    assert str(caught.value) == text


def test_a_flat_name_may_hold_a_slash() -> None:
    assert [leaf.name for leaf in resolve({"a/b": P()}, ("a/b",)).leaves] == ["a/b"]
