"""The cursor of a loader fetches its batches from the C library, in order, for all loops."""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import addressof, byref, c_int32, c_int64, c_uint64, c_void_p
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from meshfeed._feed.clock import Clock
from meshfeed._feed.feed import Feed, Mark
from meshfeed._native import calls, library
from meshfeed._native.abi import Failure, Head
from meshfeed._native.handle import Handle, batch_release
from meshfeed._native.library import SLICE_MS
from meshfeed._native.owner import Owner, Release, owner_type
from meshfeed.errors import Code, Error, InvalidStateError

if TYPE_CHECKING:
    from meshfeed._feed.decoding import Watch

Make = Callable[[Owner], Any]

# A batch, the epoch and position after it, and whether it is the last batch of its epoch.
Item = tuple[Any, tuple[int, int], bool]

# The hint if the certificate or the statistics are requested from a closed loader.
ASK_BEFORE = "ask before close(), inside of the with block"

_TIMEOUT, _EXHAUSTED = int(Code.Timeout), int(Code.ResourceExhausted)


class Before(NamedTuple):
    """The values of a cursor before a batch was taken.

    Attributes:
        thread: the thread that has taken the batch.
        at: epoch and position of the batch.
        last, ends, unseen, taken: the cursor's values.
    """

    thread: int
    at: tuple[int, int]
    last: tuple[int, int] | None
    ends: int
    unseen: bool
    taken: int


class Cursor:
    """Fetches the batches of one library handle. All loops and threads of a loader share it.

    The caller of `take`, `take_made` and `peek` must hold the lock, by `exclusive`.

    Signals: Python runs signal handlers, and raises KeyboardInterrupt, only when a function begins,
    after a call, and at the end of a loop's body. Assignments that belong together therefore have
    no call between them. Two rules follow for a signal inside of `next`:

    - A handler sees the position before the batch, until `next` returns it: see `before`.
    - If an exception ends `next`, the program does not get the batch. The cursor is then out of
      sync. The next call moves the library back, and the next `take` returns the batch again.

    Args:
        handle: the handle of a loader or of a pass over one epoch; the cursor closes it.
        feed: makes the batches.
        size: the bytes of a batch.
        ahead: how many batches to make before the program asks for them.
        per_epoch: whether every loop is one epoch. Then no batch beyond its end is made ahead.
        keep: up to this number of live batches, no garbage collection is needed.

    Attributes:
        handle: the handle.
        feed: makes the batches.
        lock: serializes the calls that take and move. A signal handler may lock it again.
        ahead: how many batches to make before the program asks for them.
        ends: counts how often a loop's epoch ended, by its last batch or by a skip; 0 unless
            `per_epoch`. A loop is over when this number has changed since its first batch.
        unseen: whether the cursor is at the last of these ends, and no loop has stopped there yet.
        taken: counts the batches that were taken; a subclass resets it.
        before: the values before the batch that was taken, until `next` returns it, then None.
        clock: the times of the loop since the first batch of the handle.
        watch: warns if decoded data cannot be kept on disk; None if none are.
        marks: marks the parts of the present call in a profiler; None if it records no trace.
        unmarked: a context manager that does nothing, in less time than `contextlib.nullcontext`.
    """

    def __init__(
        self, handle: Handle, feed: Feed, *, size: int, ahead: int, per_epoch: bool, keep: int
    ) -> None:
        self.ahead = ahead
        self._per_epoch = per_epoch
        self.lock = threading.RLock()
        self._ready: deque[Item] = deque()  # made and not delivered
        self._out_of_sync = False
        self.ends, self.unseen, self.taken = 0, False, 0
        self.before: Before | None = None
        self._last: tuple[int, int] | None = None
        self._release = batch_release()
        self.watch: Watch | None = None
        self.marks: Mark | None = None
        self.unmarked = threading.RLock()
        self.follow(handle, feed, size=size, keep=keep)

    def follow(self, handle: Handle, feed: Feed, *, size: int, keep: int) -> None:
        """Fetches batches from another handle from now on, at the position of that handle.

        Args:
            handle: the handle, which the cursor closes.
            feed: makes the batches.
            size: the bytes of a batch.
            keep: up to this number of live batches, no garbage collection is needed.
        """
        at = calls.loader_position(handle.value)
        batch, failure = c_void_p(), Failure()
        # The arguments are created once. ctypes converts nothing for a function without argtypes.
        function = library.library()["mf_loader_next"]
        function.restype = c_int32
        number, out = c_uint64(handle.value), (byref(batch), byref(failure))
        wait, poll = (partial(function, number, c_int64(ms), *out) for ms in (SLICE_MS, 0))
        owner, make = owner_type(size), self._maker(feed, keep)
        clock = Clock(feed)
        # No call from here on: an interrupt changes all of this or nothing.
        self.handle, self.feed, self._make, self._owner = handle, feed, make, owner
        self.clock = clock
        self._wait, self._poll, self._batch, self._failure = wait, poll, batch, failure
        # JAX releases memory late: at its next call or collection. If more batches are live than
        # `_bound`, `_fetch` collects garbage first. `_bound` grows if the program keeps batches.
        self._keep = self._bound = keep
        self._live = self._flushed = 0
        self._at: tuple[int, int] | None = at

    def _maker(self, feed: Feed, keep: int) -> Make:
        """Returns the function that makes batches."""
        return feed.make

    @property
    def at(self) -> tuple[int, int]:
        """Epoch and position of the next batch, as one value that any thread may read."""
        before = self.before
        return self._next() if before is None else before.at

    @property
    def last(self) -> tuple[int, int] | None:
        """Epoch and position of the batch that was delivered last; None before the first one."""
        before = self.before
        return self._last if before is None else before.last

    def _next(self) -> tuple[int, int]:
        """Returns epoch and position of the batch that the next `take` returns."""
        # After an interrupt in the middle of a move only the library knows the position.
        return self._at or calls.loader_position(self.handle.value)

    def exclusive(self) -> AbstractContextManager[Any]:
        """Returns the lock for a call that takes or moves.

        Raises:
            InvalidStateError: this thread is inside of such a call. A signal handler, which has
                interrupted it, must not change the position.
        """
        if self.lock._is_owned():  # type: ignore[attr-defined]
            message = "a signal handler has called this inside of another call of the same loader"
            hint = "set a flag in the handler, and make the call after the other one has returned"
            raise InvalidStateError(message, op="mf.Loader", hint=hint)
        return self.lock

    # ---- taking a batch ----

    def marked(self, name: str) -> AbstractContextManager[Any]:
        """Returns a context manager that marks a call in a profiler, if it records a trace.

        Until the next call, the parts of the call are marked, too.
        """
        self.marks = marks = self.feed.marks()
        return self.unmarked if marks is None else marks(name)

    def take(self) -> Item | None:
        """Returns the next batch, or None at the end of the run."""
        if self._out_of_sync or self._at is None:
            self._resync()
        at = self._next()
        before = Before(get_ident(), at, self._last, self.ends, self.unseen, self.taken)
        try:
            item = self._ready.popleft() if self._ready else self._fetch(wait=True)
            if item is None:
                return None
            if self.ahead:
                self._run_ahead(item)
        except Error:
            raise
        except BaseException:
            self._lose_sync()
            raise
        _, after, last = item
        # No call from here on.
        self.before, self._last, self._at = before, at, after
        self.unseen = last and self._per_epoch
        self.ends += self.unseen
        self.taken += 1
        return item

    def undo(self) -> None:
        """Puts the batch back that this thread has taken: an exception ends `next`."""
        before = self.before
        if before is not None and before.thread == get_ident():
            _, self._at, self._last, self.ends, self.unseen, self.taken = before
            self.before, self._out_of_sync = None, True

    def take_made(self, make: Make) -> Item | None:
        """Takes a batch that `make` builds instead of the feed, and makes none ahead."""
        usual = self._make, self.ahead
        self._out_of_sync |= bool(self._ready)  # the usual function made them
        self._make, self.ahead = make, 0
        try:
            return self.take()
        finally:
            self._make, self.ahead = usual

    def peek(self) -> Item | None:
        """Returns the batch that the next take returns, or None if there is none."""
        if self._out_of_sync:
            self._resync()
        try:
            if not self._ready and (fetched := self._fetch(wait=True)) is not None:
                self._ready.append(fetched)
        except Error:
            raise
        except BaseException:
            self._lose_sync()
            raise
        return self._ready[0] if self._ready else None

    def _run_ahead(self, item: Item) -> None:
        """Makes batches ahead if the library has them, so that they transfer during a step."""
        while len(self._ready) < self.ahead:
            _, _, last = self._ready[-1] if self._ready else item
            if last and self._per_epoch:
                return
            try:
                further = self._fetch(wait=False)
            except Error:  # the `take` for this batch calls the library again, and raises
                return
            except Exception:  # the `take` for this batch makes it again, and raises
                self._lose_sync()
                return
            if further is None:
                return
            self._ready.append(further)

    def _fetch(self, *, wait: bool) -> Item | None:
        """Gets a batch from the library, and makes the user's batch of it.

        Returns:
            The batch. None at the end of the run, and if `wait` is False and no batch is ready.
        """
        if self.handle.closed:
            self.handle.check()
        if self._live > self._bound:
            self._flush()
        if self.marks is None:
            code = self._wait() if wait else self._poll()
        else:
            with self.marks("meshfeed.wait" if wait else "meshfeed.poll"):
                code = self._wait() if wait else self._poll()
        if code and not self._fetch_later(code, wait=wait):
            return None
        head = Head.from_address(self._batch.value)  # type: ignore[arg-type]
        owner = self._owner.from_address(head.data or addressof(head))
        owner.release = release = Release(owner, self._release)
        batch = c_void_p(self._batch.value)
        # The batch moves from `_batch` to the owner. There must be no call between these two lines.
        self._batch.value = None
        release._as_parameter_ = batch
        self._live = head.live
        if self._live <= self._keep:
            self._bound, self._flushed = self._keep, 0
        after, last = (head.next_epoch, head.next_position), head.next_epoch != head.epoch
        try:
            if self.marks is None:
                return self._make(owner), after, last
            with self.marks("meshfeed.arrays"):
                return self._make(owner), after, last
        except BaseException:
            self._out_of_sync = True  # the library has delivered the batch, and the cursor has not
            raise

    def _fetch_later(self, code: int, *, wait: bool) -> bool:
        """Handles a call that returned no batch. Returns whether there is one now."""
        if not wait and code in (_TIMEOUT, _EXHAUSTED):  # a later `take` calls the library again
            return False
        if code == _TIMEOUT:
            code = self._wait_on()
            if self.watch is not None:
                self.watch.look()
        if code == _EXHAUSTED:
            code = self._wait_for_memory()
        if code < 0:
            raise library.exception(self._failure, code, "mf.Loader")
        return code == 0

    def _wait_on(self) -> int:
        """Waits for a batch in short calls, so that Python can handle Ctrl-C. Returns the code."""
        while (code := self._wait()) == _TIMEOUT:
            pass
        return int(code)

    def _wait_for_memory(self) -> int:
        """Frees memory and calls the library again. Returns the code.

        JAX releases memory late. A computation that was dispatched holds its batch until it has
        run.
        """
        for generation in (0, 1):
            gc.collect(generation)
            if (code := self._wait_on()) != _EXHAUSTED:
                return code
            self.feed.settle()
        gc.collect()
        return self._wait_on()

    def _flush(self) -> None:
        """Collects garbage before the library allocates more memory.

        JAX releases collected arrays only when it creates the next arrays, so the effect shows two
        batches later. If two collections free nothing, the program keeps the batches on purpose,
        and the bound grows.
        """
        self._flushed += 1
        if self._flushed == 1:
            gc.collect(0)
        elif self._flushed == 4:
            gc.collect(1)
        elif self._flushed == 7:
            self._bound, self._flushed = 2 * self._live, 0

    # ---- after an interrupt ----

    def _lose_sync(self) -> None:
        """Marks the cursor as out of sync, and releases a fetched batch that has no owner."""
        self._out_of_sync = True
        batch = c_void_p(self._batch.value)
        self._batch.value = None
        self._release(batch)

    def _resync(self) -> None:
        """Moves the library back to the batch after the last one delivered."""
        self._lose_sync()  # the cursor stays out of sync if an interrupt ends this function
        self._ready.clear()
        at = self._next()
        calls.loader_rewind(self.handle.value, *at)
        self._at, self._out_of_sync = at, False

    # ---- moving ----

    # `move` and `replace` take a function instead of being context managers: an interrupt between
    # `__enter__` and the block of such a manager would leave the lock locked.

    def move(self, change: Callable[[int], None], call: str) -> None:
        """Changes the position.

        Args:
            change: receives the handle, and calls the library. If it fails, nothing changes.
            call: "seek", "restore" or "skip". Loops end if a skip passes the end of an epoch.
        """
        with self.exclusive():
            handle = self.handle.value
            if self._out_of_sync or self._ready:
                self._resync()
            before, self._at = self._next(), None
            try:
                change(handle)
            except Exception:
                self._at = before
                raise
            except BaseException:  # an interrupt, before the change or after it
                self._moved(before, call)
                raise
            self._moved(before, call)

    def _moved(self, before: tuple[int, int], call: str) -> None:
        """Stores the new position. A running loop continues there."""
        self._ready.clear()
        self._at = at = self._next()
        self.before = None
        if call != "skip":
            self.ends, self.unseen = self.ends - self.unseen, False
        elif self._per_epoch and at[0] != before[0] and not self.unseen:
            self.ends, self.unseen = self.ends + 1, True

    def replace(self, exchange: Callable[[int], None]) -> None:
        """Exchanges the handle for one at the same position.

        Args:
            exchange: receives the old handle, and calls `follow` with a new one.
        """
        with self.exclusive():
            if self._out_of_sync or self._ready:
                self._resync()
            old = self.handle
            exchange(old.value)
            old.close()

    # ---- certificate and statistics ----

    def measured(self) -> dict[str, Any]:
        """Returns the measurements of the loop, as in a measurements document.

        It takes no lock, because another thread may wait in `next`.
        """
        return self.clock.measured(self.stats())

    def certificate(self) -> str:
        """Returns the certificate of the batches delivered, without those made ahead."""
        with self.lock:
            self.handle.check(ASK_BEFORE)
            return calls.loader_certificate(self.handle.value, *self.at)

    def stats(self) -> dict[str, int]:
        """Returns the library's statistics. They count batches made ahead as delivered."""
        self.handle.check(ASK_BEFORE)
        return calls.loader_stats(self.handle.value)

    def close(self, cause: BaseException | None = None) -> None:
        """Releases the handle. A `take` that waits on another thread fails.

        Args:
            cause: the exception that ends the block of the loader, if one does.
        """
        self.handle.close(None if cause is None else type(cause))
        self._ready.clear()
