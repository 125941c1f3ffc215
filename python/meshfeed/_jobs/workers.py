"""The background threads of one generation."""

from __future__ import annotations

from collections.abc import Callable

from meshfeed import errors
from meshfeed._jobs.barrier import ALWAYS_FIRST, FIRST, Barrier
from meshfeed._jobs.contents import Contents
from meshfeed._jobs.keys import Generation, Namespace
from meshfeed._jobs.options import Evidence, JobOptions
from meshfeed._jobs.peers import Peers
from meshfeed._jobs.replicas import Replicas, sampled
from meshfeed._jobs.skew import SkewDetector
from meshfeed._jobs.stalls import Progress, Stalls
from meshfeed._jobs.worker import Worker


class Workers:
    """The background threads of one generation. They hold no reference to the loader.

    Attributes:
        progress: how far the program has come.
        replicas: compares replicas, if there are any.
        barrier: stops the program before some batches, to compare its steps with the others'.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self.progress = Progress()
        self._peers: Peers | None = None
        self.contents: Contents | None = None
        self.barrier: Barrier | None = None
        self._skew: SkewDetector | None = None
        self.replicas: Replicas | None = None

    def start(
        self,
        of: Generation,
        options: JobOptions,
        evidence: Evidence,
        position: Callable[[], tuple[int, int]],
    ) -> None:
        """Starts what a generation needs; `position` returns the next batch's epoch and step."""
        self.progress = Progress()
        self._peers = peers = Peers(
            of,
            on_error=options.on_peer_error,
            look_every=options.late_after / 3,
            stalls=Stalls(of, options.late_after, self.progress),
            progress=self.progress,
        )
        if evidence.files is not None:

            def report(error: errors.Error) -> None:
                peers.raise_everywhere(error, *position())

            self.contents = Contents(of, evidence.files, report)
        if options.verify_replicas == "off":
            return
        if evidence.shared.tensors:
            self.replicas = Replicas(
                of,
                evidence.shared,
                sampled=sampled(options.verify_replicas),
                report=peers.raise_everywhere,
                seconds=options.agree_timeout,
            )
        always = options.verify_replicas == "always"
        first = ALWAYS_FIRST if always else FIRST
        self.barrier = Barrier(of, first, evidence.live, self.check)
        if self._namespace.me == self._namespace.lead:
            self._skew = SkewDetector(of, first, always=always)

    @property
    def peers(self) -> Peers:
        """Receives failures, once the processes have agreed."""
        assert self._peers is not None
        return self._peers

    def check(self) -> bool:
        """Raises what another process has found; returns whether a process has departed.

        A skew is the same error in all processes, also in one that another process told first.
        """
        try:
            return self.peers.check()
        except errors.IncompatibleError:
            if self.barrier is not None:
                self.barrier.judge()
            raise

    def end(self, seconds: float) -> None:
        """Ends the threads, and waits at most so long for a hash or a comparison."""
        if self.barrier is not None:
            self.barrier.end()
        for worker in self.running():
            worker.end(seconds if worker in (self.contents, self.replicas) else None)
        self.contents = self.barrier = self._skew = self.replicas = None

    def depart(self) -> None:
        """Tells the others that this process closes the loader."""
        if self._peers is not None:
            self._peers.depart()

    @property
    def lost(self) -> bool:
        """Whether the store does not answer."""
        return self._peers is not None and self._peers.lost

    def forget(self) -> None:
        """Tells the threads to end; returns at once. The last one departs from the loader."""
        if self.barrier is not None:
            self.barrier.end()
        for worker in self.running():
            if worker is not self._peers:
                worker.forget()
        if self._peers is not None:
            self._peers.forget(self._depart)

    def running(self) -> list[Worker]:
        """Returns the threads that were started."""
        started = (self.contents, self._skew, self.replicas, self._peers)
        return [worker for worker in started if worker is not None]

    def _depart(self) -> None:
        if self._skew is not None:
            self._skew.end(None)  # its wake key must not be deleted before it wakes
        self.depart()
        self._namespace.depart()
