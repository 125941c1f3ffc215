"""How the store of a job is found, and how it is polled."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import jax
import pytest

import meshfeed as mf
from meshfeed.coordinator import JaxCoordinator, jax_coordinator, patient_get
from meshfeed.jax import _CLIENT, coordination_client
from tests.python.players import Memory

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


def test_patience() -> None:
    """A missing key is polled less and less often, and once more at the end."""
    store, slept = Memory(), list[float]()

    def sleep(seconds: float) -> bool:
        slept.append(seconds)
        return len(slept) == 40

    now = time.monotonic()
    assert patient_get(store, "k", now + 3600, sleep) is None
    assert slept[:2] == pytest.approx([0.002, 0.0026])
    assert max(slept) == 0.5
    assert store.calls == 40
    store.set("k", b"v")
    assert patient_get(store, "k", now - 1) == b"v"


@pytest.mark.parametrize(("answer", "kind"), [("text", "str"), ((b"x", 1), "tuple")])
def test_values_that_are_not_bytes(answer: Any, kind: str) -> None:
    """They are an error, and not a difference between processes."""

    class Odd(Memory):
        def try_get(self, key: str) -> bytes | None:
            return super().try_get(key) and answer

    store = Odd()
    store.set("a/b", b"text")
    with pytest.raises(mf.InvalidArgumentError) as e:
        patient_get(store, "a/b", math.inf)
    want = f"mf.Loader: the coordinator gave a {kind} for the key 'a/b', expected bytes; give one "
    assert str(e.value) == want + "whose methods answer as those of mf.Coordinator"
