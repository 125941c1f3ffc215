"""Which processes of a loader still respond, asked after a connection to a peer has failed.

When a process dies, the collectives of all others fail, and each reports a lost peer. The error
does not name the dead process. So every process that is alive sets a key, and the processes
without one are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from meshfeed._jobs.keys import Generation
from meshfeed._jobs.text import named

SECONDS = 1.5  # in which a process has to respond


class Liveness:
    """The signs of life of the processes in one generation."""

    def __init__(self, of: Generation) -> None:
        self._keys = of

    def heartbeat(self, batches: int) -> None:
        """Publishes that this process is alive, and how many batches it has taken."""
        said = {"time": time.time(), "batches": batches}
        self._keys.set(f"heartbeat/{self._keys.namespace.me}", said)

    def unresponsive(self, wait: Callable[[float], object]) -> list[int]:
        """Responds to the check; returns the processes that neither respond nor have departed."""
        namespace = self._keys.namespace
        self._keys.set(f"alive/{namespace.me}", True)
        wait(SECONDS)
        known = self._keys.by_process("alive").keys() | namespace.departed()
        return [p for p in namespace.members if p not in known]

    def describe(self, processes: list[int]) -> str:
        """Describes unresponsive processes, with the last heartbeat of the first."""
        since = "since the processes agreed"
        if last := self._keys.try_get(f"heartbeat/{processes[0]}"):
            clock = time.strftime("%H:%M:%S", time.localtime(last["time"]))
            since = f"since {clock} or later, after {last['batches']} batches"
        return f"{named(processes, 'does', 'do')} not answer {since}"
