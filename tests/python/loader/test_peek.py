"""`peek` shows the next batch and changes nothing."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._jobs.replicas import Replicas
from tests.python.loader.placing import VIRTUAL
from tests.python.players import Players, cluster, compared, players
from tests.python.samples import FIRST, SECOND, loader, numbers, values


@pytest.mark.parametrize("ahead", [0, 2])
def test_the_next_batch_is_the_same(ahead: int) -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with numbers(64) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=16, device_prefetch=ahead) as it:
            state = it.state()
            sample = it.peek()
            assert sample is it.peek()
            assert (it.state(), it.epoch, it.step) == (state, 0, 0)
            assert it.remaining == 4
            for step, batch in enumerate(it):
                assert batch["x"] is sample["x"]
                assert np.asarray(batch["x"]).tolist() == list(range(16 * step, 16 * step + 16))
                sample = it.peek()
            assert (it.epoch, step) == (1, 3)
            assert np.asarray(sample["x"]).tolist() == list(range(16))


def test_it_counts_as_not_delivered() -> None:
    with loader(shuffle=True) as it:
        it.peek()
        assert it.certificate().delivered == ()
        next(iter(it))
        it.peek()
        assert it.certificate().last == (0, 4)


def test_beyond_the_end_of_an_epoch() -> None:
    """The present loop still ends, and the next one begins with the batch."""
    with loader() as it:
        loop = iter(it)
        next(loop), next(loop)
        assert it.peek()["x"].tolist() == FIRST
        assert (it.epoch, it.step, it.remaining, len(loop)) == (1, 0, 2, 0)
        assert next(loop, None) is None
        assert values(it) == [FIRST, SECOND]
        assert it.epoch == 2
        next(iter(it)), next(iter(it))  # a loop that was left after its last batch
        assert it.peek()["x"].tolist() == FIRST
        assert values(it) == [FIRST, SECOND]


def test_beyond_the_end_of_the_run() -> None:
    with loader(epochs=1) as it:
        assert values(it) == [FIRST, SECOND]
        with pytest.raises(mf.OutOfRangeError) as caught:
            it.peek()
        assert str(caught.value) == (
            "Loader.peek: there is no next batch: all 1 epochs are over; "
            "loader.remaining says how many are left"
        )
        assert values(it) == []


def test_with_states_and_moves() -> None:
    with loader(20, epochs=2) as it:
        it.peek()
        for batch, state in it.with_state():
            assert it.state() == state
            assert (batch["x"][0] + 4) % 20 == state["position"]
            if it.remaining:
                assert it.peek()["x"][0] == state["position"]
            if state["position"] == 8:
                it.seek(epoch=state["epoch"], position=12)
                assert it.peek()["x"][0] == 12
        it.restore(state | {"epoch": 1})
        assert it.peek()["x"].tolist() == FIRST


def test_between_loops_over_devices() -> None:
    mesh = jax.make_mesh((8,), ("data",))
    with mf.Loader(numbers(24), mesh, P("data"), batch_size=8) as it, mf.devices(VIRTUAL) as on:
        it.peek()
        loop = it.place(on)
        assert np.asarray(next(loop)["x"]).tolist() == list(range(8))
        assert np.asarray(it.peek()["x"]).tolist() == list(range(8, 16))
        it.remesh(jax.make_mesh((2,), ("data",), devices=jax.devices()[:2]))
        assert len(it.peek()["x"].sharding.device_set) == 2
        assert [np.asarray(b["x"])[0] for b in it] == [8, 16]


def test_beyond_the_end_of_an_epoch_between_loops_over_devices() -> None:
    """The end of the loop is kept when the batch after it is made again."""
    mesh = jax.make_mesh((8,), ("data",))
    with mf.Loader(numbers(16), mesh, P("data"), batch_size=8) as it, mf.devices(VIRTUAL) as on:
        loop = it.place(on)
        next(loop), next(loop)
        it.peek()
        assert next(loop, None) is None
        assert [np.asarray(b["x"])[0] for b in it.place(on)] == [0, 8]


def test_an_error_is_raised_and_the_batch_comes_later() -> None:
    mesh = jax.make_mesh((8,), ("data",))
    with mf.Loader(numbers(16), mesh, P("data"), batch_size=8) as it:
        with jax.transfer_guard_host_to_device("disallow_explicit"):
            with pytest.raises(jax.errors.JaxRuntimeError):
                it.peek()
        assert np.asarray(it.peek()["x"]).tolist() == list(range(8))
        assert [np.asarray(batch["x"])[0] for batch in it] == [0, 8]


def test_one_process_of_a_job_may_peek_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It may, before and after the processes agree, and every batch is still compared."""
    with players(verify_replicas="always") as job, players(verify_replicas="always") as plain:
        first = job.loaders[0]
        sample = first.peek()
        for step in range(5):
            got = job.step()
            plain.step()
            assert (got[0] is sample, step) == (True, step)
            sample = first.peek() if step < 4 else None
        compared(job)
        compared(plain)
        counts = [found.compared for found in replicas(job)]
        assert counts == [found.compared for found in replicas(plain)]
        assert sum(counts) == 55
        assert [loader.state() for loader in job.loaders] == [first.state()] * 4
        first.peek()
        for loader in job.loaders:
            loader.seek(epoch=1)
        job.loaders[2].peek()
        assert all(isinstance(batch, dict) for batch in job.step())
        compared(job)
        assert [found.compared for found in replicas(job)] == [n // 5 for n in counts]
    assert caplog.text == ""


def replicas(job: Players) -> list[Replicas]:
    found = [cluster(loader).replicas for loader in job.loaders]
    return [r for r in found if r is not None]
