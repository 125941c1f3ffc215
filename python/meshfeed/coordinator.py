"""The small store through which the processes of a job compare notes: five methods over bytes.

JAX's own is found by `jax_coordinator`; any key-value store that all processes reach can stand
in for it. It carries a few hundred bytes now and then, never data.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from meshfeed.errors import InvalidArgumentError


@runtime_checkable
class Coordinator(Protocol):
    """A key-value store that all processes of a job share.

    Keys are paths such as ``"meshfeed/train.0-3/0/0/plan"``. Any thread may call. What cannot be
    done raises. An object must be hashable and allow weak references, as ordinary ones do.
    Keys of an earlier start of the job must not be there: a store that outlives its job needs a
    prefix of its own for every start.
    """

    def set(self, key: str, value: bytes) -> None:
        """Sets a key, also one that is there."""

    def get(self, key: str, seconds: float) -> bytes | None:
        """Waits for a key at most that long; None if it is not there by then."""

    def try_get(self, key: str) -> bytes | None:
        """Gives a key's value, None if it is not there."""

    def delete(self, key: str) -> None:
        """Deletes a key and all keys below it; it is no error if there are none."""

    def list(self, prefix: str) -> dict[str, bytes]:
        """Gives all keys below a path, whole, with their values."""


def patient_get(
    store: Coordinator,
    key: str,
    until: float,
    sleep: Callable[[float], object] = time.sleep,
) -> bytes | None:
    """Waits for a key, so that Ctrl-C is answered at once.

    A call into a store may hear no signal while it blocks, so this asks again and again, less
    often the longer it takes: a job of thousands asks its store some times a second each.

    Args:
        store: the store.
        key: the key.
        until: the time of `time.monotonic` at which to give up.
        sleep: waits; a true result ends the wait.

    Returns:
        The value; None when time is over.

    Raises:
        InvalidArgumentError: the store gives something else than bytes.
    """
    for pause in _pauses():
        value = _checked(store.try_get(key), key)
        left = until - time.monotonic()
        if value is not None or left <= 0 or sleep(min(pause, left)):
            return value
    raise AssertionError


def _checked(value: Any, key: str) -> bytes | None:
    """Refuses what some clients of stores make of bytes, before it looks like a difference."""
    if value is None or isinstance(value, bytes):
        return value
    message = f"the coordinator gave a {type(value).__name__} for the key {key!r}, expected bytes"
    hint = "give one whose methods answer as those of mf.Coordinator"
    raise InvalidArgumentError(message, op="mf.Loader", hint=hint)


def _pauses() -> Iterator[float]:
    """Gives 2 ms at first, and up to half a second."""
    return itertools.chain((0.002 * 1.3**n for n in range(21)), itertools.repeat(0.5))


def jax_coordinator() -> JaxCoordinator:
    """Gives the coordination service of `jax.distributed`: the same object for the same job.

    Raises:
        UnsupportedError: there is no job, or this JAX keeps its client elsewhere.
    """
    from meshfeed.jax import coordination_client

    return _of(coordination_client())


class JaxCoordinator:
    """JAX's coordination service, as a `Coordinator`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        self.client.key_value_set_bytes(key, value, allow_overwrite=True)

    def get(self, key: str, seconds: float) -> bytes | None:
        """Waits for a key."""
        get = self.client.blocking_key_value_get_bytes
        return _or_none("DEADLINE_EXCEEDED", get, key, max(1, round(1000 * seconds)))

    def try_get(self, key: str) -> bytes | None:
        """Gives a key's value."""
        return _or_none("NOT_FOUND", self.client.key_value_try_get_bytes, key)

    def delete(self, key: str) -> None:
        """Deletes a key and all below."""
        self.client.key_value_delete(key)

    def list(self, prefix: str) -> dict[str, bytes]:
        """Gives all keys below a path."""
        return dict(self.client.key_value_dir_get_bytes(prefix))


def _or_none(code: str, get: Callable[..., bytes], *arguments: Any) -> bytes | None:
    """Gives what a call gives, and None where it fails with this code."""
    try:
        return get(*arguments)
    except RuntimeError as e:  # what JAX's own error is
        if str(e).startswith(code):
            return None
        raise


_lock = threading.Lock()
_known: JaxCoordinator | None = None


def _of(client: Any) -> JaxCoordinator:
    """Gives the same object for the same client, since names are counted per store."""
    global _known
    with _lock:
        if _known is None or _known.client is not client:
            _known = JaxCoordinator(client)
        return _known
