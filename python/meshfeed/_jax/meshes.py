"""Meshes and shardings of JAX: made, checked, and described for a layout document."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding

from meshfeed._io.arguments import Checks, cut
from meshfeed._jax.runtime import context_mesh
from meshfeed._layout.documents import MeshPart
from meshfeed._layout.localrows import Parts
from meshfeed._layout.specs import Array, entries, is_spec
from meshfeed._layout.trees import mapped


def make_mesh(check: Checks, axes: Mapping[str, int], devices: Any, kinds: Any) -> Mesh:
    """Makes a mesh with `jax.make_mesh`.

    Args:
        check: raises errors with the name of the user's call.
        axes: the size of every axis.
        devices: the devices, or None for `jax.devices()`.
        kinds: the type of every axis, or one type for all; None for Auto.
    """
    kinds = AxisType.Auto if kinds is None else kinds
    kinds = (kinds,) * len(axes) if isinstance(kinds, AxisType) else kinds
    kinds = tuple(kinds) if isinstance(kinds, list) else kinds  # jax.make_mesh takes no list
    found = listed_devices(check, devices)
    size, count = math.prod(axes.values()), len(found)
    if count < size:
        message = f"the mesh {dict(axes)} needs {size} devices, but there are {count}"
        hint = f"plan for devices={count}, or run on {size} devices; on a CPU, "
        hint += f"XLA_FLAGS=--xla_force_host_platform_device_count={size} makes as many"
        raise check.misfit(message, hint)
    try:
        return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=kinds, devices=found)
    except Exception as e:
        message = f"jax.make_mesh failed for {dict(axes)}: {type(e).__name__}: {cut(str(e), 300)}"
        raise check.misfit(message) from e


def listed_devices(check: Checks, devices: Any) -> list[jax.Device]:
    """Returns devices that the user gave, or `jax.devices()` for None."""
    given = devices.ravel().tolist() if isinstance(devices, np.ndarray) else devices
    found = jax.devices() if given is None else given
    if not isinstance(found, list | tuple) or not all(isinstance(d, jax.Device) for d in found):
        raise check.wrong("devices", devices, "a list of devices, such as jax.devices()")
    if len(set(found)) < len(found):
        twice = next(device for i, device in enumerate(found) if device in found[:i])
        raise check.misfit(f"devices= has {twice!r} twice", "give every device once")
    return list(found)


def abstract_mesh() -> Any:
    """Returns the abstract mesh of `jax.set_mesh`, which traced code has too, or None."""
    mesh = jax.sharding.get_abstract_mesh()
    return None if mesh.empty else mesh


def shown_mesh(mesh: Any) -> str:
    """Writes the axes of a mesh with their sizes, such as "Mesh('data': 4, 'model': 2)"."""
    return "Mesh(" + ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items()) + ")"


def has_devices(mesh: Any) -> bool:
    """Returns whether a mesh has devices. An `AbstractMesh` has axes only."""
    return isinstance(mesh, Mesh) and not mesh.empty


def one_mesh(check: Checks, mesh: Any, shardings: Sequence[Any]) -> Mesh:
    """Returns the mesh that all shardings are on.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh that the user gave, or None for the mesh of `jax.set_mesh`.
        shardings: for every array its `NamedSharding`, or None if it has a bare spec.

    Raises:
        InvalidArgumentError: a bare spec has no mesh, there are two meshes, or no array can be on
            the mesh.
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        hint = "jax.make_mesh gives one; mf.layout plans without devices"
        if hasattr(mesh, "make_mesh"):  # a candidate of mf.advise
            hint = "call its make_mesh()"
        elif isinstance(mesh, Mapping):
            hint = f"make one with jax.make_mesh({tuple(mesh.values())}, {tuple(mesh)})"
        raise check.wrong("mesh", mesh, "a jax.sharding.Mesh, which has devices", hint)
    if mesh is None and any(sharding is None for sharding in shardings):
        mesh = needed_mesh(check)
    for sharding in shardings:
        if sharding is None:
            continue
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
            text = cut(" ".join(repr(sharding).split()), 300)
            message = f"{text} is not a NamedSharding over devices"
            raise check.misfit(message, "use NamedSharding(mesh, spec)")
        mesh = sharding.mesh if mesh is None else mesh
        if sharding.mesh != mesh:
            message = f"the arrays are on two meshes, {mesh} and {sharding.mesh}"
            raise check.misfit(message, "put all arrays on one mesh")
    assert isinstance(mesh, Mesh)
    if mesh.empty:
        message = "the mesh has no devices"
        hint = "jax.make_mesh makes one; jax.sharding.get_mesh() returns the mesh of jax.set_mesh"
        raise check.misfit(message, hint)
    if AxisType.Manual in mesh.axis_types:
        message = f"{mesh} has Manual axes, which exist only inside of shard_map"
        raise check.misfit(message, "use Auto or Explicit ones; shard_map makes them Manual itself")
    return mesh


def needed_mesh(check: Checks, remedy: str = "pass mesh=") -> Mesh:
    """Returns the mesh of `jax.set_mesh`, the default for a spec without a mesh.

    Args:
        check: raises errors with the name of the user's call.
        remedy: what the user may do instead of a call of `jax.set_mesh`.

    Raises:
        InvalidArgumentError: there is no such mesh, or it has no devices.
    """
    mesh = context_mesh()
    if mesh is None:
        message = "a PartitionSpec was given without a mesh"
        hint = f"{remedy}, or call jax.set_mesh(mesh) first"
        if not jax.sharding.get_abstract_mesh().empty:
            message += ", and the mesh of the context is abstract: it has no devices"
            hint = f"{remedy}, or call jax.set_mesh with a mesh of devices"
        raise check.misfit(message, hint)
    return mesh


def parts_by_device(
    sharding: Sharding, shape: tuple[int, ...]
) -> dict[jax.Device, tuple[tuple[int, int], ...]]:
    """Returns the part of an array on each device, as [start, stop) of every dimension."""
    return {
        device: tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
        for device, index in sharding.devices_indices_map(shape).items()
    }


def axes_of(entry: Any) -> tuple[Any, ...]:
    """Returns the axes of an entry of a spec: of None, of one axis, or of several."""
    if isinstance(entry, tuple | list):
        return tuple(entry)
    return () if entry is None else (entry,)


def describe_mesh(mesh: Mesh) -> MeshPart:
    """Returns the part "mesh" of a layout document: axes, and [process, id] of every device.

    Args:
        mesh: the `jax.sharding.Mesh`. The order of its devices is kept.
    """
    devices = mesh.devices.ravel().tolist()
    axes = list(mesh.shape.items())
    return MeshPart.of(axes, [d.process_index for d in devices], [d.id for d in devices])


def parts(mesh: Mesh, axes: Sequence[str]) -> Parts:
    """Returns the parts that axes of a mesh cut the rows of an array into."""
    processes = np.vectorize(lambda device: device.process_index, otypes=[np.int64])(mesh.devices)
    return Parts(mesh.shape, processes, axes)


def named_sharding(check: Checks, mesh: Any, spec: Any) -> NamedSharding:
    """Returns the sharding of a spec of JAX or meshfeed on a mesh."""
    try:
        return NamedSharding(mesh, partition_spec(entries(spec)))
    except Exception as e:  # JAX's error for an axis that occurs twice is not a ValueError
        raise check.misfit(cut(str(e), 300), "name axes of the mesh, each once") from None


def sharding_of(check: Checks, given: Any) -> Any:
    """Returns a sharding as it is, and a spec as a sharding on the mesh of `jax.set_mesh`."""
    if not is_spec(given):
        return given
    return named_sharding(check, needed_mesh(check, "use NamedSharding(mesh, spec)"), given)


def on_mesh(check: Checks, specs: Any, mesh: Any) -> Any:
    """Returns a tree of specs with its shardings on another mesh, each with its memory kind.

    Args:
        check: raises errors with the name of the user's call.
        specs: the tree.
        mesh: the mesh. `one_mesh` rejects values that are not meshes.

    Raises:
        InvalidArgumentError: a sharding names an axis that the mesh does not have.
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Array):
            return dataclasses.replace(leaf, spec=change(leaf.spec))
        if not isinstance(leaf, NamedSharding):
            return leaf
        try:
            return NamedSharding(mesh, leaf.spec, memory_kind=leaf.memory_kind)
        except ValueError as e:
            message = f"a sharding of the first mesh cannot be on this one: {e}"
            raise check.misfit(message, "give the specs for this mesh") from None

    return mapped(specs, change) if isinstance(mesh, Mesh) else specs


def partition_spec(entries: Sequence[Any]) -> PartitionSpec:
    """Returns the spec of the entries of a layout document."""
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries))
