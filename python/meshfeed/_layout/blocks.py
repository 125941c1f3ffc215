"""The blocks of an array in the memory of a batch, as NumPy views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from meshfeed.errors import InternalError, UnsupportedError

Index = tuple[slice, ...]
Frame = tuple[tuple[int, ...], np.dtype[Any], int, tuple[int, ...]]


class Blocks:
    """The blocks of one array: the parts that this process holds.

    There is one block per distinct index, or one per device with loading="device". All blocks have
    the same shape and are in slots of equal size. So one strided NumPy array covers them, and its
    items are the contiguous blocks.

    Attributes:
        name: the array's name in the layout; nested names are joined by "/".
        kind: "data", "mask", "key" or "record".
        shape: the global shape.
        dtype: the delivered type.
        spec: the entries of the delivered partition spec.
        target: the entries that the layout asks for; they differ if the batch is resharded.
        indexes: the [start, stop) pairs of every block in the global array.
        holders: the mesh positions of this process's devices that hold each block.
        frame: shape, type, offset and strides of the array that covers the blocks.

    Args:
        described: the description by the C library.
        dtype: the type of the elements, if the C library knows only their size.
    """

    def __init__(self, described: dict[str, Any], dtype: np.dtype[Any] | None = None) -> None:
        self.name: str = described["name"]
        self.kind: str = described["kind"]
        self.shape: tuple[int, ...] = tuple(described["shape"])
        self.dtype = dtype_of(described["dtype"]) if dtype is None else dtype
        self.spec: list[Any] = described["spec"]
        self.target: list[Any] = described["target_spec"]
        blocks = described["blocks"]
        self.holders: list[list[int]] = [block["holders"] for block in blocks]
        self.indexes: list[list[list[int]]] = [block["index"] for block in blocks]
        self.frame = self._frame_of(blocks)

    def _frame_of(self, blocks: list[dict[str, Any]]) -> Frame:
        """Computes the strided array that covers the blocks."""
        offsets = [block["offset"] for block in blocks]
        first = offsets[0] if offsets else 0
        slot = offsets[1] - first if len(offsets) > 1 else 0
        if offsets != [first + i * slot for i in range(len(offsets))]:
            message = f"the blocks of array {self.name!r} lie at {offsets}, not in equal slots"
            raise InternalError(message, hint="this is a bug in meshfeed")
        shard = tuple(stop - start for start, stop in self.indexes[0]) if offsets else self.shape
        inner, step = [], self.dtype.itemsize
        for size in reversed(shard):
            inner.append(step)
            step *= size
        return (len(offsets), *shard), self.dtype, first, (slot, *reversed(inner))

    def views(self, owner: Any) -> list[np.ndarray[Any, Any]]:
        """Returns read-only views of the blocks in the memory that `owner` exports."""
        shape, dtype, offset, strides = self.frame
        frame = np.ndarray(shape, dtype, owner, offset, strides)
        frame.setflags(write=False)
        return list(frame)

    def indexed(self, owner: Any) -> list[tuple[Index, Any]]:
        """Returns the blocks, each with its index in the global array."""
        return list(zip(map(slices_of, self.indexes), self.views(owner), strict=True))


def slices_of(pairs: Iterable[Sequence[int]]) -> Index:
    """Converts [start, stop) pairs, one per dimension, to an index of NumPy and JAX.

    Examples:
        >>> slices_of([(0, 4), (2, 8)])
        (slice(0, 4, None), slice(2, 8, None))
    """
    return tuple(slice(start, stop) for start, stop in pairs)


def without_batch(described: dict[str, Any]) -> dict[str, Any]:
    """Removes the first dimension from the description of an array."""
    keys = ("shape", "spec", "target_spec")
    blocks = [block | {"index": block["index"][1:]} for block in described["blocks"]]
    return described | {key: described[key][1:] for key in keys} | {"blocks": blocks}


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns NumPy's type of this name; bfloat16 and float8 come from `ml_dtypes`.

    Examples:
        >>> dtype_of("uint8")
        dtype('uint8')
    """
    if not name.startswith(("bfloat16", "float8")):
        return np.dtype(name)
    try:
        import ml_dtypes

        kind: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        message = f"NumPy alone has no {name}"
        hint = "install ml_dtypes (it comes with JAX)"
        raise UnsupportedError(message, hint=hint) from None
    return kind
