"""Batches on devices that are not JAX's: global arrays of shards, as `loader.place` gives them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from meshfeed._feed.cursor import Item
from meshfeed._feed.engine import Engine
from meshfeed._io.arguments import Checks
from meshfeed._native import calls, dlpack
from meshfeed._native.handle import Handle
from meshfeed._native.owner import Owner
from meshfeed._plan.blocks import Index, dtype_of, slices_of
from meshfeed.backend import Devices
from meshfeed.specs import P


@dataclasses.dataclass(frozen=True)
class _Part:
    """What the shards of one device have in common in all batches."""

    position: int
    device: int
    index: Index
    shape: tuple[int, ...]


class _Array:
    """What one array has in common in all batches."""

    def __init__(self, number: int, described: dict[str, Any]) -> None:
        self.number = number
        self.name: str = described["name"]
        self.shape: tuple[int, ...] = tuple(described["shape"])
        self.dtype = dtype_of(described["dtype"])
        self.spec = P(*(tuple(e) if isinstance(e, list) else e for e in described["spec"]))
        shape = tuple(described["shard_shape"])
        self.parts = [
            _Part(shard["position"], shard["device"], slices_of(shard["index"]), shape)
            for shard in described["shards"]
        ]


class _Batch:
    """What the arrays of a batch share: it ends with the last of them."""

    __slots__ = ("handle", "shared")

    def __init__(self, handle: Handle, *, shared: bool) -> None:
        self.handle = handle
        self.shared = shared


class Shard:
    """The part of an array that one device holds.

    `numpy.asarray(shard)` is its memory, read-only and uncopied, where that is shared with the
    host, and a copy elsewhere. `__dlpack__` gives it to other libraries, as to `jax.dlpack` and
    `torch.from_dlpack`. The memory serves no other batch while anything of it is in use.
    """

    __slots__ = ("_array", "_batch", "_part")

    def __init__(self, batch: _Batch, array: _Array, part: _Part) -> None:
        self._batch, self._array, self._part = batch, array, part

    @property
    def device(self) -> int:
        """The number of the device."""
        return self._part.device

    @property
    def position(self) -> int:
        """The position of the device in the mesh."""
        return self._part.position

    @property
    def index(self) -> Index:
        """Which part of the global array it is: a slice per dimension."""
        return self._part.index

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return self._part.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of an element."""
        return self._array.dtype

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
        own = bool(copy) or not self._batch.shared
        array = self._copy() if own else self._view()
        changed = array if dtype is None else array.astype(dtype, copy=False)
        if copy is False and (own or changed is not array):
            why = "its memory is not the host's" if own else f"its elements are {array.dtype}"
            message = f"the shard on device {self.device} cannot be had without a copy: {why}"
            raise ValueError(message)
        return changed

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy:
            return self._copy().__dlpack__()
        if dl_device is not None and tuple(dl_device) != dlpack.CPU:
            message = f"the shard lies on DLPack device {dlpack.CPU}, not {tuple(dl_device)}"
            raise BufferError(message)
        if dlpack.VERSIONED and max_version is not None and max_version[0] >= 1:
            return dlpack.capsule(self._lent(), dlpack.Versioned)
        return dlpack.capsule(self._lent(legacy=True), dlpack.Legacy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU

    def __repr__(self) -> str:
        index = ", ".join(f"{part.start}:{part.stop}" for part in self.index)
        return f"Shard(device={self.device}, index=[{index}])"

    def _lent(self, *, legacy: bool = False) -> int:
        with Checks("Shard.__dlpack__"):
            batch = self._batch.handle.value
            number, position = self._array.number, self.position
            return calls.device_batch_lend(batch, number, position, legacy=legacy)

    def _view(self) -> np.ndarray[Any, Any]:
        return dlpack.view(self._lent(), self.shape, self.dtype)

    def _copy(self) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, self.dtype)
        with Checks("Shard.__array__"):
            batch = self._batch.handle.value
            calls.device_batch_read(batch, self._array.number, self.position, out)
        return out


class PlacedArray:
    """A global array on devices, a shard on each.

    `numpy.asarray(array)` puts the shards together, in memory of its own.
    """

    __slots__ = ("_array", "_batch")

    def __init__(self, batch: _Batch, array: _Array) -> None:
        self._batch, self._array = batch, array

    @property
    def name(self) -> str:
        """The array's name in the layout; nested names are joined by "/"."""
        return self._array.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The global shape."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of an element."""
        return self._array.dtype

    @property
    def spec(self) -> P:
        """The partition spec, as it is delivered."""
        return self._array.spec

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of all devices, in mesh order."""
        return tuple(Shard(self._batch, self._array, part) for part in self._array.parts)

    @property
    def devices_indices_map(self) -> dict[int, Index]:
        """Which part every device holds, by the device's number: a slice per dimension."""
        return {part.device: part.index for part in self._array.parts}

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            message = f"array {self.name!r} lies on devices in shards: it cannot be had uncopied"
            raise ValueError(message)
        whole = np.empty(self.shape, self.dtype)
        for shard in {str(shard.index): shard for shard in self.shards}.values():
            whole[shard.index] = np.asarray(shard)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return (
            f"PlacedArray({self.name!r}, {self.dtype}[{shape}], {self.spec!r}, "
            f"{len(self._array.parts)} shards)"
        )


class Placing:
    """Takes the batches of a loader and places them: what `loader.place` does at every step.

    Args:
        check: the call that the devices come from.
        engine: the loader's.
        devices: where to.
    """

    def __init__(self, check: Checks, engine: Engine, devices: Devices) -> None:
        if not isinstance(devices, Devices):
            raise check.wrong("devices", devices, "what mf.devices() gave")
        if not json.loads(engine.batch.document)["mesh"]["axes"]:
            message = "this loader gives whole batches, and has no mesh"
            hint = "give mesh and specs, or play a layout: mf.Loader(ds, layout=lay, process=0)"
            raise check.misfit(message, hint)
        self._engine, self._devices = engine, devices
        self._open()

    def _open(self) -> None:
        """Makes the memory for batches of the loader's layout, which a remesh changes."""
        document = self._engine.batch.document
        handle = calls.ring_create(self._devices.handle, document)
        self._ring, self._document = handle, document
        described = calls.ring_info(handle.value)["arrays"]
        self._arrays = [_Array(i, array) for i, array in enumerate(described)]

    def take(self) -> Item | None:
        """Gives the next batch, or None at the end of the pass. The caller holds the lock."""
        return self._engine.cursor.take_made(self._make)

    def _make(self, owner: Owner) -> Any:
        """Places the batch in this memory."""
        with Checks("Loader.place"):
            self._devices.check()
            if self._engine.batch.document != self._document:
                self._open()
            batch = owner.release._as_parameter_
            placed = calls.ring_transfer(self._ring.value, batch)
        owner_of_all = _Batch(placed, shared=self._devices.shared)
        return self._engine.batch.feed.build([PlacedArray(owner_of_all, a) for a in self._arrays])
