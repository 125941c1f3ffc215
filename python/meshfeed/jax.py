"""Global `jax.Array`s over memory that lies ready: the only module that imports JAX.

Every array is made by one `jax.make_array_from_callback` with the user's own sharding. The
callback hands out prepared views, one per distinct index, so replicas share memory; on CPU
JAX aliases them, elsewhere it starts the transfer. Nothing here is collective, but for what a
user's own program does with `resharder`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meshfeed._feed.feed import Build, Feed
from meshfeed._io.arguments import Checks
from meshfeed._native.owner import Owner
from meshfeed._plan.blocks import Blocks, Index, dtype_of
from meshfeed._plan.documents import MeshPart
from meshfeed._plan.trees import mapped
from meshfeed.errors import InvalidStateError, UnsupportedError
from meshfeed.specs import Array

try:
    import jax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
except ImportError as e:
    raise UnsupportedError(
        f"jax.Arrays need JAX 0.8 or later: {e}",
        hint='pip install "jax>=0.8"; without mesh and specs a loader gives NumPy arrays',
    ) from None


def has_devices(mesh: Any) -> bool:
    """Says whether a mesh has devices: an `AbstractMesh` has axes alone, an empty one nothing."""
    return isinstance(mesh, Mesh) and not mesh.empty


def describe_mesh(mesh: Mesh) -> MeshPart:
    """Gives a mesh as layout documents have it: axes, and [process, id] in mesh order.

    Args:
        mesh: the `jax.sharding.Mesh`.
    """
    devices = mesh.devices.ravel().tolist()
    axes = list(mesh.shape.items())
    return MeshPart.of(axes, [d.process_index for d in devices], [d.id for d in devices])


def one_mesh(check: Checks, mesh: Any, shardings: Sequence[Any]) -> Mesh:
    """Gives the mesh that all shardings are on.

    Args:
        check: the call that the arguments come from.
        mesh: the mesh that the user gave, or None.
        shardings: for every array its `NamedSharding`, or None where it has a bare spec.

    Raises:
        InvalidArgumentError: there is no mesh for a bare spec, or there are two, or no array can
            be on the mesh.
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        hint = "jax.make_mesh gives one; mf.layout plans without devices"
        raise check.wrong("mesh", mesh, "a jax.sharding.Mesh, which has devices", hint)
    if mesh is None and None in shardings:
        message = "a PartitionSpec was given without a mesh"
        hint = "pass mesh=, for example mesh=jax.sharding.get_mesh() after jax.set_mesh"
        raise check.misfit(message, hint)
    for sharding in shardings:
        if sharding is None:
            continue
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
            message = f"{sharding!r} is not a NamedSharding over devices"
            raise check.misfit(message, "use NamedSharding(mesh, spec)")
        mesh = sharding.mesh if mesh is None else mesh
        if sharding.mesh != mesh:
            message = f"the arrays are on two meshes, {mesh} and {sharding.mesh}"
            raise check.misfit(message, "put all arrays on one mesh")
    assert isinstance(mesh, Mesh)
    if mesh.empty:
        message = "the mesh has no devices"
        hint = "jax.make_mesh gives one; jax.sharding.get_mesh() gives that of jax.set_mesh"
        raise check.misfit(message, hint)
    if AxisType.Manual in mesh.axis_types:
        message = f"{mesh} has Manual axes, which are of the inside of shard_map"
        raise check.misfit(message, "use Auto or Explicit ones; shard_map makes them Manual itself")
    return mesh


def on_mesh(check: Checks, specs: Any, mesh: Any) -> Any:
    """Gives a tree of specs with its shardings on another mesh, each with its memory kind.

    Args:
        check: the call that the mesh comes from.
        specs: the tree.
        mesh: the mesh; what is none is left for `one_mesh` to refuse.

    Raises:
        InvalidArgumentError: a sharding names an axis that the mesh has not.
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


def delivered_name(dtype: str) -> str:
    """Gives the type that JAX can hold: 64-bit types are narrowed where x64 is off."""
    return str(jax.dtypes.canonicalize_dtype(dtype_of(dtype)).name)


def process_count() -> int:
    """Gives how many processes the run has, those outside the mesh too."""
    count: int = jax.process_count()
    return count


def process_index() -> int:
    """Gives the number of this process."""
    return jax.process_index()


_TESTED = "0.8.0, 0.9.0, 0.10.2 and 0.12.0.1"  # releases that the tests have used
_CLIENT = (
    "key_value_set_bytes",
    "blocking_key_value_get_bytes",
    "key_value_try_get_bytes",
    "key_value_delete",
    "key_value_dir_get_bytes",
)


def coordination_client() -> Any:
    """Gives the client of `jax.distributed`'s key-value store, which has no public name.

    Everything that meshfeed touches of JAX without a public name is here.

    Raises:
        UnsupportedError: there is no job, or this JAX keeps its client elsewhere.
    """
    hint = "pass coordinator= any store with the methods of mf.Coordinator, or False for none"
    try:
        from jax._src import distributed

        client = distributed.global_state.client
    except (ImportError, AttributeError):
        client = missing = "jax._src.distributed.global_state.client"
    else:
        missing = next((name for name in _CLIENT if not hasattr(client, name)), "")
    if client is None:
        message = "the mesh spans processes, but jax.distributed was not initialized"
        raise UnsupportedError(message, hint=hint)
    if missing:
        message = f"JAX {jax.__version__} has no {missing}, by which processes would agree"
        message += f" (tested: JAX {_TESTED})"
        raise UnsupportedError(message, hint=hint)
    return client


def _trace_state() -> Callable[[], bool]:
    """Gives what says whether JAX traces nothing, which has no public name since JAX 0.9."""
    from jax._src import core

    return getattr(core, "trace_state_clean", lambda: True)


_traces_nothing = _trace_state()


def live_arrays() -> list[jax.Array]:
    """Gives the arrays that the program still uses, finished or not."""
    arrays: list[jax.Array] = jax.live_arrays()
    return arrays


def annotation() -> Any:
    """Makes the profiler's mark round one `next`, which must not be part of a program.

    Raises:
        InvalidStateError: JAX records a program, which would hold this batch as a constant.
    """
    if not _traces_nothing() and _records():
        message = "a batch was asked for inside of a function that JAX traces: the program would "
        message += "hold that one batch as a constant, and never get another"
        hint = "take batches outside of jax.jit, scan and the like, and pass them as arguments"
        raise InvalidStateError(message, op="mf.Loader", hint=hint)
    return jax.profiler.TraceAnnotation("meshfeed.next")


def _records() -> bool:
    """Says whether operations are recorded: `jit` does that, `grad` and `vmap` alone do not."""
    with jax.transfer_guard("allow"):
        return isinstance(jax.lax.neg(np.float32(0)), jax.core.Tracer)


def default_device_prefetch(mesh: Mesh) -> int:
    """Gives 1 where arrays travel to their devices, and 0 on CPU, where they are aliased."""
    return 0 if mesh.devices.flat[0].platform == "cpu" else 1  # JAX mixes none


def settle(mesh: Mesh) -> None:
    """Waits until the computations that were dispatched to a mesh's devices here are over.

    A device runs its computations in the order of their dispatch, so that one more, which does
    nothing, is over after them. It is polled, because Ctrl-C does not end a wait in JAX.

    Args:
        mesh: the mesh.
    """
    here = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
    with jax.transfer_guard_host_to_device("allow"):
        last = [jax.lax.bitwise_not(jax.device_put(np.uint8(0), device)) for device in here]
    while not all(array.is_ready() for array in last):  # type: ignore[attr-defined]
        time.sleep(0.001)


_WIDE = ("int64", "uint64", "float64", "complex128")  # JAX has them with x64 alone


class ShardedFeed(Feed):
    """Makes batches of global arrays.

    Args:
        build: puts arrays, one for each of the layout's, into the batch's tree.
        blocks: where the blocks of every array lie.
        mesh: the mesh.
        shardings: for every array the user's own sharding, or None.
        loading: what every process reads.
    """

    mark = staticmethod(annotation)
    live = staticmethod(live_arrays)

    def __init__(
        self,
        build: Build,
        blocks: Sequence[Blocks],
        mesh: Mesh,
        shardings: Sequence[NamedSharding | None],
        loading: str,
    ) -> None:
        kind = DevicePlacer if loading == "device" else Placer
        wanted = [
            sharding or NamedSharding(mesh, _spec(b.target))
            for b, sharding in zip(blocks, shardings, strict=True)
        ]
        self.build, self._mesh = build, mesh
        self._placers = [kind(b, sharding) for b, sharding in zip(blocks, wanted, strict=True)]
        self.element_spec = build([placer.struct() for placer in self._placers])
        self.ahead = default_device_prefetch(mesh)
        moves = build([Move(sharding) for sharding in wanted]) if loading == "reshard" else None
        self._reshard = None if moves is None else resharder(moves)

    def make(self, owner: Owner) -> Any:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        arrays = []
        for place in self._placers:
            arrays.append(place(owner))  # noqa: PERF401 (before Python 3.12 a list comprehension is a call)
        return self.build(arrays)

    def reshard(self, batch: Any) -> Any:
        """Moves the arrays of a batch to the sharding that the specs ask for."""
        return batch if self._reshard is None else self._reshard(batch)

    def settle(self) -> None:
        """Waits until the computations that were dispatched to the mesh's devices are over."""
        settle(self._mesh)


class Placer:
    """Makes one array of every batch from the batch's memory.

    JAX asks a callback for the block of every device, by its index. It asks in the same order for
    every batch. The first batches find each block by its index. After two batches in the same
    order, the blocks come from an iterator in that order: no code of ours runs per device.

    Args:
        blocks: where the array's blocks lie.
        target: the sharding asked for. The array gets it, unless it is to be resharded: then it
            gets the spec by which the blocks are cut.
    """

    def __init__(self, blocks: Blocks, target: NamedSharding) -> None:
        if blocks.spec != blocks.target:
            kind = target.memory_kind
            target = NamedSharding(target.mesh, _spec(blocks.spec), memory_kind=kind)
        self.sharding = target
        self._blocks = blocks
        self._wide = blocks.dtype.name in _WIDE
        # JAX takes the type from the blocks, which is faster than to check one that is given.
        # Without a block it has to be told.
        given: dict[str, Any] = {} if blocks.indexes else {"dtype": blocks.dtype}
        self._made: Callable[..., jax.Array] = partial(
            jax.make_array_from_callback, blocks.shape, target, **given
        )
        self._by_start = {tuple(a for a, _ in ix): i for i, ix in enumerate(blocks.indexes)}
        self._order: list[int] = []  # the blocks in JAX's order, once that is known
        self._asked: list[int] = []  # in the last batch
        self._guarded = False  # whether a transfer was refused: asking every time takes longer

    def __call__(self, owner: Any) -> jax.Array:
        """Makes the array over the batch's memory, which lives as long as `owner`."""
        if self._wide:
            self._check_wide()
        shape, dtype, offset, strides = self._blocks.frame
        frame = np.ndarray(shape, dtype, owner, offset, strides)
        frame.setflags(write=False)
        if not self._order:
            return self._learn(list(frame))
        if self._guarded:
            return self._unguarded(partial(next, map(list(frame).__getitem__, self._order)))
        try:
            return self._made(partial(next, map(list(frame).__getitem__, self._order)))
        except jax.errors.JaxRuntimeError:
            if not _is_guarded():
                raise
        self._guarded = True
        return self(owner)

    def _learn(self, views: list[np.ndarray[Any, Any]]) -> jax.Array:
        """Makes the array by indexes, and compares JAX's order with that of the last batch."""
        asked: list[int] = []

        def block(index: Index) -> Any:
            if not views:  # JAX asks for a replicated array even if no device is here
                return np.empty(0, self._blocks.dtype)
            asked.append(self._by_start[tuple(s.start or 0 for s in index)])
            return views[asked[-1]]

        array = self._unguarded(block)
        if asked == self._asked:
            self._order = asked
        self._asked = asked
        return array

    def _unguarded(self, callback: Callable[..., Any]) -> jax.Array:
        """Makes the array where JAX may refuse implicit transfers and lets explicit ones pass.

        What a loader transfers is as explicit as `device_put`, but JAX does not count it so.
        """
        if not _is_guarded():
            return self._made(callback)
        with jax.transfer_guard_host_to_device("allow"):
            return self._made(callback)

    def _check_wide(self) -> None:
        """Raises an error if JAX would cut off the numbers of a 64-bit type."""
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            name, dtype = self._blocks.name, self._blocks.dtype
            message = f"array {name!r} was planned as {dtype}, with x64, which is off"
            hint = "make the loader and use it under one setting of jax_enable_x64"
            raise InvalidStateError(message, op="mf.Loader", hint=hint)

    def struct(self) -> jax.ShapeDtypeStruct:
        """Returns the shape, type and sharding of the array."""
        shape, dtype = self._blocks.shape, self._blocks.dtype
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.sharding)


def _is_guarded() -> bool:
    """Says whether JAX refuses implicit transfers here, and lets explicit ones pass."""
    level: str = jax.config.jax_transfer_guard_host_to_device  # type: ignore[attr-defined]
    return level == "disallow"


class DevicePlacer(Placer):
    """Makes an array of blocks that belong to one device each, from an array per device."""

    def __init__(self, blocks: Blocks, target: NamedSharding) -> None:
        super().__init__(blocks, target)
        devices = target.mesh.devices.flat
        self._targets = [
            SingleDeviceSharding(devices[position], memory_kind=target.memory_kind)
            for (position,) in blocks.holders
        ]

    def __call__(self, owner: Any) -> jax.Array:
        """Makes the array over the batch's memory, which lives as long as `owner`."""
        if not self._targets:  # without a device of its own, JAX does not know the type
            return super().__call__(owner)
        if self._wide:
            self._check_wide()
        parts = jax.device_put(self._blocks.views(owner), self._targets)
        return jax.make_array_from_single_device_arrays(self._blocks.shape, self.sharding, parts)


class Move:
    """Moves an array to a sharding, within a program.

    Axes of type Explicit are moved by `jax.sharding.reshard`, the others by a constraint, which
    is what JAX has for each. In an entry with both, JAX lets the explicit ones come first.

    Args:
        target: the sharding.
    """

    def __init__(self, target: NamedSharding) -> None:
        explicit = _explicit(target.mesh)
        automatic = set(target.mesh.axis_names) - explicit
        self._explicit = _only(explicit, target) if explicit else None
        self._automatic = _only(automatic, target) if automatic else None

    def __call__(self, array: Any) -> Any:
        """Gives the array with the sharding, in a program that is being traced."""
        if self._explicit is not None:
            array = jax.sharding.reshard(array, self._explicit)
        if self._automatic is not None:
            array = jax.lax.with_sharding_constraint(array, self._automatic)
        return array


def check_moves(check: Checks, mesh: Mesh, specs: Mapping[str, Sequence[Any]]) -> None:
    """Refuses specs to which no `Move` leads.

    Args:
        check: the call that the specs come from.
        mesh: the mesh.
        specs: for every array the entries of its spec.
    """
    explicit = _explicit(mesh)
    for name, entries in specs.items():
        for entry in entries:
            firsts = [axis in explicit for axis in _axes(entry)]
            if firsts != sorted(firsts, reverse=True):
                message = f"array {name!r} cannot be resharded: in the entry {tuple(entry)} of its "
                message += "spec an explicit axis stands behind an automatic one"
                raise check.misfit(message, "make all axes of the mesh of one type")


def _explicit(mesh: Any) -> set[Any]:
    types = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return {axis for axis, kind in types if kind == AxisType.Explicit}


def _only(axes: set[Any], sharding: NamedSharding) -> NamedSharding:
    """Gives the sharding with some axes of its spec, and without the others."""
    parts = [tuple(axis for axis in _axes(entry) if axis in axes) for entry in sharding.spec]
    kind = sharding.memory_kind
    return NamedSharding(sharding.mesh, PartitionSpec(*parts), memory_kind=kind)


def resharder(moves: Any) -> Callable[[Any], Any]:
    """Makes the function that moves a batch, from a tree like it of `Move`s."""
    tree = jax.tree.structure(moves)

    def reshard(batch: Any) -> Any:
        found: Any = jax.tree.structure(batch)
        if found != tree:
            message = f"the batch has the tree {found}, but batches of this loader have {tree}"
            raise Checks("Loader.reshard").misfit(message, "give a batch as the loader gave it")
        return jax.tree.map(lambda move, array: move(array), moves, batch)

    return reshard


def _spec(entries: Sequence[Any]) -> PartitionSpec:
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries))


def _axes(entry: Any) -> tuple[Any, ...]:
    if isinstance(entry, tuple | list):
        return tuple(entry)
    return () if entry is None else (entry,)
