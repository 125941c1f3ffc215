"""Whether every process gives its n-th batch to the same step of the program.

A process that takes one batch more than the others, to look at it for instance, is a step ahead
with every later batch: each global array then holds rows of two steps. The numbers of the batches
cannot show that, because the n-th batch is the same everywhere. The program shows it: its steps
wait for each other in collectives. So at a few batches every process stops in `next` until the
devices have done all that the program gave them. In a program without a fault every process comes
to this point by itself. `meshfeed.offsets` decides what it means if one does not.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from meshfeed import errors
from meshfeed._jobs.rounds import Round

FIRST, ALWAYS_FIRST = 8, 2  # the first batch at which processes stop
NEVER = 2**62
QUIET = 0.02  # seconds that a process waits before it calls the lowest one
ASK = 0.25  # seconds of one wait for an order
BUSY = 0.01  # seconds at most between two looks at what the devices still do
LOST = 1.0  # seconds without an order after which a process looks for the lowest one
GONE, PATIENCE = 60.0, 10.0  # seconds, and steps, without an order after which it is gone
FADES = 0.98  # of the longest step, with every step

HINT = "take as many batches in every process; loader.peek() looks at the next one without "
HINT += "taking it; then go on from a saved state in all of them"

log = logging.getLogger("meshfeed")

Live = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class Arrival:
    """What a process says that has stopped, and whose devices have nothing to do any more.

    Attributes:
        batch: the number of the batch that it asks for, from 1.
        longest: seconds of its longest recent step.
    """

    batch: int
    longest: float


@dataclass(frozen=True)
class Order:
    """What the lowest process says to all.

    Attributes:
        number: of the order.
        stop: the batch at which processes stop.
        apart: those that stop at another batch.
        error: why no process goes on; None where they do.
    """

    number: int
    stop: int
    apart: Mapping[str, int]
    error: str | None = None


class Board:
    """The keys of the stops of one round.

    Args:
        of: the round.
        first: the batch at which processes stop first.
    """

    def __init__(self, of: Round, first: int) -> None:
        self.first = first
        self.room, self._path = of.room, f"{of.path}/steps"
        self._store = of.room.store

    def arrive(self, arrival: Arrival) -> None:
        """Says where this process stands."""
        self._store.set(f"{self._path}/at/{self.room.me}", _text(arrival))

    def arrivals(self) -> dict[int, Arrival]:
        """Gives where processes last stood."""
        found = self._store.list(f"{self._path}/at")
        return {int(k.rpartition("/")[2]): Arrival(**json.loads(v)) for k, v in found.items()}

    def call(self, number: int) -> None:
        """Calls the lowest process: one has stopped, and has had so many orders."""
        self._store.set(f"{self._path}/call/{number}", b"")

    def called(self, number: int, seconds: float) -> bool:
        """Waits for a call."""
        return self._store.get(f"{self._path}/call/{number}", seconds) is not None

    def give(self, order: Order) -> None:
        """Gives an order, and deletes the one before the last."""
        self._store.set(f"{self._path}/order/last", _text(order))
        self._store.set(f"{self._path}/order/{order.number}", _text(order))
        self._store.delete(f"{self._path}/order/{order.number - 2}")
        self._store.delete(f"{self._path}/call/{order.number - 2}")

    def last(self) -> Order | None:
        """Gives the last order."""
        return _order(self._store.try_get(f"{self._path}/order/last"))

    def order(self, number: int, seconds: float) -> Order | None:
        """Waits for an order of this number, and gives it or a later one."""
        return _order(self._store.get(f"{self._path}/order/{number}", seconds)) or self.last()


def _text(said: Arrival | Order) -> bytes:
    return json.dumps(asdict(said)).encode()


def _order(found: bytes | None) -> Order | None:
    return Order(**json.loads(found)) if found else None


class Lockstep:
    """The stops of one process.

    Args:
        board: where processes say where they stand.
        live: gives the arrays that the program still uses, finished or not.
        check: raises what is known of failures elsewhere, and says whether a process has left.
    """

    def __init__(self, board: Board, live: Live, check: Callable[[], bool]) -> None:
        self._board, self._live, self._check = board, live, check
        self._leads = board.room.me == board.room.members[0]
        self._stop, self._number = board.first, 0
        self._longest = 0.0
        self._error: str | None = None
        self._ended = threading.Event()

    def end(self) -> None:
        """Ends a stop, now or later."""
        self._ended.set()

    def step(self, batch: int, seconds: float) -> None:
        """Comes before a batch is taken, and stops where that is due.

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
        """Raises what the lowest process has told all, where that is an error."""
        try:
            self._obey(self._board.last())
        except Exception as e:  # the store is gone
            log.debug("loader %s: the last order was not read: %s", self._board.room.title, e)
        self._refuse()

    def _refuse(self) -> None:
        if self._error is not None:
            raise errors.IncompatibleError(self._error, op="mf.Loader", hint=HINT)

    def _wait(self, batch: int) -> None:
        try:
            self._follow(batch)
        except errors.Error:
            raise
        except Exception as e:  # with JAX's store the job is gone; another one may come back
            text = "loader %s: batch %d was not compared: %s"
            log.debug(text, self._board.room.title, batch, e)
            self._stop = NEVER

    def _follow(self, batch: int) -> None:
        """Says that this process has come to a batch, and waits for the order to take it."""
        self._obey(self._board.last())
        if self._holds(batch):
            self._finish(batch)
        if self._holds(batch):
            self._board.arrive(Arrival(batch, round(self._longest, 6)))
        called, since = False, time.monotonic()
        while self._holds(batch):
            if not called and (self._leads or time.monotonic() - since > QUIET):
                self._board.call(self._number)
                called = True
            if self._obey(self._board.order(self._number + 1, ASK if called else QUIET)):
                called, since = True, time.monotonic()
            elif time.monotonic() - since > LOST:
                self._look(time.monotonic() - since)

    def _holds(self, batch: int) -> bool:
        """Says whether a batch may not be taken yet; raises what is known of failures."""
        over = self._check() or self._error is not None or self._ended.is_set()
        return batch >= self._stop and not over

    def _finish(self, batch: int) -> None:
        """Waits until the devices have done all that the program gave them."""
        rest, pause, asked = [*self._live()], 0.001, time.monotonic()
        while rest := [array for array in rest if not _done(array)]:
            self._ended.wait(pause)
            pause = min(1.3 * pause, BUSY)
            if time.monotonic() - asked > ASK:
                asked = time.monotonic()
                self._obey(self._board.last())
                if not self._holds(batch):
                    return

    def _obey(self, order: Order | None) -> bool:
        """Notes where to stop, and says whether that is news."""
        if order is None or order.number <= self._number:
            return False
        self._number = order.number
        self._stop = order.apart.get(str(self._board.room.me), order.stop)
        self._error = order.error
        return True

    def _look(self, seconds: float) -> None:
        """Goes on alone if the lowest process has left, or has said nothing for very long."""
        room = self._board.room
        if room.members[0] in room.left() or seconds > GONE + PATIENCE * self._longest:
            self._stop = NEVER


def _done(array: Any) -> bool:
    try:
        return bool(array.is_ready())
    except RuntimeError:  # it was deleted, as a donated one is
        return True
