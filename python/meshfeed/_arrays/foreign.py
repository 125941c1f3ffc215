"""Batches that meshfeed did not load, as global arrays on a mesh."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from meshfeed._arrays.stream import Stream, close_generator
from meshfeed._io.arguments import DEPTH, Checks
from meshfeed._jobs.loops import Loop, joined
from meshfeed._native.lock import Lock
from meshfeed.errors import InvalidStateError

if TYPE_CHECKING:
    from jax.sharding import Mesh


def put(
    tree: Any,
    mesh: Mesh | None = None,
    specs: Any = None,
    *,
    rows: Literal["all", "local"] = "all",
    may_alias: bool | None = None,
) -> Any:
    """Places host arrays of any library on a mesh, as global `jax.Array`s.

    The arrays may come from NumPy, torch on the CPU, TensorFlow, Grain, images of Pillow, or any
    object with `__array__`, `__array_interface__`, `__dlpack__` or a buffer. A table is one array,
    unless its integers would become floats: then give a dict of its columns. Numbers become arrays
    without dimensions. This function neither sends data to other processes nor waits for them;
    `jax.device_put` would compare the data of all processes in every call.

    Args:
        tree: an array, or dicts, lists, tuples and other pytrees of arrays.
        mesh: the mesh. None for the mesh of `NamedSharding`s, or else of `jax.set_mesh`.
        specs: a `PartitionSpec` or `NamedSharding` for all arrays, or a tree of them. As in JAX,
            the tree may be a prefix of `tree`.
        rows: "all": every process has the whole arrays. "local": every process has its own rows:
            those that its devices hold, in increasing order. The other dimensions are whole. The
            number of rows in all processes follows from the sharding, so all processes must give
            the same number for each part of the rows. Processes that hold the same rows must give
            equal ones; a warning is logged if there are such processes. This call cannot notice
            other numbers or rows, but `mf.check_replicas` compares the arrays of all processes.
        may_alias: whether the arrays may use the memory without a copy. None: if nothing can write
            to it. True: always, as `jax.device_put` does on the CPU. If the caller then writes to
            the memory, the array changes, so write to it no more. False: never.

    Returns:
        The tree, with a global `jax.Array` for every array. A `jax.Array` that is in its place
        already is returned as it is.

    Raises:
        InvalidArgumentError: a spec does not fit its array, or a leaf is not an array of numbers.
        InvalidStateError: a `jax.Array` was deleted, or JAX traces the function of the call.
        OutOfRangeError: a 32-bit integer cannot hold a number.
        ForkedError: this process is a forked child.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> batch = {"image": np.zeros((8, 28, 28), np.float32), "label": np.arange(8)}
        >>> placed = mf.put(batch, mesh, P("data"))
        >>> placed["image"].shape, placed["label"].sharding.spec
        ((8, 28, 28), P('data',))

        A spec for each array, and a number for all devices:

        >>> specs = {"image": P("data"), "scale": P()}
        >>> mf.put({"image": batch["image"], "scale": 0.5}, mesh, specs)["scale"]
        Array(0.5, dtype=float32)
    """
    return _placing().put(tree, mesh, specs, rows, may_alias)


def place_batches(
    iterable: Iterable[Any],
    mesh: Mesh | None = None,
    specs: Any = None,
    *,
    rows: Literal["all", "local"] = "all",
    may_alias: bool | None = None,
    prefetch: int = 2,
) -> PlacedBatches:
    """Places the batches of another loader, and reads ahead in a thread.

    The thread takes a batch from the iterable, places it as `mf.put` does, and repeats this until
    `prefetch` batches are ready. So memory holds at most that many batches in addition to the
    batches of the program. An exception of the iterable, or of the placement, is raised in the
    place of its batch.

    Every process of the mesh must take the same number of batches. If one takes fewer, the others
    wait for it in their next step, and the log says so.

    Every batch is placed by itself. If the last one has fewer rows, it has another shape, and its
    rows must divide over the mesh, too. To fill it up, give the rows to a loader: with
    `remainder="pad"`, `mf.Loader(mf.from_arrays(batch), mesh, specs, batch_size=n)` yields them
    with a mask.

    Args:
        iterable: the batches, such as a torch or Grain `DataLoader`, `tf.data`, or a generator.
        mesh: as in `mf.put`. The mesh of `jax.set_mesh` is read at this call.
        specs: as in `mf.put`.
        rows: as in `mf.put`.
        may_alias: as in `mf.put`. By default the iterable may reuse the memory of its batches.
            With True it must make new memory for each.
        prefetch: the number of batches to place ahead. 0: each batch is placed when the program
            asks for it, without a thread.

    Returns:
        An iterator of batches. Use it as a context manager, or close it, to end the thread
        before the iterable ends. If `iterable` is not an iterator itself, every loop over the
        result reads it anew. `len()` is the length of the iterable.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> stream = [{"x": np.full(4, step)} for step in range(3)]
        >>> with mf.place_batches(stream, mesh, P("data")) as batches:
        ...     print(len(batches), [int(batch["x"][0]) for batch in batches])
        3 [0, 1, 2]
    """
    with Checks("mf.place_batches") as check:
        depth = check.integer("prefetch", prefetch, 0, DEPTH)
        if isinstance(iterable, Mapping | np.ndarray | str | bytes):
            raise check.wrong(
                "iterable", iterable, "an iterable of batches", "mf.put places one batch"
            )
        if not hasattr(type(iterable), "__iter__") and not hasattr(iterable, "__getitem__"):
            raise check.wrong("iterable", iterable, "an iterable of batches")
        place = _placing().placer(mesh, specs, rows, may_alias)
        caller = sys._getframe(1)
        file = ascii(os.path.basename(caller.f_code.co_filename))[1:-1]
    line = f"mf.place_batches in {file}, line {caller.f_lineno}"
    return PlacedBatches(iterable, place, depth, line)


@cache
def _placing() -> Any:
    """Returns the module that needs JAX, which the first call imports."""
    import meshfeed._jax.put as module

    return module


class PlacedBatches(Iterator[Any]):
    """The batches of another loader on a mesh; see `mf.place_batches`.

    Args:
        iterable: the batches.
        place: places a batch.
        prefetch: the number of batches to place ahead.
        line: names the loops in the log.
    """

    def __init__(
        self, iterable: Iterable[Any], place: Callable[[Any], Any], prefetch: int, line: str
    ) -> None:
        self._source, self._place, self._prefetch = iterable, place, prefetch
        self._line = line
        self._lock = Lock()  # guards the attributes below
        self._passes: weakref.WeakSet[Pass] = weakref.WeakSet()
        self._own: Pass | None = None  # which `next` and all loops over an iterator share
        self._closed = False

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            self._check_open()
            return self if isinstance(self._source, Iterator) else self._new_pass()

    def __next__(self) -> Any:
        with self._lock:
            if self._own is None:
                self._own = self._new_pass()
        return next(self._own)

    def __len__(self) -> int:
        if not isinstance(self._source, Sized):
            raise TypeError(f"an object of type {type(self._source).__name__} has no len()")
        return len(self._source)

    def _check_open(self) -> None:
        if self._closed:
            message = "the batches are closed"
            raise InvalidStateError(message, op="mf.place_batches", hint="call it again")

    def _new_pass(self) -> Pass:
        self._check_open()
        new = Pass(self._source, self._place, self._prefetch, self._line)
        self._passes.add(new)
        return new

    def close(self) -> None:
        """Ends all loops and their threads, and refuses new ones. Taken batches stay valid.

        A thread ends when the iterable has returned its current batch. This method waits for that,
        but at most for a second. Closing again does nothing.
        """
        self._end(wait=True)

    def _end(self, *, wait: bool) -> None:
        with self._lock:
            self._closed = True
            passes = list(self._passes)
        for each in passes:
            each.close(wait=wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(wait=kind is None or issubclass(kind, Exception))


class Pass(Iterator[Any]):
    """One loop over the batches of another loader.

    Args:
        iterable: the batches.
        place: places a batch.
        prefetch: the number of batches to place ahead.
        line: names the loop in the log.
    """

    def __init__(
        self, iterable: Iterable[Any], place: Callable[[Any], Any], prefetch: int, line: str
    ) -> None:
        self._line = line
        self._begun = False
        self._loop: Loop | None = None  # in a job of several processes, from the first batch on
        self._stream: Stream | None = None
        if prefetch:
            self._stream = Stream(iterable, place, prefetch, "meshfeed.place_batches")
            self._batches: Iterator[Any] = self._stream
        else:
            self._taken = iter(iterable)
            self._batches = map(place, self._taken)

    def __next__(self) -> Any:
        from meshfeed._jax.runtime import check_untraced

        check_untraced("mf.place_batches")
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end(over=True)
            raise
        if not self._begun:
            self._begun = True
            self._loop = joined(self._line, *_placing().processes(batch))
        if self._loop is not None:
            self._loop.take()
        return batch

    def _end(self, *, over: bool, wait: bool = True) -> None:
        """Tells the other processes that the loop ends, and whether its batches are over."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.end(over=over, wait=wait)

    def close(self, *, wait: bool = True) -> None:
        """Ends the loop.

        Args:
            wait: whether to wait for the thread, for up to a second.
        """
        self._end(over=False, wait=wait)
        if self._stream is not None:
            self._stream.close(wait=wait)
            return
        self._batches = iter(())
        close_generator(self._taken)
