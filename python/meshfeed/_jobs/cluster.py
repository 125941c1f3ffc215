"""The processes of one loader: they agree on a start, report failures and compare what they load.

They communicate by the keys of a store (see `mf.Coordinator`). A generation is the time
between two agreements: a loader that was moved needs a new one. A loader with a mesh in one process
has no cluster.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from meshfeed._io.arguments import State
from meshfeed._jobs import state_files, wording
from meshfeed._jobs.agreement import TAKEN, Agreement, Terms
from meshfeed._jobs.barrier import ALWAYS_FIRST, FIRST, Barrier
from meshfeed._jobs.contents import Contents
from meshfeed._jobs.early import uncaught
from meshfeed._jobs.failures import is_failure, is_local
from meshfeed._jobs.keys import Generation, Namespace, claim
from meshfeed._jobs.options import Evidence, JobOptions
from meshfeed._jobs.peers import Peers, report
from meshfeed._jobs.replicas import Replicas
from meshfeed._jobs.skew import SkewDetector
from meshfeed._jobs.stalls import Measure, Measured, Progress
from meshfeed._jobs.worker import LEAVING, Worker, beside, running
from meshfeed._native import library
from meshfeed._native.lock import Lock
from meshfeed.errors import Error, IncompatibleError, PeerError

Position = Callable[[], tuple[int, int]]  # returns epoch and step

LEAVE = 1.0  # seconds that a close waits for calls of the store
EXIT = 10 * LEAVE  # seconds that the interpreter's exit waits, however many loaders are open

log = logging.getLogger("meshfeed")


def joined(
    options: JobOptions, me: int, members: Sequence[int], evidence: Evidence
) -> Cluster | None:
    """Returns the cluster of a loader, or None if this process is alone or not a member."""
    if len(members) < 2 or me not in members:
        return None
    return Cluster(me, members, options, evidence)


class Cluster:
    """The membership of this process in the group of processes that share one loader.

    Args:
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
        options: the user's.
        evidence: what the processes compare; None if they do not agree, and only tell each other
            when they leave.

    Attributes:
        progress: how far the program has come in the present generation.
        barrier: stops the program before some batches, to compare its steps with the others'.
        replicas: compares replicas, if there are any.
        agreed: whether the processes have agreed on the next batch.
        left: whether this process has left the cluster, and goes on alone.
        state: the state from which the loader goes on, set by its cursor.
        known: returns the last PeerError that a cursor has raised, or None.
        position: set by the cursor; a weak reference to a function that returns the next epoch
            and step.
        measure: set by the loader; returns a function that measures its loop.
    """

    def __init__(
        self, me: int, members: Sequence[int], options: JobOptions, evidence: Evidence | None
    ) -> None:
        self._options, self._evidence = options, evidence
        self._terms: Terms | None = None
        self._namespace, self._release = claim(options.store(), me, options.name, members)
        self._closed = threading.Event()
        self._lock = Lock()
        self._next = self._present = 0  # numbers of generations
        self._passes = 0  # that have begun; equal in all processes
        self.agreed = self._met = False
        self._call = ""  # the last one that moved the loader
        self.progress = Progress()
        self.barrier: Barrier | None = None
        self.replicas: Replicas | None = None
        self._peers: Peers | None = None  # kept after their end, for threads that still take
        self._workers: list[Worker] = []  # in the present generation; the peers come first
        self.left = False
        self.state: State = {}
        self.known: Callable[[], PeerError | None] = lambda: None
        self.position: Callable[[], Position | None] = lambda: None
        self.measure: Measure = lambda: None
        self._end = weakref.finalize(self, _forget, self._workers, self._namespace, self._release)
        self._end.atexit = False
        _watch_exit()
        _open.add(self)

    # ---- for cursors ----

    @property
    def peers(self) -> Peers:
        """The thread that receives failures. It exists once the processes have agreed."""
        assert self._peers is not None
        return self._peers

    def begin(self) -> int:
        """Raises failures of other processes, or agrees with them if the loader was moved.

        It is called before each batch.

        Returns:
            The number of the generation, which grows with every agreement.
        """
        if not self.agreed:
            self._agree()
        else:
            (self.barrier or self.peers).check()
        return self._present

    def begin_pass(self, terms: Terms) -> int:
        """Agrees with the other processes that all begin the same pass of `one_epoch`.

        Args:
            terms: what the pass delivers.

        Returns:
            The number of the pass, from 1; equal in all processes.
        """
        with self._lock:
            number = self._passes + 1
            if not self.left:
                try:
                    self._agree_on_pass(number, {wording.ONE_EPOCH: terms, TAKEN: self._taken()})
                except IncompatibleError:  # in all processes
                    self._passes = number
                    raise
                self._passes = number
            return number

    def _agree_on_pass(self, number: int, terms: Terms) -> None:
        assert self._evidence is not None
        namespace = self._namespace
        path, call = f"{namespace.generation(self._present).path}/pass", wording.ONE_EPOCH
        this, given = Generation(namespace, f"{path}/{number}"), self._evidence.components
        seconds, check = self._options.agree_timeout, (self.barrier or self.peers).check
        try:
            Agreement(this, seconds, call, self._closed, given, check).reach(terms)
            if namespace.leads:  # no process waits for a key of the pass before
                namespace.store.delete(f"{path}/{number - 1}")
        except PeerError as e:
            if not self.peers.failed:  # else the others know the failure already
                beside(LEAVE, functools.partial(self._report, e))
            raise
        except Error:
            raise
        except Exception as e:  # the store is gone; a step does not need it
            log.debug("loader %s: pass %d was not compared: %s", namespace.title, number, e)

    def _taken(self) -> int | None:
        """Returns the batches taken in this generation; None if a thread may be taking more."""
        progress, batches = self.progress, self.progress.batches
        known = progress.exact and threading.current_thread() is threading.main_thread()
        return batches if known else None

    def keeps_file(self, path: Path, state: State) -> Callable[[str], bool] | None:
        """Returns a function that reports whether a file keeps a state of another process.

        Returns None before the processes have agreed, because their positions then may differ.
        """
        if not self.agreed or self.left:
            return None
        try:
            return state_files.keeps(self._namespace.generation(self._present), path, state)
        except Exception as e:  # the store is gone; a save does not need it
            log.debug("loader %s: states are not compared: %s", self._namespace.title, e)
            return None

    def reports(self) -> tuple[list[Measured], list[int]]:
        """Returns the newest measurements of the other processes, and the processes without any.

        It does not wait for any of them.
        """
        namespace, now = self._namespace, self._namespace.seconds()
        found = namespace.reports.by_process("report")
        measured = [
            {
                **found[p]["measured"],
                "process": p,
                "age_ns": max(0, int(1e9 * (now - found[p]["seconds"]))),
            }
            for p in namespace.others
            if p in found
        ]
        return measured, [p for p in namespace.others if p not in found]

    def failed(self, error: Exception, epoch: int, step: int) -> None:
        """Reports, in bounded time, that a batch could not be made."""
        if not is_local(error):
            beside(LEAVE, functools.partial(self.peers.report, error, epoch, step))

    def moved(self, state: State, call: str) -> None:
        """Records that a call has moved the loader: the processes agree before the next batch."""
        self.state, self._call = state, call
        self.agreed = False

    def _agree(self) -> None:
        with self._lock:
            if not self.agreed and not self.left:  # another thread may have agreed meanwhile
                self._begin_generation()

    def _begin_generation(self) -> None:
        self._end_generation()
        namespace, this = self._namespace, self._namespace.generation(self._next)
        evidence, options = self._evidence, self._options
        if self._terms is None and evidence is not None:
            self._terms = evidence.terms(options)
        try:
            if self._terms is not None and evidence is not None:
                call, seconds = self._call if self._met else "", options.agree_timeout
                agreement = Agreement(this, seconds, call, self._closed, evidence.components)
                agreement.reach({**self._terms, **self.state})
            self._start(this)
        except Exception as e:
            beside(LEAVE, functools.partial(self._report, e))
            self._next += 1
            raise
        namespace.seconds()
        past = range(self._present, self._next)
        self._present, self._next = self._next, self._next + 1
        self.agreed = self._met = True
        if namespace.leads:
            with contextlib.suppress(Exception):  # the processes have agreed, and go on
                for number in past:
                    namespace.store.delete(namespace.generation(number).path)

    def _start(self, of: Generation) -> None:
        """Starts the background threads of a generation, which hold no reference to the loader."""
        options, evidence, verify = self._options, self._evidence, self._options.verify_replicas
        start, timeout, late = self._workers.append, options.agree_timeout, options.late_after
        self.progress = Progress()
        peers = self._peers = Peers(of, options.on_peer_error, late, self.progress, self.measure)
        start(peers)
        if evidence is None:
            return
        if evidence.files is not None:
            position = functools.partial(_position, self.position)
            start(Contents(of, evidence.files, lambda e: peers.raise_everywhere(e, *position())))
        if verify == "off":
            return
        if evidence.shared.tensors:
            differs = peers.raise_everywhere
            self.replicas = Replicas(of, evidence.shared, verify, differs, timeout)
            start(self.replicas)
        always = verify == "always"
        first = ALWAYS_FIRST if always else FIRST
        self.barrier = Barrier(of, first, evidence.live, peers.check)
        if self._namespace.leads:
            start(SkewDetector(of, first, always=always))

    def _end_generation(self) -> None:
        """Ends the generation's threads; waits up to `LEAVE` seconds for running comparisons."""
        if self.barrier is not None:
            self.barrier.end()
        for each in reversed(self._workers):
            each.end(LEAVE if isinstance(each, Contents | Replicas) else None)
        self._workers.clear()
        self.barrier = self.replicas = None

    # ---- the end ----

    def abandon(self, error: BaseException) -> None:
        """Reports, in bounded time, that the program ends its loop with an exception."""
        if self._is_news(error):
            beside(LEAVE, functools.partial(self._report, error))

    def _is_news(self, error: BaseException) -> bool:
        """Returns whether the others need to know that the program ends with this exception.

        They know an error that this loader has raised because of another process.
        """
        return is_failure(error) and error is not self.known()

    def _report(self, error: BaseException) -> None:
        """Reports a failure to the other processes.

        After a move, another process may still be in the present generation or wait in the next
        one. So the failure is reported in both, unless no agreement has begun (`_terms` is None).
        """
        position = self.position()
        if position is None or self.left:
            return
        if self.agreed:
            self.peers.report(error, *position())
        elif self._terms is not None:
            for number in sorted({self._present, self._next}):
                report(self._namespace.generation(number), error, *position())

    def close(self, *, wait: bool = True) -> None:
        """Ends the threads; the last process of the loader deletes its keys.

        With `wait` this may take some seconds.
        """
        if self._leave() and not beside(2 * LEAVE if wait else 0, self._depart):
            _abandon(self._workers, self._namespace)

    def exit(self, failure: BaseException | None) -> None:
        """Leaves when the interpreter exits, and reports the exception that ends the program."""
        if failure is not None and self._is_news(failure):
            self._report(failure)
        if self._leave():
            self._depart()

    def _leave(self) -> bool:
        """Leaves the cluster; returns False if this process or its parent has left before."""
        if self._end.detach() is None:
            return False
        self.left = True
        self._closed.set()
        self._release()
        return True

    def _depart(self) -> None:
        # A thread that waits in an agreement holds the lock until its store answers.
        with self._lock, contextlib.suppress(Exception):  # a store that is gone has no keys
            if self._peers is not None:
                self._peers.depart()
            self._end_generation()
            _leave_namespace(self._namespace, self._peers)


def _leave_namespace(namespace: Namespace, peers: Peers | None) -> None:
    """Marks this process as departed; the last one compares how many batches each has taken."""
    if peers is not None and peers.lost:
        return
    given = namespace.depart(peers.taken if peers is not None else None)
    if given and None not in given.values():
        taken = {process: batches for process, (_, batches) in given.items()}
        alike = len({generation for generation, _ in given.values()}) == 1
        if alike and len(set(taken.values())) > 1:
            log.warning("loader %s: %s", namespace.title, wording.uneven(taken))


_open: weakref.WeakSet[Cluster] = weakref.WeakSet()


@functools.cache
def _watch_exit() -> None:
    """Makes the open clusters leave when the interpreter exits."""
    library.before_exit(_leave_all)


def _leave_all() -> None:
    """Ends all threads when the interpreter exits.

    A thread that returns from JAX's client later aborts the process.
    """
    library.exiting.append(True)
    until = time.monotonic() + EXIT
    failure = uncaught()
    here = [cluster for cluster in tuple(_open) if not cluster.left]
    theirs = {each for cluster in here for each in cluster._workers}
    # Threads of loaders that were collected unclosed end after their wait, which is too late now.
    others = [functools.partial(w.end, None) for w in tuple(running) if w not in theirs]
    closing = [each.join for each in threading.enumerate() if each.name == LEAVING]
    beside(EXIT, *(functools.partial(c.exit, failure) for c in here), *others, *closing)
    # A comparison of files may outlast the second that the end of a generation waits.
    late = [functools.partial(w.end, None) for w in tuple(running)]
    beside(until - time.monotonic(), *late)


def _leave_to_parent() -> None:
    """Makes a forked child leave: it has no threads, and its parent remains the member."""
    for cluster in tuple(_open):
        cluster.left = True
        cluster._end.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _position(of: Callable[[], Position | None]) -> tuple[int, int]:
    position = of()
    return position() if position is not None else (0, 0)


def _forget(workers: list[Worker], namespace: Namespace, release: Callable[[], None]) -> None:
    """Ends the threads of a loader that was collected without being closed."""
    release()
    _abandon(workers, namespace)


def _abandon(workers: list[Worker], namespace: Namespace) -> None:
    """Makes the threads end, and returns at once. The peers' thread departs at its end."""
    if not workers:
        return
    peers, *others = workers
    assert isinstance(peers, Peers)
    peers.finish = functools.partial(_depart, peers, others, namespace)
    for each in workers:
        each.forget()


def _depart(peers: Peers, others: list[Worker], namespace: Namespace) -> None:
    for each in others:
        each.end(None)  # they use keys that the last process deletes
    peers.depart()
    _leave_namespace(namespace, peers)
