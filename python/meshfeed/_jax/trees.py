"""Trees of JAX arrays: their leaves, and the sharding or the spec of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding
from jax.tree_util import (
    DictKey,
    GetAttrKey,
    keystr,
    tree_flatten_with_path,
    tree_leaves,
    treedef_is_leaf,
)

from meshfeed._io.arguments import Checks, cut, dataclass_hint, getattr_or_none, repr_short
from meshfeed._layout.specs import is_spec
from meshfeed.errors import InvalidArgumentError

_ARRAYS = "give arrays or jax.ShapeDtypeStructs"
_TREES = {
    "tree": "the parameters of a model",
    "batch": "the arrays of a batch, such as loader.element_spec",
    "optimizer": "a name, an object with a method init, or the tree of the states",
}
_NODES = (dict, list, tuple)
_DEEPEST = 100  # levels of a tree


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array of a tree.

    Attributes:
        path: the keys that lead to the array.
        name: the path as a text.
        shape: the shape.
        dtype: the type that the array has in a compiled function.
        sharding: the sharding; None if none was given.
        spec: the bare spec, if one was given instead.
    """

    path: tuple[Any, ...]
    name: str
    shape: tuple[int, ...]
    dtype: Any
    sharding: Any = None
    spec: Any = None

    def struct(self) -> jax.ShapeDtypeStruct:
        """Returns shape and type."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype)


def leaves(
    check: Checks, argument: str, tree: Any, shardings: Any = None, *, own: bool = True
) -> list[Leaf]:
    """Lists the arrays of a tree.

    Args:
        check: raises errors with the name of the user's call.
        argument: the name of the tree in that call.
        tree: the tree. A None in it has no leaves, as in JAX.
        shardings: a tree of shardings and specs, or a prefix of such a tree. None, for the tree or
            for a part of it, means the shardings that the arrays have.
        own: whether the arrays' own shardings count.
    """
    if tree is None or isinstance(tree, bool | int | float | complex | str | np.generic):
        raise _no_tree(check, argument, tree)
    check_depth(check, argument, tree)
    check_depth(check, "shardings", shardings)
    flat, _ = tree_flatten_with_path(tree)
    given = broadcast(check, argument, tree, shardings)
    names = names_of([path for path, _ in flat])
    found = []
    for (path, leaf), name, sharding in zip(flat, names, given, strict=True):
        shape, dtype = _abstract(check, argument, name, leaf)
        array = Leaf(path, name or argument, shape, dtype)
        if is_spec(sharding):
            array = dataclasses.replace(array, spec=sharding)
        else:
            there = _own(leaf) if own else None
            array = dataclasses.replace(array, sharding=sharding or there)
        found.append(array)
    return found


def opened(node: Any) -> tuple[list[str], list[Any], Callable[[Sequence[Any]], Any]] | None:
    """Opens a node of a class that is registered with JAX by one level.

    A child None is not a leaf, as in JAX: it is in the nodes that the third result makes.

    Returns:
        The names of the children, the children, and the function that makes a node of other
        children; None for a leaf.
    """
    structure: Any  # JAX declares no methods for it
    try:
        children, structure = tree_flatten_with_path(
            node, lambda x: x is not node and x is not None
        )
    except Exception as e:  # from the function that flattens the class
        message = f"{cut(repr(node))} is not a tree: jax.tree.flatten failed: {cut(repr(e), 300)}"
        raise InvalidArgumentError(message) from e
    if node is None or treedef_is_leaf(structure):
        return None
    keys = [keystr(path, simple=True) for path, _ in children]
    return keys, [child for _, child in children], structure.unflatten


def names_of(paths: Sequence[Any]) -> list[str]:
    """Returns the names of the leaves at these paths of a tree; they are unique."""
    names = [keystr(path, simple=True, separator="/") for path in paths]
    return names if len(set(names)) == len(names) else [keystr(path) for path in paths]


def _no_tree(check: Checks, argument: str, given: Any) -> InvalidArgumentError:
    """Makes the error for a tree that is a single object and no array."""
    loads = hasattr(type(given), "element_spec")
    hint = "give its element_spec" if loads else _ARRAYS
    return check.wrong(argument, given, _TREES.get(argument, "arrays"), hint)


def check_depth(check: Checks, argument: str, tree: Any) -> None:
    """Refuses a tree that contains itself: all later calls of JAX's functions of trees fail."""
    level = [tree]
    for _ in range(_DEEPEST):
        nodes = (x.values() if isinstance(x, dict) else x for x in level if type(x) in _NODES)
        level = list({id(child): child for node in nodes for child in node}.values())
    if level:
        message = f"the argument {argument} contains itself, or is deeper than {_DEEPEST} levels"
        raise check.misfit(message, "give arrays in nested dicts, lists and tuples")


def check_keys(check: Checks, argument: str, tree: Any) -> None:
    """Refuses a dict with keys that cannot be sorted, which JAX cannot flatten.

    Args:
        check: raises errors with the name of the user's call.
        argument: the name of the tree in that call.
        tree: a tree that JAX cannot flatten.
    """
    level = [(argument, tree)]
    while level:
        where, node = level.pop()
        if isinstance(node, list | tuple):
            level += [(f"{where}[{i}]", child) for i, child in enumerate(node)]
        if not isinstance(node, dict):
            continue
        kinds = sorted({type(key).__name__ for key in node})
        try:
            sorted(node)
        except TypeError:
            message = f"the keys of the dict {where} are of the types {', '.join(kinds)}"
            hint = "JAX sorts them, so give keys of one type, such as str"
            raise check.misfit(message, hint) from None
        level += [(f"{where}[{key!r}]", child) for key, child in node.items()]


def _own(leaf: Any) -> Any:
    """Returns the sharding of an array, or None if a compiled function may choose it."""
    if isinstance(leaf, jax.core.Tracer):
        leaf = jax.typeof(leaf)
    elif isinstance(leaf, jax.Array) and not leaf.committed:
        return None
    sharding = getattr(leaf, "sharding", None)
    empty = isinstance(sharding, NamedSharding) and sharding.mesh.empty  # an abstract value
    return None if empty else sharding


def _abstract(check: Checks, argument: str, name: str, leaf: Any) -> tuple[tuple[int, ...], Any]:
    """Returns the shape of a leaf, and its type in a compiled function."""
    shape, dtype = getattr_or_none(leaf, "shape"), getattr_or_none(leaf, "dtype")
    where = f"leaf {name!r} of {argument}" if name else argument
    if isinstance(leaf, bool | int | float | complex):
        shape, dtype = (), jax.dtypes.canonicalize_dtype(type(leaf))
    if not isinstance(shape, tuple) or dtype is None:
        if not name:
            raise _no_tree(check, argument, leaf)
        message = f"{where} is {repr_short(leaf)}, which has no shape and dtype"
        hint = f"{_ARRAYS}, and leave out functions and settings"
        raise check.misfit(message, dataclass_hint(leaf) or hint)
    if not _is_type(dtype):
        message = f"{where} has the dtype {dtype}, which JAX does not have"
        raise check.misfit(message, "give arrays of numbers")
    if isinstance(dtype, np.dtype | type):  # and not the type of PRNG keys
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return tuple(map(int, shape)), dtype


def _is_type(dtype: Any) -> bool:
    """Returns whether arrays of JAX may have the type."""
    kinds = (np.number, np.bool_, jax.dtypes.extended)
    try:
        return any(jax.numpy.issubdtype(dtype, kind) for kind in kinds)
    except TypeError:  # from pandas
        return False


def broadcast(
    check: Checks, argument: str, tree: Any, given: Any, what: str = "shardings"
) -> list[Any]:
    """Returns the sharding or the spec that is given for every leaf of a tree, or None.

    Args:
        check: raises errors with the name of the user's call.
        argument: the name of the tree in that call.
        tree: the tree.
        given: a tree of shardings and specs, or a prefix of such a tree.
        what: the name of `given` in that call.
    """
    prefix = [leaf for _, leaf in given_leaves(check, given, what)]
    structure: Any = jax.tree_util.tree_structure(given, _is_given)  # JAX declares no type for it
    try:
        parts = structure.flatten_up_to(tree)
    except ValueError:
        message = _difference(argument, tree, given, what)
        hint = f"give one sharding, or a tree with the keys of {argument}"
        raise check.misfit(message, hint) from None
    return [leaf for leaf, part in zip(prefix, parts, strict=True) for _ in tree_leaves(part)]


def given_leaves(check: Checks, given: Any, what: str) -> list[tuple[Any, Any]]:
    """Lists the shardings and the specs of a tree, and its leaves None, with their paths.

    Args:
        check: raises errors with the name of the user's call.
        given: the tree.
        what: the name of `given` in that call.
    """
    found: list[tuple[Any, Any]] = tree_flatten_with_path(given, is_leaf=_is_given)[0]
    for _, leaf in found:
        if not _is_given(leaf):
            message = f"{what} have the leaf {repr_short(leaf)}"
            hint = "a leaf is a NamedSharding, another sharding or a spec"
            hint = dataclass_hint(leaf) or hint
            if isinstance(leaf, str):
                hint = f"a spec is written PartitionSpec({cut(repr(leaf))})"
            raise check.misfit(message, hint)
    return found


def _is_given(x: Any) -> bool:
    """Returns whether an object is a leaf of a tree of shardings and specs."""
    return x is None or is_spec(x) or isinstance(x, Sharding)


def _difference(argument: str, tree: Any, given: Any, what: str) -> str:
    """Describes where a tree of shardings is not a prefix of another tree."""
    first = [path for path, _ in tree_flatten_with_path(given, is_leaf=_is_given)[0]]
    paths = [path for path, _ in tree_flatten_with_path(tree, is_leaf=_is_none)[0]]
    nodes = _nodes(tree, paths)
    for path, node in _nodes(given, first).items():
        if path in nodes and not _is_given(node) and type(node) is not type(nodes[path]):
            kinds = type(node).__name__, type(nodes[path]).__name__
            found = f"{what} have the type {kinds[0]} for {argument}{keystr(path)}"
            return f"{found}, which has the type {kinds[1]}"
    starts = set(first)
    for path in paths:
        if not any(path[:n] in starts for n in range(len(path) + 1)):
            return f"{what} have nothing for {argument}{keystr(path)}"
    starts = {path[:n] for path in paths for n in range(len(path) + 1)}
    for path in first:
        if path not in starts:
            return f"{what} have {keystr(path)}, which {argument} does not have"
    return f"{what} and {argument} have nodes of different types"


def _is_none(x: Any) -> bool:
    return x is None


def _nodes(tree: Any, paths: Sequence[Any]) -> dict[Any, Any]:
    """Returns the nodes on some paths of a tree by their own paths, outer ones first."""
    found = {(): tree}
    for path in paths:
        for n, key in enumerate(path):
            parent = found[path[:n]]
            try:
                if isinstance(key, GetAttrKey):
                    child = getattr(parent, key.name)
                else:
                    child = parent[key.key if isinstance(key, DictKey) else key.idx]
            except Exception:  # from a class of the user, which only JAX can flatten
                break
            found[path[: n + 1]] = child
    return found
