"""The background threads of one generation, and its barrier."""

from __future__ import annotations

from collections.abc import Callable

from meshfeed import errors
from meshfeed._jobs.barrier import ALWAYS_FIRST, FIRST, Barrier
from meshfeed._jobs.contents import Contents
from meshfeed._jobs.keys import Generation, Namespace
from meshfeed._jobs.options import Evidence, JobOptions
from meshfeed._jobs.peers import Peers
from meshfeed._jobs.replicas import Replicas
from meshfeed._jobs.skew import SkewDetector
from meshfeed._jobs.stalls import Progress
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
        self._contents: Contents | None = None
        self._skew: SkewDetector | None = None
        self.barrier: Barrier | None = None
        self.replicas: Replicas | None = None

    def start(
        self,
        of: Generation,
        options: JobOptions,
        evidence: Evidence,
        position: Callable[[], tuple[int, int]],
    ) -> None:
        """Starts what a generation needs; `position` returns the next batch's epoch and step."""
        self.progress = progress = Progress()
        end, late = options.on_peer_error, options.late_after
        self._peers = peers = Peers(of, on_error=end, late_after=late, progress=progress)
        if evidence.files is not None:
            self._contents = Contents(
                of, evidence.files, lambda error: peers.raise_everywhere(error, *position())
            )
        if options.verify_replicas == "off":
            return
        if evidence.shared.tensors:
            verify, seconds = options.verify_replicas, options.agree_timeout
            self.replicas = Replicas(of, evidence.shared, verify, peers.raise_everywhere, seconds)
        always = options.verify_replicas == "always"
        first = ALWAYS_FIRST if always else FIRST
        self.barrier = Barrier(of, first, evidence.live, self.check)
        if self._namespace.leads:
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
            worker.end(seconds if worker in (self._contents, self.replicas) else None)
        self._contents = self._skew = self.barrier = self.replicas = None

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
        if self._peers is not None:
            self._peers.finish = self._depart
        for worker in self.running():  # the peers are the last
            worker.forget()

    def running(self) -> list[Worker]:
        """Returns the threads that were started."""
        started = (self._contents, self._skew, self.replicas, self._peers)
        return [worker for worker in started if worker is not None]

    def _depart(self) -> None:
        if self._skew is not None:
            self._skew.end(None)  # its wake key must not be deleted before it wakes
        self.depart()
        self._namespace.depart()
