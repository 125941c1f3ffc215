"""Finds processes that are a number of batches ahead of the others.

A thread of the lowest process decides where processes stop (`barrier.py`). Usually all processes
reach the same batch, and the next decision names the next stop. If some do not arrive while others
wait, the thread lets the waiting ones take one batch at a time. Processes are ahead if two
conditions hold:

- the others arrived only after these processes had taken k more batches;
- these processes could not finish a step with the next batch while the others were held.

The first shows that the steps of the others need the steps of these processes; the second shows the
reverse. So the steps depend on each other, with k batches between them. A process that is only late
gives k = 0. Processes with independent steps could pass both tests by chance, when one is slow and
then another. So every test waits for twice the longest recent step, and both are repeated before
anything is raised.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from meshfeed._jobs import wording
from meshfeed._jobs.barrier import LAST, NEVER, Arrival, Decision, wake
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.worker import Worker

# A process counts as waiting for others after PATIENT, or after TIMES if that is longer.
PATIENT = 0.5  # seconds
TIMES = 2.0  # times the longest recent step
REPEATS = 3  # runs of both tests, unless there is a barrier before every batch
STEPS, SECONDS = 100, 3.0  # between two barriers at least
MOST = 600.0  # seconds between two barriers of processes that do not wait for each other
LONGEST = 10.0  # seconds of one wait to be woken
ROUNDS = 4  # times `_patience`, to count by how many batches some processes are ahead

log = logging.getLogger("meshfeed")


class _EndedError(Exception):
    """The generation has ended."""


class SkewDetector(Worker):
    """Decides where the processes stop, in one generation.

    Args:
        of: the store keys of the present generation.
        first: the first batch with a barrier.
        always: whether there is a barrier before every batch.
    """

    def __init__(self, of: Generation, first: int, *, always: bool) -> None:
        super().__init__("meshfeed.skew", of)
        self._always = always
        self._least, self._repeats = (2 * PATIENT, 0) if always else (PATIENT, REPEATS)
        self._slowest = 0.0  # seconds of the longest step without a held process, in one search
        self._members = tuple(of.namespace.members)
        self._number = 0  # counts decisions
        self._stops = dict.fromkeys(self._members, first)  # the batch before which each one stops
        self._at: dict[int, Arrival] = {}  # the last arrival of each process
        self._seconds = SECONDS  # between two barriers
        self._last = first, time.monotonic()  # the batch and the time of the last barrier
        self._start()

    def _wake(self) -> None:
        wake(self._keys, self._number)

    def _work(self) -> None:
        try:
            while True:
                self._meet()
        except _EndedError:
            pass
        except Exception as e:  # JAX's store is gone with the job
            log.debug("loader %s: steps are not compared: %s", self._title, e)

    # ---- a barrier ----

    def _meet(self) -> None:
        """Waits for processes at a barrier, and decides how they go on."""
        while not self._keys.get(f"barrier/wake/{self._number}", LONGEST):
            if self.ended.is_set():
                raise _EndedError
        began = time.monotonic()
        waiting = self._first()
        error = self._compared(waiting) if waiting else None
        if error:
            self._decide({}, error)  # every process raises it
            raise _EndedError
        if waiting and self._namespace.departed():
            self._decide(dict.fromkeys(self._members, NEVER))
        else:
            self._go_on(time.monotonic() - began)

    def _first(self) -> list[int]:
        """Returns the processes that have arrived, if the others do not; empty if all arrive."""
        came: list[int] = []
        while len(came) < len(self._members):
            if self._wait(self._patience(), partial(self._more_than, len(came))):
                came = self._arrived(self._members)
            elif came:
                return came
        return []

    def _compared(self, waiting: Sequence[int]) -> str | None:
        """Finds out how many batches are between processes that wait for each other in every step.

        Args:
            waiting: the processes that wait for the others.

        Returns:
            A description of the processes that are ahead, or None.
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
        # If the others were only late, the waiting processes need them now: a short wait shows it.
        if self._wait(self._patience() / (4 if more == 1 else 1), lambda: self._all(waiting)):
            more += 1
            self._step(waiting)
            self._wait(self._patience(2), lambda: self._all(waiting))
        here = self._arrived(waiting)  # the steps of these wait for no other process
        ahead = [p for p in waiting if p not in here]
        if not ahead or more == 1:
            return None
        self._slowest = 0.0
        if not self._release(behind, ahead):
            return None
        behind = self._waits(behind, ahead, self._patience(4))
        sure = behind and all(self._again(ahead, behind) for _ in range(self._repeats))
        return wording.skewed(ahead, behind, more - 1) if sure else None

    def _waits(self, some: Sequence[int], others: Sequence[int], seconds: float) -> list[int]:
        """Returns the given processes that wait for the next step of others."""
        self._step(some)
        if self._wait(seconds, lambda: self._all(some)):
            return []
        here = self._arrived(some)
        return [p for p in some if p not in here] if self._release(others, some) else []

    def _release(self, some: Sequence[int], others: Sequence[int]) -> bool:
        """Lets some processes take the step that others wait in; returns whether all end it."""
        began = time.monotonic()
        self._step(some)
        done = self._wait(self._patience(), lambda: self._all([*some, *others]))
        self._slowest = max(self._slowest, time.monotonic() - began)
        return done

    def _again(self, ahead: Sequence[int], behind: Sequence[int]) -> bool:
        """Returns whether the processes ahead or behind, chosen at random, wait once more.

        The steps that were not held show how long a step takes. Held steps wait for much longer.
        """
        first, second = random.sample([ahead, behind], 2)
        return bool(self._waits(first, second, max(self._least, 4 * self._slowest)))

    def _go_on(self, held: float) -> None:
        """Decides on the next barrier.

        Args:
            held: how long the first process waited at this one, in seconds.
        """
        (stop, then), now = self._last, time.monotonic()
        here = max(self._stops.values())
        rate = (here - stop) / max(now - then, 1e-3)
        self._last = here, now
        # If a process waited here for long, its steps do not wait for others: barriers get rarer.
        far = held > 2 * self._longest + 0.01 * (now - then) + PATIENT / 5
        self._seconds = min(MOST, 2 * self._seconds) if far else max(SECONDS, self._seconds / 2)
        steps = 1 if self._always else max(STEPS, int(rate * self._seconds))
        if not self._always:  # random, so that barriers miss the program's periodic work
            steps -= random.randrange(steps // 8)
        self._decide(dict.fromkeys(self._members, here + steps))

    # ---- the keys ----

    def _decide(self, stops: dict[int, int], error: str | None = None) -> None:
        """Publishes where processes stop from now on."""
        self._stops |= stops
        usual = min(self._stops.values())
        exceptions = {str(p): stop for p, stop in self._stops.items() if stop != usual}
        self._number += 1
        if self.ended.is_set():
            raise _EndedError
        decision = Decision(self._number, usual, exceptions, error)
        self._keys.set(LAST, decision)
        self._keys.set(f"barrier/decision/{self._number}", decision)
        self._keys.delete(f"barrier/decision/{self._number - 2}")
        self._keys.delete(f"barrier/wake/{self._number - 2}")

    def _step(self, processes: Sequence[int]) -> None:
        """Lets processes take one more batch."""
        self._decide({p: self._stops[p] + 1 for p in processes})

    def _arrived(self, processes: Collection[int]) -> list[int]:
        """Returns the given processes that have arrived at their stop."""
        return [p for p in processes if p in self._at and self._at[p].batch >= self._stops[p]]

    def _more_than(self, n: int) -> bool:
        return len(self._arrived(self._members)) > n

    def _all(self, processes: Collection[int]) -> bool:
        return len(self._arrived(processes)) == len(processes)

    @property
    def _longest(self) -> float:
        return max((at.longest for at in self._at.values()), default=0.0)

    def _patience(self, times: float = 1) -> float:
        """Returns how long a process that waits for no other may take, by its recent steps."""
        return max(times * self._least, TIMES * self._longest)

    def _wait(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Waits until the arrivals meet a condition; returns whether they do in time.

        It polls the arrivals at growing intervals.
        """
        began, pause = time.monotonic(), 0.001
        while True:
            found = self._keys.by_process("barrier/arrival")
            self._at = {p: Arrival(*value) for p, value in found.items()}
            if condition():
                return True
            took = time.monotonic() - began
            if took > seconds:
                return False
            if self.ended.wait(pause):
                raise _EndedError
            pause = min(1.3 * pause, max(0.02, took / 100), LONGEST)
