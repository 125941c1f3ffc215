"""Samples what the devices do at some steps, to tell a forced synchronization from a slow step.

A sample begins when `next` returns a batch, and ends when the next batch is asked for. At both
times it probes the devices: they have work if an array of the program is not ready. Every second
sample also probes them once inside of the step. If the devices compute during the step, but never
at its end, the program may wait for them. Nothing is sent to the devices.

The other samples measure how long the program's thread runs. A probe inside of the step would
change this time, because it takes the lock of the interpreter from the program's thread.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from time import thread_time_ns
from typing import Any

from meshfeed._feed.feed import Feed
from meshfeed._native import library

GOLDEN = (5**0.5 - 1) / 2
LONGEST = 1.0  # seconds that the exit of the interpreter waits for each probe


class Sample:
    """The sample of one step.

    Args:
        feed: reports whether its devices have work.
        sent: the arrays of the batch by `id`. Their transfer is not the work of a step.
        seconds: the time to the probe inside of the step. None: measure how long the thread runs.

    Attributes:
        cost: nanoseconds that the start of the sample took.
        dry: whether the devices had no work when the batch was delivered.
        busy: whether the devices had work inside of the step; None without a probe.
    """

    def __init__(self, feed: Feed, sent: Collection[int], seconds: float | None) -> None:
        self._feed, self._sent = feed, sent
        self.cost = 0
        self.busy: bool | None = None
        self.dry = not feed.works(sent)
        self._timer = None if seconds is None else self._start_timer(seconds)
        self._thread, self._ran = threading.get_ident(), None if self._timer else _running()

    def _start_timer(self, seconds: float) -> threading.Timer:
        """Starts a thread that probes the devices after some seconds."""
        # If the loop is dropped before the time, the thread must not use arrays of the program.
        probe = weakref.WeakMethod(self._probe)
        timer = threading.Timer(seconds, _call, [probe])
        timer.daemon = True
        _end_at_exit()
        _timers.add(timer)
        with suppress(RuntimeError):  # if no thread can start, there is no probe
            timer.start()
        return timer

    def _probe(self) -> None:
        with suppress(Exception):  # such as of an array that is deleted meanwhile
            self.busy = self._feed.works(self._sent)

    def end(self) -> tuple[bool, int | None] | None:
        """Ends the sample. Returns whether the devices have no work, and how long the thread ran.

        The second value is None if it was not measured. The method returns None if another thread
        asks for the next batch.
        """
        ran = None if self._ran is None else _running() - self._ran
        if self._timer is not None:
            self._timer.cancel()
        if threading.get_ident() != self._thread:
            return None
        return not self._feed.works(self._sent), ran


class Samples:
    """The sums of samples, as in a measurements document.

    Attributes:
        begun: the number of samples that were begun.
    """

    def __init__(self) -> None:
        names = ("steps", "idle", "dry", "inside", "busy", "step_ns", "cpu_ns")
        self._sums = dict.fromkeys(names, 0)
        self.begun = 0

    def begin(self, feed: Feed, batch: Any, usual: float) -> Sample:
        """Begins a sample of the step with a batch.

        The times of the probes are spread evenly over the steps, by multiples of the golden ratio.

        Args:
            feed: reports whether its devices have work.
            batch: the batch.
            usual: seconds that a step usually takes.
        """
        self.begun += 1
        probe = usual * (0.02 + 0.96 * (GOLDEN * self.begun / 2 % 1))
        return Sample(feed, feed.sent(batch), None if self.begun % 2 else probe)

    def add(self, sample: Sample, step: int) -> None:
        """Ends a sample of a step of some nanoseconds, and adds it."""
        busy = sample.busy  # a probe that runs during `end` does not count
        if (ended := sample.end()) is None:
            return
        idle, ran = ended
        found = {
            "steps": 1,
            "idle": idle,
            "dry": sample.dry,
            "inside": busy is not None,
            "busy": bool(busy),
            "step_ns": 0 if ran is None else step,
            "cpu_ns": 0 if ran is None else min(ran, step),
        }
        for name, value in found.items():
            self._sums[name] += int(value)

    def measured(self) -> dict[str, int]:
        """Returns the sums."""
        return dict(self._sums)


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Calls a method if its object is still in use."""
    if found := method():
        found()


def _running() -> int:
    """Returns for how many nanoseconds this thread has run, or has waited for a CPU.

    The kernel's documentation of the file is sched-stats.rst. Its first number, the time on a CPU,
    may be some milliseconds old. Without the file, waits for a CPU do not count.
    """
    try:
        with Path("/proc/thread-self/schedstat").open(encoding="ascii") as file:
            waits = int(file.read().split()[1])
    except OSError:
        waits = 0
    return waits + thread_time_ns()


_timers: weakref.WeakSet[threading.Timer] = weakref.WeakSet()


@functools.cache
def _end_at_exit() -> None:
    """Ends the timers before the interpreter ends: a later call of JAX could abort the process."""
    library.before_exit(_end)


def _end() -> None:
    for timer in tuple(_timers):
        timer.cancel()
    for timer in tuple(_timers):
        if timer.is_alive():
            timer.join(LONGEST)
