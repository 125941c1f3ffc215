"""Which processes of a loader still answer: a broken connection has a cause somewhere else.

When a process dies, those that are in a collective with it fail as well, and blame each other.
Such an error starts a roll call: every process that is there writes a key, and those that do not
are the ones to look at. Now and then every process writes when it was there last.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from meshfeed import errors
from meshfeed._jobs.agreement import named
from meshfeed._jobs.rounds import Round

SECONDS = 1.5  # that a process has to answer

_STATUS = re.compile(r"[A-Z][A-Z_]+: ")  # begins the text of every error that XLA raises
# What JAX's collectives and its coordination service say when another process is gone.
_TRANSPORT = re.compile(
    r"gloo|nccl|mpi_|connection (reset|closed|refused)|connect(ion)? timeout|socket closed"
    r"|broken pipe|heartbeat|coordination service|\b(UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED)\b",
    re.IGNORECASE,
)


def is_secondary(error: BaseException | None) -> bool:
    """Says whether an error follows from the loss of another process, as far as can be told."""
    while error is not None:
        known = isinstance(error, RuntimeError | ValueError) and not isinstance(error, errors.Error)
        if known and _STATUS.match(str(error)) and _TRANSPORT.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


class Roll:
    """The signs of life of one round's processes.

    Args:
        of: the round.
    """

    def __init__(self, of: Round) -> None:
        self._room, self._path, self._store = of.room, f"{of.path}/roll", of.room.store

    def live(self, batches: int) -> None:
        """Says that this process is there, and how many batches it has had."""
        text = json.dumps({"time": time.time(), "batches": batches})
        self._store.set(f"{self._path}/last/{self._room.me}", text.encode())

    def answer(self) -> None:
        """Answers a roll call."""
        self._store.set(f"{self._path}/here/{self._room.me}", b"")

    def silent(self, wait: Callable[[float], object]) -> list[int]:
        """Gives the processes that do not answer, and have not left.

        Args:
            wait: waits so many seconds.
        """
        self.answer()
        wait(SECONDS)
        here = {int(key.rpartition("/")[2]) for key in self._store.list(f"{self._path}/here")}
        return [p for p in self._room.members if p not in here | self._room.left()]

    def said(self, silent: list[int]) -> str:
        """Says that processes do not answer, and since when."""
        verb = "does" if len(silent) == 1 else "do"
        last = self._store.try_get(f"{self._path}/last/{silent[0]}")
        since = "since the processes agreed"
        if last:
            told = json.loads(last)
            clock = time.strftime("%H:%M:%S", time.localtime(told["time"]))
            since = f"since {clock} or later, after {told['batches']} batches"
        return f"{named(silent)} {verb} not answer {since}"
