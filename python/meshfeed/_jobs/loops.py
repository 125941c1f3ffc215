"""Tells the other processes how many batches a loop takes that `mf.Loader` does not make.

The processes do not agree on such a loop, so a loop of the same name in another process may be a
different one. Therefore differences are logged, and none is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from meshfeed._jobs.cluster import Cluster
from meshfeed._jobs.options import JobOptions
from meshfeed._native.lock import Lock
from meshfeed.errors import UnsupportedError

LATE = 30.0  # seconds that the other processes wait for a batch before the log names this one

_lock = Lock()
_loops: Counter[str] = Counter()  # in this process, by name


class Loop:
    """A loop over batches on the devices of several processes.

    Args:
        cluster: the processes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.begin()

    def take(self) -> None:
        """Counts a batch."""
        progress = self._cluster.progress
        progress.ask()
        progress.get(1)
        progress.batches += 1

    def end(self, *, over: bool, wait: bool) -> None:
        """Tells the others that the loop ends, and whether its batches are over.

        With `wait` this may take two seconds.
        """
        self._cluster.progress.ends = over
        self._cluster.close(wait=wait)


def joined(name: str, me: int, members: Sequence[int]) -> Loop | None:
    """Joins the processes with loops of this name.

    Returns:
        The loop; None if this process is alone, or if the processes cannot communicate.
    """
    if len(members) < 2 or me not in members:
        return None
    with _lock:
        _loops[name] += 1
        title = f"{name}, loop {_loops[name]}"
    options = JobOptions(title, None, LATE, "raise", "off", LATE)
    try:
        return Loop(Cluster(me, members, options, None))
    except UnsupportedError:  # the job has no `jax.distributed`
        return None
