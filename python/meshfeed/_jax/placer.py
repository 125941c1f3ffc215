"""Global `jax.Array`s over host memory.

One `jax.make_array_from_callback` with the user's own sharding makes each array. The callback
returns a view per distinct index, so replicas share memory. On CPU JAX aliases the views; on other
devices it starts the transfer. Processes do not communicate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding

from meshfeed._jax.meshes import partition_spec
from meshfeed._jax.runtime import is_guarded
from meshfeed._layout.blocks import Blocks, Index
from meshfeed.errors import InvalidStateError

_WIDE = ("int64", "uint64", "float64", "complex128")  # JAX has them only with x64


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
        """Makes the array after `make` failed. Re-raises the error if no transfer guard is on.

        Call it in the `except` block of that error.
        """
        if not is_guarded():
            raise
        self.make = self._unguarded  # a check of the guard in every call takes longer
        return self._unguarded(callback)

    def _unguarded(self, callback: Callable[..., Any]) -> jax.Array:
        """Makes the array even if JAX's transfer guard refuses implicit transfers.

        A loader's transfer is as explicit as `device_put`, but JAX counts it as implicit.
        """
        if not is_guarded():
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
            target = NamedSharding(target.mesh, partition_spec(blocks.spec), memory_kind=kind)
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
