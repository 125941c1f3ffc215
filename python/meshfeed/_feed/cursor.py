"""The cursor of a loader fetches its batches from the C library, in order, for all loops."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, byref, c_int32, c_int64, c_uint64, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from meshfeed._feed.clock import Clock
from meshfeed._feed.feed import Feed, Mark
from meshfeed._native import calls, library, maps
from meshfeed._native.abi import Failure, Head
from meshfeed._native.handle import Handle, batch_release
from meshfeed._native.library import SLICE_MS
from meshfeed._native.lock import Lock
from meshfeed._native.owner import Owner, Release, owner_type
from meshfeed.errors import Code, InvalidStateError

if TYPE_CHECKING:
    from meshfeed._loader.decoding import Watch

log = logging.getLogger("meshfeed")

_BAD = (
    '%s; its rows are zeros, and so are the rows of later ones: loader.stats()["bad"] counts them'
)

Make = Callable[[Owner], Any]

# A batch, the epoch and position after it, whether it is the last of its epoch, and its maker.
Item = tuple[Any, tuple[int, int], bool, Make]

# The hint if the certificate or the statistics are requested from a closed loader.
ASK_BEFORE = "ask before close(), inside of the with block"

_TIMEOUT, _EXHAUSTED = int(Code.Timeout), int(Code.ResourceExhausted)


class Done(NamedTuple):
    """What the loops of a cursor have done. The values change together, when `next` returns.

    Attributes:
        at: epoch and position of the next batch. None after an interrupt in the middle of a move,
            because then only the library knows the position.
        last: epoch and position of the batch that was delivered last; None before the first one.
        ends: counts how often a loop's epoch ended, by its last batch or by a skip; 0 unless every
            loop is one epoch. A loop is over when this number has changed since its first batch.
        unseen: whether the cursor is at the last of these ends, and no loop has stopped there yet.
        taken: counts the batches that were delivered; a subclass resets it.
    """

    at: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    ends: int = 0
    unseen: bool = False
    taken: int = 0


class Cursor:
    """Fetches the batches of one library handle. All loops and threads of a loader share it.

    The caller of `take`, `take_made` and `peek` must hold the lock, by `exclusive`.

    Signals: Python runs signal handlers, and raises KeyboardInterrupt, only when a function begins,
    after a call, and at the end of a loop's body. Assignments that belong together therefore have
    no call between them. Three rules follow for signals inside of `next`, however many come:

    - A batch stays in `ready` until `next` returns it. One assignment then changes `done` and
      `ready`, and unlocks. So an exception before that changes nothing that a program can see.
    - A handler sees the position before the batch. `next` holds the lock until the batch is
      delivered, so calls of a handler that take or move are refused.
    - While the library may have delivered a batch that is not in `ready`, the cursor is out of
      sync. If an exception leaves it so, the next `take` moves the library back.

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
        done: what the loops have done.
        ready: the next batches, which were made and not delivered.
        clock: the times of the loop since the first batch of the handle.
        watch: warns if decoded data cannot be kept on disk; None if none are.
        marks: marks the parts of the present call in a profiler; None if it records no trace.
        unmarked: a context manager that does nothing.
    """

    def __init__(
        self, handle: Handle, feed: Feed, *, size: int, ahead: int, per_epoch: bool, keep: int
    ) -> None:
        self.ahead = ahead
        self._per_epoch = per_epoch
        self.lock = Lock()
        self.ready: tuple[Item, ...] = ()
        self._out_of_sync = False
        self.done = Done()
        self._release = batch_release()
        self._warned = False  # that a record has rows of zeros
        self.watch: Watch | None = None
        self.marks: Mark | None = None
        self.unmarked = nullcontext()
        self.follow(handle, feed, size=size, keep=keep)

    def follow(self, handle: Handle, feed: Feed, *, size: int, keep: int) -> None:
        """Fetches batches from another handle from now on, at the position of that handle.

        Args:
            handle: the handle, which the cursor closes.
            feed: makes the batches.
            size: the bytes of a batch.
            keep: up to this number of live batches, no garbage collection is needed.
        """
        done = self.done._replace(at=calls.loader_position(handle.value))
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
        self.done = done

    def _maker(self, feed: Feed, keep: int) -> Make:
        """Returns the function that makes batches."""
        return feed.make

    @property
    def at(self) -> tuple[int, int]:
        """Epoch and position of the next batch, as one value that any thread may read."""
        return self.done.at or calls.loader_position(self.handle.value)

    def exclusive(self) -> Lock:
        """Returns the lock for a call that takes or moves.

        Raises:
            InvalidStateError: this thread is inside of such a call. A signal handler, which has
                interrupted it, must not change the position.
        """
        if self.lock._is_owned():  # type: ignore[attr-defined]
            message = "a signal handler has called this inside of another call of the same loader"
            hint = "set a flag in the handler, and make the call after the other one has returned"
            raise InvalidStateError(message, op="mf.Loader", hint=hint)
        if maps.serving.function is not None:
            raise maps.no_loading()
        return self.lock

    # ---- taking a batch ----

    def marked(self, name: str) -> AbstractContextManager[Any]:
        """Returns a context manager that marks a call in a profiler, if it records a trace.

        Until the next call, the parts of the call are marked, too.
        """
        self.marks = marks = self.feed.marks()
        return self.unmarked if marks is None else marks(name)

    def take(self) -> Item | None:
        """Returns the next batch, or None at the end of the run.

        The batch stays the next one, until the caller assigns `done` and `ready`.
        """
        item = self._first()
        if item is not None and self.ahead:
            self._run_ahead()
        return item

    def delivered(self, item: Item) -> Done:
        """Returns the value of `done` after the delivery of a batch."""
        _, after, last, _ = item
        done, unseen = self.done, last and self._per_epoch
        return Done(after, done.at, done.ends + unseen, unseen, done.taken + 1)

    def undo(self) -> None:
        """Corrects what other processes know, because an exception has ended `next`."""

    def take_made(self, make: Make) -> Item | None:
        """Takes a batch that `make` builds instead of the feed, and makes none ahead."""
        usual = self._make, self.ahead
        self._make, self.ahead = make, 0
        try:
            return self.take()
        finally:
            self._make, self.ahead = usual

    def peek(self) -> Item | None:
        """Returns the batch that the next take returns, or None."""
        return self._first()

    def _first(self) -> Item | None:
        """Returns the next batch, and fetches it if it is not made yet."""
        ready = self.ready  # a `close` on another thread clears it
        other = bool(ready) and ready[0][3] != self._make
        if self._out_of_sync or self.done.at is None or other:
            self._resync()
            ready = ()
        return ready[0] if ready else self._fetch(wait=True)

    def _run_ahead(self) -> None:
        """Makes batches ahead if the library has them, so that they transfer during a step."""
        while 0 < len(ready := self.ready) <= self.ahead:
            if ready[-1][2] and self._per_epoch:
                return
            try:
                if self._fetch(wait=False) is None:
                    return
            except Exception:  # the `take` for this batch fetches it again, and raises
                return

    def _fetch(self, *, wait: bool) -> Item | None:
        """Gets a batch from the library, and appends the user's batch to `ready`.

        Returns:
            The batch. None at the end of the run, and if `wait` is False and no batch is ready.
        """
        if self.handle.closed:
            self.handle.check()
        if self._live > self._bound:
            self._flush()
        self._out_of_sync = True
        try:
            return self._fetched(wait=wait)
        except BaseException:
            self._drop()
            raise

    def _fetched(self, *, wait: bool) -> Item | None:
        if self.marks is None:
            code = self._wait() if wait else self._poll()
        else:
            with self.marks("meshfeed.wait" if wait else "meshfeed.poll"):
                code = self._wait() if wait else self._poll()
        if code and not self._fetch_later(code, wait=wait):
            self._out_of_sync = False
            return None
        head = Head.from_address(self._batch.value)  # type: ignore[arg-type]
        owner = self._owner.from_address(head.data or addressof(head))
        owner.release = release = Release(owner, self._release)
        batch = c_void_p(self._batch.value)
        # The batch moves from `_batch` to the owner. There must be no call between these two lines.
        self._batch.value = None
        release._as_parameter_ = batch
        self._live = head.live
        if head.bad and not self._warned:
            self._warned = True
            log.warning(_BAD, calls.loader_info(self.handle.value)["bad"])
        if self._live <= self._keep:
            self._bound, self._flushed = self._keep, 0
        after, last = (head.next_epoch, head.next_position), head.next_epoch != head.epoch
        make = self._make
        if self.marks is None:
            arrays = make(owner)
        else:
            with self.marks("meshfeed.arrays"):
                arrays = make(owner)
        item = arrays, after, last, make
        # No call from here on.
        self.ready, self._out_of_sync = (*self.ready, item), False
        return item

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
            error = library.exception(self._failure, code, "mf.Loader")
            self._out_of_sync = False
            raise error
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

    def _drop(self) -> None:
        """Releases a fetched batch that has no owner."""
        batch = c_void_p(self._batch.value)
        self._batch.value = None
        self._release(batch)

    def _resync(self) -> None:
        """Moves the library back to the batch after the last one delivered."""
        self._out_of_sync = True  # the cursor stays out of sync if an interrupt ends this function
        self._drop()
        self.ready = ()
        at = self.at
        done = self.done._replace(at=at)
        calls.loader_rewind(self.handle.value, *at)
        self.done, self._out_of_sync = done, False

    # ---- moving ----

    # `move` and `replace` take a function instead of being context managers: an interrupt between
    # `__enter__` and the block of such a manager would leave the lock locked.

    def move(self, change: Callable[[int], None], call: str) -> None:
        """Changes the position.

        Args:
            change: receives the handle, and calls the library. If it fails, nothing changes.
            call: "seek", "restore" or "skip". Loops end if a skip passes the end of an epoch.
        """
        lock = self.exclusive()
        _ = lock.held
        try:
            handle = self.handle.value
            if self._out_of_sync or self.ready:
                self._resync()
            before, done = self.at, self.done
            self.done = done._replace(at=None)
            try:
                change(handle)
            except Exception:
                self.done = done
                raise
            except BaseException:  # an interrupt, before the change or after it
                self._moved(before, call)
                raise
            self._moved(before, call)
        finally:
            del lock.held

    def _moved(self, before: tuple[int, int], call: str) -> None:
        """Stores the new position. A running loop continues there."""
        at = self.at
        done = self.done._replace(at=at)
        if call != "skip":
            done = done._replace(ends=done.ends - done.unseen, unseen=False)
        elif self._per_epoch and at[0] != before[0] and not done.unseen:
            done = done._replace(ends=done.ends + 1, unseen=True)
        self.done = done

    def replace(self, exchange: Callable[[int], None]) -> None:
        """Exchanges the handle for one at the same position.

        Args:
            exchange: receives the old handle, and calls `follow` with a new one.
        """
        lock = self.exclusive()
        _ = lock.held
        try:
            if self._out_of_sync or self.ready:
                self._resync()
            old = self.handle
            exchange(old.value)
            old.close()
        finally:
            del lock.held

    # ---- certificate and statistics ----

    def measured(self) -> dict[str, Any]:
        """Returns the measurements of the loop, as in a measurements document.

        It takes no lock, because another thread may wait in `next`.
        """
        return self.clock.measured(self.stats())

    def certificate(self) -> str:
        """Returns the certificate of the delivered batches, without batches made ahead."""
        lock = self.lock
        _ = lock.held
        try:
            self.handle.check(ASK_BEFORE)
            return calls.loader_certificate(self.handle.value, *self.at)
        finally:
            del lock.held

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
        self.ready = ()
