"""How the store of a job is found, and how processes wait for its keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import pytest

import meshfeed as mf
from meshfeed._jax.runtime import _CLIENT, coordination_client
from meshfeed._jobs.coordinator import JaxCoordinator, jax_coordinator
from meshfeed._jobs.keys import SLICE, Generation, Namespace
from tests.python.players import HANG, Memory

pytestmark = pytest.mark.plain

HINT = "; pass coordinator= any store with the methods of mf.Coordinator, or False for none"


def test_no_job() -> None:
    with pytest.raises(mf.UnsupportedError) as e:
        coordination_client()
    want = "the mesh spans processes, but jax.distributed was not initialized"
    assert str(e.value) == want + HINT


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        (SimpleNamespace(), "jax._src.distributed.global_state.client"),
        (SimpleNamespace(client=SimpleNamespace()), "key_value_set_bytes"),
    ],
)
def test_another_jax(monkeypatch: pytest.MonkeyPatch, state: Any, missing: str) -> None:
    """If a JAX release keeps its client elsewhere, the error names tested releases."""
    monkeypatch.setattr("jax._src.distributed.global_state", state)
    with pytest.raises(mf.UnsupportedError) as e:
        coordination_client()
    want = f"JAX {jax.__version__} has no {missing}, by which processes would agree "
    assert str(e.value) == want + "(tested: JAX 0.8.0, 0.9.0, 0.10.2 and 0.12.0.1)" + HINT


def test_a_store_is_a_coordinator() -> None:
    assert isinstance(Memory(), mf.Coordinator)
    assert isinstance(JaxCoordinator(None), mf.Coordinator)
    assert not isinstance({}, mf.Coordinator)


def test_another_job_has_another_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new job after `jax.distributed.shutdown` counts names anew."""
    first, second = (SimpleNamespace(**dict.fromkeys(_CLIENT)) for _ in range(2))
    stores = []
    for client in (first, first, second):
        state = SimpleNamespace(client=client)
        monkeypatch.setattr("jax._src.distributed.global_state", state)
        stores.append(jax_coordinator())
    assert stores[0] is stores[1] is not stores[2]
    assert [store.client for store in stores] == [first, first, second]


def test_other_errors_of_jax_are_raised() -> None:
    """Only a missing key is None."""

    def gone(*_: Any) -> bytes:
        raise RuntimeError("UNAVAILABLE: gone")  # the base class of JAX's error

    client = SimpleNamespace(key_value_try_get_bytes=gone, blocking_key_value_get_bytes=gone)
    store = JaxCoordinator(client)
    with pytest.raises(RuntimeError, match="UNAVAILABLE: gone"):
        store.try_get("k")
    with pytest.raises(RuntimeError, match="UNAVAILABLE: gone"):
        store.get("k", 1)


class Slow(Memory):
    """A store that records how long each call may wait, and waits for no key."""

    def __init__(self) -> None:
        super().__init__()
        self.slices: list[float] = []

    def get(self, key: str, seconds: float) -> bytes | None:
        self.slices.append(seconds)
        return self.keys.get(key)


def generation(store: mf.Coordinator) -> Generation:
    return Generation(Namespace(store, "a", "'train'", 0, (0, 1)), "a/0")


def test_a_wait_is_made_of_short_calls() -> None:
    """Ctrl-C takes effect between two calls of the store. The last call waits for nothing."""
    store, ends = Slow(), iter([False] * 5 + [True])
    assert generation(store).wait("k", HANG, lambda: next(ends)) is None
    assert store.slices == [SLICE] * 5
    assert store.calls == 1  # `try_get`


def test_the_last_call_finds_a_late_value() -> None:
    store = Slow()

    def over() -> bool:
        store.set("a/0/k", b"7")
        return True

    assert generation(store).wait("k", HANG, over) == 7
    assert generation(store).wait("k", -1, lambda: False) == 7


@pytest.mark.parametrize(("answer", "kind"), [("text", "str"), ((b"x", 1), "tuple")])
def test_values_that_are_not_bytes(answer: Any, kind: str) -> None:
    """They are an error, and not a difference between processes."""

    class Odd(Memory):
        def try_get(self, key: str) -> bytes | None:
            return super().try_get(key) and answer

    store = Odd()
    store.set("a/0/b", b"text")
    with pytest.raises(mf.InvalidArgumentError) as e:
        generation(store).get("b")
    want = f"mf.Loader: the coordinator gave a {kind} for the key 'a/0/b', expected bytes; give "
    assert str(e.value) == want + "a coordinator with the methods of mf.Coordinator"
