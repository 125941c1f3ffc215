"""The global arrays that `loader.place` yields, on devices that JAX does not manage."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from meshfeed._feed.cursor import Item
from meshfeed._feed.feed import Feed
from meshfeed._io.arguments import Checks
from meshfeed._layout.blocks import Index, dtype_of, slices_of
from meshfeed._layout.specs import P
from meshfeed._loader.backend import Devices
from meshfeed._loader.engine import Engine
from meshfeed._native import dlpack, rings
from meshfeed._native.handle import Handle
from meshfeed._native.owner import Owner


@dataclasses.dataclass(frozen=True)
class _Part:
    """The properties of one device's shard, which are the same in all batches."""

    position: int
    device: int
    index: Index


class _Array:
    """The properties of an array, which are the same in all batches."""

    def __init__(self, number: int, described: dict[str, Any]) -> None:
        self.number = number
        self.name: str = described["name"]
        self.shape: tuple[int, ...] = tuple(described["shape"])
        self.dtype = dtype_of(described["dtype"])
        self.spec = P(*(tuple(e) if isinstance(e, list) else e for e in described["spec"]))
        self.shard_shape: tuple[int, ...] = tuple(described["shard_shape"])
        self.parts = [
            _Part(shard["position"], shard["device"], slices_of(shard["index"]))
            for shard in described["shards"]
        ]


class _Batch(NamedTuple):
    """Keeps the memory of a batch on devices until the last of its arrays is gone."""

    handle: Handle
    shared: bool  # whether the host can read this memory directly


class Shard:
    """The part of an array that one device holds.

    If the device shares the host's memory, `numpy.asarray(shard)` is that memory, read-only and
    uncopied; otherwise it is a copy. `__dlpack__` exports it to other libraries, for example to
    `jax.dlpack` and `torch.from_dlpack`. The memory is not reused while any part of it is in use.
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
        """The part of the global array: a slice per dimension."""
        return self._part.index

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return self._array.shard_shape

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
            message = f"the shard on device {self.device} cannot be exported without a copy: {why}"
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
            message = f"the shard is on DLPack device {dlpack.CPU}, not {tuple(dl_device)}"
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
        """Returns the address of a DLPack tensor of the shard; the caller must call its deleter."""
        with Checks("Shard.__dlpack__"):
            batch = self._batch.handle.value
            number, position = self._array.number, self.position
            return rings.device_batch_lend(batch, number, position, legacy=legacy)

    def _view(self) -> np.ndarray[Any, Any]:
        return dlpack.view(self._lent(), self.shape, self.dtype)

    def _copy(self) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, self.dtype)
        with Checks("Shard.__array__"):
            batch = self._batch.handle.value
            rings.device_batch_read(batch, self._array.number, self.position, out)
        return out


class PlacedArray:
    """A global array on devices, with a shard on each.

    `numpy.asarray(array)` copies the shards into one array.
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
        """The partition spec of the delivered array."""
        return self._array.spec

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of all devices, in mesh order."""
        return tuple(Shard(self._batch, self._array, part) for part in self._array.parts)

    @property
    def devices_indices_map(self) -> dict[int, Index]:
        """The part that every device holds, by the device's number: a slice per dimension."""
        return {part.device: part.index for part in self._array.parts}

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            message = (
                f"array {self.name!r} is in shards on devices: it cannot be exported without a copy"
            )
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
    """Takes the batches of a loader and copies them to devices, for `loader.place`.

    Args:
        check: checks the arguments of the user's call, and names the call in errors.
        engine: the engine of the loader.
        devices: the devices.
    """

    def __init__(self, check: Checks, engine: Engine, devices: Devices) -> None:
        if not isinstance(devices, Devices):
            raise check.wrong("devices", devices, "what mf.devices() gave")
        if type(engine.batch.feed) is Feed:  # whole batches as NumPy arrays
            message = "this loader gives whole batches, and has no mesh"
            hint = "give mesh and specs, or play a layout: mf.Loader(ds, layout=lay, process=0)"
            raise check.misfit(message, hint)
        self._engine, self._devices = engine, devices
        self._open()

    def _open(self) -> None:
        """Allocates memory on the devices for batches of the loader's present layout."""
        document = self._engine.batch.plan.document
        handle = rings.ring_create(self._devices.handle, document)
        self._ring, self._document = handle, document
        described = rings.ring_info(handle.value)["arrays"]
        self._arrays = [_Array(i, array) for i, array in enumerate(described)]

    def take(self) -> Item | None:
        """Returns the next batch, or None at the end of the run. The cursor's lock must be held."""
        return self._engine.cursor.take_made(self._make)

    def _make(self, owner: Owner) -> Any:
        """Copies the batch in the memory of `owner` to the devices."""
        with Checks("Loader.place"):
            self._devices.check()
            if self._engine.batch.plan.document != self._document:  # after a remesh
                self._open()
            batch = owner.release._as_parameter_  # its pointer in the library
            placed = rings.ring_transfer(self._ring.value, batch)
        owner_of_all = _Batch(placed, self._devices.shared)
        return self._engine.batch.feed.build([PlacedArray(owner_of_all, a) for a in self._arrays])
