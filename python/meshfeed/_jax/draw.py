"""Drawings of JAX's arrays, shardings and trees of arrays."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, Sharding

from meshfeed._io.arguments import WIDE, Checks, cut, repr_short
from meshfeed._jax import documents, trees
from meshfeed._jax.meshes import (
    abstract_mesh,
    describe_mesh,
    has_devices,
    named_sharding,
    parts_by_device,
    shown_mesh,
)
from meshfeed._jax.runtime import context_mesh
from meshfeed._layout.documents import MeshPart
from meshfeed._layout.specs import entries, is_spec
from meshfeed._native import reports
from meshfeed._plan.visualized import visualized
from meshfeed.errors import UnsupportedError

# The types that a layout document has. Arrays of other types are drawn as a table.
_TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
_LEAF = "give a jax.Array, a jax.ShapeDtypeStruct, a sharding with shape=, a tree or a Layout"


def draw(
    check: Checks, x: Any, shape: Any, dtype: Any, style: str | None
) -> tuple[str, str | None, list[str]]:
    """Draws an array, a sharding or a tree, as text and, for an array, as SVG with notes.

    Args:
        check: raises errors with the name of the user's call.
        x: what to draw.
        shape: the shape, for a sharding.
        dtype: the type, for a sharding.
        style: "jax", or None.
    """
    array = _array(check, x, shape, dtype)
    if style is not None:
        return _as_jax(check, array), None, []
    if array is None or array.sharding is None or str(array.dtype) not in _TYPES:
        found = trees.leaves(check, "x", x if array is None else array.struct())
        if not found:
            raise check.misfit(f"x={repr_short(x)} has no arrays", _LEAF)
        return _table(check, found if array is None else [array]), None, []
    mesh, spec = _placement(array)
    part = {"shape": list(array.shape), "dtype": str(array.dtype), "spec": spec}
    document = mesh.document({"arrays": {"array": part}})
    text = reports.layout_drawing(document, svg=False, array=None, dims=None)
    svg = reports.layout_drawing(document, svg=True, array=None, dims=None)
    return text, svg, _notes(array.sharding)


def _array(check: Checks, x: Any, shape: Any, dtype: Any) -> trees.Leaf | None:
    """Returns what is drawn as a single array, or None for a tree."""
    if is_spec(x):
        x = _sharding(check, x)
    if isinstance(x, Sharding):
        if shape is None:
            message = "a sharding was given without the shape of an array"
            raise check.misfit(message, "pass shape=, for example shape=(8, 16)")
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise check.wrong("shape", shape, "a tuple of integers, such as (8, 16)")
        sizes = [check.integer(f"shape[{i}]", size, 0, WIDE) for i, size in enumerate(shape)]
        try:
            whole = jax.ShapeDtypeStruct(sizes, "float32" if dtype is None else dtype)
        except TypeError:
            hint = 'such as "bfloat16" or jnp.bfloat16'
            raise check.wrong("dtype", dtype, "an element type of JAX", hint) from None
        return trees.Leaf((), "array", whole.shape, whole.dtype, x)
    if shape is not None or dtype is not None:
        raise check.misfit("shape and dtype are for shardings", "leave them out")
    if isinstance(x, jax.core.Tracer):
        x = jax.typeof(x)
    if isinstance(x, jax.Array | jax.ShapeDtypeStruct | jax.core.ShapedArray):
        sharding = x.sharding
        if isinstance(sharding, NamedSharding) and sharding.mesh.empty:
            sharding = None
        return trees.Leaf((), "array", x.shape, x.dtype, sharding)
    return None


def _sharding(check: Checks, spec: Any) -> NamedSharding:
    """Returns the sharding of a spec on the mesh of `jax.set_mesh`."""
    mesh = context_mesh() or abstract_mesh()
    if mesh is None:
        message = "a PartitionSpec was given without a mesh"
        raise check.misfit(message, "use NamedSharding(mesh, spec) or jax.set_mesh")
    return named_sharding(check, mesh, spec)


def _placement(array: trees.Leaf) -> tuple[MeshPart, list[Any]]:
    """Returns the mesh and the spec of an array for a layout document."""
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding):
        return _grid(sharding, array.shape)
    mesh: Any = sharding.mesh
    if has_devices(mesh):
        return describe_mesh(mesh), entries(sharding.spec)
    return MeshPart.of(list(mesh.shape.items())), entries(sharding.spec)


def _grid(sharding: Any, shape: Sequence[int]) -> tuple[MeshPart, list[Any]]:
    """Returns a mesh and a spec with the same parts as a sharding without a mesh.

    The mesh has an axis for each dimension that is partitioned, and one for the replicas.
    """
    holders: dict[tuple[tuple[int, int], ...], list[Any]] = collections.defaultdict(list)
    for device, part in parts_by_device(sharding, tuple(shape)).items():
        holders[part].append(device)
    parts = [sorted({part[d] for part in holders}) for d in range(len(shape))]
    copies = len(sharding.device_set) // len(holders)
    even = all(len({stop - start for start, stop in spans}) == 1 for spans in parts) and all(
        len(devices) == copies for devices in holders.values()
    )
    if not even or math.prod(map(len, parts)) != len(holders):
        message = f"{cut(str(sharding), 200)} has parts of several shapes"
        raise UnsupportedError(message, hint="print x.sharding.devices_indices_map(x.shape)")
    split = [d for d, spans in enumerate(parts) if len(spans) > 1]
    axes: list[list[Any]] = [[f"dimension {d}", len(parts[d])] for d in split]
    if copies > 1:
        axes.append(["replicas", copies])
    devices = [device for part in sorted(holders) for device in holders[part]]
    mesh = MeshPart.of(axes, [d.process_index for d in devices], [d.id for d in devices])
    return mesh, [f"dimension {d}" if d in split else None for d in range(len(shape))]


def _notes(sharding: Any) -> list[str]:
    """Lists the devices that this process addresses, and the memory kind if not "device"."""
    notes = []
    if not isinstance(sharding, NamedSharding) or has_devices(sharding.mesh):
        here = sorted(d.id for d in sharding.addressable_devices)
        if len(here) < len(sharding.device_set):
            ids = ", ".join(map(str, here[:16])) + (", …" if len(here) > 16 else "")
            number = f"{len(here)} of {len(sharding.device_set)} devices"
            notes.append(f"Process {jax.process_index()} addresses {number}: {ids or 'none'}.")
            notes.append("The parts on the other devices are not addressable from here.")
    if sharding.memory_kind not in (None, "device"):
        notes.append(f"The array is in the memory {sharding.memory_kind!r}.")
    return notes


def _as_jax(check: Checks, array: trees.Leaf | None) -> str:
    """Draws an array like `jax.debug.visualize_array_sharding`."""
    if array is None or array.sharding is None:
        raise check.misfit('style="jax" is for an array with a sharding', _LEAF)
    if len(array.shape) not in (1, 2) or 0 in array.shape:
        message = f'style="jax" is for arrays of 1 or 2 dimensions, but the shape is {array.shape}'
        raise check.misfit(message, "leave out style=, which draws any shape")
    sharding = array.sharding
    if isinstance(sharding, NamedSharding) and not has_devices(sharding.mesh):
        message = 'style="jax" shows the ids of devices, but the mesh is abstract'
        raise check.misfit(message, "leave out style=, or use a mesh with devices")
    parts = sharding.devices_indices_map(array.shape)
    kind = next(iter(sharding.device_set)).platform
    return visualized(array.shape, kind, {device.id: index for device, index in parts.items()})


@dataclasses.dataclass(frozen=True)
class _Row:
    """A row of the table: one array, or several that differ only in their names."""

    name: str
    shape: str
    dtype: str
    spec: str
    shard: str
    bytes: int | None
    copies: str


def _table(check: Checks, found: Sequence[trees.Leaf]) -> str:
    """Writes a table of the arrays of a tree with the part of a device, and the sums."""
    groups: dict[Any, list[trees.Leaf]] = collections.defaultdict(list)
    for leaf in found:
        groups[_key(leaf.sharding)].append(leaf)
    rows: dict[str, _Row] = {}
    problems, total = [], 0
    held: collections.Counter[Any] = collections.Counter()
    for leaves in groups.values():
        document = json.dumps(documents.memory_document(check, None, {"arrays": leaves}))
        report = reports.memory_report(document)
        problems += [p["message"] for p in report["problems"] if p["severity"] == "error"]
        for leaf in leaves:
            facts = report["arrays"][leaf.name]
            total += facts["global_bytes"] or 0
            rows[leaf.name] = _row(leaf, facts)
            for device in _devices(leaf.sharding):
                held[device] += facts["bytes"] or 0
    lines = [*_meshes(found), *_columns(_collapsed([rows[leaf.name] for leaf in found]))]
    lines += ["", _sums(len(found), total, held), *problems]
    return "\n".join(lines)


def _meshes(found: Sequence[trees.Leaf]) -> list[str]:
    """Lists the meshes of a tree, with a blank line after them."""
    meshes: dict[str, int] = {}
    for sharding in (leaf.sharding for leaf in found):
        if isinstance(sharding, NamedSharding):
            meshes[shown_mesh(sharding.mesh)] = sharding.mesh.size
    lines = [f"{mesh}  {size:,} device{'s' * (size != 1)}" for mesh, size in meshes.items()]
    return [*lines, ""] if lines else []


def _key(sharding: Any) -> Any:
    """Returns a key of mesh and devices. Arrays with equal keys fit into one memory document."""
    if sharding is None:
        return None
    if not isinstance(sharding, NamedSharding):
        return frozenset(sharding.device_set)
    return tuple(sharding.mesh.shape.items()), frozenset(_devices(sharding))


def _devices(sharding: Any) -> Iterable[Any]:
    """Returns the devices of a sharding, or the number of devices of an abstract mesh."""
    if sharding is None:
        return ("one device",)
    if isinstance(sharding, NamedSharding) and not has_devices(sharding.mesh):
        return (sharding.mesh.size,)
    devices: Iterable[Any] = sharding.device_set
    return devices


def _row(leaf: trees.Leaf, facts: dict[str, Any]) -> _Row:
    spec = "no sharding"
    if isinstance(leaf.sharding, NamedSharding):
        spec = re.sub(r"^PartitionSpec", "P", str(leaf.sharding.spec))
    elif leaf.sharding is not None:
        spec = "one device" if len(leaf.sharding.device_set) == 1 else "other sharding"
    shard = facts["shard_shape"]
    return _Row(
        leaf.name,
        str(leaf.shape),
        str(leaf.dtype),
        spec,
        "does not fit" if shard is None else str(tuple(shard)),
        facts["bytes"],
        "" if facts["copies"] is None else str(facts["copies"]),
    )


def _collapsed(rows: Sequence[_Row]) -> list[_Row]:
    """Joins rows that differ only in numbers of their names, such as the rows of layers."""
    alike: dict[_Row, list[_Row]] = {}
    for row in rows:
        pattern = dataclasses.replace(row, name=re.sub(r"\d+", "*", row.name))
        alike.setdefault(pattern, []).append(row)
    out = []
    for pattern, same in alike.items():
        if len(same) == 1:
            out.append(same[0])
            continue
        each = None if pattern.bytes is None else pattern.bytes * len(same)
        out.append(dataclasses.replace(pattern, name=f"{pattern.name} x{len(same)}", bytes=each))
    return out


def _columns(rows: Sequence[_Row]) -> list[str]:
    cells = [["array", "shape", "dtype", "spec", "shard", "per device", "copies"]]
    for row in rows:
        name = row.name if len(row.name) <= 40 else "…" + row.name[-39:]
        size = "unknown" if row.bytes is None else _size(row.bytes)
        cells.append([name, row.shape, row.dtype, cut(row.spec, 60), row.shard, size, row.copies])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        texts = [
            text.rjust(width) if i > 4 else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(texts).rstrip())
    return lines


def _sums(arrays: int, total: int, held: collections.Counter[Any]) -> str:
    """Writes the bytes of all arrays, and of the device that holds the most.

    Args:
        arrays: the number of arrays.
        total: the bytes of all arrays.
        held: the bytes that each device holds.
    """
    most, least = max(held.values()), min(held.values())
    where = "on each device" if most == least else "on the fullest device"
    count = "1 array" if arrays == 1 else f"{arrays:,} arrays"
    return f"{count}, {_size(total)} in all; {_size(most)} {where}"


def _size(n: int) -> str:
    """Writes bytes with up to three significant digits, as the C library does."""
    if n < 1024:
        return f"{n} B"
    size, unit = n / 1024, 0
    while size >= 999.5 and unit < 5:
        size, unit = size / 1024, unit + 1
    text = f"{size:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {('KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[unit]}"
