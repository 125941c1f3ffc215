"""A barrier before some batches, which shows whether all processes use the same batch in a step.

A process that takes an extra batch, for example to look at it, is one batch ahead from then on.
Every global array then holds rows of two different batches. The numbers of the batches do not show
this, because the n-th batch is the same in every process.

The steps show it, because they wait for each other in collectives. At some batches every process
stops in `next` until its devices have finished all work that the program gave them. If all
processes are in step, each reaches the barrier without the others' help. If one does not,
`skew.py` finds out why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from meshfeed import errors
from meshfeed._jobs.keys import Generation

FIRST, ALWAYS_FIRST = 8, 2  # the first batch with a barrier
NEVER = 2**62
QUIET = 0.02  # seconds that a process waits at the barrier before it wakes the lowest one
ASK = 0.25  # seconds of one wait for a decision
BUSY = 0.01  # seconds at most between two looks at what the devices still do
LOST = 1.0  # seconds without a decision after which a process checks the lowest one
GONE, PATIENCE = 60.0, 10.0  # seconds, plus steps, without a decision after which it is gone
FADES = 0.98  # of the longest step, with every step

LAST = "barrier/decision/last"

HINT = "take the same number of batches in every process; loader.peek() shows the next one without "
HINT += "taking it; then continue from a saved state in all of them"

log = logging.getLogger("meshfeed")

LiveArrays = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class Arrival:
    """What a process publishes when it has stopped and its devices are idle.

    Attributes:
        batch: the number of the batch that it asks for, from 1.
        longest: seconds of its longest recent step.
    """

    batch: int
    longest: float


@dataclass(frozen=True)
class Decision:
    """What the lowest process decides for all.

    Attributes:
        number: of the decision.
        stop: the batch before which processes stop next.
        exceptions: the processes that stop before another batch.
        error: why no process goes on; None if they do.
    """

    number: int
    stop: int
    exceptions: Mapping[str, int]
    error: str | None = None


class Barrier:
    """The barrier, as one process meets it.

    Args:
        of: the generation.
        first: the first batch with a barrier.
        live: returns the arrays that the program still uses, computed or not.
        check: raises what is known of failures elsewhere; returns whether a process has departed.
    """

    def __init__(
        self, of: Generation, first: int, live: LiveArrays, check: Callable[[], bool]
    ) -> None:
        self._keys, self._namespace = of, of.namespace
        self._live, self._check = live, check
        self._stop, self._number = first, 0
        self._longest = 0.0
        self._error: str | None = None
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
        longest = FADES * self._longest
        if batch > 2:  # the first step includes the compilation
            self._longest = seconds if seconds > longest else longest
        if batch >= self._stop:
            self._wait(batch)
            if self._check():  # departed processes may have raised an error that is not read yet
                self.judge()
            self._refuse()

    def judge(self) -> None:
        """Raises the error of the last decision, if it has one."""
        try:
            self._follow(self._keys.try_get(LAST))
        except Exception as e:  # of the store
            log.debug("loader %s: the last decision was not read: %s", self._namespace.title, e)
        self._refuse()

    def _refuse(self) -> None:
        if self._error is not None:
            raise errors.IncompatibleError(self._error, op="mf.Loader", hint=HINT)

    def _wait(self, batch: int) -> None:
        """Publishes that this process stops, and waits for the decision that lets it go on."""
        try:
            self._follow(self._keys.try_get(LAST))
            if self._holds(batch):
                self._finish(batch)
            if self._holds(batch):
                arrival = Arrival(batch, round(self._longest, 6))
                self._keys.set(f"barrier/arrival/{self._namespace.me}", asdict(arrival))
                self._await_decision(batch)
        except errors.Error:
            raise
        except Exception as e:  # JAX's store is gone with the job; another store may come back
            text = "loader %s: batch %d was not compared: %s"
            log.debug(text, self._namespace.title, batch, e)
            self._stop = NEVER

    def _await_decision(self, batch: int) -> None:
        woken, since = False, time.monotonic()
        leads = self._namespace.me == self._namespace.lead
        while self._holds(batch):
            if not woken and (leads or time.monotonic() - since > QUIET):
                wake(self._keys, self._number)
                woken = True
            key = f"barrier/decision/{self._number + 1}"
            found = self._keys.get(key, ASK if woken else QUIET) or self._keys.try_get(LAST)
            if self._follow(found):
                woken, since = True, time.monotonic()
            elif time.monotonic() - since > LOST:
                self._check_lead(time.monotonic() - since)

    def _holds(self, batch: int) -> bool:
        """Returns whether a batch may not be taken yet; raises what is known of failures."""
        over = self._check() or self._error is not None or self._ended.is_set()
        return batch >= self._stop and not over

    def _finish(self, batch: int) -> None:
        """Waits until the devices have finished all work that the program gave them."""
        rest, pause, asked = [*self._live()], 0.001, time.monotonic()
        while rest := [array for array in rest if not _done(array)]:
            self._ended.wait(pause)
            pause = min(1.3 * pause, BUSY)
            if time.monotonic() - asked > ASK:
                asked = time.monotonic()
                self._follow(self._keys.try_get(LAST))
                if not self._holds(batch):
                    return

    def _follow(self, found: Any) -> bool:
        """Notes where to stop next; returns whether the decision that was found is new."""
        if found is None or found["number"] <= self._number:
            return False
        decision = Decision(**found)
        self._number = decision.number
        self._stop = decision.exceptions.get(str(self._namespace.me), decision.stop)
        self._error = decision.error
        return True

    def _check_lead(self, seconds: float) -> None:
        """Goes on alone if the lowest process has departed, or has been silent for very long."""
        gone = self._namespace.lead in self._namespace.departed()
        if gone or seconds > GONE + PATIENCE * self._longest:
            self._stop = NEVER


def wake(of: Generation, number: int) -> None:
    """Wakes the lowest process: one has stopped, and knows this many decisions."""
    of.set(f"barrier/wake/{number}", True)


def _done(array: Any) -> bool:
    try:
        return bool(array.is_ready())
    except RuntimeError:  # the array was deleted, for example donated
        return True
