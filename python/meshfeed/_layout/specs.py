"""Partition specs, and the arrays of a batch that have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from meshfeed.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from jax.sharding import NamedSharding, PartitionSpec

# An entry of a spec in a layout document: an axis, several axes, or none.
Entry = str | list[str] | None


class P:
    """A partition spec where JAX is not installed; with JAX, use `jax.sharding.PartitionSpec`.

    Each entry names the mesh axis, or the tuple of axes, that splits one dimension of an
    array. `None` leaves a dimension whole. So does a missing entry at the end.

    Examples:
        >>> import meshfeed as mf
        >>> mf.P("data", None, ("a", "b"))
        P('data', None, ('a', 'b'))
    """

    __slots__ = ("partitions",)

    def __init__(self, *partitions: str | Sequence[str] | None) -> None:
        self.partitions = partitions

    def __repr__(self) -> str:
        return f"P{self.partitions!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, P) and self.partitions == other.partitions

    def __hash__(self) -> int:
        return hash(self.partitions)


if TYPE_CHECKING:
    Spec = PartitionSpec | P


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a batch: a field, or columns of it, and how it is partitioned.

    Attributes:
        field: the dataset's field.
        spec: a `PartitionSpec` or `NamedSharding`; `None` where batches are NumPy arrays.
        columns: `[start, stop)` ranges of the row's first dimension, concatenated in this
            order; `None` takes the whole row.

    Examples:
        Inputs and targets from rows of five tokens, each split over the devices by rows:

        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import PartitionSpec as P
        >>> ds = mf.from_arrays({"tokens": np.arange(20, dtype=np.int32).reshape(4, 5)})
        >>> specs = {"inputs": mf.Array("tokens", P("data"), columns=[(0, 4)]),
        ...          "targets": mf.Array("tokens", P("data"), columns=[(1, 5)])}
        >>> loader = mf.Loader(ds, jax.make_mesh((1,), ("data",)), specs, batch_size=2)
        >>> batch = next(iter(loader))
        >>> batch["inputs"].shape, batch["inputs"].sharding.spec
        ((2, 4), P('data',))
        >>> np.asarray(batch["inputs"])[0].tolist(), np.asarray(batch["targets"])[0].tolist()
        ([0, 1, 2, 3], [1, 2, 3, 4])

        Another order of columns, as NumPy arrays:

        >>> halves = mf.Array("tokens", columns=[(0, 1), (3, 5)])
        >>> next(iter(mf.Loader(ds, specs={"x": halves}, batch_size=1)))["x"].tolist()
        [[0, 3, 4]]
    """

    field: str
    spec: Spec | NamedSharding | None = None
    columns: Sequence[tuple[int, int]] | None = None


def is_spec(x: Any) -> bool:
    """Returns whether x is a partition spec of JAX or of meshfeed."""
    return type(x).__name__ in ("P", "PartitionSpec")


def is_sharding(x: Any) -> bool:
    """Returns whether x is a sharding with a mesh and a spec, such as a `NamedSharding`."""
    return hasattr(x, "mesh") and hasattr(x, "spec") and hasattr(x, "memory_kind")


def entries(spec: Any) -> list[Entry]:
    """Returns the entries of a partition spec in the form of layout documents.

    Raises:
        UnsupportedError: the spec is unreduced or leaves a dimension unconstrained.
    """
    if getattr(spec, "unreduced", None):
        message = f"{spec!r} is unreduced, which says what is left to sum, not what a device holds"
        raise UnsupportedError(message, hint="give the spec without unreduced=")
    # JAX before 0.10 has no public name for the entries, but its specs can be iterated.
    partitions = spec.partitions if hasattr(spec, "partitions") else tuple(spec)
    return [_entry(spec, e) for e in partitions]


def _entry(spec: Any, e: Any) -> Entry:
    if e is None or isinstance(e, str):
        return e or None
    if isinstance(e, tuple | list) and all(isinstance(axis, str) for axis in e):
        return list(e) if len(e) > 1 else (e[0] if e else None)
    if type(e).__name__ == "UnconstrainedSingleton":
        message = f"{spec!r} leaves a dimension unconstrained, so the compiler chooses the sharding"
        raise UnsupportedError(message, hint="name the axes, or use None")
    message = f"entry {e!r} of {spec!r} is neither an axis name, nor a tuple of them, nor None"
    raise InvalidArgumentError(message, hint="name mesh axes by strings")
