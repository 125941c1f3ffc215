"""What is logged when a loader is made: nothing is wrong, but perhaps not meant."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import numbers, values


def saved(position: int, records: int = 1024, epoch: int = 0) -> dict[str, Any]:
    with mf.Loader(numbers(records), batch_size=1) as it:
        it.seek(epoch=epoch, position=position)
        return it.state()


def test_records_that_a_resume_leaves_out(caplog: pytest.LogCaptureFixture) -> None:
    state = saved(960)
    with mf.Loader(numbers(1024), batch_size=128, state=state) as it:
        assert caplog.messages == [
            "the state is at position 960 of 1024 in epoch 0: in batches of 128 the last 64 "
            'records of that epoch are left out; remainder="pad", or the batch size of the run '
            "that was saved, keeps them"
        ]
        assert (it.epoch, it.step) == (1, 0)
        caplog.clear()
        it.restore(state | {"position": 64, "epoch": 2})
        assert caplog.messages[0].startswith(
            "the state is at position 64 of 1024 in epoch 2: in batches of 128 the last 64 "
        )
        rows = [x for batch in values(it) for x in batch]
        assert rows == list(range(64, 960))


@pytest.mark.parametrize(
    ("position", "options"),
    [
        (960, {"batch_size": 64}),
        (960, {"batch_size": 128, "remainder": "pad"}),
        (896, {"batch_size": 128}),
        (0, {"batch_size": 1000}),  # as every epoch of such batches
    ],
)
def test_a_resume_that_leaves_nothing_out(
    caplog: pytest.LogCaptureFixture, position: int, options: dict[str, Any]
) -> None:
    mf.Loader(numbers(1024), state=saved(position), **options).close()
    assert caplog.messages == []


def test_a_run_that_is_over(caplog: pytest.LogCaptureFixture) -> None:
    state = saved(0, 8, epoch=3)
    for epochs in (-1, 4, None):
        mf.Loader(numbers(8), batch_size=4, state=state, epochs=epochs).close()
    assert caplog.messages == []
    with mf.Loader(numbers(8), batch_size=4, state=state, epochs=2) as it:
        assert list(it) == []
    assert caplog.messages == [
        "the loader is at epoch 3, and with epochs=2 all epochs are over: loops are empty; "
        "epochs= counts from the beginning of the run, not from the state"
    ]


def test_a_seek_behind_the_last_epoch(caplog: pytest.LogCaptureFixture) -> None:
    with mf.Loader(numbers(8), batch_size=4, epochs=2) as it:
        it.seek(epoch=1)
        assert caplog.messages == []
        it.seek(epoch=2)
        assert list(it) == []
    assert caplog.messages == [
        "the loader is at epoch 2, and with epochs=2 all epochs are over: loops are empty; "
        "epochs= counts from the beginning of the run, not from the state"
    ]


def test_a_local_mesh_in_a_job(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = jax.make_mesh((8,), ("data",))
    options: dict[str, Any] = {"batch_size": 8, "coordinator": False}
    mf.Loader(numbers(16), mesh, P("data"), shuffle=True, **options).close()
    monkeypatch.setattr(jax, "process_count", lambda: 4)
    mf.Loader(numbers(16), mesh, P("data"), **options).close()
    mf.Loader(numbers(16), shuffle=True, **options).close()
    assert caplog.messages == []
    mf.Loader(numbers(16), mesh, P("data"), shuffle=True, **options).close()
    assert caplog.messages == [
        "the mesh has devices of this process alone, in a job of several: processes with the same "
        "data and seed get the same rows; a mesh over jax.devices() gives each its part"
    ]


def test_micro_batches_that_are_split(caplog: pytest.LogCaptureFixture) -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with mf.from_arrays({"x": np.ones((64, 8)), "y": np.ones(64)}) as ds:
        mf.Loader(ds, mesh, P(None, "data"), batch_size=(4, 8)).close()
        assert caplog.messages == []
        mf.Loader(ds, mesh, P("data"), batch_size=(4, 8)).close()
        problem = mf.layout({"data": 4}, P("data"), ds, batch_size=(4, 8)).check()[0]
    assert caplog.messages == [
        "dimension 0 of array \"x\" counts micro-batches, but spec P('data',) splits it 4 ways: "
        "a device holds whole micro-batches, and not a part of each; the same holds for 1 more; "
        "name the axes in dimension 1, which counts the rows of a micro-batch, and leave this one "
        "whole"
    ]
    assert (problem.severity, problem.code) == ("warning", "split-micro-batches")
    assert problem.facts == {"dimension": 0, "size": 4, "tiles": 4, "arrays": 2}
