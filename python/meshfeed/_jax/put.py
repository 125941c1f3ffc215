"""Global `jax.Array`s over host arrays that meshfeed did not load; see `mf.put`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, treedef_is_leaf

from meshfeed._io.arguments import Checks
from meshfeed._io.hostarrays import address, host, is_read_only
from meshfeed._jax import runtime
from meshfeed._jax.plan import (
    ALIGNED,
    Leaf,
    Plan,
    check_specs,
    is_extended,
    leaf_names,
    without_name,
)
from meshfeed._jax.trees import check_depth, check_keys
from meshfeed._layout.specs import is_spec
from meshfeed._native.lock import Lock
from meshfeed.errors import Error, InvalidStateError, set_op

_PLANS = 32  # the number of plans that are kept


def put(tree: Any, mesh: Any, specs: Any, rows: Any, may_alias: Any, *, op: str = "mf.put") -> Any:
    """Places a tree; see `mf.put`.

    Args:
        tree: the tree.
        mesh: the mesh that the user gave, or None.
        specs: the specs that the user gave.
        rows: "all" or "local".
        may_alias: whether JAX may use memory without a copy. None: if nothing can write to it.
        op: the user's call.
    """
    runtime.check_untraced(op)
    leaves, structure = _flat(op, "tree", tree)
    try:
        # After a copy little of Python's memory is in the caches, so each step here takes long.
        known: list[Any] = []
        names: list[str] = []
        for i, leaf in enumerate(leaves):
            if type(leaf) is not np.ndarray:
                if isinstance(leaf, jax.Array):
                    leaf = _fetched(tree, i, leaf)
                else:
                    names = names or leaf_names(tree)
                    leaf = host(Checks(op), names[i], leaf)
                leaves[i] = leaf
                if not isinstance(leaf, np.ndarray):
                    known.append((leaf.shape, leaf.dtype, None, False))
                    continue
            shared = not leaf.flags.writeable if may_alias is None else may_alias
            known.append((leaf.shape, leaf.dtype, leaf.strides, shared))
        flat, kind = _flat(op, "specs", specs)
        ambient = runtime.context_mesh() if mesh is None else None
        x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        rest = structure, mesh, ambient, kind, tuple(flat), rows, may_alias, x64
        while True:
            key = tuple(known), rest
            try:
                plan = plans.get(key)
            except TypeError:  # a wrong spec may have no hash
                plan = None
            if plan is None:
                check = _check_options(op, rows, may_alias)
                found = [Leaf(*each) for each in known]
                plan = _keep(key, Plan(check, tree, found, mesh, specs, rows))
            copied = [i for i in plan.shared if not _is_shared(leaves[i], may_alias=may_alias)]
            if not copied:
                return structure.unflatten(plan(leaves))
            for i in copied:
                known[i] = *known[i][:3], False
    except Error as e:
        if treedef_is_leaf(structure):
            e.message = without_name(e.message)
        set_op(e, op)
        raise


def _flat(op: str, argument: str, tree: Any) -> tuple[list[Any], Any]:
    """Returns the leaves of a tree, and its structure."""
    try:
        return tree_flatten(tree)
    except (RecursionError, SystemError, ValueError) as e:  # JAX raises all three
        failed = e
    check_depth(Checks(op), argument, tree)
    if isinstance(failed, ValueError):
        check_keys(Checks(op), argument, tree)
    raise failed


def _check_options(op: str, rows: Any, may_alias: Any) -> Checks:
    """Raises an error if an option is wrong. Returns what raises the errors of the call."""
    check = Checks(op)
    check.choice("rows", rows, "all", "local")
    check.boolean("may_alias", may_alias)
    return check


def placer(mesh: Any, specs: Any, rows: Any, may_alias: Any) -> Callable[[Any], Any]:
    """Returns the function that places batches on any thread as this thread would now.

    Args:
        mesh: the mesh that the user gave, or None.
        specs: the specs that the user gave.
        rows: "all" or "local".
        may_alias: as in `put`.
    """
    op = "mf.place_batches"
    check = _check_options(op, rows, may_alias)
    _flat(op, "specs", specs)
    try:
        check_specs(check, mesh, specs)
    except Error as e:
        e.message = without_name(e.message, "the specs")
        set_op(e, op)
        raise
    if mesh is None and any(map(is_spec, tree_flatten(specs)[0])):
        mesh = runtime.context_mesh()
    x64 = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]

    def place(batch: Any) -> Any:
        with runtime.x64(enabled=x64):
            return put(batch, mesh, specs, rows, may_alias, op=op)

    return place


def processes(tree: Any) -> tuple[int, list[int]]:
    """Returns this process, and the processes with devices of the arrays of a tree."""
    arrays = (leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, jax.Array))
    devices: set[jax.Device] = set().union(*(array.sharding.device_set for array in arrays))
    return jax.process_index(), sorted({device.process_index for device in devices})


def _fetched(tree: Any, i: int, leaf: jax.Array) -> Any:
    """Returns a leaf as it is; in a job, an array of this process alone as a NumPy array."""
    if leaf.is_deleted():
        message = f"array {leaf_names(tree)[i]!r} was deleted, or donated to a computation"
        raise InvalidStateError(message, hint="give the arrays that the computation returned")
    if jax.process_count() == 1 or not leaf.is_fully_addressable or is_extended(leaf.dtype):
        return leaf
    return np.asarray(leaf)  # device_put to several processes would compare it between them


def _is_shared(array: np.ndarray[Any, Any], *, may_alias: bool | None) -> bool:
    """Returns whether memory is aligned, and JAX may use it: by default if it is read-only."""
    return (may_alias or is_read_only(array)) and address(array) % ALIGNED == 0


plans: dict[Any, Plan] = {}  # by what they depend on
_keeping = Lock()


def _keep(key: Any, plan: Plan) -> Plan:
    """Keeps a plan, and drops the oldest ones."""
    with _keeping:
        plans[key] = plan
        while len(plans) > _PLANS:
            del plans[next(iter(plans))]
    return plan
