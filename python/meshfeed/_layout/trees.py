"""Trees of partition specs: which array takes which field, and how it is partitioned."""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from meshfeed._io.arguments import dataclass_hint, nearest_hint, no_fields, repr_short
from meshfeed._layout.specs import Array, Entry, P, entries, is_sharding, is_spec
from meshfeed.errors import InvalidArgumentError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from meshfeed._data.fields import Skipped


class Node(NamedTuple):
    """A node of a tree.

    Attributes:
        keys: the names of its children.
        children: its children.
        make: makes a node of the same class of other children.
    """

    keys: Sequence[Any]
    children: Sequence[Any]
    make: Callable[[Sequence[Any]], Any]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a tree; `spec` and `sharding` are None for NumPy batches."""

    name: str
    field: str
    columns: list[list[int]] | None
    spec: list[Entry] | None
    sharding: Any


@dataclasses.dataclass(frozen=True)
class Tree:
    """The arrays of a batch, and the tree that holds them.

    Attributes:
        leaves: the arrays in the order of the tree.
        build: makes the tree from one array per leaf, in the order of `leaves`.
        top: the keys at the top of the tree; None if the top is not a dict.
    """

    leaves: list[Leaf]
    build: Callable[[Sequence[Any]], Any]
    top: tuple[str, ...] | None


def resolve(specs: Any, fields: Sequence[str], skipped: Sequence[Skipped] = ()) -> Tree:
    """Reads the `specs` argument of a loader.

    Args:
        specs: None, a list of field names, one spec for all fields, or a tree of specs.
        fields: the names of the dataset's fields.
        skipped: the dataset's columns that are not fields, because they cannot be arrays.

    Raises:
        InvalidArgumentError: a leaf is not a spec, or names are ambiguous.
        NotFoundError: a leaf's field is not in the dataset.
        UnsupportedError: the leaf's field is a column that cannot be an array.
    """
    if not fields and for_all(specs):
        raise no_fields(skipped)
    if specs is None:
        specs = list(fields)
    if isinstance(specs, list) and all(isinstance(name, str) for name in specs):
        specs = {name: Array(name) for name in specs}
    elif is_spec(specs) or is_sharding(specs):
        specs = {name: Array(name, specs) for name in fields}
    node = _node(specs)
    if node is None:
        raise _not_a_spec(specs, "")
    paths = list(_walk(specs, ()))
    if not paths:
        message = "the tree of specs has no leaf, so a batch would have no array"
        raise InvalidArgumentError(message, hint="name at least one array")
    nested = any(len(path) > 1 for path, _ in paths)
    leaves = [_leaf(path, leaf, fields, skipped, nested=nested) for path, leaf in paths]
    top = tuple(node.keys) if isinstance(node.make(node.children), dict) else None
    return Tree(leaves, _builder(specs), top)


def specs_of(arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Returns the specs of the arrays of a layout document, by the names of the arrays."""
    return {
        name: Array(array.get("field", name), P(*array.get("spec", ())), array.get("columns"))
        for name, array in arrays.items()
    }


def for_all(specs: Any) -> bool:
    """Returns whether the specs apply to all fields of the dataset."""
    return specs is None or is_spec(specs) or is_sharding(specs)


def mapped(specs: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a tree of specs, with every leaf replaced by `change(leaf)`."""
    return _builder(specs)([change(leaf) for _, leaf in _walk(specs, ())])


def no_field(
    name: str, field: Any, fields: Sequence[str], skipped: Sequence[Skipped], *, named: bool = True
) -> NotFoundError | UnsupportedError:
    """Makes the error of an array with a field that the dataset does not have.

    Args:
        name: the array's name.
        field: the field that it takes.
        fields: the names of the dataset's fields.
        skipped: the dataset's columns that are not fields.
        named: whether the user named the field, and not only the array.
    """
    for column in skipped:
        if column.name == field:
            reason, _, hint = column.reason.partition("; ")
            message = f"array {name!r} takes column {field!r}, which is not an array: {reason}"
            return UnsupportedError(message, hint=hint)
    message = f"array {name!r} takes field {field!r}, which the dataset does not have"
    hint = nearest_hint(field, fields)
    if not named:
        hint += "; name the field of an array with mf.Array(field, spec)"
    return NotFoundError(message, hint=hint)


def no_specs(mesh: Any, hint: str) -> str:
    """Returns the hint for missing specs. They may have been given in place of the mesh."""
    given = "sharding" if is_sharding(mesh) else "spec" if is_spec(mesh) else None
    return hint if given is None else f"the mesh is a {given}, so write specs= before it"


def _node(x: Any) -> Node | None:
    """Opens a node of a tree by one level; returns None for a leaf.

    Dicts, tuples and lists keep the order of their keys, and their class, without JAX. Other
    classes are nodes if they are registered with JAX, such as dataclasses.
    """
    if is_spec(x) or is_sharding(x) or isinstance(x, Array):
        return None
    if isinstance(x, dict):
        return Node(tuple(x), tuple(x.values()), lambda new: x | dict(zip(x, new, strict=True)))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return Node(x._fields, x, lambda new: type(x)(*new))
    if isinstance(x, tuple | list):
        return Node(range(len(x)), x, type(x))
    if "jax" in sys.modules:
        from meshfeed._jax import trees

        if (opened := trees.opened(x)) is not None:
            return Node(*opened)
    if isinstance(x, Mapping):
        return Node(tuple(x), tuple(x.values()), lambda new: dict(zip(x, new, strict=True)))
    return None


def _walk(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the path and the value of every leaf at or below a node."""
    node = _node(tree)
    if node is None:
        yield path, tree
        return
    if isinstance(tree, tuple | list) and any(isinstance(child, str) for child in tree):
        raise _bare_entries(tree, "/".join(path))
    for key, child in zip(node.keys, node.children, strict=True):
        if isinstance(tree, Mapping) and (not isinstance(key, str) or not key):
            message = f"key {key!r} is not a name"
            raise InvalidArgumentError(message, hint="use non-empty strings")
        yield from _walk(child, (*path, str(key)))


def _leaf(
    path: tuple[str, ...],
    leaf: Any,
    fields: Sequence[str],
    skipped: Sequence[Skipped],
    *,
    nested: bool,
) -> Leaf:
    if nested:
        for key in path:
            if "/" in key:
                message = f'key {key!r} holds a "/", which joins the names of a nested tree'
                raise InvalidArgumentError(message, hint="rename the key")
    name = "/".join(path)
    array = leaf if isinstance(leaf, Array) else Array(_field_of(path, fields), leaf)
    spec: Any = array.spec
    sharding = None
    if is_sharding(spec):
        spec, sharding = spec.spec, spec
    elif not is_spec(spec) and not (spec is None and isinstance(leaf, Array)):
        raise _not_a_spec(spec, name)
    if array.field not in fields:
        raise no_field(name, array.field, fields, skipped, named=isinstance(leaf, Array))
    return Leaf(
        name=name,
        field=array.field,
        columns=_columns(name, array.columns),
        spec=None if spec is None else entries(spec),
        sharding=sharding,
    )


def _field_of(path: tuple[str, ...], fields: Sequence[str]) -> str:
    """Returns the field of an array if its leaf does not name one."""
    name = "/".join(path)
    return name if name in fields else path[-1]


def _columns(name: str, columns: Any) -> list[list[int]] | None:
    if columns is None:
        return None
    try:
        ranges = [[operator.index(start), operator.index(stop)] for start, stop in columns]
    except (TypeError, ValueError):
        ranges = [[-1, -1]]
    if all(0 <= start < stop for start, stop in ranges):
        return ranges
    message = f"columns of array {name!r} are {columns!r}"
    hint = "give a list of (start, stop) with 0 <= start < stop, such as [(0, 2048)]"
    raise InvalidArgumentError(message, hint=hint)


def _not_a_spec(x: Any, name: str) -> InvalidArgumentError:
    message = (
        f"array {name!r} has {repr_short(x)} for a spec" if name else f"specs are {repr_short(x)}"
    )
    if x is None:
        hint = "P() puts the whole array on every device; to leave it out, leave out its name"
        return InvalidArgumentError(message, hint=hint)
    hint = dataclass_hint(x) or (
        "a leaf is a PartitionSpec, a NamedSharding or mf.Array(field, spec), "
        "and a tree is a dict, a tuple, a list or another pytree of them"
    )
    if isinstance(x, str):
        hint = f"a spec is written PartitionSpec({x!r}), and a list of field names [{x!r}]"
    elif isinstance(x, Array) and not name:
        hint = f"a batch names its arrays: give a dict, such as {{{x.field!r}: mf.Array(…)}}"
    return InvalidArgumentError(message, hint=hint)


def _bare_entries(node: Any, name: str) -> InvalidArgumentError:
    """Makes the error for strings in a tuple or list, such as a spec without PartitionSpec."""
    what = f"array {name!r} has" if name else "specs are"
    entries = ", ".join(map(repr, node))
    hint = f"a spec is written PartitionSpec({entries}), and a list of field names has only names"
    return InvalidArgumentError(f"{what} {repr_short(node)}", hint=hint)


def _builder(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """Makes the function that puts arrays into a tree. A flat dict has a faster one."""
    if type(tree) is dict and all(_node(child) is None for child in tree.values()):
        keys = tuple(tree)
        return lambda arrays: dict(zip(keys, arrays, strict=True))
    fill = _filler(tree)
    return lambda arrays: fill(iter(arrays))


def _filler(tree: Any) -> Callable[[Iterator[Any]], Any]:
    """Makes the function that returns a tree with the next of the arrays for every leaf."""
    node = _node(tree)
    if node is None:
        return next
    make, fillers = node.make, [_filler(child) for child in node.children]
    return lambda arrays: make([fill(arrays) for fill in fillers])
