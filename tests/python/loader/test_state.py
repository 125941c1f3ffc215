"""States: what they contain, and where a loader that starts from one continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import flat, loader, numbers, values, wrong


def test_state_travels_with_the_batch() -> None:
    with loader(shuffle=True, prefetch=4) as it:
        pairs = [(batch["x"].tolist(), state) for batch, state in it.with_state()]
        assert [state["position"] for _, state in pairs] == [4, 0]
        it.restore(pairs[0][1])
        assert values(it) == [pairs[1][0]]


def test_the_state_is_small_and_json() -> None:
    with loader(shuffle=True, seed=2**53) as it:
        text = json.dumps(it.state(), separators=(",", ":"))
        assert len(text) <= 256
        assert json.loads(text) == it.state()
        assert it.state() | {"dataset": ""} == {
            "meshfeed": 1,
            "order": "shuffle.1",
            "dataset": "",
            "records": 10,
            "seed": 2**53,
            "epoch": 0,
            "position": 0,
        }


@pytest.mark.parametrize("device_prefetch", [0, 1, 3])
@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_restoring_at_every_step_continues_exactly(prefetch: int, device_prefetch: int) -> None:
    options: dict[str, Any] = {"shuffle": True, "seed": 9, "epochs": 3}
    with loader(22, **options) as whole:
        assert len(whole.with_state()) == 15
        pairs = [(batch["x"].tolist(), state) for batch, state in whole.with_state()]
    assert len(pairs) == 15
    options |= {"prefetch": prefetch, "device_prefetch": device_prefetch}
    for i, (_, state) in enumerate(pairs):
        with loader(22, state=state, **options) as rest:
            assert (len(rest), rest.remaining) == (len(pairs), len(pairs) - i - 1)
            assert values(rest) == [x for x, _ in pairs[i + 1 :]]


def test_another_mesh_and_batch_size_continue_with_the_next_record() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    other = jax.make_mesh((2,), ("data",), devices=jax.devices()[3:5])
    with numbers(48) as ds:
        options: dict[str, Any] = {"shuffle": True, "seed": 4, "epochs": 2}
        with mf.Loader(ds, mesh, P("data"), batch_size=8, **options) as first:
            loop = iter(first)
            seen = flat(np.asarray(next(loop)["x"]).tolist() for _ in range(4))
            state = first.state()
        with mf.Loader(ds, other, P("data"), batch_size=4, state=state, **options) as second:
            seen += flat(values(second))
        with mf.Loader(ds, batch_size=16, **options) as whole:
            assert seen == flat(values(whole))


def test_seek() -> None:
    with loader(shuffle=True) as it:
        epochs = [values(it) for _ in range(3)]
        it.seek(epoch=1)
        assert values(it) == epochs[1]
        it.seek(epoch=2, position=4)
        assert values(it) == epochs[2][1:]
        it.seek(epoch=0, position=7)  # no step begins there
        assert (it.epoch, it.step) == (1, 0)


def test_save_state(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with loader(shuffle=True) as it:
        next(iter(it))
        it.save_state(path)
        rest = values(it)
        assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    with loader(shuffle=True, state=path) as again:
        assert values(again) == rest
        again.restore(str(path))
        assert values(again) == rest


def test_a_state_of_another_dataset_seed_or_order_is_refused() -> None:
    with loader(shuffle=True, seed=1) as it:
        state = it.state()
    with loader(11, shuffle=True, seed=1) as it:
        for wrong in (state, state | {"seed": 2}, state | {"order": "sequential.1"}):
            with pytest.raises(mf.IncompatibleError):
                it.restore(wrong)
        assert len(values(it)) == 2
    with pytest.raises(mf.IncompatibleError):
        loader(shuffle=True, seed=2, state=state)
    with pytest.raises(mf.InvalidArgumentError):
        loader(state={"epoch": 1})


def test_another_dataset_can_be_accepted() -> None:
    with loader(shuffle=True) as it:
        next(iter(it))
        state = it.state()
    with mf.from_arrays({"x": np.arange(100, 110)}) as ds:
        with pytest.raises(mf.IncompatibleError) as refused:
            mf.Loader(ds, batch_size=4, shuffle=True, state=state)
        assert refused.value.hint == (
            "open the dataset that was saved, with the same views; if its records are the same, "
            'pass dataset="ignore"'
        )
        with mf.Loader(ds, batch_size=4, shuffle=True, state=state, dataset="ignore") as it:
            assert it.step == 1
            with pytest.raises(mf.InvalidArgumentError) as caught:
                it.restore(state, dataset=wrong("no"))
            assert str(caught.value) == (
                'Loader.restore: dataset=\'no\': expected "check" or "ignore"; '
                '"ignore" accepts the state of another dataset'
            )
