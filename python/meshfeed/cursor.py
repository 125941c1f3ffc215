"""One pass through the batches of a loader's handle: fetch, own, hand over, in order."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import deque
from collections.abc import Callable
from ctypes import POINTER, byref, c_void_p, cast
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from meshfeed import _native
from meshfeed.errors import Code

Root = npt.NDArray[np.uint8]
Make = Callable[[Root], Any]


class Item(NamedTuple):
    """A batch, and where the cursor stands after it."""

    batch: Any
    epoch: int
    position: int
    last: bool  # of its epoch


class Cursor:
    """The Python end of a loader handle. Any thread may take; each batch goes to one of them.

    Args:
        handle: the loader's, or that of one epoch; the cursor closes it.
        make: makes a batch over memory that the array it gets keeps alive.
        ahead: how many batches to make before they are asked for.
        across: whether to make batches of the next epoch ahead too.
    """

    def __init__(self, handle: int, make: Make, *, ahead: int, across: bool, keep: int) -> None:
        self.handle = _native.Handle(handle, "loader")
        self._make = make
        self._ahead = ahead
        self._across = across
        self._lock = threading.Lock()
        self._ready: deque[Item | Exception] = deque()
        self._torn = False
        state = _native.loader_state(handle)
        self.epoch: int = state["epoch"]
        self.position: int = state["position"]
        # JAX gives memory back late: at its next call or collection. Beyond so many live
        # batches a collection comes first. The bound grows with what the user really keeps.
        self._keep = self._bound = keep
        self._live = 0
        self._next = _native.library().mf_loader_next

    def take(self) -> Item | None:
        """Gives the next batch, or None at the end of the pass."""
        with self._lock:
            if self._torn:
                self._mend()
            try:
                item = self._ready.popleft() if self._ready else self._fetch(_native.SLICE_MS)
                if isinstance(item, Exception):
                    raise item
                if item is not None:
                    self._run_ahead(item)
                    self.epoch, self.position = item.epoch, item.position
            except KeyboardInterrupt:
                self._torn = True  # a batch may be lost between C and here
                raise
            return item

    def _mend(self) -> None:
        """Goes back to the batch after the last one delivered, after an interrupt."""
        _native.loader_seek(self.handle.value, self.epoch, self.position)
        self._ready.clear()
        self._torn = False

    def _run_ahead(self, item: Item) -> None:
        """Makes batches whose transfer can run during the user's step, if they stand ready."""
        while len(self._ready) < self._ahead:
            before = self._ready[-1] if self._ready else item
            if isinstance(before, Exception) or (before.last and not self._across):
                return
            try:
                further = self._fetch(0)
            except Exception as e:  # delivered in its place, by a later take
                self._ready.append(e)
                return
            if further is None:
                return
            self._ready.append(further)

    def _fetch(self, timeout: int) -> Item | None:
        """Gets a batch from C; None at the end, and with no timeout where none stands ready."""
        collected = self._live > self._bound and gc.collect(0) >= 0
        batch = c_void_p()
        failure = _native.Failure()
        handle = self.handle.value
        while True:
            code = self._next(handle, timeout, byref(batch), byref(failure))
            if code == Code.OK:
                break
            if code < 0:
                raise failure.exception(code)
            if code == Code.End or timeout == 0:
                return None
        return self._item(batch, collected=collected)

    def _item(self, batch: c_void_p, *, collected: bool) -> Item:
        head = cast(batch, POINTER(_native.Head)).contents
        owner = Owner(batch.value, head.data, head.bytes)
        self._live = head.live
        if collected and self._live > self._bound:
            self._bound = 2 * self._live
        elif self._live <= self._keep:
            self._bound = self._keep
        epoch = head.next_epoch
        return Item(self._make(np.asarray(owner)), epoch, head.next_position, epoch != head.epoch)

    def remaining(self) -> int:
        """Gives the number of batches that a loop started now yields; -1 without end."""
        with self._lock:
            ready = [item for item in self._ready if isinstance(item, Item)]
            if ready and ready[-1].last and not self._across:
                return len(ready)
            rest = _native.loader_len(self.handle.value)
            return rest if rest < 0 else rest + len(ready)

    @contextlib.contextmanager
    def moved(self) -> Any:
        """Guards a change of the place: what was made ahead is dropped, the place read anew."""
        with self._lock:
            yield self.handle.value
            self._ready.clear()
            state = _native.loader_state(self.handle.value)
            self.epoch, self.position = state["epoch"], state["position"]

    def close(self) -> None:
        """Ends a take under way on another thread, and releases the handle."""
        self.handle.close()
        self._ready.clear()


class Owner:
    """The root of every view of a batch: when the last of them is gone, so is the batch."""

    __slots__ = ("__array_interface__", "_batch")

    def __init__(self, batch: int | None, data: int, size: int) -> None:
        self._batch = batch
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (data, True),  # read-only
        }

    def __del__(self, library: Callable[[], Any] = _native.library) -> None:
        library().mf_batch_release(self._batch)
