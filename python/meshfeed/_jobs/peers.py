"""How a failure of one process reaches the others, which would wait for it for ever.

The process that fails writes into a mailbox of every other one. A thread in each waits at its
own mailbox, so that it costs nothing while all is well, and the next `next` there raises what it
found. A write into one's own mailbox ends the thread: one that still waits in JAX's client when
the interpreter exits can take the process down with it.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from meshfeed import errors
from meshfeed._io.arguments import cut
from meshfeed._jobs.rolls import Roll, is_secondary
from meshfeed._jobs.rounds import Round
from meshfeed._jobs.stalls import Progress, Stalls

LONGEST = 10.0  # seconds of one wait at the mailbox; between two of them stalls are looked at
PATIENCE = {"end": 30.0, "abort": 5.0}  # seconds in which a program may come back to `next`
SOON = 0.5  # seconds in which processes leave that end at the same batch
ENDED = b""  # in one's own mailbox
LENGTH = 400  # characters of an error's text that the others are told

log = logging.getLogger("meshfeed")

Letter = dict[str, Any]


class Peers:
    """The mailboxes of one loader's processes.

    Args:
        of: the round.
        on_error: what happens to a program that does not come back to `next`.
        look_every: seconds between two looks for stalls.
        stalls: what looks for them.
        progress: of this process.

    Attributes:
        gone: the message of the first process that left in order, if one has.
    """

    def __init__(
        self, of: Round, *, on_error: str, look_every: float, stalls: Stalls, progress: Progress
    ) -> None:
        self._round, self._title = of, of.room.title
        self._store, self._mailbox = of.room.store, _mailbox(of, of.room.me)
        self._on_error, self._stalls, self._progress = on_error, stalls, progress
        self._roll = Roll(of)
        self.gone: Letter | None = None
        self._patience = min(look_every, LONGEST)
        self._letter: Letter | None = None
        self._own: errors.Error | None = None
        self._told = False
        self._heard = threading.Event()
        self.ended = threading.Event()
        self.lost = False  # the store does not answer
        self._last: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._watch, name="meshfeed.peers", daemon=True)
        running.add(self)
        self._thread.start()

    # ---- in the program's thread ----

    def check(self) -> bool:
        """Raises what another process, or the comparison of replicas here, has found.

        Returns:
            Whether a process has left in order.
        """
        if self._own is not None:
            self._heard.set()
            raise type(self._own)(self._own.message, op=self._own.op, hint=self._own.hint)
        if self._letter is not None:
            self._heard.set()
            raise error_of(self._letter)
        return self.gone is not None

    def left(self) -> errors.PeerError | None:
        """Gives the error of a process that has left, if this one has had as many batches."""
        gone = self.gone
        if gone is None or self._progress.batches < gone["left"]:
            return None
        return error_of(gone)

    def leave(self) -> None:
        """Tells the others that this process leaves in order, if none has left before.

        One message is enough for each: usually all processes leave one after the other.
        """
        if self._told or self._own or self._letter or self.gone or self.lost:
            return
        store, room = self._store, self._round.room
        had = {"left": self._progress.batches, "ends": self._progress.ends}
        letter = json.dumps({"process": room.me, **had}).encode()
        others = [p for p in room.members if p != room.me]
        bell = f"{self._round.path}/bell"
        if store.try_get(bell) is None and not store.try_get(_mailbox(self._round, others[0])):
            store.set(bell, b"")
            for process in others:
                store.set(_mailbox(self._round, process), letter)

    def post(self, error: Exception, epoch: int, step: int) -> None:
        """Tells all others that this process failed, if the data and not the use was at fault."""
        if not isinstance(error, _OF_USE):
            self.tell(error, epoch, step)

    def tell(self, error: BaseException, epoch: int, step: int) -> None:
        """Tells all others that this process failed, once: nobody listens for a second failure."""
        if self._told or self.ended.is_set():
            return
        self._told = True
        tell(self._round, error, epoch, step, also_me=self._own is not None and self._may_end)
        if is_secondary(error) and (silent := self._roll.silent(self.ended.wait)):
            log.warning("loader %s: %s", self._title, self._roll.said(silent))

    def accuse(self, error: errors.Error, epoch: int, step: int) -> None:
        """Tells all, this process included, what was found beside the program's thread."""
        if self._own is not None:  # the first difference is the one to look at
            return
        self._own = error
        log.warning("loader %s: %s", self._title, error.message)
        self.post(error, epoch, step)

    @property
    def _may_end(self) -> bool:
        """Whether a program that does not come back is ended; one at a prompt is not by itself."""
        return self._on_error == "abort" or (self._on_error == "end" and not hasattr(sys, "ps1"))

    def forget(self, last: Callable[[], None]) -> None:
        """Has the thread end with its wait, and do something last; waits for nothing."""
        self._last = last
        self.ended.set()
        self._heard.set()

    def end(self) -> None:
        """Ends the thread: at once if the store answers."""
        self.ended.set()
        self._heard.set()
        if self._thread.is_alive():
            with contextlib.suppress(Exception):  # a store that is gone ends the thread by itself
                self._store.set(self._mailbox, ENDED)
            self._thread.join()

    # ---- in a thread of its own ----

    def _watch(self) -> None:
        while not self.ended.is_set() and not self._hear():
            pass
        with contextlib.suppress(Exception):
            self._last()
        running.discard(self)

    def _hear(self) -> bool:
        """Waits at the mailbox for some time, and says whether there is nothing more to hear."""
        try:
            letter = self._store.get(self._mailbox, self._patience)
            if letter is None:
                self._roll.live(self._progress.batches)
                self._stalls.look()
            elif letter != ENDED and "left" in (read := json.loads(letter)):
                self._see_off(read)
                return False
            elif letter != ENDED:
                self._receive(read)
        except Exception as e:  # with JAX's store the job is gone; another one may come back
            if not self.lost and not self.ended.is_set():
                log.debug("loader %s: does not hear of others: %s", self._title, e)
            self.lost = True
            self.ended.wait(self._patience)
            return False
        self.lost = False
        return letter is not None

    def _see_off(self, letter: Letter) -> None:
        """Notes that a process has left, and logs it unless this one is about to leave as well."""
        self.gone = letter
        self._store.delete(self._mailbox)
        if not letter["ends"] and not self.ended.wait(SOON):
            log.warning("loader %s: %s", self._title, _has_left(letter))

    def _receive(self, letter: Letter) -> None:
        if letter.get("lost"):
            if silent := self._roll.silent(self.ended.wait):
                letter |= {"of": silent[0], "said": self._roll.said(silent)}
            elif self.gone is not None:
                letter |= {"of": self.gone["process"], "said": _has_left(self.gone)}
        self._letter = letter
        text = "loader %s: %s (raised here by the next batch; a program that waits for other "
        text += "processes in a computation cannot be woken)"
        log.warning(text, self._title, error_of(letter).message)
        if self._may_end and not self._heard.wait(PATIENCE[self._on_error]):
            self._end_program(letter)

    def _end_program(self, letter: Letter) -> None:
        """Ends the process, which does not come back, and says why."""
        seconds, status = PATIENCE[self._on_error], errors.EXIT_PEER_ERROR
        text = f"meshfeed: loader {self._title}: {error_of(letter).message}\n"
        text += f"meshfeed: process {self._round.room.me} has not come back to the loader for "
        text += f"{seconds:g} s and ends with status {status} (on_peer_error={self._on_error!r})\n"
        flush = threading.Thread(target=_flush, daemon=True)
        flush.start()
        flush.join(1)  # a thread of the program may write just now, and for ever
        os.write(2, text.encode(errors="replace"))
        os._exit(status)


def _flush() -> None:
    """Writes out what the program has printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


running: set[Peers] = set()  # whose threads wait, those of forgotten loaders too


def tell(of: Round, error: BaseException, epoch: int, step: int, *, also_me: bool = False) -> None:
    """Tells the others of a round that this process failed.

    One letter is enough for each: where a file system fails all processes of a job at once, not
    all of them write to all.

    Args:
        of: the round.
        error: what happened.
        epoch: where it happened, and the step.
        step: see there.
        also_me: whether this process's own thread is told, too.
    """
    room = of.room
    others = [p for p in room.members if p != room.me]
    try:
        letter = json.dumps(_letter(error, room.me, epoch, step)).encode()
        if also_me:
            room.store.set(_mailbox(of, room.me), letter)
        found = room.store.try_get(_mailbox(of, others[0]))
        if not found or "left" in json.loads(found):
            for process in others:
                room.store.set(_mailbox(of, process), letter)
    except Exception as e:
        log.warning("loader %s: the others could not be told of a failure: %s", room.title, e)


def _mailbox(of: Round, process: int) -> str:
    return f"{of.path}/mail/{process}"


_OP = "mf.Loader"  # what errors begin with, here and where they come from

_OF_USE = errors.InvalidStateError, errors.CancelledError, errors.ForkedError, errors.PeerError


def is_failure(error: BaseException) -> bool:
    """Says whether a program that ends with this leaves the others waiting.

    One that heard of a failure elsewhere does not, as they heard of it too; and a program may
    end itself in good order.
    """
    in_order = isinstance(error, SystemExit) and error.code in (None, 0)
    return not in_order and not isinstance(error, errors.PeerError | GeneratorExit)


def _letter(error: BaseException, process: int, epoch: int, step: int) -> Letter:
    letter: Letter = {"process": process, "epoch": epoch, "step": step}
    if is_secondary(error):
        letter["lost"] = True
    if isinstance(error, errors.Error):
        texts = {"op": error.op, "message": error.message, "hint": error.hint, "path": error.path}
        return {**letter, "code": int(error.code), **texts}
    known = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return {**letter, "type": known.__name__, "message": cut(text, LENGTH)}


def error_of(letter: Letter) -> errors.PeerError:
    """Makes the error for what another process wrote."""
    if "left" in letter:
        return _left(letter)
    process, epoch, step = letter["process"], letter["epoch"], letter["step"]
    op, message = letter.get("op", _OP), letter["message"]
    text = message if op in ("", _OP) else f"{op}: {message}"
    if letter.get("lost"):
        text = f"lost a peer: {text}"
    text = f"process {process}, at epoch {epoch}, step {step}: {text}"
    if "said" in letter:
        text, process, epoch, step = f"{letter['said']}; {text}", letter["of"], -1, -1
    made = errors.peer(_origin(letter))(
        text,
        op=_OP,
        hint=letter.get("hint", ""),
        path=letter.get("path", ""),
    )
    return made.at(process, epoch, step)


def _has_left(letter: Letter) -> str:
    """Says that a process takes no more batches."""
    batches = letter["left"]
    many = "1 batch" if batches == 1 else f"{batches} batches"
    return f"process {letter['process']} has left the loader in order after {many}"


def _left(letter: Letter) -> errors.PeerError:
    """Makes the error for a process that takes no more batches, though there are some."""
    message = f"{_has_left(letter)}, and this one goes on"
    hint = "end the loops of all processes at the same batch"
    return errors.PeerError(message, op=_OP, hint=hint).at(letter["process"], -1, -1)


def _origin(letter: Letter) -> type[BaseException]:
    """Gives the class that the error here is one of, too.

    What would end a loop in silence, is no `Exception`, or is made from something else than a
    text stays with the process where it was raised.
    """
    if "code" in letter:
        return errors.CLASSES.get(letter["code"], errors.InternalError)
    origin: type[BaseException] = getattr(builtins, letter["type"], RuntimeError)
    apart = StopIteration, StopAsyncIteration, UnicodeError, BaseExceptionGroup
    return Exception if issubclass(origin, apart) or not issubclass(origin, Exception) else origin
