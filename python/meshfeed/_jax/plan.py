"""How the leaves of a tree in host memory become global `jax.Array`s."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.tree_util import SequenceKey, all_leaves, tree_flatten_with_path

from meshfeed._io.arguments import Checks
from meshfeed._io.arraylike import check_array, wider
from meshfeed._io.hostarrays import address
from meshfeed._jax import meshes, runtime
from meshfeed._jax.placer import Maker, Placer
from meshfeed._jax.trees import broadcast, given_leaves, names_of
from meshfeed._layout.blocks import Blocks, without_batch
from meshfeed._layout.layout import Layout
from meshfeed._layout.localrows import Parts, check_parts
from meshfeed._layout.specs import Entry, entries, is_spec
from meshfeed._layout.trees import no_specs
from meshfeed._native.calls import HostArray
from meshfeed._native.splitter import Splitter

log = logging.getLogger("meshfeed")

ALIGNED = 64  # bytes: JAX copies memory on the host with a smaller alignment
_MOST = 1024  # arrays that a layout can describe
_ONLY = "tree"  # the name of an array that is the whole tree

# The types that a layout document can name. Elements of another type are copied as integers.
_NAMED = {"bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"}
_NAMED |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


class Leaf(NamedTuple):
    """What a plan knows of a leaf.

    Attributes:
        shape: the shape.
        dtype: the type.
        strides: the strides in bytes; None for a `jax.Array`.
        shared: whether JAX may use the memory without a copy, if its blocks are contiguous and
            aligned.
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None
    shared: bool


@dataclasses.dataclass
class _Array:
    """An array that a plan makes of a leaf.

    Attributes:
        name: the name of the leaf.
        leaf: the leaf.
        mesh: the mesh.
        spec: the entries of the spec.
        given: the sharding or the spec that the user gave.
        shape: the global shape.
        starts: the first local row of each part of the rows, by its first global row; None if the
            leaf has all rows.
    """

    name: str
    leaf: Leaf
    mesh: Mesh
    spec: list[Entry]
    given: Any
    shape: tuple[int, ...]
    starts: dict[int, int] | None = None

    @functools.cached_property
    def sharding(self) -> NamedSharding:
        """The sharding. The spec must fit the shape."""
        if isinstance(self.given, NamedSharding):
            return self.given
        return meshes.named_sharding(Checks("mf.put"), self.mesh, self.given)

    @property
    def delivered(self) -> Any:
        """The type of the array. If x64 is off, 64-bit types are narrowed."""
        dtype = self.leaf.dtype
        return dtype if is_extended(dtype) else np.dtype(jax.dtypes.canonicalize_dtype(dtype))

    def document(self) -> dict[str, Any]:
        """Returns the array in a layout document."""
        dtype = str(_carrier(self.delivered))
        return {"shape": list(self.shape), "dtype": dtype, "spec": self.spec}

    def row_document(self) -> dict[str, Any]:
        """Returns the array in a layout document, as the only row of a batch."""
        dtype = str(_carrier(self.delivered))
        return {"shape": ["B", *self.shape], "dtype": dtype, "spec": [None, *self.spec]}

    def memory(self) -> HostArray:
        """Describes the memory of the leaf, as the only row of a batch."""
        leaf = self.leaf
        assert leaf.strides is not None
        return HostArray(self.name, _carrier(leaf.dtype), (1, *leaf.shape), (0, *leaf.strides))

    def local(self, index: Any) -> Any:
        """Converts an index of the global array to one of the leaf."""
        if self.starts is None:
            return index
        start, stop, _ = index[0].indices(self.shape[0])
        first = self.starts[start]
        return slice(first, first + stop - start), *index[1:]

    @property
    def is_shared(self) -> bool:
        """Whether JAX may use the memory, and all blocks are contiguous and aligned in it."""
        leaf = self.leaf
        if not leaf.shared or self.delivered != leaf.dtype or not _is_dense(leaf):
            return False
        blocks = self.sharding.addressable_devices_indices_map(self.shape).values()
        return bool(blocks) and all(_is_whole(leaf, self.local(index)) for index in blocks)

    def maker(self) -> Callable[[Any], jax.Array]:
        """Returns the function that makes the array of a leaf, without a copy."""
        if self.leaf.strides is None:
            return functools.partial(_moved, self.name, self.sharding)
        maker = Maker(self.shape, self.sharding, None)
        if self.starts is None:
            return lambda leaf: maker.of(leaf.__getitem__)
        return lambda leaf: maker.of(lambda index: leaf[self.local(index)])


def _carrier(dtype: Any) -> np.dtype[Any]:
    """Returns the type as which the C library copies elements of a type."""
    if is_extended(dtype):
        return np.dtype(np.uint8)
    return dtype if str(dtype) in _NAMED else np.dtype(f"u{dtype.itemsize}")


def _is_dense(leaf: Leaf) -> bool:
    """Returns whether a leaf is contiguous, in the order of C."""
    step = leaf.dtype.itemsize
    assert leaf.strides is not None
    for n, stride in zip(reversed(leaf.shape), reversed(leaf.strides), strict=True):
        if n > 1 and stride != step:
            return False
        step *= n
    return True


def _is_whole(leaf: Leaf, index: Any) -> bool:
    """Returns whether a block of a contiguous leaf is contiguous and aligned."""
    assert leaf.strides is not None
    ranges = [part.indices(n)[:2] for part, n in zip(index, leaf.shape, strict=True)]
    offset = sum(start * step for (start, _), step in zip(ranges, leaf.strides, strict=True))
    sizes = [stop - start for start, stop in ranges]
    outer = next((d for d, n in enumerate(sizes) if n != 1), len(sizes))
    return offset % ALIGNED == 0 and tuple(sizes[outer + 1 :]) == leaf.shape[outer + 1 :]


def _moved(name: str, sharding: NamedSharding, leaf: jax.Array) -> jax.Array:
    """Places a `jax.Array`, which may be on any devices of this process."""
    if leaf.sharding == sharding:
        return leaf
    if jax.process_count() == 1 or (leaf.is_fully_addressable and sharding.is_fully_addressable):
        moved: jax.Array = jax.device_put(leaf, sharding)
        return moved
    message = f"array {name!r} is a jax.Array on devices of several processes"
    hint = "reshard it in a jitted function with out_shardings, which all processes call"
    if is_extended(leaf.dtype):
        message = f"array {name!r} holds PRNG keys, which cannot go to devices of several processes"
        hint = "give jax.random.key_data(keys), and use jax.random.wrap_key_data in the program"
    raise Checks("mf.put").misfit(message, hint)


def _arrays(
    check: Checks, tree: Any, leaves: Sequence[Leaf], mesh: Any, specs: Any
) -> list[_Array]:
    """Lists the arrays of a tree, with the shapes of its leaves."""
    _check_given(check, mesh, specs)
    flat = tree_flatten_with_path(tree)[0]
    names = leaf_names(tree)
    given = broadcast(check, "tree", tree, specs, "specs")
    for name, spec in zip(names, given, strict=True):
        if spec is None:
            message = f"array {name!r} has no spec"
            raise check.misfit(message, "PartitionSpec() puts the whole array on every device")
    if not names:
        return []  # an empty tree needs no mesh
    shardings = [None if is_spec(spec) else spec for spec in given]
    mesh = meshes.one_mesh(check, mesh, shardings)
    found = []
    for (path, host), name, leaf, spec in zip(flat, names, leaves, given, strict=True):
        if leaf.strides is not None:
            array = host if isinstance(host, np.ndarray) else np.empty(0, leaf.dtype)
            check_array(check, name, array)
            _check_has(check, name, leaf.dtype)
        parts = entries(spec if is_spec(spec) else spec.spec)
        if parts and leaf.shape == () and path and isinstance(path[-1], SequenceKey):
            message = f"array {name!r} is a number in a list, but its spec has dimensions"
            raise check.misfit(message, "a list holds arrays; give np.asarray(list) for one array")
        found.append(_Array(name, leaf, mesh, parts, spec, leaf.shape))
    return found


def _check_has(check: Checks, name: str, dtype: np.dtype[Any]) -> None:
    """Raises an error if this release of JAX cannot make arrays of a type of ml_dtypes."""
    if str(dtype) in _NAMED:
        return
    try:
        with jax.transfer_guard_host_to_device("allow"):
            jax.device_put(np.zeros((), dtype))
    except (TypeError, jax.errors.JaxRuntimeError):
        message = f"array {name!r} has the type {dtype}, which JAX does not have"
        hint = f"give it in a wider type, such as {wider(dtype)}"
        raise check.misfit(message, hint) from None


def _extend(check: Checks, arrays: Sequence[_Array], *, is_single: bool) -> None:
    """Sets the global shapes of arrays if every process has its own rows.

    An array keeps its shape if its spec does not fit: `_check_fit` reports it.

    Args:
        check: raises errors with the name of the user's call.
        arrays: the arrays.
        is_single: whether the tree is one array.
    """
    cut: list[tuple[_Array, Parts]] = []
    for array in arrays:
        axes = meshes.axes_of(array.spec[0] if array.spec else None)
        fits = array.shape and all(axis in array.mesh.shape for axis in axes)
        if fits and array.leaf.strides is not None:
            cut.append((array, meshes.parts(array.mesh, axes)))
    notice = check_parts(check, [(array.name, array.shape[0], parts) for array, parts in cut])
    if notice:
        log.warning("%s", without_name(notice) if is_single else notice)
    process = runtime.process_index()
    for array, parts in cut:
        local = array.shape[0]
        rows = parts.rows(check, array.name, local, process)
        array.shape = rows, *array.shape[1:]
        array.starts = parts.starts(rows, process)


def _check_fit(check: Checks, arrays: Sequence[_Array]) -> None:
    """Raises an error if a spec does not fit its array."""
    mesh = meshes.describe_mesh(arrays[0].mesh)
    for group in _divided(arrays):
        document = mesh.document({"arrays": {a.name: a.document() for a in group}})
        for problem in Layout(document).check():
            if problem.severity == "error":
                raise check.misfit(problem.message, problem.hint)


class Plan:
    """How the leaves of trees with the same structure, shapes and types become arrays.

    Attributes:
        shared: the leaves that JAX uses without a copy.

    Args:
        check: raises errors with the name of the user's call.
        tree: a tree.
        leaves: what is known of its leaves.
        mesh: the mesh that the user gave, or None.
        specs: the specs that the user gave.
        rows: "all" or "local".
    """

    def __init__(
        self, check: Checks, tree: Any, leaves: Sequence[Leaf], mesh: Any, specs: Any, rows: Any
    ) -> None:
        arrays = _arrays(check, tree, leaves, mesh, specs)
        if rows == "local":
            _extend(check, arrays, is_single=all_leaves([tree]))
        if arrays:
            _check_fit(check, arrays)
        self.shared = [i for i, a in enumerate(arrays) if a.is_shared]
        copied: list[tuple[int, _Array]] = []
        self._made: list[tuple[int, Callable[[Any], jax.Array]]] = []
        for i, array in enumerate(arrays):
            if array.leaf.strides is None or array.is_shared:
                self._made.append((i, array.maker()))
            else:
                copied.append((i, array))
        self._copies = [_Copies(each) for each in _divided(copied)]

    def __call__(self, leaves: Sequence[Any]) -> list[jax.Array]:
        """Makes the arrays of a tree with these leaves."""
        out: list[Any] = [None] * len(leaves)
        for copies in self._copies:
            copies.place(leaves, out)
        for i, make in self._made:
            out[i] = make(leaves[i])
        return out


class _Copies:
    """Copies leaves, and makes arrays of the copies.

    Args:
        arrays: the number of each leaf, with its array: at most `_MOST`.
    """

    def __init__(self, arrays: Sequence[tuple[int, _Array]]) -> None:
        self._numbers = [i for i, _ in arrays]
        self._new_splitter = _splitters([array for _, array in arrays])
        # A tree that is put once, such as weights, leaves no memory behind: from the second use
        # on, the splitter keeps the memory of a few batches.
        self._splitter: Splitter | None = self._new_splitter()
        self._used = False
        self._placers: list[tuple[int, Placer]] = []
        for (i, array), described in zip(arrays, self._splitter.described, strict=True):
            blocks = Blocks(without_batch(described), array.delivered)
            self._placers.append((i, Placer(blocks, array.sharding)))

    def place(self, leaves: Sequence[Any], out: list[Any]) -> None:
        """Sets the arrays in the list of all arrays of the tree."""
        splitter = self._splitter or self._new_splitter()
        self._splitter, self._used = splitter if self._used else None, True
        owner = splitter([address(leaves[i]) for i in self._numbers])
        for i, placer in self._placers:
            out[i] = placer(owner)


def _divided(arrays: Sequence[Any]) -> list[Sequence[Any]]:
    """Divides arrays into groups that a layout can describe."""
    return [arrays[i : i + _MOST] for i in range(0, len(arrays), _MOST)]


def _splitters(arrays: Sequence[_Array]) -> Callable[[], Splitter]:
    """Returns the function that makes a splitter of these arrays."""
    parts = {"arrays": {a.name: a.row_document() for a in arrays}, "batch": {"size": 1}}
    document = meshes.describe_mesh(arrays[0].mesh).document(parts)
    memory = [array.memory() for array in arrays]
    return functools.partial(Splitter, document, runtime.process_index(), memory)


def check_specs(check: Checks, mesh: Any, specs: Any) -> None:
    """Raises an error if no array can have the specs on the mesh."""
    _check_given(check, mesh, specs)
    given = [(path, spec) for path, spec in given_leaves(check, specs, "specs") if spec is not None]
    if not given:
        return
    mesh = meshes.one_mesh(check, mesh, [None if is_spec(spec) else spec for _, spec in given])
    names = [name or _ONLY for name in names_of([path for path, _ in given])]
    arrays = []
    for name, (_, spec) in zip(names, given, strict=True):
        parts = entries(spec if is_spec(spec) else spec.spec)
        shape = tuple(
            math.prod(mesh.shape.get(axis, 1) for axis in meshes.axes_of(entry)) for entry in parts
        )
        leaf = Leaf(shape, np.dtype(np.int8), None, shared=False)
        arrays.append(_Array(name, leaf, mesh, parts, spec, shape))
    _check_fit(check, arrays)


def _check_given(check: Checks, mesh: Any, specs: Any) -> None:
    """Raises an error without specs."""
    if specs is None:
        hint = "give one spec for all arrays, such as PartitionSpec('data'), or a tree of specs"
        raise check.misfit("specs are missing", no_specs(mesh, hint))


def leaf_names(tree: Any) -> list[str]:
    """Returns the names of the leaves of a tree."""
    paths = [path for path, _ in tree_flatten_with_path(tree)[0]]
    return [name or _ONLY for name in names_of(paths)]


def without_name(text: str, what: str = "the array") -> str:
    """Replaces the name of an array that is the whole tree."""
    return re.sub(rf"array (['\"]){_ONLY}\1", what, text)


def is_extended(dtype: Any) -> bool:
    """Returns whether a type is the type of PRNG keys, which NumPy does not have."""
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.extended))
