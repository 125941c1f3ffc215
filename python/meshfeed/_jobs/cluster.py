"""What a loader does with the other processes of its mesh: agree, hear of failures, compare.

A loader whose mesh lies in one process has no cluster, and its `next` knows nothing of this.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from meshfeed import errors
from meshfeed._io.arguments import Checks, State, is_integer
from meshfeed._jobs import offsets, saves
from meshfeed._jobs.agreement import Agreement, Document, document
from meshfeed._jobs.contents import Contents
from meshfeed._jobs.lockstep import ALWAYS_FIRST, FIRST, Board, Live, Lockstep
from meshfeed._jobs.names import Use, uses
from meshfeed._jobs.peers import Peers, is_failure, running, tell
from meshfeed._jobs.replicas import Replicas, Shared, due, shared
from meshfeed._jobs.rounds import Room, Round
from meshfeed._jobs.stalls import Progress, Stalls
from meshfeed._native import library
from meshfeed._native.files import Files
from meshfeed._version import __version__
from meshfeed.coordinator import Coordinator, jax_coordinator
from meshfeed.planning import Layout

Place = Callable[[], tuple[int, int]]  # gives epoch and step

LEAVE = 1.0  # seconds that a close waits for the others to answer
LEAVING = "meshfeed.leave"  # the name of threads that ask the store, which may not answer
EXIT = 3 * LEAVE  # seconds that the interpreter's exit waits, however many loaders are open

log = logging.getLogger("meshfeed")

_HINT = "give an object with the five methods of mf.Coordinator, or False for none"


@dataclass(frozen=True)
class Options:
    """What the user says about the other processes; see `Loader`."""

    name: str | None
    coordinator: Coordinator | Literal[False] | None
    agree_timeout: float
    on_peer_error: str
    verify_replicas: str | int
    late_after: float

    def __post_init__(self) -> None:
        check = Checks("mf.Loader")
        if self.name is not None:
            text = check.name("name", self.name)
            if "/" in text or not text.isprintable():
                raise check.wrong("name", text, 'a printable name without "/"')
        usual = self.coordinator is None or self.coordinator is False
        if not usual and not isinstance(self.coordinator, Coordinator):
            raise check.wrong("coordinator", self.coordinator, "a mf.Coordinator", _HINT)
        check.seconds("agree_timeout", self.agree_timeout)
        check.choice("on_peer_error", self.on_peer_error, "end", "raise", "abort")
        check.seconds("late_after", self.late_after)
        every = self.verify_replicas
        known = every in ("first", "always", "off") if isinstance(every, str) else is_integer(every)
        if not known or (not isinstance(every, str) and not 1 <= every < 2**31):
            expected = '"first", "always", "off" or an integer k from 1: every k-th step'
            raise check.wrong("verify_replicas", every, expected)

    def talks(self, processes: Sequence[int], *, played: bool) -> bool:
        """Says whether a loader may have to do with other processes, now or after a remesh.

        Args:
            processes: those of its mesh.
            played: whether its processes are played, and not those of a JAX job.
        """
        if self.coordinator is not None:
            return self.coordinator is not False
        jax = sys.modules.get("jax")
        in_a_job = jax is not None and jax.distributed.is_initialized()
        return not played and (in_a_job or len(processes) > 1)

    def store(self) -> Coordinator:
        """Gives the store to use."""
        given = self.coordinator
        return given if isinstance(given, Coordinator) else jax_coordinator()


@dataclass(frozen=True)
class Evidence:
    """What processes compare. It is worked out when they do, which a remesh need not wait for.

    Attributes:
        layout: the loader's, as a document.
        info: what the library says about this process's batches.
        alike: what the layout does not say and all must have alike.
        files: the dataset's, where every byte is compared.
        live: gives the arrays on devices that the program still uses.
    """

    layout: str
    info: Mapping[str, Any]
    alike: Mapping[str, Any]
    files: Files | None
    live: Live

    def plan(self, options: Options) -> Document:
        """Gives what all must have alike, but for the place."""
        more = {**self.alike, "version": __version__, "verify_replicas": options.verify_replicas}
        more["fingerprint"] = "sampled" if self.files is None else "full"
        return document(Layout(self.layout).to_json(), more)

    @functools.cached_property
    def shared(self) -> Shared:
        """The blocks that several processes hold."""
        return shared(self.info, json.loads(self.layout)["mesh"])


def joined(options: Options, me: int, members: Sequence[int], evidence: Evidence) -> Cluster | None:
    """Gives the processes of a loader; None where this one has no others, or no part of it.

    Args:
        options: what the user says.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
        evidence: what they compare.
    """
    if len(members) < 2 or me not in members:
        return None
    return Cluster(options.store(), me, members, options, evidence)


class Cluster:
    """The processes of one loader, seen from one of them.

    Args:
        store: the job's store.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
        options: what the user says.
        evidence: what they compare.

    Attributes:
        threads: what runs beside the program while the processes agree.
    """

    def __init__(
        self,
        store: Coordinator,
        me: int,
        members: Sequence[int],
        options: Options,
        evidence: Evidence,
    ) -> None:
        self._options, self._evidence = options, evidence
        self._plan: Document | None = None
        self._use = uses(store).claim(me, options.name, members)
        title = self._use.title
        self._agreement = Agreement(store, title, me, members, options.agree_timeout)
        self._room = Room(store, self._use.path, title, me, members)
        self._lock = threading.RLock()
        self._round = self._agreed_in = 0
        self._agreed = self._met = False
        self.threads = Threads(self._room)
        self.left = False  # it goes on alone
        self.passes = itertools.count(1)  # numbers them, alike on all processes
        self.state: State = {}  # where the loader went on, set by its cursor
        self.place: Callable[[], Place | None] = lambda: None  # gives where it stands, likewise
        self._end = weakref.finalize(self, _forget, self.threads, self._use)
        self._end.atexit = False
        _watch_exit(self)

    # ---- for cursors ----

    @property
    def agreed(self) -> bool:
        """Whether the processes have agreed on the next batch."""
        return self._agreed

    def begin(self) -> int:
        """Comes before a batch is taken: raises what others found, and agrees if need be.

        Returns:
            The round, whose number grows whenever the processes agree.
        """
        if self._agreed:
            self.threads.check()
        else:
            self._agree()
        return self._agreed_in

    def passed(self, path: Path, state: State) -> Callable[[str], bool] | None:
        """Gives what says whether a file stays that another process may have saved.

        Processes that have not agreed since one of them moved may be anywhere.
        """
        if not self._agreed or self.left:
            return None
        try:
            return saves.passed(self._room.round(self._agreed_in), path, state)
        except Exception as e:  # the store is gone; a save needs none
            log.debug("loader %s: states are not compared: %s", self._room.title, e)
            return None

    def failed(self, error: Exception, epoch: int, step: int) -> None:
        """Tells the others that a batch could not be made, in bounded time."""
        peers = self.threads.peers
        _beside(LEAVE, lambda: peers.post(error, epoch, step))

    def moved(self, state: State) -> None:
        """Notes where the loader goes on: its processes agree before the next batch."""
        self.state = state
        self._agreed = False

    def _agree(self) -> None:
        with self._lock:
            if not self._agreed and not self.left:  # another thread may just have done it
                self._begin_round()

    def _begin_round(self) -> None:
        self.threads.end(LEAVE)
        room, this = self._room, self._room.round(self._round)
        if self._plan is None:
            self._plan = self._evidence.plan(self._options)
        blocks = None if self._options.verify_replicas == "off" else self._evidence.shared
        try:
            self._agreement.reach(this.path, {**self._plan, **self.state}, moved=self._met)
            self._begin_threads(this, blocks)
        except Exception as e:
            _beside(LEAVE, functools.partial(self._call_off, e))
            self._round += 1
            raise
        past = range(self._agreed_in, self._round)
        self._agreed_in, self._round, self._agreed = self._round, self._round + 1, True
        self._met = True
        if room.me == room.members[0]:  # nobody looks back
            with contextlib.suppress(Exception):  # who has agreed goes on
                for number in past:
                    room.store.delete(room.round(number).path)

    def _call_off(self, error: BaseException) -> None:
        """Tells of a failure between two rounds: others may be in the old one or in the new one.

        Some have not moved, and some have heard that all are alike, where this process went.
        Before it has a plan to show, nobody is in any.
        """
        place = self.place()
        if place is None or self.left or self._plan is None:
            return
        for number in sorted({self._agreed_in, self._round}):
            tell(self._room.round(number), error, *place())

    def _begin_threads(self, this: Round, blocks: Shared | None) -> None:
        options, threads = self._options, self.threads
        threads.progress = Progress()
        threads.peers = Peers(
            this,
            on_error=options.on_peer_error,
            look_every=options.late_after / 3,
            stalls=Stalls(this, options.late_after, threads.progress),
            progress=threads.progress,
        )
        if self._evidence.files is not None:
            threads.contents = Contents(this, self._evidence.files, self._accuse)
        if blocks is not None and blocks.tensors:
            threads.replicas = Replicas(
                this,
                blocks,
                due=due(options.verify_replicas),
                accuse=threads.peers.accuse,
                seconds=options.agree_timeout,
            )
        if options.verify_replicas != "off":
            self._begin_stops(this)

    def _begin_stops(self, this: Round) -> None:
        """Has processes stop at some batches, to see that their steps belong together."""
        always = self._options.verify_replicas == "always"
        board, threads = Board(this, ALWAYS_FIRST if always else FIRST), self.threads
        threads.lockstep = Lockstep(board, self._evidence.live, threads.check)
        if this.room.me == this.room.members[0]:
            threads.offsets = offsets.Offsets(board, always=always)

    def _accuse(self, error: errors.Error) -> None:
        """Tells all of a difference found where the program now stands."""
        place = self.place()
        self.threads.peers.accuse(error, *(place() if place is not None else (0, 0)))

    # ---- end ----

    def abandon(self, error: BaseException) -> None:
        """Tells the others that the program ends its loop with an exception, in bounded time."""
        if is_failure(error):
            _beside(LEAVE, lambda: self._tell(error))

    def _tell(self, error: BaseException) -> None:
        place = self.place()
        if not self._agreed:
            self._call_off(error)
        elif place is not None and not self.left:
            self.threads.peers.tell(error, *place())

    def close(self, *, wait: bool = True) -> None:
        """Ends the threads and, as the last of the loader's processes, deletes its keys.

        Args:
            wait: whether to wait for it, up to some seconds.
        """
        if self._go() and not _beside(2 * LEAVE if wait else 0, self._leave):
            self.threads.forget()

    def exit(self, failure: BaseException | None) -> None:
        """Leaves as the interpreter exits, for as long as the store takes.

        Args:
            failure: the exception that ends the program, if one does.
        """
        if failure is not None and is_failure(failure):
            self._tell(failure)
        if self._go():
            self._leave()

    def _go(self) -> bool:
        """Begins to leave, once; a forked child has left without it."""
        if self._end.detach() is None:
            return False
        self.left = True
        self._agreement.end()
        self._use.end()
        return True

    def _leave(self) -> None:
        # A thread in an agreement holds the lock, until its store answers.
        with self._lock, contextlib.suppress(Exception):  # one that is gone has no keys either
            self.threads.tell()
            self.threads.end(LEAVE)
            if not self.threads.lost:
                self._room.leave()

    @property
    def peers(self) -> Peers | None:
        """Who hears of failures, once the processes have agreed."""
        return getattr(self.threads, "peers", None)


class Threads:
    """The threads of one round. They keep no loader alive.

    Attributes:
        peers: hears of failures, once the processes have agreed.
        progress: where the program stands.
        replicas: compares them, where there are any.
        contents: compares the files, where the user asks for it.
        lockstep: stops the program at some batches, to compare its steps with the others'.
        offsets: says where all processes stop, in the lowest one.
    """

    peers: Peers

    def __init__(self, room: Room) -> None:
        self.room = room
        self.progress = Progress()
        self.replicas: Replicas | None = None
        self.contents: Contents | None = None
        self.lockstep: Lockstep | None = None
        self.offsets: offsets.Offsets | None = None

    def end(self, seconds: float) -> None:
        """Ends them, each in bounded time."""
        if self.contents is not None:
            self.contents.end(seconds)
            self.contents = None
        if self.lockstep is not None:
            self.lockstep.end()
            self.lockstep = None
        if self.offsets is not None:
            self.offsets.end()
            self.offsets = None
        if self.replicas is not None:
            self.replicas.end(seconds)
            self.replicas = None
        if hasattr(self, "peers"):
            self.peers.end()

    def check(self) -> bool:
        """Raises what another process has found, and says whether one has left in order.

        A process that is ahead is the same error in all, whichever process tells of it first.
        """
        try:
            return self.peers.check()
        except errors.IncompatibleError:
            if self.lockstep is not None:
                self.lockstep.judge()
            raise

    def tell(self) -> None:
        """Tells the others that this process leaves."""
        if hasattr(self, "peers"):
            self.peers.leave()

    @property
    def lost(self) -> bool:
        """Whether the store is gone."""
        return hasattr(self, "peers") and self.peers.lost

    def forget(self) -> None:
        """Ends them without a wait or a call to the store: each when it can, and one leaves."""
        if self.contents is not None:
            self.contents.forget()
        if self.lockstep is not None:
            self.lockstep.end()
        if self.offsets is not None:
            self.offsets.forget()
        if self.replicas is not None:
            self.replicas.forget()
        if hasattr(self, "peers"):
            self.peers.forget(self._leave)

    def _leave(self) -> None:
        self.tell()
        self.room.leave()


_joined: weakref.WeakSet[Cluster] = weakref.WeakSet()
_lock = threading.Lock()
_watching_exit: list[bool] = []


def _watch_exit(cluster: Cluster) -> None:
    """Has a cluster leave when the interpreter exits."""
    with _lock:
        if not _watching_exit:
            library.before_exit(_leave_all)
            _watching_exit.append(True)
        _joined.add(cluster)


def _leave_all() -> None:
    """Ends what still runs when the interpreter exits."""
    library.leaving.append(True)
    failure = uncaught()
    here = [cluster for cluster in tuple(_joined) if not cluster.left]
    theirs = {cluster.peers for cluster in here}
    # Those of forgotten loaders would end at the end of their wait, which is too late now.
    others = [peers.end for peers in tuple(running) if peers not in theirs]
    others += [each.end for each in tuple(offsets.running)]
    others += [each.join for each in threading.enumerate() if each.name == LEAVING]
    _beside(EXIT, *(functools.partial(cluster.exit, failure) for cluster in here), *others)


def _leave_to_parent() -> None:
    """Has a forked child take no part: it has no threads, and its parent is in the job."""
    for cluster in tuple(_joined):
        cluster.left = True
        cluster._end.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def uncaught() -> BaseException | None:
    """Gives the exception that ends the program; at a prompt the last one ended nothing."""
    if hasattr(sys, "ps1"):
        return None
    kept: BaseException | None = getattr(sys, "last_value", None)
    return kept


def _beside(seconds: float, *works: Callable[[], None]) -> bool:
    """Does what asks the store, which may not answer, on threads, and waits for all so long.

    Returns:
        Whether there are such threads: a system may be at the end of its threads.
    """
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=w, name=LEAVING, daemon=True) for w in works]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        return False
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return True


def _forget(threads: Threads, use: Use) -> None:
    """Ends what a loader that nobody closed has left behind."""
    use.end()
    threads.forget()
