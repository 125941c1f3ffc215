"""Memory and strategy documents of trees of JAX arrays: shapes, types and shardings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from jax.tree_util import keystr

from meshfeed._io.arguments import Checks, cut, getattr_or_none
from meshfeed._jax.meshes import abstract_mesh, has_devices, shown_mesh
from meshfeed._jax.trees import Leaf, leaves
from meshfeed._layout.specs import entries
from meshfeed._plan.questions import json_values
from meshfeed.errors import Error

_HOST = ("pinned_host", "unpinned_host")
_MOVE = "move it with jax.device_put(x, NamedSharding(mesh, P()))"


class Placement:
    """The mesh of a document, and the members that describe how an array is partitioned.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh that the user gave, or None.
        arrays: all arrays. Without `mesh`, the mesh of the first sharding with one counts, or of
            `jax.set_mesh`. Without any mesh, one axis has all devices.

    Attributes:
        axes: the name and the size of every axis.
        size: the number of devices.
    """

    def __init__(self, check: Checks, mesh: Any, arrays: Sequence[Leaf]) -> None:
        self._check = check
        shardings = [a.sharding for a in arrays if a.sharding is not None]
        if mesh is not None and not isinstance(getattr_or_none(mesh, "shape"), Mapping):
            axes = dict(check.axes(mesh))
            mesh = AbstractMesh(tuple(axes.values()), tuple(axes))
        if mesh is None:
            named = (s.mesh for s in shardings if isinstance(s, NamedSharding))
            mesh = next(named, None) or abstract_mesh()
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
            rest = f"the others are on {shown_mesh(self._mesh)}"
        message = f"array {array.name!r} is on {where}, but {rest}"
        raise self._check.misfit(message, _MOVE)


def _entries(array: Leaf, spec: Any) -> list[Any]:
    """Returns the entries of the spec of an array."""
    try:
        return list(entries(spec))
    except Error as e:
        e.message = f"array {array.name!r}: {e.message}"
        raise


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
    # Sums over columns have one element per row. If dimensions are equal, rows are the first ones.
    d = removed[-1] if "row" in kind else removed[0]
    axes = [tuple(e) if isinstance(e, list) else e for e in entries(given)]
    spec = PartitionSpec(*axes[:d], *axes[d + 1 :])
    if parameter.spec is not None:
        return dataclasses.replace(state, spec=spec)
    sharding = NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
    return dataclasses.replace(state, sharding=sharding)


def memory_document(
    check: Checks, mesh: Any, groups: Mapping[str, Sequence[Leaf]]
) -> dict[str, Any]:
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


def model_arrays(check: Checks, tree: Any, shardings: Any) -> dict[str, Any]:
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
    types = json_values(check, {"precision": given})["precision"]
    return {key: dtype for key, dtype in types.items() if dtype is not None}
