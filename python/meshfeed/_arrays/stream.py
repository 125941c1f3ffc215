"""Reads an iterable ahead in a thread, and changes its items there."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import SimpleQueue
from typing import Any

from meshfeed._native import library
from meshfeed.errors import ForkedError

log = logging.getLogger("meshfeed")

PATIENCE = 1.0  # seconds for which a close, or the exit of the interpreter, waits for threads

_END = object()


class _Failed:
    """An exception instead of an item."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Channel:
    """What a stream and its thread share. The thread holds no reference to the stream.

    The methods of a `SimpleQueue` may be called at any time, even by a finalizer that interrupts
    another of its methods on the same thread.

    Attributes:
        permits: an item for each item that the thread may read ahead.
        items: the items that were read, in a tuple each.
        stopped: whether the thread has to end.
    """

    def __init__(self, prefetch: int) -> None:
        self.permits: SimpleQueue[None] = SimpleQueue()
        self.items: SimpleQueue[Any] = SimpleQueue()
        self.stopped = False
        self.process = os.getpid()
        for _ in range(prefetch):
            self.permits.put(None)

    def stop(self) -> None:
        """Tells the thread to end after its current item, and ends waits for items."""
        if os.getpid() == self.process:  # in a forked child, the thread does not exist
            self.stopped = True
            self.permits.put(None)
            self.items.put(_END)

    def read(self, source: Iterable[Any], change: Callable[[Any], Any]) -> None:
        """Reads the source to its end, on the thread."""
        iterator: Iterator[Any] | None = None
        try:
            iterator = iter(source)
            while True:
                self.permits.get()
                if self.stopped:
                    break
                try:
                    item = next(iterator)
                except StopIteration:
                    break
                if self.stopped:
                    break
                self.items.put((change(item),))
                del item
        except BaseException as e:
            self.items.put(_Failed(e))
        close_generator(iterator)
        self.items.put(_END)
        _running.remove(threading.current_thread())


def close_generator(iterator: Iterator[Any] | None) -> None:
    """Closes a generator, so that its `finally` blocks run now."""
    if isinstance(iterator, Generator):
        try:
            iterator.close()
        except Exception:
            log.exception("the generator that was read failed when it was closed")


class Stream(Iterator[Any]):
    """The items of an iterable, changed by a function in a thread that reads ahead.

    Args:
        source: the iterable.
        change: is called with every item.
        prefetch: how many changed items may wait to be taken; at least 1.
        name: of the thread.
    """

    def __init__(
        self, source: Iterable[Any], change: Callable[[Any], Any], prefetch: int, name: str
    ) -> None:
        self._channel = channel = _Channel(prefetch)
        self._thread = threading.Thread(
            target=channel.read, args=(source, change), name=name, daemon=True
        )
        weakref.finalize(self, channel.stop).atexit = False
        _running.add(self._thread, channel)
        self._thread.start()

    def __next__(self) -> Any:
        channel = self._channel
        if os.getpid() != channel.process:
            message = "the thread that reads ahead does not exist in a forked child"
            hint = 'make the iterator in the child, or start it by "spawn" or "forkserver"'
            raise ForkedError(message, op="mf.place_batches", hint=hint)
        if channel.stopped:
            raise StopIteration
        try:
            item = channel.items.get()
        finally:  # after Ctrl-C, too: the thread must not wait for a permit that was lost
            channel.permits.put(None)
        if item is _END or channel.stopped:
            channel.items.put(_END)  # for other threads that wait, and for later calls
            raise StopIteration
        if isinstance(item, _Failed):
            raise item.error
        return item[0]

    def close(self, *, wait: bool = True) -> None:
        """Ends the thread, and drops the items that were read ahead.

        Args:
            wait: whether to wait until the source has returned its current item, for up to a
                second.
        """
        channel = self._channel
        channel.stop()
        if channel.process != os.getpid():
            return
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(PATIENCE)
        while not channel.items.empty():
            channel.items.get()
        channel.items.put(_END)


class _Running:
    """The threads that read, so that the exit of the interpreter ends them."""

    def __init__(self) -> None:
        self._channels: dict[threading.Thread, _Channel] = {}
        self._registered = False

    def add(self, thread: threading.Thread, channel: _Channel) -> None:
        """Adds a thread that is about to start."""
        if not self._registered:
            self._registered = True
            library.before_exit(self.end)
        self._channels[thread] = channel

    def remove(self, thread: threading.Thread) -> None:
        """Removes a thread that ends."""
        self._channels.pop(thread, None)

    def end(self) -> None:
        """Ends all threads. A thread that calls JAX during the exit may crash the process."""
        until = time.monotonic() + PATIENCE
        channels = self._channels.copy()
        for channel in channels.values():
            channel.stop()
        for thread, channel in channels.items():
            if thread.ident is not None and channel.process == os.getpid():
                thread.join(max(0.0, until - time.monotonic()))


_running = _Running()
