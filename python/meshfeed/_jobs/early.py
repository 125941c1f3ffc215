"""Reports an exception that ends a program to processes that have not agreed with it on a loader.

Such a program may have no loader yet, for example if a file is missing. Its process sets a key of
its own in the store of `jax.distributed`, which ends with the job. A process that waits in an
agreement looks for these keys every second.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from meshfeed._jobs import failures
from meshfeed._jobs.coordinator import Coordinator, JaxCoordinator, jax_coordinator
from meshfeed._jobs.worker import beside
from meshfeed._native import library

KEY = "meshfeed-failed"
PAUSE = 1.0  # seconds between two looks
LONGEST = 1.0  # seconds for a report at the exit


def uncaught() -> BaseException | None:
    """Returns the exception that ends the program, or None at an interactive prompt."""
    if hasattr(sys, "ps1"):
        return None
    kept: BaseException | None = getattr(sys, "last_value", None)
    return kept


@functools.cache
def watch() -> None:
    """Reports an exception that ends the program, when the interpreter exits."""
    library.before_exit(_report)


def _report() -> None:
    error, jax = uncaught(), sys.modules.get("jax")
    if error is None or jax is None or not failures.is_failure(error):
        return
    if jax.distributed.is_initialized():
        beside(LONGEST, functools.partial(_set, error))


def _set(error: BaseException) -> None:
    from meshfeed._jax.runtime import job_process

    process = job_process()
    message = failures.failure(error, process, -1, -1)
    jax_coordinator().set(f"{KEY}/{process}", json.dumps(message).encode())


class Failures:
    """The reports of some processes, for one that waits for them.

    Args:
        store: the store of the job.
        processes: the processes.
    """

    def __init__(self, store: Coordinator, processes: Sequence[int]) -> None:
        self._store, self._processes = store, processes
        self._looked = time.monotonic()

    def any(self) -> bool:
        """Returns whether a process has reported. It looks at most once a second."""
        if time.monotonic() - self._looked < PAUSE:
            return False
        self._looked = time.monotonic()
        return self.first() is not None

    def first(self) -> failures.Message | None:
        """Returns the report of the first process that has one."""
        if not isinstance(self._store, JaxCoordinator):  # another store may hold an earlier job
            return None
        found = self._store.list(KEY)
        reports = (found.get(f"{KEY}/{p}") for p in self._processes)
        report: Any = next((each for each in reports if each is not None), None)
        return None if report is None else json.loads(report)
