"""The key-value store through which the processes of a job exchange small messages.

`jax_coordinator` returns JAX's own store. Any other store that all processes can reach may replace
it. A message has some hundred bytes; rows and batches never go through the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from meshfeed._native.lock import Lock

SHORT_MS = 10_000  # to wait for a key that exists


@runtime_checkable
class Coordinator(Protocol):
    """A key-value store that all processes of a job share.

    Keys are paths such as ``"meshfeed/train.0-3/0/0/terms"``. Any thread may call any method. A
    method that fails raises. The object must be hashable and allow weak references, which is the
    default. At the start of a job there must be no keys of an earlier start: a store that outlives
    its job needs a new prefix for every start.
    """

    def set(self, key: str, value: bytes) -> None:
        """Sets the value of a key, which may already exist."""

    def get(self, key: str, seconds: float) -> bytes | None:
        """Waits for a key and returns its value, or None if it does not exist in time."""

    def try_get(self, key: str) -> bytes | None:
        """Returns a key's value, or None if it does not exist."""

    def delete(self, key: str) -> None:
        """Deletes a key and all keys below it, if there are any."""

    def list(self, prefix: str) -> dict[str, bytes]:
        """Returns the values of all keys below a path, by their whole keys."""


def jax_coordinator() -> JaxCoordinator:
    """Returns the coordination service of `jax.distributed`: one object for the whole job.

    Raises:
        UnsupportedError: `jax.distributed` was not initialized, or this JAX has another client.
    """
    from meshfeed._jax.runtime import coordination_client

    return _of(coordination_client())


class JaxCoordinator:
    """JAX's coordination service, as a `Coordinator`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        self.client.key_value_set_bytes(key, value, allow_overwrite=True)

    def first(self, key: str, value: bytes) -> bytes:
        """Sets a key unless it exists, and returns its value."""
        try:
            self.client.key_value_set_bytes(key, value, allow_overwrite=False)
        except RuntimeError as e:  # the base of JAX's error
            if not str(e).startswith("ALREADY_EXISTS"):
                raise
            value = self.client.blocking_key_value_get_bytes(key, SHORT_MS)
        return value

    def get(self, key: str, seconds: float) -> bytes | None:
        """Waits for a key."""
        get = self.client.blocking_key_value_get_bytes
        return _or_none("DEADLINE_EXCEEDED", get, key, max(1, round(1000 * seconds)))

    def try_get(self, key: str) -> bytes | None:
        """Returns a key's value."""
        return _or_none("NOT_FOUND", self.client.key_value_try_get_bytes, key)

    def delete(self, key: str) -> None:
        """Deletes a key and all below."""
        self.client.key_value_delete(key)

    def list(self, prefix: str) -> dict[str, bytes]:
        """Returns all keys below a path."""
        return dict(self.client.key_value_dir_get_bytes(prefix))


def _or_none(code: str, get: Callable[..., bytes], *arguments: Any) -> bytes | None:
    """Returns the result of a call, or None if it fails with this code."""
    try:
        return get(*arguments)
    except RuntimeError as e:  # the base of JAX's error
        if str(e).startswith(code):
            return None
        raise


_lock = Lock()
_known: JaxCoordinator | None = None


def _of(client: Any) -> JaxCoordinator:
    """Returns one object per client, because the uses of a loader name are counted per object."""
    global _known
    with _lock:
        if _known is None or _known.client is not client:
            _known = JaxCoordinator(client)
        return _known
