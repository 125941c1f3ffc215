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
import threading
from collections.abc import Callable
from typing import Any

from meshfeed import errors
from meshfeed.arguments import cut
from meshfeed.rounds import Round
from meshfeed.stalls import Stalls

LONGEST = 10.0  # seconds of one wait at the mailbox; between two of them stalls are looked at
GRACE = 5.0  # seconds in which a program may come back to `next`, before "abort" ends it
ENDED = b""  # in one's own mailbox
LENGTH = 400  # characters of an error's text that the others are told

log = logging.getLogger("meshfeed")

Letter = dict[str, Any]


class Peers:
    """The mailboxes of one loader's processes.

    Args:
        of: the round.
        abort: whether a program that does not come back to `next` is ended.
        look_every: seconds between two looks for stalls.
        stalls: what looks for them.
    """

    def __init__(self, of: Round, *, abort: bool, look_every: float, stalls: Stalls) -> None:
        self._round, self._title = of, of.room.title
        self._store, self._mailbox = of.room.store, _mailbox(of, of.room.me)
        self._abort, self._stalls = abort, stalls
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

    def check(self) -> None:
        """Raises what another process, or the comparison of replicas here, has found."""
        if self._own is not None:
            self._heard.set()
            raise type(self._own)(self._own.message, op=self._own.op, hint=self._own.hint)
        if self._letter is not None:
            self._heard.set()
            raise error_of(self._letter)

    def post(self, error: Exception, epoch: int, step: int) -> None:
        """Tells all others that this process failed, if the data and not the use was at fault."""
        if not isinstance(error, _OF_USE):
            self.tell(error, epoch, step)

    def tell(self, error: BaseException, epoch: int, step: int) -> None:
        """Tells all others that this process failed, once: nobody listens for a second failure."""
        if self._told or self.ended.is_set():
            return
        self._told = True
        tell(self._round, error, epoch, step, also_me=self._stuck)

    def accuse(self, error: errors.Error, epoch: int, step: int) -> None:
        """Tells all, this process included, what was found beside the program's thread."""
        if self._own is not None:  # the first difference is the one to look at
            return
        self._own = error
        log.warning("loader %s: %s", self._title, error.message)
        self.post(error, epoch, step)

    @property
    def _stuck(self) -> bool:
        """Whether the program may have to be ended for what was found beside it."""
        return self._abort and self._own is not None

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
                self._stalls.look()
            elif letter != ENDED:
                self._receive(json.loads(letter))
        except Exception as e:  # with JAX's store the job is gone; another one may come back
            if not self.lost and not self.ended.is_set():
                log.debug("loader %s: does not hear of others: %s", self._title, e)
            self.lost = True
            self.ended.wait(self._patience)
            return False
        self.lost = False
        return letter is not None

    def _receive(self, letter: Letter) -> None:
        self._letter = letter
        text = "loader %s: %s (raised here by the next batch; a program that waits for other "
        text += "processes in a computation cannot be woken)"
        log.warning(text, self._title, error_of(letter).message)
        if self._abort and not self._heard.wait(GRACE):
            text = (
                'loader %s: the program did not ask for a batch, so on_peer_error="abort" ends it'
            )
            log.critical(text, self._title)
            os._exit(1)


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
        if not room.store.try_get(_mailbox(of, others[0])):
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
    letter = {"process": process, "epoch": epoch, "step": step}
    if isinstance(error, errors.Error):
        texts = {"op": error.op, "message": error.message, "hint": error.hint, "path": error.path}
        return {**letter, "code": int(error.code), **texts}
    known = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return {**letter, "type": known.__name__, "message": cut(text, LENGTH)}


def error_of(letter: Letter) -> errors.PeerError:
    """Makes the error for what another process wrote."""
    process, epoch, step = letter["process"], letter["epoch"], letter["step"]
    op, message = letter.get("op", _OP), letter["message"]
    text = message if op in ("", _OP) else f"{op}: {message}"
    made = errors.peer(_origin(letter))(
        f"process {process}, at epoch {epoch}, step {step}: {text}",
        op=_OP,
        hint=letter.get("hint", ""),
        path=letter.get("path", ""),
    )
    return made.at(process, epoch, step)


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
