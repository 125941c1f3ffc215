"""Which processes of a loader hold up the job, and which do not respond any more.

Every process publishes a heartbeat every few seconds. A process whose last batch is long ago
publishes how many it has taken and what it waits for. A moment later, processes that are ahead log
those behind.

When a process dies, the collectives of all others fail, and each reports a lost peer. The error
does not name the dead process. So every process that is alive sets a key, and the processes
without one are reported.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from meshfeed._jobs.keys import Generation
from meshfeed._jobs.wording import counted, named

TIMES = 5  # a step is late after this many times the usual, if that is more than `late_after`
BUSY = 0.25  # CPUs in use: above it rows are copied, below it storage is waited for
LISTED = 8  # parts of a log line
SECONDS = 1.5  # in which a process has to respond

log = logging.getLogger("meshfeed")


@dataclass
class Progress:
    """How far a loader's program has come; written by `next`, read by a background thread."""

    steps: int = 0  # batches delivered since the processes agreed
    batches: int = 0  # those of them that the loader itself delivered, without `one_epoch`
    ends: bool = False  # whether the last of those ended an epoch
    inside: bool = False  # whether the program waits in `next`
    since: float = field(default_factory=time.monotonic)  # the time of the last change

    def ask(self) -> None:
        """Notes that the program calls `next`."""
        self.inside, self.since = True, time.monotonic()

    def get(self, delivered: int) -> None:
        """Notes that `next` returns: with a batch (1), or with an end or an error (0)."""
        self.steps += delivered
        self.inside, self.since = False, time.monotonic()


class Stalls:
    """Watches the progress of one loader, where `late` is a number of seconds."""

    def __init__(self, of: Generation, late: float, progress: Progress) -> None:
        self._keys, self._namespace = of, of.namespace
        self._late, self._progress = late, progress
        self._published = False
        self._log_at = 0.0
        self._clock = time.monotonic(), time.process_time()
        self._seen = progress.steps, time.monotonic()
        self._usual = 0.0  # seconds from batch to batch

    def look(self) -> None:
        """Publishes a heartbeat, and logs what is late; called every few seconds."""
        heartbeat = {"time": time.time(), "batches": self._progress.batches}
        self._keys.set(f"heartbeat/{self._namespace.me}", heartbeat)
        why = self._why()
        self._learn()
        idle = time.monotonic() - self._progress.since
        late, key = max(self._late, TIMES * self._usual), f"progress/{self._namespace.me}"
        if idle < late:
            if self._published:
                self._keys.delete(key)
            self._published, self._log_at = False, 0.0
            return
        self._keys.set(key, {"steps": self._progress.steps, "for": round(idle, 1), "why": why})
        # Others may have become late a moment ago: they count as silent after twice the time.
        if self._published and idle >= self._log_at and self._report(idle, silent=idle >= 2 * late):
            self._log_at = 2 * idle
        self._published = True

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
        return "gather" if uses - used > BUSY * (now - then) else "read"

    def _report(self, idle: float, *, silent: bool) -> bool:
        """Logs the processes behind this one; returns whether there are any.

        With `silent` it also logs those that have published nothing.
        """
        namespace, steps = self._namespace, self._progress.steps
        found = self._keys.by_process("progress")
        behind = [
            f"process {p} has taken {its['steps']} and has waited for {its['for']:g} s "
            f"({its['why']})"
            for p, its in sorted(found.items())
            if its["steps"] < steps
        ]
        missing = [p for p in namespace.members if p not in found]
        if missing and silent:
            departed = namespace.departed()
            if gone := [p for p in missing if p in departed]:
                behind.append(named(gone, "has closed the loader", "have closed the loader"))
            if rest := [p for p in missing if p not in departed]:
                behind.append(named(rest, "does not answer", "do not answer"))
        if behind:
            text = "loader %s: this process has taken %s and has waited for %.0f s: %s"
            log.warning(text, namespace.title, counted(steps), idle, ", ".join(behind[:LISTED]))
        return bool(behind)

    # ---- after a lost peer ----

    def unresponsive(self, wait: Callable[[float], object]) -> list[int]:
        """Responds to the check; returns the processes that neither respond nor have departed."""
        self._keys.set(f"alive/{self._namespace.me}", True)
        wait(SECONDS)
        known = self._keys.by_process("alive").keys() | self._namespace.departed()
        return [p for p in self._namespace.members if p not in known]

    def describe(self, silent: list[int]) -> str:
        """Describes unresponsive processes, with the last heartbeat of the first."""
        since = "since the processes agreed"
        if last := self._keys.get(f"heartbeat/{silent[0]}"):
            clock = time.strftime("%H:%M:%S", time.localtime(last["time"]))
            since = f"since {clock} or later, after {last['batches']} batches"
        return f"{named(silent, 'does', 'do')} not answer {since}"
