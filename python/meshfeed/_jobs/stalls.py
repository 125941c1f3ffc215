"""Who holds up a job: noticed by the processes that wait, without asking anyone in advance.

While batches come and go nothing is said. A process whose last batch is long ago writes down how
many it has had and what it waits for; after a moment for the others to do so too, those that are
ahead log who is behind.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from meshfeed._jobs.agreement import named
from meshfeed._jobs.rounds import Round

TIMES = 5  # as long as usual is late, where that is more than the seconds given
BUSY = 0.25  # processors in use: more is copying rows, less is waiting for storage

log = logging.getLogger("meshfeed")


@dataclass
class Progress:
    """Where a loader's program stands, written by its `next` and read by a watcher.

    Attributes:
        steps: batches delivered since the processes agreed.
        inside: whether the program waits in `next`.
        since: the time of the last change.
        batches: those of them that the loader itself delivered, and no pass of its own.
        ends: whether the last of those ended an epoch.
    """

    steps: int = 0
    batches: int = 0
    ends: bool = False
    inside: bool = False
    since: float = field(default_factory=time.monotonic)

    def ask(self) -> None:
        """Notes that the program asks for a batch."""
        self.inside, self.since = True, time.monotonic()

    def get(self, delivered: int) -> None:
        """Notes that it got one (1), or an end or an error (0)."""
        self.steps += delivered
        self.inside, self.since = False, time.monotonic()


class Stalls:
    """Watches the progress of one loader.

    Args:
        of: the round.
        late: seconds without a batch after which one is late.
        progress: of this process.
    """

    def __init__(self, of: Round, late: float, progress: Progress) -> None:
        self._room, self._path = of.room, f"{of.path}/progress"
        self._store, self._title = of.room.store, of.room.title
        self._me, self._members = of.room.me, of.room.members
        self._late, self._progress = late, progress
        self._written = False
        self._tell_at = 0.0
        self._clock = time.monotonic(), time.process_time()
        self._seen = progress.steps, time.monotonic()
        self._usual = 0.0  # seconds from batch to batch

    def look(self) -> None:
        """Writes and reports what there is; takes a moment, and is called now and then."""
        why = self._why()
        self._learn()
        idle = time.monotonic() - self._progress.since
        late = max(self._late, TIMES * self._usual)
        if idle < late:
            if self._written:
                self._store.delete(f"{self._path}/{self._me}")
            self._written, self._tell_at = False, 0.0
            return
        mine = {"steps": self._progress.steps, "for": round(idle, 1), "why": why}
        self._store.set(f"{self._path}/{self._me}", json.dumps(mine).encode())
        # Another one may have become late a moment ago; it is silent only after some time.
        if (
            self._written
            and idle >= self._tell_at
            and self._report(idle, silent_too=idle >= 2 * late)
        ):
            self._tell_at = 2 * idle
        self._written = True

    def _learn(self) -> None:
        """Finds out how long a step takes, from those since a look that saw another one."""
        (then, at), steps, now = self._seen, self._progress.steps, time.monotonic()
        if steps > then:
            self._usual = (now - at) / (steps - then)
            self._seen = steps, now

    def _why(self) -> str:
        """Gives what this process waits for: its program, its storage, or its processors."""
        then, used = self._clock
        self._clock = now, uses = time.monotonic(), time.process_time()
        if not self._progress.inside:
            return "consumer"
        return "gather" if uses - used > BUSY * (now - then) else "read"

    def _report(self, idle: float, *, silent_too: bool) -> bool:
        """Logs who is behind this process, if anyone is."""
        told: dict[int, dict[str, Any]] = {
            int(key.rpartition("/")[2]): json.loads(value)
            for key, value in self._store.list(self._path).items()
        }
        steps = self._progress.steps
        what = [
            f"process {p} has had {facts['steps']} and waits for {facts['for']:g} s "
            f"({facts['why']})"
            for p, facts in sorted(told.items())
            if facts["steps"] < steps
        ]
        silent = [p for p in self._members if p not in told]
        if silent and silent_too:
            left = self._room.left()
            what += _said(
                [p for p in silent if p in left], "has closed the loader", "have closed the loader"
            )
            what += _said([p for p in silent if p not in left], "does not answer", "do not answer")
        if what:
            text = "loader %s: this process has had %d batches and waits for %.0f s: %s"
            log.warning(text, self._title, steps, idle, ", ".join(what[:8]))
        return bool(what)


def _said(processes: Sequence[int], of_one: str, of_many: str) -> list[str]:
    """Says something of processes, if there are any."""
    if not processes:
        return []
    return [f"{named(processes)} {of_one if len(processes) == 1 else of_many}"]
