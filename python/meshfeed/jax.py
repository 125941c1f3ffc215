"""Global `jax.Array`s over the memory of batches: the only module with JAX's private names.

One `jax.make_array_from_callback` with the user's own sharding makes each array. The callback
returns a view per distinct index, so replicas share memory. On CPU JAX aliases the views; on other
devices it starts the transfer. Processes communicate only in the function that `resharder` returns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meshfeed._feed.feed import Build, Feed, Mark
from meshfeed._io.arguments import Checks, cut
from meshfeed._native.owner import Owner
from meshfeed._plan.blocks import Blocks, Index, dtype_of
from meshfeed._plan.documents import MeshPart
from meshfeed._plan.localrows import Parts
from meshfeed._plan.trees import mapped
from meshfeed.errors import InvalidStateError, UnsupportedError
from meshfeed.specs import Array, entries, is_spec

try:
    import jax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    from meshfeed.jaxreshard import Move, resharder
except ImportError as e:
    raise UnsupportedError(
        f"jax.Arrays need JAX 0.8 or later: {e}",
        hint='pip install "jax>=0.8"; without mesh and specs a loader gives NumPy arrays',
    ) from None


def parts(mesh: Mesh, axes: Sequence[str]) -> Parts:
    """Returns the parts into which axes of a mesh cut the rows of an array."""
    processes = np.vectorize(lambda device: device.process_index, otypes=[np.int64])(mesh.devices)
    return Parts(mesh.shape, processes, axes)


def has_devices(mesh: Any) -> bool:
    """Returns whether a mesh has devices. An `AbstractMesh` has axes only."""
    return isinstance(mesh, Mesh) and not mesh.empty


def context_mesh() -> Mesh | None:
    """Returns the mesh of `jax.set_mesh`, or None. That of a block `with mesh:` does not count."""
    if not _traces_nothing():
        return None
    mesh = _get_mesh()
    return None if mesh.empty else mesh


def _mesh_getter() -> Callable[[], Mesh]:
    """Returns JAX's function that returns the mesh of `jax.set_mesh`. It is public from 0.9 on."""
    if hasattr(jax.sharding, "get_mesh"):
        return jax.sharding.get_mesh
    from jax._src import mesh

    return mesh.get_concrete_mesh


_get_mesh = _mesh_getter()


def listed_devices(check: Checks, devices: Any) -> list[jax.Device]:
    """Returns devices that the user gave, or those of `jax.devices()` for None."""
    given = devices.ravel().tolist() if isinstance(devices, np.ndarray) else devices
    found = jax.devices() if given is None else given
    if not isinstance(found, list | tuple) or not all(isinstance(d, jax.Device) for d in found):
        raise check.wrong("devices", devices, "a list of devices, such as jax.devices()")
    return list(found)


def make_mesh(check: Checks, axes: Mapping[str, int], devices: Any, kinds: Any) -> Mesh:
    """Makes a mesh with `jax.make_mesh`.

    Args:
        check: raises errors with the name of the user's call.
        axes: the size of every axis.
        devices: the devices, or None for those of `jax.devices()`.
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


def needed_mesh(check: Checks, remedy: str = "pass mesh=") -> Mesh:
    """Returns the mesh of `jax.set_mesh`, on which a spec without a mesh is.

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


def sharding_of(check: Checks, given: Any) -> Any:
    """Returns a sharding as it is, and a spec as a sharding on the mesh of `jax.set_mesh`."""
    if not is_spec(given):
        return given
    return named_sharding(check, needed_mesh(check, "use NamedSharding(mesh, spec)"), given)


def named_sharding(check: Checks, mesh: Any, spec: Any) -> NamedSharding:
    """Returns the sharding of a spec of JAX or meshfeed on a mesh."""
    try:
        return NamedSharding(mesh, _spec(entries(spec)))
    except Exception as e:  # JAX's error for an axis that occurs twice is no ValueError
        raise check.misfit(cut(str(e), 300), "name axes of the mesh, each once") from None


def describe_mesh(mesh: Mesh) -> MeshPart:
    """Returns the part "mesh" of a layout document: axes, and [process, id] of every device.

    Args:
        mesh: the `jax.sharding.Mesh`, whose order of devices is kept.
    """
    devices = mesh.devices.ravel().tolist()
    axes = list(mesh.shape.items())
    return MeshPart.of(axes, [d.process_index for d in devices], [d.id for d in devices])


def one_mesh(check: Checks, mesh: Any, shardings: Sequence[Any]) -> Mesh:
    """Returns the mesh that all shardings are on.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh that the user gave, or None for that of `jax.set_mesh`.
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
    if mesh is None and None in shardings:
        mesh = needed_mesh(check)
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
        message = f"{mesh} has Manual axes, which exist only inside of shard_map"
        raise check.misfit(message, "use Auto or Explicit ones; shard_map makes them Manual itself")
    return mesh


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


def delivered_name(dtype: str) -> str:
    """Returns the name of the type that JAX delivers. If x64 is off, 64-bit types are narrowed."""
    return str(jax.dtypes.canonicalize_dtype(dtype_of(dtype)).name)


def process_count() -> int:
    """Returns the number of processes of the run, including those outside of the mesh."""
    count: int = jax.process_count()
    return count


def process_index() -> int:
    """Returns the number of this process."""
    return jax.process_index()


_TESTED = "0.8.0, 0.9.0, 0.10.2 and 0.12.0.1"  # releases that the tests have run on
_CLIENT = (  # the methods of the client that meshfeed calls
    "key_value_set_bytes",
    "blocking_key_value_get_bytes",
    "key_value_try_get_bytes",
    "key_value_delete",
    "key_value_dir_get_bytes",
)


def coordination_client() -> Any:
    """Returns the client of `jax.distributed`'s key-value store, which has no public name.

    Raises:
        UnsupportedError: `jax.distributed` is not initialized, or JAX has its client elsewhere.
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
    """Returns JAX's function that reports whether no trace is active. It has no public name."""
    from jax._src import core

    return getattr(core, "trace_state_clean", lambda: True)


_traces_nothing = _trace_state()


def x64(*, enabled: bool) -> Any:
    """Returns a context manager that sets `jax_enable_x64` on this thread."""
    if jax.config.jax_enable_x64 == enabled:  # type: ignore[attr-defined]
        return contextlib.nullcontext()
    module = jax if hasattr(jax, "enable_x64") else jax.experimental  # before JAX 0.9
    return module.enable_x64(enabled)


# Returns whether the profiler records a trace, ten times as fast as an annotation is made. If a
# release of JAX does not have the function, every annotation is made.
_profiles: Callable[[], bool] = getattr(jax.profiler.TraceAnnotation, "is_enabled", lambda: True)


def _records() -> bool:
    """Returns whether JAX records operations into a program. `grad` and `vmap` alone do not."""
    with jax.transfer_guard("allow"):
        return isinstance(jax.lax.neg(np.float32(0)), jax.core.Tracer)


def check_untraced(op: str) -> None:
    """Raises an error if JAX records a program, which would contain a batch as a constant.

    Args:
        op: the user's call.
    """
    if not _traces_nothing() and _records():
        message = "a batch was asked for inside of a function that JAX traces: the program "
        message += "would hold that one batch as a constant, and never get another"
        hint = "take batches outside of jax.jit, scan and the like, and pass them as arguments"
        raise InvalidStateError(message, op=op, hint=hint)


_WIDE = ("int64", "uint64", "float64", "complex128")  # JAX has them only with x64


class ShardedFeed(Feed):
    """Makes batches of global arrays.

    Args:
        build: builds the batch's tree from the arrays of the layout, in their order.
        blocks: for every array its blocks in the memory of a batch.
        mesh: the mesh.
        shardings: for every array the user's own sharding, or None.
        loading: "process", "global", "device" or "reshard", as in `Loader`.
    """

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
        # On CPU JAX aliases the memory, so no batch is sent ahead. A mesh has one platform.
        self.platform = str(mesh.devices.flat[0].platform)
        self.devices = sum(d.process_index == jax.process_index() for d in mesh.devices.flat)
        self.ahead = 0 if self.platform == "cpu" else 1
        moves = build([Move(sharding) for sharding in wanted]) if loading == "reshard" else None
        self._reshard = None if moves is None else resharder(moves)

    def make(self, owner: Owner) -> Any:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        arrays = []
        for placer in self._placers:  # before Python 3.12 a list comprehension is one more call
            arrays.append(placer(owner))  # noqa: PERF401
        return self.build(arrays)

    def reshard(self, batch: Any) -> Any:
        """Moves the arrays of a batch to the sharding that the specs ask for."""
        return batch if self._reshard is None else self._reshard(batch)

    def marks(self) -> Mark | None:
        """Returns the marks of JAX's profiler; None if it records no trace.

        Raises:
            InvalidStateError: JAX records a program, which would contain this batch as a constant.
        """
        check_untraced("mf.Loader")
        return jax.profiler.TraceAnnotation if _profiles() else None

    def sent(self, batch: Any) -> set[int]:
        """Returns the arrays of a batch by `id`."""
        return {id(array) for array in jax.tree.leaves(batch)}

    def works(self, sent: Collection[int]) -> bool:
        """Returns whether an array is not ready, beside those that were sent."""
        return any(not array.is_ready() and id(array) not in sent for array in jax.live_arrays())

    def settle(self) -> None:
        """Waits until the computations dispatched to the local devices of the mesh are over.

        A device runs its computations in the order of their dispatch. An empty computation is
        therefore over after all of them. It is polled, because Ctrl-C does not end a wait in JAX.
        """
        here = [d for d in self._mesh.devices.flat if d.process_index == jax.process_index()]
        with jax.transfer_guard_host_to_device("allow"):
            last = [jax.lax.bitwise_not(jax.device_put(np.uint8(0), device)) for device in here]
        while not all(array.is_ready() for array in last):  # type: ignore[attr-defined]
            time.sleep(0.001)

    def live(self) -> list[jax.Array]:
        """Returns the arrays that the program still uses, finished or not."""
        arrays: list[jax.Array] = jax.live_arrays()
        return arrays


class Maker:
    """Makes arrays with one sharding from blocks of host memory.

    Args:
        shape: the global shape.
        sharding: the sharding.
        dtype: the type; None if this process has a block. Without the argument JAX uses the type
            of the blocks, which is faster than to check the argument.
    """

    def __init__(self, shape: tuple[int, ...], sharding: NamedSharding, dtype: Any) -> None:
        given: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        self._made: Callable[..., jax.Array] = partial(
            jax.make_array_from_callback, shape, sharding, **given
        )
        self.make: Callable[[Callable[..., Any]], jax.Array] = self._made

    def of(self, callback: Callable[..., Any]) -> jax.Array:
        """Makes the array of the blocks that the callback returns for their indexes."""
        try:
            return self.make(callback)
        except jax.errors.JaxRuntimeError:
            return self.retry(callback)

    def retry(self, callback: Callable[..., Any]) -> jax.Array:
        """Makes the array after `make` failed. Re-raises the error if no transfer guard is on."""
        if not _is_guarded():
            raise
        self.make = self._unguarded  # a check of the guard in every call takes longer
        return self._unguarded(callback)

    def _unguarded(self, callback: Callable[..., Any]) -> jax.Array:
        """Makes the array even if JAX's transfer guard refuses implicit transfers.

        A loader's transfer is as explicit as `device_put`, but JAX counts it as implicit.
        """
        if not _is_guarded():
            return self._made(callback)
        with jax.transfer_guard_host_to_device("allow"):
            return self._made(callback)


class Placer(Maker):
    """Makes one array of every batch from the batch's memory.

    JAX calls a callback once per local device, with the index of the device's block. The callback
    finds the block by the identity of the index: JAX caches its index maps, so the same tuples
    return in every step. A lookup by identity takes a tenth of the time of comparing slices.

    Args:
        blocks: the blocks of the array in the memory of a batch.
        target: the sharding asked for. If the array is resharded later, it gets the spec by which
            the blocks are cut instead.
    """

    def __init__(self, blocks: Blocks, target: NamedSharding) -> None:
        if blocks.spec != blocks.target:
            kind = target.memory_kind
            target = NamedSharding(target.mesh, _spec(blocks.spec), memory_kind=kind)
        super().__init__(blocks.shape, target, None if blocks.indexes else blocks.dtype)
        self.sharding = target
        self._blocks = blocks
        self._wide = blocks.dtype.name in _WIDE
        self._by_start = {tuple(a for a, _ in ix): i for i, ix in enumerate(blocks.indexes)}
        self._by_id: dict[int, int] = {}
        self._kept: list[Index] = []  # keeps the tuples alive, so that their ids stay unique

    def __call__(self, owner: Any) -> jax.Array:
        """Makes the array over the memory of the batch, which `owner` keeps alive."""
        if self._wide:
            self._check_wide()
        shape, dtype, offset, strides = self._blocks.frame
        frame = np.ndarray(shape, dtype, owner, offset, strides)
        frame.setflags(write=False)
        views, by_id = list(frame), self._by_id

        def block(index: Any) -> Any:
            if len(views) == 1:
                return views[0]
            try:
                return views[by_id[id(index)]]
            except KeyError:
                return self._find(views, index)

        try:  # as in `of`, without one more call per array
            return self.make(block)
        except jax.errors.JaxRuntimeError:
            return self.retry(block)

    def _find(self, views: list[Any], index: Index) -> Any:
        """Finds the block of an index object that is not in the cache, and adds it."""
        if not views:  # JAX asks for a replicated array even if the process owns no device of it
            return np.empty(0, self._blocks.dtype)
        block = self._by_start[tuple(s.start or 0 for s in index)]
        if len(self._by_id) > 4 * self.sharding.num_devices:
            self._by_id.clear()
            self._kept.clear()
        self._by_id[id(index)] = block
        self._kept.append(index)
        return views[block]

    def _check_wide(self) -> None:
        """Raises an error if JAX would truncate the numbers of a 64-bit type."""
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
    """Returns whether JAX refuses implicit transfers here and permits explicit ones."""
    level: str = jax.config.jax_transfer_guard_host_to_device  # type: ignore[attr-defined]
    return level == "disallow"


class DevicePlacer(Placer):
    """Makes an array from one array per device. Each block belongs to one device."""

    def __init__(self, blocks: Blocks, target: NamedSharding) -> None:
        super().__init__(blocks, target)
        devices = target.mesh.devices.flat
        self._targets = [
            SingleDeviceSharding(devices[position], memory_kind=target.memory_kind)
            for (position,) in blocks.holders
        ]

    def __call__(self, owner: Any) -> jax.Array:
        """Makes the array over the memory of the batch, which `owner` keeps alive."""
        if not self._targets:  # without a local device JAX does not know the type
            return super().__call__(owner)
        if self._wide:
            self._check_wide()
        parts = jax.device_put(self._blocks.views(owner), self._targets)
        return jax.make_array_from_single_device_arrays(self._blocks.shape, self.sharding, parts)


def _spec(entries: Sequence[Any]) -> PartitionSpec:
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries))
