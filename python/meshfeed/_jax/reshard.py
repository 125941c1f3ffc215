"""Moving the arrays of a batch to other shardings, in a program that JAX compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from meshfeed._io.arguments import Checks
from meshfeed._jax.meshes import axes_of


class Move:
    """Moves an array to a sharding, inside of a program that JAX traces.

    `jax.sharding.reshard` moves axes of type Explicit, a sharding constraint moves the others. If
    an entry has both, JAX requires the explicit ones to come first.

    Args:
        target: the sharding.
    """

    def __init__(self, target: NamedSharding) -> None:
        explicit = _explicit(target.mesh)
        automatic = set(target.mesh.axis_names) - explicit
        self._explicit = _only(explicit, target) if explicit else None
        self._automatic = _only(automatic, target) if automatic else None

    def __call__(self, array: Any) -> Any:
        """Returns the array with the sharding."""
        if self._explicit is not None:
            array = jax.sharding.reshard(array, self._explicit)
        if self._automatic is not None:
            array = jax.lax.with_sharding_constraint(array, self._automatic)
        return array


def check_moves(check: Checks, mesh: Mesh, specs: Mapping[str, Sequence[Any]]) -> None:
    """Raises an error if no `Move` can reach a spec.

    Args:
        check: raises errors with the name of the user's call.
        mesh: the mesh.
        specs: for every array the entries of its spec.
    """
    explicit = _explicit(mesh)
    for name, spec in specs.items():
        for entry in spec:
            firsts = [axis in explicit for axis in axes_of(entry)]
            if firsts != sorted(firsts, reverse=True):
                message = f"array {name!r} cannot be resharded: in the entry {tuple(entry)} of its "
                message += "spec an explicit axis comes after an automatic one"
                raise check.misfit(message, "make all axes of the mesh of one type")


def _explicit(mesh: Any) -> set[Any]:
    types = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return {axis for axis, kind in types if kind == AxisType.Explicit}


def _only(axes: set[Any], sharding: NamedSharding) -> NamedSharding:
    """Returns the sharding with only these axes in its spec."""
    parts = [tuple(axis for axis in axes_of(entry) if axis in axes) for entry in sharding.spec]
    kind = sharding.memory_kind
    return NamedSharding(sharding.mesh, PartitionSpec(*parts), memory_kind=kind)


def resharder(moves: Any) -> Callable[[Any], Any]:
    """Returns the function that moves the arrays of a batch to their shardings.

    Args:
        moves: the batch's tree, with a `Move` for each array.
    """
    tree = jax.tree.structure(moves)

    def reshard(batch: Any) -> Any:
        found: Any = jax.tree.structure(batch)
        if found != tree:
            message = f"the batch has the tree {found}, but batches of this loader have {tree}"
            raise Checks("Loader.reshard").misfit(message, "pass a batch of this loader, unchanged")
        return jax.tree.map(lambda move, array: move(array), moves, batch)

    return reshard
