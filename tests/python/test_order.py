"""`order=`: its values, with `shuffle=`, and local orders after restarts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import meshfeed as mf

RECORDS = 1000


def data() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(RECORDS)})


def planned(ds: mf.Dataset, processes: int, size: int, **options: Any) -> mf.Layout:
    mesh = {"data": processes, "model": 2}
    return mf.layout(mesh, mf.P("data"), ds, batch_size=size, processes=processes, **options)


def rows(batch: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([block for _, block in batch["x"]])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "sequential.1"),
        ({"shuffle": True}, "shuffle.1"),
        ({"order": "sequential"}, "sequential.1"),
        ({"order": "shuffle"}, "shuffle.1"),
        ({"order": "local"}, "local.1:1:10"),
        ({"order": "shuffle", "shuffle": True}, "shuffle.1"),
        ({"order": "local", "shuffle": True}, "local.1:1:10"),
        ({"order": "sequential", "shuffle": False}, "sequential.1"),
        ({"order": "local.1:5:20"}, "local.1:5:20"),
        ({"order": "shuffle.1"}, "shuffle.1"),
    ],
)
def test_values(options: dict[str, Any], name: str) -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=10, **options)
    assert loader.state()["order"] == name
    assert np.array_equal(next(iter(loader))["x"], loader.records(0, 0))
    known = mf.layout({"data": 1}, mf.P("data"), ds, batch_size=10, **options)
    assert loader.layout.report()["totals"] == known.report()["totals"]
    if name != "sequential.1":
        assert f'"order":"{name}"' in loader.layout.to_json()
        assert f'"order":"{name}"' in known.to_json()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"order": "shuffle", "shuffle": False},
            "mf.Loader: order='shuffle' and shuffle=False contradict each other; "
            "give only one of them",
        ),
        (
            {"order": "local", "shuffle": False},
            "mf.Loader: order='local' and shuffle=False contradict each other; "
            "give only one of them",
        ),
        (
            {"order": "sequential", "shuffle": True},
            "mf.Loader: order='sequential' and shuffle=True contradict each other; "
            "give only one of them",
        ),
        (
            {"order": "random"},
            'mf.Loader: order=\'random\': expected "sequential", "shuffle" or "local"; '
            "or the full name of an order, as in a state",
        ),
        (
            {"order": 7},
            'mf.Loader: order=7: expected "sequential", "shuffle" or "local"; '
            "or the full name of an order, as in a state",
        ),
        (
            {"order": "local.1:3:10"},
            'mf.Loader: order "local.1:3:10" has 3 parts, which do not divide a batch of 10: '
            "10 % 3 = 1; use the name in the state of the first loader",
        ),
        (
            {"order": "best.2"},
            'mf.Loader: there is no order "best.2"; use one of sequential.1, shuffle.1, '
            "or local.1:G:B with G parts for batches of B",
        ),
    ],
)
def test_invalid_values(options: dict[str, Any], message: str) -> None:
    ds = data()
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.Loader(ds, batch_size=10, **options)
    assert str(error.value) == message


def test_every_process_reads_its_own_part() -> None:
    ds = data()
    lay = planned(ds, 4, 40)
    for process in range(4):
        loader = mf.Loader(ds, layout=lay, process=process, order="local", seed=2)
        assert loader.state()["order"] == "local.1:4:40"
        seen = np.sort(np.concatenate([rows(batch) for batch in loader]))
        assert np.array_equal(seen, np.arange(250 * process, 250 * (process + 1)))


def test_the_sequence_stays_on_other_topologies() -> None:
    ds = data()
    first = mf.Loader(ds, layout=planned(ds, 4, 40), process=0, order="local", seed=2, epochs=-1)
    for _, _ in zip(range(5), first, strict=False):
        pass
    state = first.state()
    first.restore(state)
    assert state["position"] % 40 == 0
    order = [first.records(0, p) for p in range(state["position"], 840, 40)]
    for processes, size in ((1, 20), (2, 80), (8, 40)):
        lay = planned(ds, processes, size)
        for how in ("state=", "restore"):
            loader = mf.Loader(
                ds,
                layout=lay,
                process=0,
                order="local",
                seed=2,
                state=state if how == "state=" else None,
            )
            if how == "restore":
                loader.restore(state)
            assert loader.state() == state
            got = [loader.records(0, p) for p in range(state["position"], 840, size)]
            length = min(map(len, (np.concatenate(got), np.concatenate(order))))
            assert np.array_equal(np.concatenate(got)[:length], np.concatenate(order)[:length])
            assert np.array_equal(rows(next(iter(loader))), got[0][: size // processes])
            assert loader.certificate().order == "local.1:4:40"


def test_the_layout_names_the_order_that_is_followed() -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=10, order="local")
    state = loader.state() | {"order": "local.1:2:20"}
    assert '"order":"local.1:1:10"' in loader.layout.to_json()
    loader.restore(state)
    assert '"order":"local.1:2:20"' in loader.layout.to_json()
    again = mf.Loader(ds, batch_size=10, order="local", state=state)
    assert '"order":"local.1:2:20"' in again.layout.to_json()
    assert again.state() == state


def test_a_layout_may_name_the_order() -> None:
    ds = data()
    lay = planned(ds, 4, 40, order="local", seed=3)
    assert '"order":"local.1:4:40","seed":3' in lay.to_json()
    loader = mf.Loader(ds, layout=lay, process=1)
    assert loader.state()["order"] == "local.1:4:40"
    with pytest.raises(mf.IncompatibleError, match="order saved"):
        loader.restore(loader.state() | {"order": "local.1:2:40"})


def test_remesh_keeps_the_parts() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    mesh, other = jax.make_mesh((1,), ("data",)), jax.make_mesh((1, 1), ("data", "model"))
    state = mf.Loader(ds, mesh, mf.P("data"), batch_size=10, order="local", seed=4).state()
    state["order"] = "local.1:2:20"
    loader = mf.Loader(ds, mesh, mf.P("data"), batch_size=10, order="local", seed=4, state=state)
    next(iter(loader))
    expected = loader.records(0, 10)
    loader.remesh(other)
    assert loader.state()["order"] == "local.1:2:20"
    assert np.array_equal(np.asarray(next(iter(loader))["x"]), expected)
    assert '"order":"local.1:2:20"' in loader.layout.to_json()
