"""Which processes of a loader hold up the job, and which do not respond any more.

Every process publishes a heartbeat and the measurements of its loop every few seconds. A process
that has not received a batch for a long time publishes the number of its batches and what it waits
for. A few seconds later, processes that are ahead log the processes behind.

When a process dies, the collectives of all others fail, and each reports a lost peer. The error
does not name the dead process. So every process that is alive sets a key in the store of the job,
and the processes without such a key are reported.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from meshfeed._jobs.keys import Generation
from meshfeed._jobs.wording import SAME_STEP, counted, named

LATE_FACTOR = 5  # a step is late after this many usual steps, or `late_after` if that is longer
BUSY_CPUS = 0.25  # CPUs in use: above it, the loader copies rows; below it, it waits for storage
MAX_LISTED = 8  # processes or groups of processes in a log line
RESPONSE_SECONDS = 1.5  # the time in which a process has to respond to the check of `unresponsive`

log = logging.getLogger("meshfeed")

Measured = dict[str, Any]  # the measurements of a process, as in a measurements document
Measure = Callable[[], Callable[[], Measured] | None]


@dataclass
class Progress:
    """How far a loader's program has come; written by `next`, read by a background thread."""

    steps: int = 0  # batches delivered since the processes agreed on the next batch
    batches: int = 0  # the part of these that is not in passes of `one_epoch`
    ends: bool = False  # whether the last of these batches ended an epoch
    inside: bool = False  # whether the program waits in `next`
    exact: bool = True  # whether the batches are as many as the steps, as far as is known
    since: float = field(default_factory=time.monotonic)  # the time of the last change

    def ask(self) -> None:
        """Notes that the program calls `next`.

        A thread beside the main one may read ahead, so that batches wait in a queue.
        """
        self.exact &= threading.current_thread() is threading.main_thread()
        self.inside, self.since = True, time.monotonic()

    def get(self, delivered: int) -> None:
        """Notes that `next` returns: with a batch (1), or with an end or an error (0)."""
        self.steps += delivered
        self.inside, self.since = False, time.monotonic()


class Stalls:
    """Watches the progress of one loader.

    Args:
        of: the keys of the processes that agreed on the next batch.
        late: seconds without a batch after which a process is late, at least.
        progress: what the loader's program has received so far.
        measure: returns the function that measures the loop; None if the loader is gone.
    """

    def __init__(
        self, of: Generation, late: float, progress: Progress, measure: Measure = lambda: None
    ) -> None:
        self._measure = measure
        self._keys, self._namespace = of, of.namespace
        self._late, self._progress = late, progress
        self._published = False
        self._log_at = 0.0
        self._clock = time.monotonic(), time.process_time()
        self._seen = progress.steps, time.monotonic()
        self._usual = 0.0  # seconds from batch to batch

    def look(self) -> None:
        """Publishes what this process does, and logs late processes; called every few seconds."""
        seconds = self._namespace.seconds()
        heartbeat = {"seconds": seconds, "batches": self._progress.batches}
        self._keys.set(f"heartbeat/{self._namespace.me}", heartbeat)
        self._publish()
        why = self._why()
        self._learn()
        idle = time.monotonic() - self._progress.since
        late, key = max(self._late, LATE_FACTOR * self._usual), f"progress/{self._namespace.me}"
        if idle < late:
            if self._published:
                self._keys.delete(key)
            self._published, self._log_at = False, 0.0
            return
        self._keys.set(key, {"steps": self._progress.steps, "for": round(idle, 1), "why": why})
        # Another late process may not have published yet. It counts as silent after twice the time.
        if self._published and idle >= self._log_at and self._report(idle, silent=idle >= 2 * late):
            self._log_at = 2 * idle
        self._published = True

    def _publish(self) -> None:
        """Publishes the measurements of the loop, with the wait that has not ended yet."""
        measure, progress = self._measure(), self._progress
        if measure is None:
            return
        measured = measure()
        if progress.inside and measured["batches"]:
            waits = int(1e9 * (time.monotonic() - progress.since))
            measured["wall_ns"] += waits
            measured["wait_ns"] += waits
        me = self._namespace.me
        report = {"seconds": self._namespace.seconds(), "measured": measured}
        self._namespace.reports.set(f"report/{me}", report)

    def _learn(self) -> None:
        """Measures the usual time of a step, from the steps since the last look."""
        (then, at), steps, now = self._seen, self._progress.steps, time.monotonic()
        if steps > then:
            self._usual = (now - at) / (steps - then)
            self._seen = steps, now

    def _why(self) -> str:
        """Returns what this process waits for: its program, its CPUs, or its storage."""
        then, used = self._clock
        self._clock = now, uses = time.monotonic(), time.process_time()
        if not self._progress.inside:
            return "consumer"
        return "gather" if uses - used > BUSY_CPUS * (now - then) else "read"

    def _report(self, idle: float, *, silent: bool) -> bool:
        """Logs the processes behind this one; returns whether there are any.

        With `silent` it also logs processes that have published no progress.
        """
        namespace, steps = self._namespace, self._progress.steps
        found = self._keys.by_process("progress")
        behind = [
            f"process {p} has taken {its['steps']} and has waited for {its['for']:g} s "
            f"({its['why']})"
            for p, its in sorted(found.items())
            if its["steps"] < steps
        ]
        hint = ""
        missing = [p for p in namespace.members if p not in found]
        if missing and silent:
            departed = namespace.departed()
            if gone := [p for p in missing if p in departed]:
                behind.append(named(gone, "has closed the loader", "have closed the loader"))
                hint = f"; if this one waits in a step, {SAME_STEP}"
            if rest := [p for p in missing if p not in departed]:
                behind.append(named(rest, "does not answer", "do not answer"))
        if behind:
            text = "loader %s: this process has taken %s and has waited for %.0f s: %s%s"
            listed = ", ".join(behind[:MAX_LISTED])
            log.warning(text, namespace.title, counted(steps), idle, listed, hint)
        return bool(behind)

    # ---- after a lost peer ----

    def unresponsive(self, wait: Callable[[float], object]) -> list[int]:
        """Publishes that this process is alive; returns the processes that have not done so.

        Processes that have closed the loader are left out.
        """
        self._keys.set(f"alive/{self._namespace.me}", True)
        wait(RESPONSE_SECONDS)
        known = self._keys.by_process("alive").keys() | self._namespace.departed()
        return [p for p in self._namespace.members if p not in known]

    def describe(self, silent: list[int]) -> str:
        """Describes unresponsive processes, with the last heartbeat of the first."""
        since = "since the processes agreed"
        if last := self._keys.get(f"heartbeat/{silent[0]}"):
            ago = self._namespace.seconds() - last["seconds"]
            clock = time.strftime("%H:%M:%S", time.localtime(time.time() - ago))
            since = f"since {clock} or later, after {last['batches']} batches"
        return f"{named(silent, 'does', 'do')} not answer {since}"
