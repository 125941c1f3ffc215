"""Finds a process whose batches belong to other steps than those of the others.

A thread of the lowest process watches the stops of `meshfeed.lockstep`. Usually all processes come
to the same batch, and it lets them go on to the next stop. Where some do not come while others
wait, it lets those that wait take one batch at a time. A process is ahead if both are true:

- the others came only when it had taken k batches more, and not before;
- it could not finish a step with the next batch while the others were held.

The first says that the others' steps need those of this process, the second the reverse. So both
are in lock-step, with k batches between them. A process that is only late gives k = 0. Processes
that do not wait for each other's steps could pass both tests by chance, when one is slow and then
another. So every test waits for twice as long as any step took of late, those of the test before
included, and both are made again before anything is raised.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from meshfeed._jobs.agreement import named
from meshfeed._jobs.lockstep import NEVER, Arrival, Board, Order

PATIENT = 0.5  # seconds at least, after which a process counts as waiting for others
TIMES = 2.0  # as long as the longest step of late is waiting for others
DOUBTS = 3  # times that is made sure of, unless processes stop at every batch
STEPS, SECONDS = 100, 3.0  # between two stops at least
MOST = 600.0  # seconds between two stops of processes that do not wait for each other
LONGEST = 10.0  # seconds of one wait for a call
ROUNDS = 4  # times the patience that processes ahead may take to find out by how much

log = logging.getLogger("meshfeed")


@dataclass(frozen=True)
class Found:
    """Processes in lock-step whose steps use different batches.

    Attributes:
        ahead: those that have had more.
        behind: those that have had fewer.
        batches: how many more.
    """

    ahead: Sequence[int]
    behind: Sequence[int]
    batches: int

    def __str__(self) -> str:
        one, two, where = self.ahead, self.behind, "ahead of"
        if len(one) > len(two):
            one, two, where = two, one, "behind"
        verb = "is" if len(one) == 1 else "are"
        many = "1 batch" if self.batches == 1 else f"{self.batches} batches"
        text = f"{named(one)} {verb} {many} {where} {named(two)}: "
        return text + "their steps use different batches as one"


class _EndedError(Exception):
    """The round has ended."""


class Offsets:
    """Gives the orders of one round.

    Args:
        board: where processes say where they stand.
        always: whether processes stop at every batch.
    """

    def __init__(self, board: Board, *, always: bool) -> None:
        self._board, self._always = board, always
        self._least, self._doubts = (2 * PATIENT, 0) if always else (PATIENT, DOUBTS)
        self._slowest = 0.0  # of the steps that were not held up, in a search
        self._members = tuple(board.room.members)
        self._number = 0
        self._stops = dict.fromkeys(self._members, board.first)
        self._at: dict[int, Arrival] = {}
        self._seconds = SECONDS
        self._last = board.first, time.monotonic()
        self._ended = threading.Event()
        running.add(self)
        self._thread = threading.Thread(target=self._work, name="meshfeed.offsets", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends the thread: at once if the store answers."""
        self.forget()
        if self._thread.is_alive():
            with suppress(Exception):
                self._board.call(self._number)
            self._thread.join()

    def forget(self) -> None:
        """Has the thread end soon, and waits for nothing."""
        self._ended.set()

    def _work(self) -> None:
        try:
            while True:
                self._meet()
        except _EndedError:
            pass
        except Exception as e:  # with JAX's store the job is gone
            log.debug("loader %s: steps are not compared: %s", self._board.room.title, e)
        finally:
            running.discard(self)

    # ---- a stop ----

    def _meet(self) -> None:
        """Waits for a stop, and for what comes of it."""
        while not self._board.called(self._number, LONGEST):
            if self._ended.is_set():
                raise _EndedError
        began = time.monotonic()
        waiting = self._first()
        found = self._between(waiting) if waiting else None
        if found:
            self._refuse(found)
        elif waiting and self._board.room.left():
            self._order(dict.fromkeys(self._members, NEVER))
        else:
            self._go_on(time.monotonic() - began)

    def _first(self) -> list[int]:
        """Gives those that have come to the stop, if the others do not; empty if all come."""
        came, since = set[int](), time.monotonic()
        for _ in self._looks():
            now = {p for p in self._members if self._stands(p)}
            if len(now) == len(self._members):
                return []
            if now != came:
                came, since = now, time.monotonic()
            if came and time.monotonic() - since > self._patience():
                return sorted(came)
        raise AssertionError

    def _between(self, waiting: Sequence[int]) -> Found | None:
        """Finds out how many batches are between processes in lock-step, if they are.

        Args:
            waiting: those that wait for the others.
        """
        behind = [p for p in self._members if p not in waiting]
        until = time.monotonic() + ROUNDS * self._patience()
        more = 0
        while not self._all(behind):
            more += 1
            self._step(waiting)
            left = until - time.monotonic()
            if left < 0 or not self._wait(left, lambda: self._all(waiting) or self._all(behind)):
                return None
        # Those that only were late hold up the others now: that takes as short as can be.
        if self._wait(self._patience() / (4 if more == 1 else 1), lambda: self._all(waiting)):
            more += 1
            self._step(waiting)
            self._wait(self._patience(2), lambda: self._all(waiting))
        ahead = [p for p in waiting if not self._stands(p)]  # the others need nobody
        if not ahead or more == 1:
            return None
        self._slowest = 0.0
        if not self._release(behind, ahead):
            return None
        behind = self._waits(behind, ahead, self._patience(4))
        sure = behind and all(self._again(ahead, behind) for _ in range(self._doubts))
        return Found(ahead, behind, more - 1) if sure else None

    def _waits(self, some: Sequence[int], others: Sequence[int], seconds: float) -> list[int]:
        """Gives those of some processes whose next step waits for that of others."""
        self._step(some)
        if self._wait(seconds, lambda: self._all(some)):
            return []
        waits = [p for p in some if not self._stands(p)]
        return waits if self._release(others, some) else []

    def _release(self, some: Sequence[int], others: Sequence[int]) -> bool:
        """Lets some processes take the step that others wait in, and says whether all end it."""
        began = time.monotonic()
        self._step(some)
        done = self._wait(self._patience(), lambda: self._all([*some, *others]))
        self._slowest = max(self._slowest, time.monotonic() - began)
        return done

    def _again(self, ahead: Sequence[int], behind: Sequence[int]) -> bool:
        """Says whether those ahead or those behind, as chance will have it, wait once more.

        Steps that were not held up say how long a step takes. Others are held for much longer.
        """
        first, second = random.sample([ahead, behind], 2)
        return bool(self._waits(first, second, max(self._least, 4 * self._slowest)))

    def _refuse(self, found: Found) -> None:
        """Has all processes raise the same error."""
        self._order({}, str(found))
        raise _EndedError

    def _go_on(self, held: float) -> None:
        """Sets the next stop."""
        (stop, then), now = self._last, time.monotonic()
        here = max(self._stops.values())
        rate = (here - stop) / max(now - then, 1e-3)
        self._last = here, now
        # A process that was held for long does not wait for the others in its own steps.
        far = held > 2 * self._longest + 0.01 * (now - then) + PATIENT / 5
        self._seconds = min(MOST, 2 * self._seconds) if far else max(SECONDS, self._seconds / 2)
        steps = 1 if self._always else max(STEPS, int(rate * self._seconds))
        if not self._always:  # not in step with what the program does every n-th time
            steps -= random.randrange(steps // 8)
        self._order(dict.fromkeys(self._members, here + steps))

    # ---- what it says and sees ----

    def _order(self, stops: dict[int, int], error: str | None = None) -> None:
        """Says where processes stop from now on."""
        self._stops |= stops
        usual = min(self._stops.values())
        apart = {str(p): stop for p, stop in self._stops.items() if stop != usual}
        self._number += 1
        if self._ended.is_set():
            raise _EndedError
        self._board.give(Order(self._number, usual, apart, error))

    def _step(self, processes: Sequence[int]) -> None:
        """Lets processes take one batch more than they may."""
        self._order({p: self._stops[p] + 1 for p in processes})

    def _stands(self, process: int) -> bool:
        """Says whether a process has come to its stop."""
        at = self._at.get(process)
        return at is not None and at.batch >= self._stops[process]

    def _all(self, processes: Collection[int]) -> bool:
        return all(map(self._stands, processes))

    @property
    def _longest(self) -> float:
        return max((at.longest for at in self._at.values()), default=0.0)

    def _patience(self, times: float = 1) -> float:
        """Gives how long a process that comes by itself may take, by the steps known so far."""
        return max(times * self._least, TIMES * self._longest)

    def _looks(self) -> Iterator[None]:
        """Looks where processes stand, again and again, less often the longer it takes."""
        began, pause = time.monotonic(), 0.001
        while True:
            self._at = self._board.arrivals()
            yield
            if self._ended.wait(pause):
                raise _EndedError
            pause = min(1.3 * pause, max(0.02, (time.monotonic() - began) / 100), LONGEST)

    def _wait(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Waits until processes stand so."""
        until = time.monotonic() + seconds
        for _ in self._looks():
            if condition():
                return True
            if time.monotonic() > until:
                return False
        raise AssertionError


running: set[Offsets] = set()  # whose threads wait, those of forgotten loaders too
