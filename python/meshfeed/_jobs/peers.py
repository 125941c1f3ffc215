"""Delivers a failure of one process to the others, which would wait for it forever.

A process that fails writes a message into the mailbox of every other process. A thread in each
process waits for a message in its own mailbox, without using the CPU. After a message, the next
call of `next` in that process raises the error that the message describes.

To end the thread, the process writes into its own mailbox. This is necessary because a thread that
still waits in JAX's client when the interpreter exits can crash the process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable

from meshfeed import errors
from meshfeed._jobs import failures
from meshfeed._jobs.failures import Message
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.stalls import Measure, Progress, Stalls
from meshfeed._jobs.wording import SAME_STEP
from meshfeed._jobs.worker import Worker

LONGEST = 10.0  # seconds of one wait at the mailbox; between two waits the thread checks for stalls
PATIENCE = {"end": 30.0, "abort": 5.0}  # after a failure: seconds to the next call of `next`
SOON = 0.5  # processes that end at the same batch close the loader within this many seconds
Taken = tuple[str, int]  # the path of a generation, and the number of batches taken in it

WAKE: Message = {}  # what a process writes into its own mailbox to end its thread

log = logging.getLogger("meshfeed")


class Peers(Worker):
    """The mailboxes of one loader's processes.

    Args:
        of: the store keys of the present generation.
        on_error: what happens after a failure if the program does not call `next` again.
        late_after: seconds after which a process is late.
        progress: how far this process has come.
        measure: measures the loop (see `Stalls`).

    Attributes:
        departed: the message of the first process that closed the loader, if there is one.
        lost: whether the last read of the mailbox failed, because the store did not answer.
        finish: a function that the thread calls at its end.
    """

    def __init__(
        self,
        of: Generation,
        on_error: str,
        late_after: float,
        progress: Progress,
        measure: Measure,
    ) -> None:
        super().__init__("meshfeed.peers", of)
        self._mailbox = _mailbox(of.namespace.me)
        self._on_error, self._progress = on_error, progress
        self._stalls = Stalls(of, late_after, progress, measure)
        self._interval = min(late_after / 3, LONGEST)
        self.departed: Message | None = None
        self.lost = False
        self._received: Message | None = None
        self._own: errors.Error | None = None
        self._reported = False
        self._raised = threading.Event()  # `check` raised the failure, or the thread has to end
        self.finish: Callable[[], None] = lambda: None
        self._start()

    # ---- on the program's thread ----

    def check(self) -> bool:
        """Raises the failure of another process, or the error given to `raise_everywhere`.

        Returns:
            Whether a process has closed the loader.
        """
        if self._own is not None:
            self._raised.set()
            raise type(self._own)(self._own.message, op=self._own.op, hint=self._own.hint)
        if self._received is not None:
            self._raised.set()
            raise failures.error_of(self._received)
        return self.departed is not None

    def departure(self) -> errors.PeerError | None:
        """Returns the error of a departed process if this one has taken as many batches."""
        message = self.departed
        if message is None or self._progress.batches < message["batches"]:
            return None
        self._raised.set()
        return failures.error_of(message)

    @property
    def failed(self) -> bool:
        """Whether a failure is known, here or elsewhere, or the store does not answer."""
        return bool(self._reported or self._own or self._received or self.lost)

    @property
    def taken(self) -> Taken | None:
        """How many batches this process has taken; None if the others may have another number."""
        if self.failed or not self._progress.exact:
            return None
        return self._keys.path, self._progress.batches

    def depart(self) -> None:
        """Reports to the others that this process closes the loader.

        Usually all processes do so, one after another. The others need one message only, so this
        does nothing if another process has sent one, or any process has failed.
        """
        if self.failed or self.departed:
            return
        progress = self._progress
        message = failures.departure(self._namespace.me, progress.batches, ends=progress.ends)
        first = self._keys.get(_mailbox(self._namespace.others[0]))
        if self._keys.get("departing") is None and not first:
            self._keys.set("departing", True)
            _post(self._keys, message)

    def report(self, error: BaseException, epoch: int, step: int) -> None:
        """Reports the first failure of this process to all others."""
        if self._reported or self.ended.is_set():
            return
        self._reported = True
        me_too = self._own is not None and self._may_end
        report(self._keys, error, epoch, step, me_too=me_too)
        if failures.is_lost_peer(error) and (cause := self._unresponsive()):
            log.warning("loader %s: %s", self._title, cause["cause"])

    def raise_everywhere(self, error: errors.Error, epoch: int, step: int) -> None:
        """Makes every process raise an error that a background thread of this one found."""
        if self._own is not None:  # only the first difference is reported
            return
        self._own = error
        log.warning("loader %s: %s", self._title, error.message)
        if not failures.is_local(error):
            self.report(error, epoch, step)

    @property
    def _may_end(self) -> bool:
        """Whether a program that does not call `next` again after a failure is ended.

        In an interactive interpreter it is not, unless `on_peer_error` is "abort".
        """
        return self._on_error == "abort" or (self._on_error == "end" and not hasattr(sys, "ps1"))

    def forget(self) -> None:
        """Makes the thread end after its current wait; returns at once."""
        super().forget()
        self._raised.set()

    def _wake(self) -> None:
        self._keys.set(self._mailbox, WAKE)

    # ---- on the worker's thread ----

    def _work(self) -> None:
        while not self.ended.is_set() and not self._receive():
            pass
        with contextlib.suppress(Exception):
            self.finish()

    def _receive(self) -> bool:
        """Waits for a message for a while; returns whether the thread has nothing more to do."""
        try:
            message = self._keys.get(self._mailbox, self._interval)
            if message is None:
                self._stalls.look()
            elif failures.is_departure(message):
                self._note_departure(message)
                return False
            elif message != WAKE:
                self._note_failure(message)
        except Exception as e:  # JAX's store is gone with the job; another store may come back
            if not self.lost and not self.ended.is_set():
                log.debug("loader %s: cannot hear of failures elsewhere: %s", self._title, e)
            self.lost = True
            self.ended.wait(self._interval)
            return False
        self.lost = False
        return message is not None

    def _note_departure(self, message: Message) -> None:
        """Stores a departure, and logs it unless this process closes the loader soon as well.

        If this process has taken more batches, a step with one of them may wait forever for the
        departed process. Then its program is ended, as after a failure.
        """
        self.departed = message
        self._keys.delete(self._mailbox)
        if self.ended.wait(SOON):
            return
        progress = self._progress
        if progress.exact and progress.batches > message["batches"]:
            log.warning("loader %s: %s", self._title, failures.error_of(message))
            self._await_program(message)
        elif not message["ends"]:
            hint = ""
            if progress.batches == message["batches"]:
                hint = f", as many as this process; if this one waits in a step, {SAME_STEP}"
            log.warning("loader %s: %s%s", self._title, failures.describe_departure(message), hint)

    def _note_failure(self, message: Message) -> None:
        if message.get("lost"):
            if cause := self._unresponsive():
                message |= cause
            elif (gone := self.departed) is not None:
                message |= {"of": gone["process"], "cause": failures.describe_departure(gone)}
        self._received = message
        text = "loader %s: %s (raised here by the next batch; a program that waits for other "
        text += "processes in a computation cannot be woken)"
        log.warning(text, self._title, failures.error_of(message).message)
        self._await_program(message)

    def _await_program(self, message: Message) -> None:
        """Waits until the program asks for a batch, or ends it if it may not be waited for."""
        if self._may_end and not self._raised.wait(PATIENCE[self._on_error]):
            self._end_program(message)

    def _unresponsive(self) -> Message | None:
        """Returns the processes that do not respond, if there are any, as parts of a message."""
        if silent := self._stalls.unresponsive(self.ended.wait):
            return {"of": silent[0], "cause": self._stalls.describe(silent)}
        return None

    def _end_program(self, message: Message) -> None:
        """Ends the process, which does not call `next` again, and prints why."""
        seconds, status = PATIENCE[self._on_error], errors.EXIT_PEER_ERROR
        text = f"meshfeed: loader {self._title}: {failures.error_of(message).message}\n"
        text += f"meshfeed: process {self._namespace.me} has not asked for a batch for "
        text += f"{seconds:g} s and ends with status {status} (on_peer_error={self._on_error!r})\n"
        flush = threading.Thread(target=_flush, daemon=True)
        flush.start()
        flush.join(1)  # a thread of the program may hold the lock of a stream forever
        os.write(2, text.encode(errors="replace"))
        os._exit(status)


def _flush() -> None:
    """Flushes the streams that the program prints to."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def report(
    of: Generation, error: BaseException, epoch: int, step: int, *, me_too: bool = False
) -> None:
    """Reports to the other processes of a generation that this one failed.

    They need one message only. If another process has sent one, for example because a file
    system fails in all processes at once, this process sends none. With `me_too` this process
    gets the message as well, so that its own thread can end its program.
    """
    namespace = of.namespace
    try:
        message = failures.failure(error, namespace.me, epoch, step)
        if me_too:
            of.set(_mailbox(namespace.me), message)
        found = of.get(_mailbox(namespace.others[0]))
        if not found or failures.is_departure(found):
            _post(of, message)
    except Exception as e:
        log.warning("loader %s: a failure was not reported to others: %s", namespace.title, e)


def _post(of: Generation, message: Message) -> None:
    for process in of.namespace.others:
        of.set(_mailbox(process), message)


def _mailbox(process: int) -> str:
    return f"mailbox/{process}"
