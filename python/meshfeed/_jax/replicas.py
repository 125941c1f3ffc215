"""The arrays of a tree as this process holds them, with digests of their parts."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.tree_util import keystr, tree_flatten_with_path

from meshfeed._io.arguments import Checks, cut, dataclass_hint, repr_short
from meshfeed._jax.meshes import axes_of, parts_by_device
from meshfeed._jax.runtime import is_traced
from meshfeed._jax.trees import check_depth, check_keys
from meshfeed._jobs.comparison import HOST, Block, Copies, Index
from meshfeed._layout.specs import entries
from meshfeed._native import calls
from meshfeed.errors import Error, InvalidStateError

WORKERS = 4  # threads that hash; at most this many shards are copied to the host at once
WHOLE = "tree"  # the name of an array that is the whole tree
LISTED = 16  # ids of devices in a text

_parts = functools.lru_cache(256)(parts_by_device)

_UNTRACED = "call it outside of jax.jit, scan and the like"
_NUMBERS = bool, int, float, complex
_DATA = jax.Array, np.ndarray, np.generic, *_NUMBERS


class Tree:
    """The arrays of a tree.

    JAX assumes that an array in host memory, or on devices of one process alone, is equal in all
    processes. So every process holds a copy of it.

    Args:
        check: raises errors with the name of the user's call.
        tree: the tree.
        alone: whether only copies of this process are compared.

    Attributes:
        names: the path of every array.
        unfit: the first reason why the arrays cannot be compared, or None. `facts` and `blocks`
            raise it, and no earlier method: a call that fails counts, and the others are told.
        me: this process.
        processes: the processes that compare copies, in ascending order. It is this process
            alone if it holds no part of the arrays that several processes hold.
    """

    def __init__(self, check: Checks, tree: Any, *, alone: bool) -> None:
        self.unfit: Exception | None = None
        try:
            flat = _flat(check, tree)
        except Error as e:
            flat, self.unfit = [], e
        self.names = [keystr(path, simple=True, separator="/") or WHOLE for path, _ in flat]
        if len(set(self.names)) < len(flat):
            self.names = [keystr(path) for path, _ in flat]
        self._leaves: list[Any] = []
        for name, (_, leaf) in zip(self.names, flat, strict=True):
            try:
                self._leaves.append(_array(check, name, leaf, alone=alone))
            except Error as e:
                self.unfit = self.unfit or e
        self.me: int = jax.process_index()
        processes = set[int]().union(*map(_owners, filter(_is_global, self._leaves)))
        self.processes = sorted(processes or range(jax.process_count()))
        if alone or self.me not in self.processes:
            self.processes = [self.me]
        if self.unfit is None and is_traced():
            message = "the arrays would be compared once, when JAX traces the function around it"
            self.unfit = check.misfit(message, _UNTRACED)

    def facts(self) -> dict[str, dict[str, Any]]:
        """Returns what must be equal in all processes besides the bytes, by array."""
        self._check()
        return {
            name: {
                "shape": list(leaf.shape),
                "dtype": str(leaf.dtype),
                "kind": "global" if _is_global(leaf) else "local",
                **_described(leaf),
            }
            for name, leaf in zip(self.names, self._leaves, strict=True)
        }

    def computed(self) -> bool:
        """Returns whether all arrays are computed, or deleted. Arrays of keys cannot tell it."""
        arrays = (leaf for leaf in self._leaves if hasattr(leaf, "is_ready"))
        return all(array.is_deleted() or array.is_ready() for array in arrays)

    def copies(self, array: int) -> dict[Index, Copies]:
        """Returns the copies of every part of an array, as pairs of process and device."""
        leaf = self._leaves[array]
        if not math.prod(leaf.shape):
            return {}
        if not isinstance(leaf, jax.Array):
            return {_whole(leaf): [(process, HOST) for process in self.processes]}
        found = _copies(leaf.sharding, leaf.shape)
        if not _is_global(leaf):
            others = [(process, HOST) for process in self.processes if process != self.me]
            return {index: [*pairs, *others] for index, pairs in found.items()}
        if len(self.processes) > 1:
            return found
        return {index: [p for p in pairs if p[0] == self.me] for index, pairs in found.items()}

    def is_single(self, array: int) -> bool:
        """Returns whether every part of an array has only one copy."""
        copies = self.copies(array).values()
        return bool(copies) and all(len(pairs) < 2 for pairs in copies)

    def blocks(self) -> list[Block]:
        """Returns the parts that this process holds and that have another copy, hashed."""
        self._check()
        found: dict[tuple[int, Index], Block] = {}
        work: list[tuple[Block, int, Any]] = []
        for array, leaf in enumerate(self._leaves):
            if isinstance(leaf, jax.Array) and leaf.is_deleted():
                message = f"array {self.names[array]!r} was deleted, or donated to a computation"
                hint = "give the arrays that the computation returned"
                raise InvalidStateError(message, hint=hint)
            copies = self.copies(array)
            for device, index, data in _held(leaf):
                if len(pairs := copies.get(index, [])) > 1:
                    if (block := found.get((array, index))) is None:
                        holders = tuple(sorted({process for process, _ in pairs}))
                        block = found[array, index] = Block(array, index, holders)
                    work.append((block, device, data))
        _hash(work)
        return [found[key] for key in sorted(found)]

    def _check(self) -> None:
        if self.unfit is not None:
            raise self.unfit


def _flat(check: Checks, tree: Any) -> list[tuple[Any, Any]]:
    """Returns the leaves of a tree with their paths."""
    try:
        return tree_flatten_with_path(tree)[0]
    except Exception as e:  # such as keys without an order, or of a class of the user
        failed = f"jax.tree.flatten failed: {cut(repr(e), 300)}"
    check_depth(check, WHOLE, tree)
    check_keys(check, WHOLE, tree)
    raise check.misfit(failed)


def _array(check: Checks, name: str, leaf: Any, *, alone: bool) -> Any:
    """Returns a leaf that has data, as an array of JAX or NumPy."""
    where = f"array {name!r}"
    if isinstance(leaf, jax.core.Tracer):
        message = f"{where} is traced: inside of a function that JAX traces there is no data"
        raise check.misfit(message, _UNTRACED)
    if not isinstance(leaf, _DATA):
        message = f"{where} is {repr_short(leaf)}, which has no data to compare"
        hint = "give arrays in dicts, lists and tuples, and leave out others"
        raise check.misfit(message, dataclass_hint(leaf) or hint)
    if not isinstance(leaf, jax.Array):
        leaf = np.asarray(leaf)
        if leaf.dtype.hasobject:
            raise check.misfit(f"{where} holds Python objects", "give arrays of numbers")
    if not alone and _is_global(leaf) and len(owner := _owners(leaf)) == 1:
        message = f"{where} is on devices of process {min(owner)} alone"
        hint = "leave it out: to that process it is an array of which every process has its own"
        raise check.misfit(message, hint)
    return leaf


def _owners(leaf: Any) -> set[int]:
    """Returns the processes that hold parts of an array on devices."""
    return {device.process_index for device in leaf.sharding.device_set}


def _is_global(leaf: Any) -> bool:
    """Returns whether an array is on devices of other processes."""
    return isinstance(leaf, jax.Array) and not leaf.is_fully_addressable


def _described(leaf: Any) -> dict[str, Any]:
    """Describes the sharding of an array; a local one without its devices."""
    if not isinstance(leaf, jax.Array) or len(leaf.sharding.device_set) == 1:
        return {}
    sharding, devices = leaf.sharding, {}
    if _is_global(leaf):
        devices = {"devices": _listed([device.id for device in _parts(sharding, leaf.shape)])}
    if not isinstance(sharding, NamedSharding):
        return {"sharding": str(sharding), **devices}
    axes = {name: size for name, size in sharding.mesh.shape.items() if size > 1}
    mesh = ", ".join(f"{name}={size}" for name, size in axes.items())
    return {"spec": _spec(sharding.spec, axes), "mesh": mesh, **devices}


def _spec(spec: Any, axes: dict[Any, int]) -> str:
    """Writes a spec without entries that have no effect: axes of size 1, and None at its end."""
    found = []
    for entry in entries(spec):
        kept = [name for name in axes_of(entry) if name in axes]
        found.append(tuple(kept) if len(kept) > 1 else kept[0] if kept else None)
    while found and found[-1] is None:
        found.pop()
    return f"P({', '.join(map(repr, found))})"


def _listed(ids: list[int]) -> str:
    """Writes the ids of devices in mesh order, such as "0-7"."""
    if ids == list(range(ids[0], ids[0] + len(ids))):
        return f"{ids[0]}-{ids[-1]}"
    if len(ids) <= LISTED:
        return " ".join(map(str, ids))
    return f"{' '.join(map(str, ids[:LISTED]))} … (hash {hash(tuple(ids)) & 0xFFFFFFFF:08x})"


def _whole(leaf: Any) -> Index:
    return tuple((0, size) for size in leaf.shape)


@functools.lru_cache(256)
def _copies(sharding: Any, shape: tuple[int, ...]) -> dict[Index, Copies]:
    """Returns the copies of every part of an array on devices."""
    found: dict[Index, Copies] = defaultdict(list)
    for device, index in _parts(sharding, shape).items():
        found[index].append((device.process_index, device.id))
    return found


def _held(leaf: Any) -> Iterator[tuple[int, Index, Any]]:
    """Yields the parts of an array that this process holds: device, index and data."""
    if isinstance(leaf, jax.Array):
        parts = _parts(leaf.sharding, leaf.shape)
        for shard in leaf.addressable_shards:
            yield shard.device.id, parts[shard.device], shard.data
    else:
        yield HOST, _whole(leaf), leaf


def _hash(work: Sequence[tuple[Block, int, Any]]) -> None:
    """Hashes copies on several threads, and adds the digests to their blocks."""
    numbers, stop = itertools.count(), threading.Event()

    def hash_some() -> None:
        while not stop.is_set() and (i := next(numbers)) < len(work):
            block, device, data = work[i]
            block.digests[device], block.size = _digest(data)

    with ThreadPoolExecutor(WORKERS, "meshfeed.digests") as pool:
        try:
            for future in [pool.submit(hash_some) for _ in range(WORKERS)]:
                future.result()
        finally:  # after an error or Ctrl-C, every other thread ends after its current copy
            stop.set()


def _digest(data: Any) -> tuple[bytes, int]:
    """Returns the digest and the number of the bytes of a part of an array."""
    if isinstance(data, jax.Array):
        if jax.numpy.issubdtype(data.dtype, jax.dtypes.prng_key):
            data = jax.random.key_data(data)
        # A new object, because JAX keeps the copy on the host as long as the object exists.
        own = jax.make_array_from_single_device_arrays(data.shape, data.sharding, [data])
        data = jax.device_get(own)
    host = np.ascontiguousarray(data)
    return calls.digest_of(host.ctypes.data, host.nbytes), host.nbytes
