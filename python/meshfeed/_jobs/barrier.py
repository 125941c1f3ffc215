"""A barrier before some batches, which shows whether all processes use the same batch in a step.

A process that takes an extra batch, for example to look at it, is one batch ahead from then on.
Every global array then holds rows of two different batches. The numbers of the batches do not show
this, because the n-th batch is the same in every process.

The steps show it, because they wait for each other in collectives. At some batches every process
stops in `next` until its devices have finished all work that the program gave them. If all
processes are in step, each reaches the barrier without the others' help. If one does not,
`skew.py` finds out why.

If another thread than the main one takes the batches, the main thread may get them from a queue,
and go on while the other one waits in `next`. The arrays of the program then change. Such a stop
lasts until the queue is empty and the main thread waits for the next batch. Else a batch that was
lost in the queue would not show, because all processes have taken the same number.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from meshfeed import errors
from meshfeed._jobs import wording
from meshfeed._jobs.keys import Generation
from meshfeed._native.lock import Lock

FIRST, ALWAYS_FIRST = 8, 2  # the first batch with a barrier
NEVER = 2**62
QUIET = 0.02  # seconds that a process waits at the barrier before it wakes the lowest one
ASK = 0.2  # seconds of one wait for a decision
BUSY = 0.01  # seconds at most between two looks at what the devices still do
LOST = 1.0  # seconds without a decision after which a process checks the lowest one
GONE, PATIENCE = 60.0, 10.0  # seconds, plus steps, without a decision after which it is gone
FADES = 0.98  # the longest step becomes this part of itself with every step
STILL = 0.02  # seconds at one place after which the main thread waits for a batch
LIMIT, PAUSES = 5.0, 16  # seconds, or steps if longer, for which a stop waits for this
TRIES = 3  # stops in a row that reached this limit; later ones do not wait
EARLY = 64  # batches in which the main thread may still compile, and use none
STANDARD = os.path.dirname(threading.__file__) + os.sep  # the standard library

LAST = "barrier/decision/last"

log = logging.getLogger("meshfeed")

LiveArrays = Callable[[], Sequence[Any]]


class Arrival(NamedTuple):
    """What a process publishes when it has stopped and its devices are idle."""

    batch: int  # the number of the batch that it asks for, from 1
    longest: float  # seconds of its longest recent step


class Decision(NamedTuple):
    """What the lowest process decides for all."""

    number: int
    stop: int  # the batch before which processes stop next
    exceptions: Mapping[str, int]  # the processes that stop before another batch
    error: str | None = None  # why no process goes on


class Barrier:
    """The barrier, as one process meets it.

    Args:
        of: the store keys of the present generation.
        first: the first batch with a barrier.
        live: returns the arrays that the program still uses, computed or not.
        received: raises failures of other processes; returns whether a process has departed.
    """

    def __init__(
        self, of: Generation, first: int, live: LiveArrays, received: Callable[[], bool]
    ) -> None:
        self._keys, self._namespace, self._me = of, of.namespace, str(of.namespace.me)
        self._live, self._received = live, received
        self._last = Decision(0, first, {})
        self._longest = 0.0
        self._tries = TRIES  # stops that wait for the main thread
        self._handed = False  # whether another thread has used batches during a stop
        self._ended = threading.Event()

    def end(self) -> None:
        """Ends a stop, now or later."""
        self._ended.set()

    def step(self, batch: int, seconds: float) -> None:
        """Stops before a batch with a barrier.

        Args:
            batch: its number since the processes agreed, from 1.
            seconds: how long the program had the batch before.

        Raises:
            IncompatibleError: a process is ahead of another.
        """
        if batch > 2:  # the first step includes the compilation
            self._longest = max(seconds, FADES * self._longest)
        if batch >= self._stop:
            self._wait(batch)
            if self.check():  # departed processes may have raised an error that is not read yet
                self.judge()
            self._refuse()

    def check(self) -> bool:
        """Raises what another process has found; returns whether a process has departed.

        A skew is the same error in all processes, also in one that another process told first.
        """
        try:
            return self._received()
        except errors.IncompatibleError:
            self.judge()
            raise

    def judge(self) -> None:
        """Raises the error of the last decision, if it has one."""
        try:
            self._follow(self._keys.get(LAST))
        except Exception as e:  # from the store
            log.debug("loader %s: the last decision was not read: %s", self._namespace.title, e)
        self._refuse()

    def _refuse(self) -> None:
        if self._last.error is not None:
            raise wording.skew(self._last.error)

    @property
    def _stop(self) -> int:
        return self._last.exceptions.get(self._me, self._last.stop)

    def _wait(self, batch: int) -> None:
        """Publishes that this process stops, and waits for the decision that lets it go on."""
        try:
            self._follow(self._keys.get(LAST))
            if self._holds(batch):
                self._finish(batch)
            if self._holds(batch):
                arrival = Arrival(batch, round(self._longest, 6))
                self._keys.set(f"barrier/arrival/{self._me}", arrival)
                self._await_decision(batch)
        except errors.Error:
            raise
        except Exception as e:  # JAX's store is gone with the job; another store may come back
            text = "loader %s: batch %d was not compared: %s"
            log.debug(text, self._namespace.title, batch, e)
            self._go_on_alone()

    def _await_decision(self, batch: int) -> None:
        since = time.monotonic()
        if not self._namespace.leads:
            self._follow(self._next_decision(QUIET))
        if self._holds(batch):
            wake(self._keys, self._last.number)
        while self._holds(batch):
            waited = time.monotonic() - since
            if self._follow(self._next_decision(ASK)):
                since = time.monotonic()
            elif waited > GONE + PATIENCE * self._longest or (
                waited > LOST and self._namespace.lead in self._namespace.departed(LOST)
            ):
                self._go_on_alone()

    def _next_decision(self, seconds: float) -> Any:
        """Waits for the next decision; if there are newer ones, returns the newest."""
        key = f"barrier/decision/{self._last.number + 1}"
        return self._keys.get(key, seconds) or self._keys.get(LAST)

    def _go_on_alone(self) -> None:
        self._last = Decision(self._last.number, NEVER, {})

    def _holds(self, batch: int) -> bool:
        """Returns whether a batch may not be taken yet; raises what is known of failures."""
        over = self.check() or self._last.error is not None or self._ended.is_set()
        return batch >= self._stop and not over

    def _finish(self, batch: int) -> None:
        """Waits until the devices have finished all work that the program gave them."""
        beside = threading.current_thread() is not threading.main_thread()
        consumer = Consumer() if beside and self._tries else None
        rest, pause, asked = [*self._live()], 0.001, time.monotonic()
        while True:
            rest = [array for array in rest if not _done(array)]
            if consumer is not None and not rest:
                rest = [*self._live()]
                consumer.look({id(array) for array in rest})
                rest = [array for array in rest if not _done(array)]
            if not rest and (consumer is None or self._starves(consumer, batch)):
                return
            self._ended.wait(pause)
            pause = min(1.3 * pause, BUSY)
            if time.monotonic() - asked > ASK:
                asked = time.monotonic()
                self._follow(self._keys.get(LAST))
                if not self._holds(batch):
                    return

    def _starves(self, consumer: Consumer, batch: int) -> bool:
        """Returns whether the main thread waits for a batch, or does not in all the time it has."""
        self._handed |= consumer.active
        if consumer.waits:
            self._tries = TRIES
            return True
        limit = max(LIMIT, PAUSES * self._longest)
        if not self._handed:
            limit = min(max(STILL, 2 * self._longest), LIMIT)
        if consumer.looked < limit:
            return False
        self._tries -= self._handed or batch > EARLY
        if self._handed and not self._tries:
            text = "loader %s: the main thread never waits for the thread that takes batches: if a "
            text += "batch is lost between them, no comparison of steps shows it; let the main "
            text += "thread take them, because the loader reads ahead by itself"
            log.warning(text, self._namespace.title)
        return True

    def _follow(self, found: Any) -> bool:
        """Notes where to stop next; returns whether the decision that was found is new."""
        if found is None or found[0] <= self._last.number:
            return False
        self._last = Decision(*found)
        return True


class Consumer:
    """The main thread, during a stop of another thread that takes batches.

    Attributes:
        active: whether arrays were made or dropped, which the other thread cannot do.
        waits: whether it has waited for another thread for some time. Such a wait is in the
            standard library; a call of another library may wait for a computation.
        looked: for how long it was looked at, in seconds. While devices work, it is not.
    """

    def __init__(self) -> None:
        self.active = self.waits = False
        self.looked = 0.0
        self._last = self._since = time.monotonic()
        self._seen: tuple[set[int], int, int] | None = None

    def look(self, arrays: set[int]) -> None:
        """Looks at the main thread, and at the arrays of the program, by `id`."""
        frame, now = _main_frame(), time.monotonic()
        if frame is None:  # it has ended
            self.waits = True
            return
        seen, file = (arrays, id(frame), frame.f_lasti), frame.f_code.co_filename
        self.active |= self._seen is not None and arrays != self._seen[0]
        if seen != self._seen:
            self._seen, self._since = seen, now
        standard = file.startswith(STANDARD) and "site-packages" not in file
        self.waits = standard and now - self._since >= STILL
        self.looked += min(now - self._last, 2 * BUSY)
        self._last = now


_listing = Lock()  # held while the garbage collection is off


def _main_frame() -> FrameType | None:
    """Returns the frame of the main thread, or None if that has ended.

    Python 3.11 holds a lock of the interpreter while it lists the frames of all threads. A garbage
    collection that begins there may call other code, and a thread that this code lets run may start
    another thread, which needs the same lock: a deadlock. Therefore no collection may begin there.
    """
    with _listing:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(threading.main_thread().ident or 0)
        finally:
            if collecting:
                gc.enable()


def wake(of: Generation, number: int) -> None:
    """Wakes the lowest process: one has stopped, and knows this many decisions."""
    of.set(f"barrier/wake/{number}", True)


def _done(array: Any) -> bool:
    try:
        return bool(array.is_ready())
    except RuntimeError:  # the array was deleted, for example donated
        return True
