"""`order=`: its values, with `shuffle=`, and local orders after restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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
        ({"order": "blocks:7:30"}, "blocks.1:7:30:0"),
        ({"order": mf.Blocks(records=30, window=7)}, "blocks.1:7:30:0"),
        ({"order": mf.Blocks(records=3), "shuffle": True}, "blocks.1:40:3:0"),
        ({"order": "blocks.1:7:30:0"}, "blocks.1:7:30:0"),
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
            'mf.Loader: order=\'random\': expected "sequential", "shuffle", "local", "blocks" '
            "or mf.Blocks(...); or the full name of an order, as in a state",
        ),
        (
            {"order": 7},
            'mf.Loader: order=7: expected "sequential", "shuffle", "local", "blocks" '
            "or mf.Blocks(...); or the full name of an order, as in a state",
        ),
        (
            {"order": "local.1:3:10"},
            'mf.Loader: order "local.1:3:10" has 3 parts, which do not divide a batch of 10: '
            "10 % 3 = 1; use the name in the state of the first loader",
        ),
        (
            {"order": "best.2"},
            'mf.Loader: there is no order "best.2"; use one of sequential.1, shuffle.1, '
            "local.1:G:B with G parts for batches of B, "
            "or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also "
            "take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of "
            "W blocks of B records",
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


def test_blocks_are_checked() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"records": 0}, "records=0: expected an integer from 1 to 1099511627776, or None"),
        (
            {"records": 1 << 41},
            "records=2199023255552: expected an integer from 1 to 1099511627776, or None",
        ),
        ({"window": True}, "window=True: expected an integer from 1 to 1048576, or 'auto'"),
        ({"window": 1 << 21}, "window=2097152: expected an integer from 1 to 1048576, or 'auto'"),
    ]
    for options, message in wrong:
        with pytest.raises(mf.InvalidArgumentError) as error:
            mf.Blocks(**options)
        assert str(error.value) == f"mf.Blocks: {message}"
    assert mf.Blocks().name == "blocks:0:0"
    assert mf.Blocks(window="auto", records=7).name == "blocks:0:7"


def test_blocks_of_a_layout() -> None:
    layout = planned(data(), 4, 16, order=mf.Blocks(records=4))
    (problem,) = [problem for problem in layout.check() if problem.code == "windows"]
    assert (problem.severity, problem.path) == ("info", "/dataset/order")
    assert problem.message == (
        "an epoch has 4 windows of at most 63 of the 250 blocks, and a window has at most "
        "252 records of 1.97 KiB; the variance of a batch's mean is at most 1.19 times "
        "the variance of independent records"
    )
    assert problem.facts["variance_percent"] == 119


def test_blocks_are_the_record_batches(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(RECORDS)})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    for ds in (
        mf.open(tmp_path / "x.arrow"),
        mf.from_arrow(pa.Table.from_batches(table.to_batches(50))),
    ):
        loader = mf.Loader(ds, batch_size=10, order=mf.Blocks(window=2), epochs=2)
        windows = loader.report().windows
        assert windows is not None
        assert windows == (20, 10, 2, 100, 800, 5.27)
        batches = np.concatenate([batch["x"] for batch in loader]).reshape(2, RECORDS // 100, 100)
        assert all(len(set(window // 50)) == 2 for epoch in batches for window in epoch)
        assert np.array_equal(np.sort(batches.reshape(2, RECORDS)), [np.arange(RECORDS)] * 2)
        assert not np.array_equal(batches[0], batches[1])
        other = mf.Loader(ds, batch_size=25, order="blocks", state=loader.state())
        assert other.state() == loader.state()


def test_certificates_of_blocks() -> None:
    table = pa.table({"x": np.arange(100)})
    ds = mf.from_arrow(pa.Table.from_batches(table.to_batches(20)))

    def certificate(order: mf.Blocks) -> mf.Certificate:
        with mf.Loader(ds, batch_size=10, order=order, epochs=2) as loader:
            assert sum(1 for _ in loader) == 20
            return loader.certificate()

    certificate(mf.Blocks(window=2, records=20)).check(epochs=2)
    units = certificate(mf.Blocks(window=2))
    assert units.report(epochs=2)["missing"] == []
    with pytest.raises(mf.InvalidArgumentError) as error:
        units.check(epochs=2)
    assert str(error.value) == (
        f'Certificate.check: order "{units.order}" has the units of a dataset as its blocks, but '
        "the dataset is not known here; give the dataset (certificate.check(dataset=ds)), "
        "or use blocks with a number of records"
    )
    units.check(epochs=2, dataset=ds)
