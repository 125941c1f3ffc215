"""One pass through the batches of a loader's handle: fetch, own, hand over, in order."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from meshfeed._native import calls
from meshfeed._native.abi import Head
from meshfeed._native.handle import Handle, Next, batch_release
from meshfeed._native.owner import Owner, Release, owner_type
from meshfeed.errors import ResourceExhaustedError

Make = Callable[["Owner"], Any]

# The remedy for questions about what was delivered, which another loader cannot answer.
ASK_BEFORE = "ask before close(), inside of the with block"


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
        make: makes a batch over memory that the owner it gets exports and keeps alive.
        size: the bytes of a batch.
        ahead: how many batches to make before they are asked for.
        across: whether to make batches of the next epoch ahead too.
        keep: as many live batches are no reason to collect.
        settle: waits until the computations that were dispatched, and hold batches, are over.

    Attributes:
        ends: how often a pass has come to its end.
        last: epoch and position of the batch that was delivered last; None before the first one.
    """

    def __init__(
        self,
        handle: Handle,
        make: Make,
        *,
        size: int,
        ahead: int,
        across: bool,
        keep: int,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._ahead = ahead
        self._across = across
        self.lock = threading.Lock()
        # Batches that were made and not delivered. None stands for the end of the loop under way,
        # where `peek` looked beyond it; it is always the first.
        self._ready: deque[Item | Exception | None] = deque()
        self._torn = False
        self.ends = 0
        self.last: tuple[int, int] | None = None
        self._release = batch_release()
        self.follow(handle, make, size=size, keep=keep, settle=settle)

    def follow(
        self,
        handle: Handle,
        make: Make,
        *,
        size: int,
        keep: int,
        settle: Callable[[], None],
    ) -> None:
        """Takes batches from a handle from now on, and places itself where that stands.

        Args:
            handle: the handle; the cursor closes it.
            make: as for the cursor.
            size: as for the cursor.
            keep: as for the cursor.
            settle: as for the cursor.
        """
        at = _place(handle.value)
        following, owner = Next(handle.value), owner_type(size)
        # Ctrl-C comes behind calls, and so not between these.
        self.handle, self._make, self._next, self._owner = handle, make, following, owner
        self._settle = settle
        # JAX gives memory back late: at its next call or collection. Beyond so many live
        # batches a collection comes first. The bound grows with what the user really keeps.
        self._keep = self._bound = keep
        self._live = self._flushed = 0
        self._at: tuple[int, int] | None = at

    @property
    def at(self) -> tuple[int, int]:
        """Epoch and position of the next batch, which belong together on any thread."""
        # After Ctrl-C in the middle of a move only the library knows.
        return self._at or _place(self.handle.value)

    def take(self) -> Item | None:
        """Gives the next batch, or None at the end of the pass. The caller holds the lock."""
        if self._torn:
            self._mend()
        elif self._at is None:
            self._at = self.at
        try:
            item = self._ready.popleft() if self._ready else self._fetch(wait=True)
            if isinstance(item, Exception):
                raise item
            if item is not None:
                if self._ahead:
                    self._run_ahead(item)
                self.last, self._at = self._at, (item.epoch, item.position)
            else:
                self.ends += 1
        except KeyboardInterrupt:
            self._torn = True  # a batch may be lost between C and here
            self._next.drop()
            raise
        return item

    def peek(self) -> Item | None:
        """Gives the batch that the next take gives, or None where there is none.

        Where a loop under way ends first, it is the first batch of the next loop. The caller
        holds the lock.
        """
        if self._torn:
            self._mend()
        try:
            if all(item is None for item in self._ready):
                self._make_ready()
            item = next((item for item in self._ready if item is not None), None)
            if isinstance(item, Exception):
                self._ready.clear()
                raise item
        except KeyboardInterrupt:
            self._torn = True
            self._next.drop()
            raise
        return item

    def _make_ready(self) -> None:
        """Makes the next batch, if there is one, before it is asked for."""
        item = self._fetch(wait=True)
        if item is None and not self._across:  # the end of a loop, behind which the next begins
            self._ready.append(None)
            item = self._fetch(wait=True)
        if item is not None:
            self._ready.append(item)

    def _mend(self) -> None:
        """Goes back to the batch after the last one delivered, as one was lost on its way."""
        self._torn = True  # until it is done
        self._next.drop()
        ends = bool(self._ready) and self._ready[0] is None
        self._ready.clear()
        calls.loader_rewind(self.handle.value, *self.at)
        if ends:  # which the library has told, and does not tell again
            self._ready.append(None)
        self._torn = False

    def _run_ahead(self, item: Item) -> None:
        """Makes batches whose transfer can run during the user's step, if they stand ready."""
        while len(self._ready) < self._ahead:
            before = self._ready[-1] if self._ready else item
            if not isinstance(before, Item) or (before.last and not self._across):
                return
            try:
                further = self._fetch(wait=False)
            except Exception as e:  # delivered in its place, by a later take
                self._ready.append(e)
                return
            if further is None:
                return
            self._ready.append(further)

    def _fetch(self, *, wait: bool) -> Item | None:
        """Gets a batch from C; None at the end and, without waiting, where none is ready."""
        self.handle.check()
        if self._live > self._bound:
            self._flush()
        try:
            head = self._next(wait=wait)
        except ResourceExhaustedError:
            head = self._next_with_room(wait=wait)
        if head is None:
            return None
        owner = self._owner.from_address(head.data or ctypes.addressof(head))
        owner.release = release = Release(owner, self._release)
        self._next.hand_over(release)
        self._live = head.live
        if self._live <= self._keep:
            self._bound, self._flushed = self._keep, 0
        epoch = head.next_epoch
        try:
            batch = self._make(owner)
        except Exception:
            self._torn = True  # C has moved on, and the next take goes back
            raise
        return Item(batch, epoch, head.next_position, epoch != head.epoch)

    def _next_with_room(self, *, wait: bool) -> Head | None:
        """Asks again after memory may have become free, which is tried in three ways.

        JAX gives back late what nobody uses, and a computation that was dispatched holds its
        batch until it has run.
        """
        if not wait:  # the batch is asked for again when its turn comes
            return None
        for generation in (0, 1):
            gc.collect(generation)
            with contextlib.suppress(ResourceExhaustedError):
                return self._next(wait=True)
            self._settle()
        gc.collect()
        return self._next(wait=True)

    def _flush(self) -> None:
        """Lets Python and JAX drop what nobody uses, before more memory is taken.

        What a collection finds, JAX gives back when it makes the next arrays, so its effect
        shows two batches later. What two collections have not found is kept on purpose.
        """
        self._flushed += 1
        if self._flushed == 1:
            gc.collect(0)
        elif self._flushed == 4:
            gc.collect(1)
        elif self._flushed == 7:
            self._bound, self._flushed = 2 * self._live, 0

    def remaining(self) -> int:
        """Gives the number of batches that a loop started now yields; -1 without end."""
        with self.lock:
            self.handle.check(ASK_BEFORE)
            ready = [item for item in self._ready if isinstance(item, Item)]
            if ready and ready[-1].last and not self._across:
                return len(ready)
            rest = calls.loader_len(self.handle.value)
            return rest if rest < 0 else rest + len(ready)

    def certificate(self) -> str:
        """Gives the certificate of the batches delivered, without those made ahead."""
        with self.lock:
            self.handle.check(ASK_BEFORE)
            return calls.loader_certificate(self.handle.value, *self.at)

    def stats(self) -> dict[str, int]:
        """Gives the counts of the library, those of batches made ahead included."""
        self.handle.check(ASK_BEFORE)
        return calls.loader_stats(self.handle.value)

    # These are no context managers: Ctrl-C between `__enter__` and the block would leave the lock
    # to whoever keeps the traceback, as a notebook does.

    def take_made(self, make: Make) -> Item | None:
        """Takes a batch that is made in another way, and makes none ahead. The lock is held."""
        usual = self._make, self._ahead
        self._torn = self._torn or bool(self._ready)  # those were made the usual way
        self._make, self._ahead = make, 0
        try:
            return self.take()
        finally:
            self._make, self._ahead = usual

    def move(self, change: Callable[[int], None]) -> None:
        """Changes the place.

        Args:
            change: is given the handle, and calls the library. Where it fails, all is as it was.
        """
        with self.lock:
            handle = self.handle.value
            if self._torn or self._ready:
                self._mend()
            before, self._at = self._at, None
            try:
                change(handle)
            except Exception:
                self._at = before
                raise
            except BaseException:  # before or behind the change
                self._moved()
                raise
            self._moved()

    def _moved(self) -> None:
        """Comes after a change of the place."""
        self._ready.clear()  # a loop under way goes on there
        self._at = self.at

    def replace(self, exchange: Callable[[int], None]) -> None:
        """Exchanges the handle, which stands behind the last batch delivered.

        Args:
            exchange: is given the old handle, and calls `follow` with a new one.
        """
        with self.lock:
            if self._torn or self._ready:
                self._mend()
            old = self.handle
            exchange(old.value)
            old.close()

    def close(self, cause: BaseException | None = None) -> None:
        """Ends a take under way on another thread, and releases the handle.

        Args:
            cause: the exception that ends the block of the loader, if one does.
        """
        self.handle.close(None if cause is None else type(cause))
        self._ready.clear()


def _place(handle: int) -> tuple[int, int]:
    """Gives epoch and position of the batch that the library hands out next."""
    state = calls.loader_state(handle)
    return state["epoch"], state["position"]
