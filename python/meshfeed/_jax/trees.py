"""Memory documents of trees of JAX arrays: shapes, types and shardings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves

from meshfeed._io.arguments import Checks, attribute, cut, shown
from meshfeed._jax.meshes import has_devices
from meshfeed._plan.questions import plain
from meshfeed.errors import Error, InvalidArgumentError
from meshfeed.specs import entries, is_spec

_HOST = ("pinned_host", "unpinned_host")
_ARRAYS = "give arrays or jax.ShapeDtypeStructs"
_TREES = {
    "tree": "the parameters of a model",
    "batch": "the arrays of a batch, such as loader.element_spec",
    "optimizer": "a name, an object with a method init, or the tree of the states",
}
_NODES = (dict, list, tuple)
_DEEPEST = 100  # levels of a tree
_MOVE = "move it with jax.device_put(x, NamedSharding(mesh, P()))"


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
    """Refuses a tree that contains itself, after which JAX's functions of trees always fail."""
    level = [tree]
    for _ in range(_DEEPEST):
        nodes = (x.values() if isinstance(x, dict) else x for x in level if type(x) in _NODES)
        level = list({id(child): child for node in nodes for child in node}.values())
    if level:
        message = f"the argument {argument} contains itself, or is deeper than {_DEEPEST} levels"
        raise check.misfit(message, "give arrays in nested dicts, lists and tuples")


def _own(leaf: Any) -> Any:
    """Returns the sharding of an array, or None if a compiled function may choose it."""
    if isinstance(leaf, jax.core.Tracer):
        leaf = jax.typeof(leaf)
    elif isinstance(leaf, jax.Array) and not leaf.committed:
        return None
    sharding = getattr(leaf, "sharding", None)
    empty = isinstance(sharding, NamedSharding) and sharding.mesh.empty  # of an abstract value
    return None if empty else sharding


def _abstract(check: Checks, argument: str, name: str, leaf: Any) -> tuple[tuple[int, ...], Any]:
    """Returns the shape of a leaf, and its type in a compiled function."""
    shape, dtype = attribute(leaf, "shape"), attribute(leaf, "dtype")
    where = f"leaf {name!r} of {argument}" if name else argument
    if isinstance(leaf, bool | int | float | complex):
        shape, dtype = (), jax.dtypes.canonicalize_dtype(type(leaf))
    if not isinstance(shape, tuple) or dtype is None:
        if not name:
            raise _no_tree(check, argument, leaf)
        message = f"{where} is {shown(leaf)}, which has no shape and dtype"
        raise check.misfit(message, f"{_ARRAYS}, and leave out functions and settings")
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
    except TypeError:  # of pandas
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

    def is_leaf(x: Any) -> bool:
        return x is None or is_spec(x) or isinstance(x, Sharding)

    structure: Any  # JAX declares no type for it
    prefix, structure = jax.tree_util.tree_flatten(given, is_leaf)
    for leaf in prefix:
        if not is_leaf(leaf):
            message = f"{what} have the leaf {shown(leaf)}"
            hint = "a leaf is a NamedSharding, another sharding or a spec"
            if isinstance(leaf, str):
                hint = f"a spec is written PartitionSpec({cut(repr(leaf))})"
            raise check.misfit(message, hint)
    try:
        parts = structure.flatten_up_to(tree)
    except ValueError:
        message = _difference(argument, tree, given, is_leaf, what)
        hint = f"give one sharding, or a tree with the keys of {argument}"
        raise check.misfit(message, hint) from None
    return [leaf for leaf, part in zip(prefix, parts, strict=True) for _ in tree_leaves(part)]


def _difference(
    argument: str, tree: Any, given: Any, is_leaf: Callable[[Any], bool], what: str
) -> str:
    """Describes where a tree of shardings is not a prefix of another tree."""
    first = [path for path, _ in tree_flatten_with_path(given, is_leaf=is_leaf)[0]]
    paths = [path for path, _ in tree_flatten_with_path(tree)[0]]
    starts = set(first)
    for path in paths:
        if not any(path[:n] in starts for n in range(len(path) + 1)):
            return f"{what} have nothing for {argument}{keystr(path)}"
    starts = {path[:n] for path in paths for n in range(len(path) + 1)}
    for path in first:
        if path not in starts:
            return f"{what} have {keystr(path)}, which {argument} does not have"
    return f"{what} and {argument} have nodes of different types"


class Placement:
    """The mesh of a document, and the members that describe how an array is partitioned.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh that the user gave, or None.
        arrays: all arrays. Without `mesh`, the mesh is that of the first sharding with one, or of
            `jax.set_mesh`. If there is no mesh, one axis has all devices.

    Attributes:
        axes: the name and the size of every axis.
        size: the number of devices.
    """

    def __init__(self, check: Checks, mesh: Any, arrays: Sequence[Leaf]) -> None:
        self._check = check
        shardings = [a.sharding for a in arrays if a.sharding is not None]
        if mesh is not None and not isinstance(attribute(mesh, "shape"), Mapping):
            axes = dict(check.axes(mesh))
            mesh = AbstractMesh(tuple(axes.values()), tuple(axes))
        if mesh is None:
            named = (s.mesh for s in shardings if isinstance(s, NamedSharding))
            mesh = next(named, None) or context_mesh()
        if mesh is None and any(a.spec is not None for a in arrays):
            message = "a PartitionSpec was given without a mesh"
            hint = "pass mesh=, or use NamedSharding(mesh, spec) or jax.set_mesh"
            raise check.misfit(message, hint)
        self._mesh = mesh
        if mesh is not None:
            self.axes = [[name, size] for name, size in mesh.shape.items()]
            self._devices = _devices(mesh)
        else:
            sizes = [s.num_devices for s in shardings]
            most = max(sizes, default=1)
            self.axes = [["devices", most]] if most > 1 else []
            widest = next((s for s in shardings if s.num_devices == most), None)
            self._devices = None if widest is None else frozenset(widest.device_set)
        self.size = int(np.prod([size for _, size in self.axes], dtype=np.int64))

    def members(self, array: Leaf) -> dict[str, Any]:
        """Returns the members of an array in a document."""
        out: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
        sharding = array.sharding
        if array.spec is not None:
            return out | {"spec": _entries(array, array.spec)}
        if sharding is None:
            return out
        self._check_devices(array)
        kind = sharding.memory_kind
        if kind in _HOST and kind != self._default_memory():
            out["memory_kind"] = kind
        if isinstance(sharding, NamedSharding) and self._same_axes(sharding.mesh):
            return out | {"spec": _entries(array, sharding.spec)}
        if sharding.is_fully_replicated:
            return out
        try:
            return out | {"shard_shape": list(sharding.shard_shape(array.shape))}
        except ValueError as e:
            raise self._check.misfit(f"array {array.name!r}: {cut(str(e), 300)}") from None

    def _same_axes(self, mesh: Any) -> bool:
        return [[name, size] for name, size in mesh.shape.items()] == self.axes

    def _default_memory(self) -> str | None:
        """Returns the memory kind of arrays that name none. On CPU, old JAX says unpinned_host."""
        if self._devices is None:
            return None
        return str(next(iter(self._devices)).default_memory().kind)

    def _check_devices(self, array: Leaf) -> None:
        """Refuses an array on other devices, which JAX refuses too when it compiles."""
        sharding = array.sharding
        devices = _devices(sharding.mesh) if isinstance(sharding, NamedSharding) else None
        if not isinstance(sharding, NamedSharding):
            devices = frozenset(sharding.device_set)
        known = devices is not None and self._devices is not None
        if sharding.num_devices == self.size and (not known or devices == self._devices):
            return
        where = f"{sharding.num_devices} other devices"
        if isinstance(sharding, SingleDeviceSharding) or sharding.num_devices == 1:
            where = "one device"
        rest = f"the others are on {self.size} devices"
        if self._mesh is not None:
            rest = f"the others are on {_shown(self._mesh)}"
        message = f"array {array.name!r} is on {where}, but {rest}"
        raise self._check.misfit(message, _MOVE)


def _entries(array: Leaf, spec: Any) -> list[Any]:
    """Returns the entries of the spec of an array."""
    try:
        return list(entries(spec))
    except Error as e:
        e.message = f"array {array.name!r}: {e.message}"
        raise


def _shown(mesh: Any) -> str:
    return "Mesh(" + ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items()) + ")"


def context_mesh() -> Any:
    """Returns the abstract mesh of `jax.set_mesh`, or None."""
    mesh = jax.sharding.get_abstract_mesh()
    return None if mesh.empty else mesh


def _devices(mesh: Any) -> frozenset[Any] | None:
    """Returns the devices of a mesh; None if it is abstract."""
    return frozenset(mesh.devices.flat) if has_devices(mesh) else None


def optimizer_states(
    check: Checks, init: Callable[[Any], Any], tree: Any, parameters: Sequence[Leaf]
) -> list[Leaf]:
    """Lists the states that an optimizer makes for parameters, each with a sharding.

    A state below the path of a parameter, with its shape or without some of its dimensions, is
    partitioned like it. So is another state that has the shape of parameters that are partitioned
    alike. All other states are whole on every device.

    Args:
        check: raises errors with the name of the user's call.
        init: the method `init` of the optimizer.
        tree: the parameters.
        parameters: the leaves of that tree.
    """
    structs = [parameter.struct() for parameter in parameters]
    structure: Any = jax.tree_util.tree_structure(tree)
    try:
        states = jax.eval_shape(init, structure.unflatten(structs))
    except Exception as e:
        message = (
            f"optimizer.init failed for these parameters: {type(e).__name__}: {cut(str(e), 300)}"
        )
        raise check.misfit(message, "give an optimizer such as optax.adamw(1e-3)") from e
    by_path = {parameter.path: parameter for parameter in parameters}
    by_shape: dict[tuple[int, ...], set[Any]] = {}
    for p in parameters:
        by_shape.setdefault(p.shape, set()).add((p.sharding, p.spec))
    found = leaves(check, "optimizer", states)
    return [_partitioned(state, by_path, by_shape) for state in found]


def _partitioned(state: Leaf, by_path: Mapping[Any, Leaf], by_shape: Mapping[Any, Any]) -> Leaf:
    """Partitions a state like its parameter."""
    path = state.path
    above = next((n for n in range(len(path) + 1) if path[n:] in by_path), len(path))
    named = by_path.get(path[above:])
    if named is not None and named.shape == state.shape:
        return dataclasses.replace(state, sharding=named.sharding, spec=named.spec)
    if named is not None and (reduced := _reduced(state, named, keystr(path[:above]))) is not None:
        return reduced
    alike = by_shape.get(state.shape, ())
    if state.shape and len(alike) == 1:
        ((sharding, spec),) = alike
        return dataclasses.replace(state, sharding=sharding, spec=spec)
    return state


def _reduced(state: Leaf, parameter: Leaf, kind: str) -> Leaf | None:
    """Partitions a state with all dimensions of its parameter but one; else returns None.

    Args:
        state: the state.
        parameter: its parameter.
        kind: the part of the state's path above the parameter's, such as ".v_row".
    """
    shape, sharding = parameter.shape, parameter.sharding
    removed = [d for d in range(len(shape)) if shape[:d] + shape[d + 1 :] == state.shape]
    given = sharding.spec if isinstance(sharding, NamedSharding) else parameter.spec
    if not removed or given is None:
        return None
    # Sums over columns have one element per row. Of equal dimensions, rows are the first ones.
    d = removed[-1] if "row" in kind else removed[0]
    axes = [tuple(e) if isinstance(e, list) else e for e in entries(given)]
    spec = PartitionSpec(*axes[:d], *axes[d + 1 :])
    if parameter.spec is not None:
        return dataclasses.replace(state, spec=spec)
    sharding = NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
    return dataclasses.replace(state, sharding=sharding)


def document(check: Checks, mesh: Any, groups: Mapping[str, Sequence[Leaf]]) -> dict[str, Any]:
    """Returns a memory document.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh that the user gave, or None.
        groups: the arrays by the members of the document that list them.
    """
    placement = Placement(check, mesh, [array for group in groups.values() for array in group])
    listed = {
        key: {array.name: placement.members(array) for array in group}
        for key, group in groups.items()
    }
    return {"meshfeed": 1, "mesh": {"axes": placement.axes}} | listed


def model(check: Checks, tree: Any, shardings: Any) -> dict[str, Any]:
    """Returns the arrays of a model as in a strategy document; see `mf.strategy.tree`."""
    listed = {}
    for array in leaves(check, "tree", tree, shardings, own=False):
        listed[array.name] = {"shape": list(array.shape), "dtype": str(array.dtype)}
        spec, sharding = array.spec, array.sharding
        if isinstance(sharding, NamedSharding):
            spec = sharding.spec
        elif sharding is not None and not sharding.is_fully_replicated:
            message = f"array {array.name!r} has a {type(sharding).__name__}, which names no axis"
            raise check.misfit(message, "give a spec or a NamedSharding")
        if spec is not None:
            listed[array.name]["spec"] = _entries(array, spec)
    return listed


def precision(check: Checks, given: Any) -> dict[str, Any]:
    """Returns the member "precision" of a document. None leaves a type out."""
    if not isinstance(given, Mapping):
        hint = 'such as {"moments": "float32"}'
        raise check.wrong("precision", given, "a dict of names and element types", hint)
    types = plain(check, {"precision": given})["precision"]
    return {key: dtype for key, dtype in types.items() if dtype is not None}


class Traced:
    """Counts the bytes of arrays inside a function and its backward pass.

    Args:
        check: raises errors with the name of the user's call.
        loss: the function of a tree and a batch.
        tree: the tree.
        batch: the batch; None if the function takes none.
    """

    def __init__(self, check: Checks, loss: Callable[..., Any], tree: Any, batch: Any) -> None:
        self._check, self._loss = check, loss
        self._tree, self._parameters = self._flat("tree", tree)
        self._batch, self._inputs = self._flat("batch", () if batch is None else batch)
        self._has_batch = batch is not None

    def _flat(self, argument: str, tree: Any) -> tuple[Any, list[jax.ShapeDtypeStruct]]:
        found = [leaf.struct() for leaf in leaves(self._check, argument, tree)]
        return jax.tree_util.tree_structure(tree), found

    def _scalar(self, tree: Any, batch: Any) -> Any:
        """Calls the function, and returns the scalar."""
        out = self._loss(tree, batch) if self._has_batch else self._loss(tree)
        out = out[0] if isinstance(out, tuple) and out else out
        if getattr(out, "shape", None) != ():
            shape = getattr(out, "shape", None)
            message = f"loss returned {shown(out) if shape is None else f'shape {shape}'}"
            raise self._check.misfit(message, "return a scalar, or a tuple that begins with one")
        return out

    def _program(self, function: Callable[..., Any], shapes: Sequence[Sequence[int]]) -> Any:
        """Traces a function of the tree and of a batch with these shapes."""
        inputs = [
            jax.ShapeDtypeStruct(tuple(shape), old.dtype)
            for shape, old in zip(shapes, self._inputs, strict=True)
        ]
        tree, batch = self._tree.unflatten(self._parameters), self._batch.unflatten(inputs)
        try:
            return jax.make_jaxpr(function)(tree, batch).jaxpr
        except Error:
            raise
        except Exception as e:
            message = f"loss failed for these shapes: {type(e).__name__}: {cut(str(e), 300)}"
            raise self._check.misfit(
                message, "it is called as loss(tree), or as loss(tree, batch)"
            ) from e

    def residuals(self, shapes: Sequence[Sequence[int]], policy: Any = None) -> int:
        """Returns the bytes that the forward pass stores for the backward pass.

        Args:
            shapes: of the batch.
            policy: a policy of `jax.checkpoint`, with which the forward pass stores less.
        """

        def forward(tree: Any, batch: Any) -> Any:
            scalar: Callable[..., Any] = partial(self._scalar, batch=batch)
            if policy is not None:
                scalar = jax.checkpoint(scalar, policy=policy)
            return tree_leaves(jax.vjp(scalar, tree)[1])

        program = self._program(forward, shapes)
        return sum(map(_bytes, _made(program.outvars, program)))

    def products(self, shapes: Sequence[Sequence[int]]) -> int:
        """Returns the bytes of matrix products among the residuals.

        A function that uses `jax.checkpoint` itself may keep fewer residuals than all products.
        The result is then that of its residuals.

        Args:
            shapes: of the batch.
        """
        policy = jax.checkpoint_policies.dots_saveable
        return min(self.residuals(shapes), self.residuals(shapes, policy))

    def peak(self, shapes: Sequence[Sequence[int]]) -> int:
        """Returns the peak bytes of a step without fusion. Gradients of the tree do not count.

        Args:
            shapes: of the batch.
        """

        def step(tree: Any, batch: Any) -> Any:
            out, backward = jax.vjp(partial(self._scalar, batch=batch), tree)
            return backward(jax.numpy.ones_like(out))

        program = self._program(step, shapes)
        gradients = {var for var in program.outvars if _is_var(var)}
        return max(_peak(program, gradients), self.residuals(shapes))


def _is_var(atom: Any) -> bool:
    """Returns whether an operand of a program is a variable, and not a literal."""
    return not hasattr(atom, "val")


def _bytes(var: Any) -> int:
    shape, dtype = getattr(var.aval, "shape", None), getattr(var.aval, "dtype", None)
    return 0 if shape is None or dtype is None else math.prod(shape) * int(dtype.itemsize)


def _made(atoms: Sequence[Any], program: Any) -> set[Any]:
    """Returns the operands that the program computes, each once: no arguments and literals."""
    return {atom for atom in atoms if _is_var(atom)} - {*program.invars, *program.constvars}


def _peak(program: Any, skipped: Collection[Any] = ()) -> int:
    """Returns the largest sum of bytes of the variables that a program needs at one time.

    Args:
        program: a jaxpr, whose operations run in order.
        skipped: variables that do not count.
    """
    ends: dict[Any, int] = {}
    for i, operation in enumerate(program.eqns):
        ends |= dict.fromkeys(_made([*operation.invars, *operation.outvars], program), i)
    ends |= dict.fromkeys(_made(program.outvars, program), len(program.eqns))
    freed: dict[int, int] = {}
    for var, i in ends.items():
        if var not in skipped:
            freed[i] = freed.get(i, 0) + _bytes(var)
    live = most = 0
    for i, operation in enumerate(program.eqns):
        made = sum(_bytes(var) for var in operation.outvars if var not in skipped)
        inside = max(map(_peak, _programs(operation)), default=0)
        # A loop stores its results in addition to those of its body. Other calls return the
        # results of their body, which count once.
        loop = operation.primitive.name in ("scan", "while")
        most = max(most, live + (made + inside if loop else max(made, inside)))
        live += made - freed.get(i, 0)
    return most


def _programs(operation: Any) -> Iterator[Any]:
    """Yields the programs that an operation runs, such as the body of a loop."""
    for value in operation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                yield inner
