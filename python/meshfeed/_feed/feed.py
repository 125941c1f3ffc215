"""Makes batches without JAX: NumPy arrays, or the blocks of one process."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from meshfeed._layout.blocks import Blocks
from meshfeed._native.owner import Owner

Build = Callable[[Sequence[Any]], Any]

# Makes a context manager that marks a part of `next` with this name in a profiler.
Mark = Callable[[str], contextlib.AbstractContextManager[Any]]


@dataclasses.dataclass(frozen=True)
class ArrayStruct:
    """The shape and type of a NumPy array of a batch."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Feed:
    """How batches are made from their memory: here each array is whole, as NumPy has it.

    Args:
        build: builds the batch's tree from the arrays of the layout, in their order.
        blocks: for every array its blocks in the memory of a batch.

    Attributes:
        ahead: the default of `device_prefetch`.
        element_spec: the batch's tree of shapes and types.
        devices: the number of local devices to which batches go.
        platform: the platform of the devices, such as "gpu"; "" without devices.
    """

    ahead = 0
    devices = 0
    platform = ""

    def __init__(self, build: Build, blocks: Sequence[Blocks]) -> None:
        self.build, self._blocks = build, blocks
        self.element_spec: Any = build([ArrayStruct(b.shape, b.dtype) for b in blocks])

    def make(self, owner: Owner) -> Any:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        return self.build([blocks.views(owner)[0] for blocks in self._blocks])

    def marks(self) -> Mark | None:
        """Returns the marks of a profiler that records a trace, or None."""
        return None

    def sent(self, batch: Any) -> Collection[int]:
        """Returns the arrays of a batch on devices, by `id`."""
        return ()

    def works(self, sent: Collection[int]) -> bool:
        """Returns whether the devices have work: an array of the program is not ready.

        Args:
            sent: arrays that do not count, by `id`.
        """
        return False

    def reshard(self, batch: Any) -> Any:
        """Moves the arrays of a batch to the sharding that the specs ask for."""
        return batch

    def settle(self) -> None:
        """Waits until the computations that were dispatched so far are over."""

    def flags(self) -> Mapping[str, Any]:
        """Returns the options of JAX that change the programs of the devices."""
        return {}

    def live(self) -> Sequence[Any]:
        """Returns the arrays on devices that the program still uses."""
        return ()


class BlocksFeed(Feed):
    """Makes batches of one process: every array is the list of that process's blocks."""

    def __init__(self, blocks: Sequence[Blocks]) -> None:
        names = [b.name for b in blocks]
        super().__init__(lambda arrays: dict(zip(names, arrays, strict=True)), blocks)

    def make(self, owner: Owner) -> Any:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        return self.build([blocks.indexed(owner) for blocks in self._blocks])
