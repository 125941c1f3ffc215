"""The cursor of a loader in a job of several processes. A loader of one process does not use it."""

from __future__ import annotations

import dataclasses
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter_ns as now
from typing import Any

from meshfeed._feed.cursor import Cursor, Item, Make
from meshfeed._feed.feed import Feed
from meshfeed._io.arguments import State
from meshfeed._jobs.agreement import Terms
from meshfeed._jobs.cluster import Cluster
from meshfeed._jobs.stalls import Measure, Measured
from meshfeed._native import calls
from meshfeed._native.handle import Handle
from meshfeed._native.owner import Owner
from meshfeed.errors import Error, PeerError


class JoinedCursor(Cursor):
    """A cursor that takes its batches in step with the other processes of a job.

    Args:
        handle: the handle of a loader or of a pass over one epoch; the cursor closes it.
        feed: makes the batches.
        rest: the other arguments of `Cursor`.
    """

    _make: _Inspector

    def __init__(self, handle: Handle, feed: Feed, **rest: Any) -> None:
        self._sampling = _Sampling()
        self._cluster: Cluster | None = None
        self._leads = False  # whether this is the cursor of the loader, and not of a pass
        self._agreed_in = -1  # the generation of the last batch
        self._rows = 1
        self._pass_over: Terms = {}
        super().__init__(handle, feed, **rest)

    def _maker(self, feed: Feed, keep: int) -> _Inspector:
        return _Inspector(feed.make, keep, self._sampling)

    def join(self, cluster: Cluster | None, rows: int, measure: Measure) -> None:
        """Takes batches in step with these processes from now on.

        Args:
            cluster: the processes; None if there are no others.
            rows: the rows of the global batch.
            measure: measures the loop (see `Cluster`).
        """
        self._cluster = self._sampling.cluster = cluster
        self._sampling.stream = 0
        self._agreed_in = -1
        self._leads, self._rows = True, rows
        if cluster is not None:
            cluster.moved(calls.loader_state(self.handle.value), "")
            cluster.position = weakref.WeakMethod(self.epoch_and_step)
            cluster.measure = measure

    def reports(self) -> tuple[list[Measured], list[int]]:
        """Returns the measurements of the other processes (see `Cluster`)."""
        cluster = self._cluster
        return ([], []) if cluster is None or cluster.left else cluster.reports()

    def share(self, leader: JoinedCursor, pass_over: Terms) -> None:
        """Makes the cursor of a pass use the cluster of the loader's cursor.

        Args:
            leader: the loader's cursor.
            pass_over: what the pass delivers; equal in all processes.
        """
        self._cluster = self._sampling.cluster = leader._cluster
        self._rows, self._pass_over = leader._rows, pass_over

    def keeps_file(self, path: Path, state: State) -> Callable[[str], bool] | None:
        """Returns a function that reports whether a file keeps its state (see `Cluster`)."""
        return self._cluster.keeps_file(path, state) if self._cluster is not None else None

    def leave(self, *, wait: bool) -> None:
        """Takes batches without the other processes from now on."""
        if self._cluster is not None and self._leads:
            self._cluster.close(wait=wait)
        self._cluster = self._sampling.cluster = None

    def take(self) -> Item | None:
        """Returns the next batch, or None at the end of the run."""
        cluster = self._cluster
        if cluster is None or cluster.left:
            return super().take()
        try:
            return self._take_with(cluster)
        except Error as e:
            cluster.progress.exact = False
            if isinstance(e, PeerError):
                cluster.known = weakref.ref(e)
            raise

    def _take_with(self, cluster: Cluster) -> Item | None:
        """Takes the next batch in step with other processes."""
        began = now()
        with nullcontext() if self.marks is None else self.marks("meshfeed.agree"):
            self._meet(cluster)
        self.clock.peers += now() - began
        progress, peers = cluster.progress, cluster.peers
        progress.ask()
        try:
            item = super().take()
        except Exception as e:
            progress.get(0)
            cluster.failed(e, *self.epoch_and_step())
            raise
        # The departure is an error only if there is another batch: that process never takes it.
        # It is read after the batch was taken, which may have taken long.
        gone = peers.departure() if self._leads and peers.departed is not None else None
        if gone and item is not None:
            progress.get(0)
            raise gone
        progress.get(item is not None)
        if self._leads:
            taken = self.done.taken + (item is not None)
            progress.batches, progress.ends = taken, item is None or item[2]
        return item

    def undo(self) -> None:
        """Corrects what other processes know, because an exception has ended `next`."""
        if self._leads and self._cluster is not None:
            self._cluster.progress.batches = self.done.taken

    def _meet(self, cluster: Cluster) -> None:
        """Agrees with the other processes on the next batch, and waits for them at a barrier."""
        sampling, agreed_in = self._sampling, cluster.begin()
        if sampling.stream is None:
            sampling.stream = cluster.begin_pass(self._pass_over)
        if self._leads and agreed_in != self._agreed_in:  # the loader was moved
            done = self.done._replace(taken=0)
            sampling.count, self.done, self._agreed_in = 0, done, agreed_in
            self._make.inspect_early()
        progress, barrier, peers = cluster.progress, cluster.barrier, cluster.peers
        if self._leads and barrier is not None:
            if peers.departed is None:
                barrier.step(self.done.taken + 1, time.monotonic() - progress.since)
            else:  # a process has closed the loader, and reaches no further barrier
                barrier.judge()

    def peek(self) -> Item | None:
        """Returns the batch that the next take returns. The other processes are not involved.

        If the processes have not agreed on this batch yet, its replicas are compared afterwards.
        """
        cluster = self._cluster
        early = cluster is not None and self._leads and not cluster.agreed
        self._make.early = early
        try:
            return super().peek()
        finally:
            self._make.early = False

    def epoch_and_step(self) -> tuple[int, int]:
        """Returns epoch and step of the next batch."""
        epoch, position = self.at
        return epoch, position // self._rows

    def _resync(self) -> None:
        self._make.drop_early()
        self._sampling.count = self.done.taken
        super()._resync()

    def _moved(self, before: tuple[int, int], call: str) -> None:
        """Stores the new position. The processes agree on it before the next batch."""
        super()._moved(before, call)
        if self._cluster is not None:
            self._cluster.moved(calls.loader_state(self.handle.value), call)

    def close(self, cause: BaseException | None = None) -> None:
        """Releases the handle. The cursor of the loader leaves the job."""
        try:
            if cause is not None and self._cluster is not None and self._leads:
                self._cluster.abandon(cause)
        finally:
            super().close(cause)
            self.leave(wait=not isinstance(cause, KeyboardInterrupt | SystemExit))


@dataclasses.dataclass
class _Sampling:
    """Counts the batches of a cursor, to choose the batches that compare replicas.

    Attributes:
        cluster: the processes that compare.
        stream: the number of the loader or pass: 0 for the loader. A pass gets its number with
            its first batch.
        count: how many batches were made since the processes agreed, or in the pass.
    """

    cluster: Cluster | None = None
    stream: int | None = None
    count: int = 0


class _Inspector:
    """Makes batches, and has the replicas of some of them compared.

    Args:
        make: makes a batch.
        keep: the number of live batches that is usual.
        sampling: chooses the batches that are compared.

    Attributes:
        make: makes a batch.
        early: whether the processes have not agreed yet on the batch that is made.
    """

    def __init__(self, make: Make, keep: int, sampling: _Sampling) -> None:
        self.make, self._keep, self._sampling = make, keep, sampling
        self.early = False
        self._waiting: Owner | None = None

    def __call__(self, owner: Owner) -> Any:
        batch = self.make(owner)
        if self.early:
            self._waiting = owner
        else:
            self._inspect(owner)
        return batch

    def inspect_early(self) -> None:
        """Queues the batch of a `peek` for the comparison of replicas, after the agreement."""
        if (owner := self._waiting) is not None:
            self._waiting = None
            self._inspect(owner)

    def drop_early(self) -> None:
        """Drops the batch of a `peek`, because the cursor makes it again."""
        self._waiting = None

    def _inspect(self, owner: Owner) -> None:
        sampling = self._sampling
        cluster = sampling.cluster
        replicas = cluster.replicas if cluster is not None else None
        if cluster is not None and replicas is not None and replicas.sampled(sampling.count):
            assert sampling.stream is not None
            held = owner.release._as_parameter_
            assert held is not None
            assert held.value is not None
            replicas.inspect(held.value, sampling.stream, self._keep - 1)
        sampling.count += 1
