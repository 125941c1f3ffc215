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

HINT = "take as many batches in every process; loader.peek() looks at the next one without "
HINT += "taking it; then go on from a saved state in all of them"

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


class Board:
    """The keys of the barriers in one generation.

    Args:
        of: the generation.
        first: the first batch with a barrier.
    """

    def __init__(self, of: Generation, first: int) -> None:
        self.namespace, self.first = of.namespace, first
        self._keys = of

    def arrive(self, arrival: Arrival) -> None:
        """Publishes that this process has stopped."""
        self._keys.set(f"barrier/arrival/{self.namespace.me}", asdict(arrival))

    def arrivals(self) -> dict[int, Arrival]:
        """Returns where each process stopped last."""
        found = self._keys.by_process("barrier/arrival")
        return {p: Arrival(**value) for p, value in found.items()}

    def wake(self, number: int) -> None:
        """Wakes the lowest process: one has stopped, and knows this many decisions."""
        self._keys.set(f"barrier/wake/{number}", True)

    def woken(self, number: int, seconds: float) -> bool:
        """Waits to be woken."""
        return self._keys.get(f"barrier/wake/{number}", seconds) is not None

    def decide(self, decision: Decision) -> None:
        """Publishes a decision, and deletes the one before the last."""
        self._keys.set("barrier/decision/last", asdict(decision))
        self._keys.set(f"barrier/decision/{decision.number}", asdict(decision))
        self._keys.delete(f"barrier/decision/{decision.number - 2}")
        self._keys.delete(f"barrier/wake/{decision.number - 2}")

    def last(self) -> Decision | None:
        """Returns the last decision."""
        return _decision(self._keys.try_get("barrier/decision/last"))

    def decision(self, number: int, seconds: float) -> Decision | None:
        """Waits for a decision; returns it, a later one, or None."""
        return _decision(self._keys.get(f"barrier/decision/{number}", seconds)) or self.last()


def _decision(found: Any) -> Decision | None:
    return Decision(**found) if found else None


class Barrier:
    """The barrier, as one process meets it.

    Args:
        board: the keys.
        live: returns the arrays that the program still uses, computed or not.
        check: raises what is known of failures elsewhere; returns whether a process has departed.
    """

    def __init__(self, board: Board, live: LiveArrays, check: Callable[[], bool]) -> None:
        self._board, self._live, self._check = board, live, check
        self._leads = board.namespace.me == board.namespace.lead
        self._stop, self._number = board.first, 0
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
            self._refuse()

    def judge(self) -> None:
        """Raises the error of the last decision, if it has one."""
        try:
            self._follow(self._board.last())
        except Exception as e:  # of the store
            title = self._board.namespace.title
            log.debug("loader %s: the last decision was not read: %s", title, e)
        self._refuse()

    def _refuse(self) -> None:
        if self._error is not None:
            raise errors.IncompatibleError(self._error, op="mf.Loader", hint=HINT)

    def _wait(self, batch: int) -> None:
        """Publishes that this process stops, and waits for the decision that lets it go on."""
        try:
            self._follow(self._board.last())
            if self._holds(batch):
                self._finish(batch)
            if self._holds(batch):
                self._board.arrive(Arrival(batch, round(self._longest, 6)))
                self._await_decision(batch)
        except errors.Error:
            raise
        except Exception as e:  # JAX's store is gone with the job; another store may come back
            text = "loader %s: batch %d was not compared: %s"
            log.debug(text, self._board.namespace.title, batch, e)
            self._stop = NEVER

    def _await_decision(self, batch: int) -> None:
        woken, since = False, time.monotonic()
        while self._holds(batch):
            if not woken and (self._leads or time.monotonic() - since > QUIET):
                self._board.wake(self._number)
                woken = True
            if self._follow(self._board.decision(self._number + 1, ASK if woken else QUIET)):
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
                self._follow(self._board.last())
                if not self._holds(batch):
                    return

    def _follow(self, decision: Decision | None) -> bool:
        """Notes where to stop next; returns whether the decision is new."""
        if decision is None or decision.number <= self._number:
            return False
        self._number = decision.number
        self._stop = decision.exceptions.get(str(self._board.namespace.me), decision.stop)
        self._error = decision.error
        return True

    def _check_lead(self, seconds: float) -> None:
        """Goes on alone if the lowest process has departed, or has been silent for very long."""
        namespace = self._board.namespace
        if namespace.lead in namespace.departed() or seconds > GONE + PATIENCE * self._longest:
            self._stop = NEVER


def _done(array: Any) -> bool:
    try:
        return bool(array.is_ready())
    except RuntimeError:  # the array was deleted, for example donated
        return True
