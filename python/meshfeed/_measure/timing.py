"""The loop that a benchmark times: the wait for batches, steps, and what a batch holds."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from meshfeed._io.arguments import Checks, getattr_or_none, repr_short
from meshfeed.errors import InvalidArgumentError

_clock = time.perf_counter
_END = object()


@dataclasses.dataclass
class Lap:
    """One cycle of the loop: a batch is taken, a step is dispatched, and a step ends."""

    seconds: float
    waited: float  # in the iterator, and if closed until the batch is on its devices
    called: float  # in the call of the step
    rows: int | None
    bytes: int | None


class Loop:
    """A training loop with timed cycles.

    Args:
        check: raises errors with the name of the user's call.
        source: the iterable of batches.
        step: the user's function, or None.
        carry: its first argument, or None.
        closed: whether the loop waits for the end of every step.
    """

    def __init__(self, check: Checks, source: Any, step: Any, carry: Any, *, closed: bool) -> None:
        if isinstance(source, Mapping | str | bytes) or not _iterable(source):
            hint = "a dict or an array is a single batch; mf.Loader makes batches of a dataset"
            raise check.wrong("source", source, "a loader or an iterable of batches", hint)
        if step is not None and not callable(step):
            raise check.wrong("step", step, "a function of a batch, or None")
        if step is None and carry is not None:
            raise check.misfit("carry is given without a step", "pass step= too")
        if step is not None:
            _check_arguments(check, step, has_carry=carry is not None)
        self._check, self.source, self.step, self._carry = check, source, step, carry
        self.closed = closed or step is None
        self._new_carry: Callable[[Any], Any] | None = None  # known after the first step
        self._donates = False  # whether a step deletes all results of the step before
        self._dims = _batch_dimensions(source)
        self._batch: Any = None  # the last one
        self.epochs = 0
        self._result: Any = None

    def laps(self, loop: Iterator[Any], count: int) -> list[Lap]:
        """Runs some cycles of the loop, and fewer if the iterator ends."""
        laps: list[Lap] = []
        under_way: deque[Any] = deque()  # results of steps that may still run
        while len(laps) < count:
            begin = _clock()
            batch = next(loop, _END)
            if batch is _END:
                break
            self._batch = batch
            if self.closed:
                _wait(batch)
            received = _clock()
            if self._donates:
                _wait_for_all(under_way)
            started = _clock()
            under_way.append(self._dispatch(batch))
            called = _clock()
            if self.closed:
                _wait_for_all(under_way)
            elif len(under_way) > 1 and not _wait(under_way.popleft()):
                self._donates = True
            end = _clock()
            laps.append(Lap(end - begin, received - begin, called - started, *self._size(batch)))
        begin = _clock()
        _wait_for_all(under_way)
        if len(laps) == 1:  # no further cycle contains the end of its step
            laps[0].seconds += _clock() - begin
        return laps

    def again(self) -> Iterator[Any]:
        """Yields batches, and begins the iteration again when it ends."""
        found = True
        while found:
            found = False
            self.epochs += 1
            for batch in self.source:
                found = True
                yield batch
        self.epochs -= 1  # the last one had no batch

    def _dispatch(self, batch: Any) -> Any:
        """Calls the step and returns its result, keeping the carry."""
        if self.step is None:
            return None
        if self._carry is None:
            self._result = self.step(batch)
            return self._result
        result = self.step(self._carry, batch)
        if self._new_carry is None:
            self._new_carry = self._carry_of(result)
        self._carry = self._new_carry(result)
        self._result = result
        return result

    def _carry_of(self, result: Any) -> Callable[[Any], Any]:
        """Finds out how a step returns the carry: alone, or first in a tuple."""
        if _alike(result, self._carry):
            self._check_shapes(result)
            return lambda whole: whole
        if isinstance(result, tuple) and result and _alike(result[0], self._carry):
            self._check_shapes(result[0])
            return lambda whole: whole[0]
        message = f"the step returned {repr_short(result)}, which is not a carry"
        hint = "return the new carry, in the structure of the one given, or (carry, loss)"
        raise self._check.misfit(message, hint)

    def _check_shapes(self, carry: Any) -> None:
        """Checks that a step returns arrays of the shapes that it takes."""
        given, returned = (
            [tuple(getattr_or_none(leaf, "shape") or ()) for leaf in _tree_leaves(tree)]
            for tree in (self._carry, carry)
        )
        for before, after in zip(given, returned, strict=True):
            if before != after:
                message = f"the step took a carry of shape {before}, and returned {after} for it"
                raise self._check.misfit(message, "return the new carry, or (carry, loss)")

    def alone(self, count: int) -> float | None:
        """Returns the mean seconds of the step without input, if the last batch still exists."""
        if self.step is None or any(_deleted(leaf) for leaf in _leaves(self._batch)):
            return None
        laps = self.laps(itertools.repeat(self._batch), count + 1)
        return sum(lap.seconds for lap in laps[1:]) / count

    def _size(self, batch: Any) -> tuple[int | None, int | None]:
        """Returns the rows and the bytes of a batch; None if they are not known."""
        rows, total = set(), 0.0
        for leaf in _leaves(batch):
            shape, one = _shape(leaf), _item_bytes(leaf)
            if len(shape) >= self._dims:
                rows.add(math.prod(shape[: self._dims]))
            total += math.prod(shape) * one if one is not None else math.nan
        known = None if math.isnan(total) else int(total)
        return (rows.pop() if len(rows) == 1 else None), known

    def memory(self) -> dict[str, int | None]:
        """Returns the bytes on the device of this process that has the most."""
        batch, carry = _per_device(self._batch), _per_device(self._carry)
        devices = {*batch, *carry, *_per_device(self._result)}
        measured = [getattr_or_none(device, "memory_stats") for device in devices]
        stats = [found for read in measured if read and (found := read())]
        return {
            "batch": max(batch.values(), default=None),
            "carry": max(carry.values(), default=None),
            "peak": _largest(stats, "peak_bytes_in_use"),
            "limit": _largest(stats, "bytes_limit"),
        }


def _jax() -> Any:
    """Returns JAX if the program has imported it; otherwise no array is one of JAX's."""
    return sys.modules.get("jax")


def _wait(result: Any) -> bool:
    """Waits for the arrays of a result; returns False if all of them were donated."""
    jax = _jax()
    if jax is None:
        return True
    leaves = jax.tree.leaves(result)
    kept = [leaf for leaf in leaves if not _deleted(leaf)]
    jax.block_until_ready(kept)
    return bool(kept) or not leaves


def _wait_for_all(results: deque[Any]) -> None:
    while results:
        _wait(results.popleft())


def _deleted(leaf: Any) -> bool:
    """Returns whether an array's memory was donated to a computation."""
    ask = getattr(leaf, "is_deleted", None)
    return bool(ask()) if callable(ask) else False


def _alike(a: Any, b: Any) -> bool:
    """Returns whether two trees have the same structure."""
    jax = _jax()
    if jax is None:
        return type(a) is type(b)
    return bool(jax.tree.structure(a) == jax.tree.structure(b))


def _tree_leaves(tree: Any) -> list[Any]:
    jax = _jax()
    return [tree] if jax is None else list(jax.tree.leaves(tree))


def _check_arguments(check: Checks, step: Callable[..., Any], *, has_carry: bool) -> None:
    """Checks that a step takes a batch, or a carry and a batch."""
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # such as of a built-in function, which has no signature
        return
    try:
        signature.bind(*[None] * (1 + has_carry))
    except TypeError:
        if has_carry:
            hint = "a step of several values takes one tuple, such as carry=(params, states)"
            raise check.wrong("step", step, "a function step(carry, batch)", hint) from None
        hint = "pass parameters as carry=, for a function step(carry, batch)"
        raise check.wrong("step", step, "a function step(batch)", hint) from None


def _iterable(source: Any) -> bool:
    return hasattr(type(source), "__iter__") and getattr_or_none(source, "dtype") is None


def is_source(value: Any) -> bool:
    """Reports whether a value is a loader or another iterable of batches, and no batch."""
    return _iterable(value) and not isinstance(value, Mapping | list | tuple | str | bytes)


def _batch_dimensions(source: Any) -> int:
    """Returns how many dimensions count rows: several for a loader with a tuple as batch size."""
    layout = getattr_or_none(source, "layout")
    if not callable(getattr_or_none(layout, "to_json")):
        return 1
    try:
        size = json.loads(layout.to_json())["batch"]["size"]
    except (InvalidArgumentError, KeyError, TypeError, ValueError):
        return 1
    return len(size) if isinstance(size, list) else 1


def _leaves(tree: Any) -> Iterator[Any]:
    """Yields the arrays of a batch, and lists of numbers or texts as one leaf each."""
    if isinstance(tree, Mapping):
        for value in tree.values():
            yield from _leaves(value)
    elif isinstance(tree, tuple | list):
        if tree and isinstance(tree[0], str | bytes | int | float):
            yield tree
        else:
            for value in tree:
                yield from _leaves(value)
    elif hasattr(tree, "shape"):
        yield tree
    elif tree is not None and not isinstance(tree, str | bytes | int | float) and _jax():
        for leaf in _jax().tree.leaves(tree):  # a class that JAX knows
            if leaf is not tree:
                yield from _leaves(leaf)


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(leaf.shape) if hasattr(leaf, "shape") else (len(leaf),)


def _item_bytes(leaf: Any) -> int | None:
    """Returns the bytes of an element: of NumPy, JAX and PyTorch, or of TensorFlow's `size`."""
    dtype = getattr_or_none(leaf, "dtype")
    found = getattr_or_none(dtype, "itemsize") or getattr_or_none(dtype, "size")
    return found if isinstance(found, int) else None


def _per_device(tree: Any) -> dict[Any, int]:
    """Returns the bytes on every local device of the `jax.Array`s of a tree."""
    sums: dict[Any, int] = {}
    for leaf in _leaves(tree):
        sharding, one = getattr_or_none(leaf, "sharding"), _item_bytes(leaf)
        if sharding is None or one is None:
            continue
        part = math.prod(sharding.shard_shape(leaf.shape)) * one
        for device in sharding.addressable_devices:
            sums[device] = sums.get(device, 0) + part
    return sums


def _largest(stats: Sequence[Mapping[str, int]], name: str) -> int | None:
    return max((found[name] for found in stats if name in found), default=None)
