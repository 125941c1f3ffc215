"""A loader continues at the same position on another mesh."""

from __future__ import annotations

import threading
import time
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._jobs.cluster import Cluster
from tests.python.samples import wrong

ROWS = np.arange(200 * 8, dtype=np.float32).reshape(200, 8)
SPECS = {"x": P("data", "model"), "n": P("data")}


def data() -> mf.Dataset:
    return mf.from_arrays({"x": ROWS, "n": np.arange(200, dtype=np.int32)})


def mesh(devices: list[int], **axes: int) -> Mesh:
    of = np.array(jax.devices())[devices]
    return Mesh(of.reshape(tuple(axes.values())), tuple(axes))


def loader(ds: mf.Dataset, on: Any, specs: Any = SPECS, **options: Any) -> mf.Loader:
    return mf.Loader(ds, on, specs, **{"batch_size": 24, "shuffle": True, "seed": 3} | options)


WHOLE: dict[str, Any] = {"devices": list(range(8)), "data": 4, "model": 2}
MESHES: dict[str, dict[str, Any]] = {
    "shrink": {"devices": [0, 1, 2, 3], "data": 2, "model": 2},
    "grow": {"devices": list(range(8)), "data": 8, "model": 1},
    "permute": {"devices": [5, 2, 7, 0, 3, 6, 1, 4], "data": 4, "model": 2},
    "turn": {"devices": list(range(8)), "model": 4, "data": 2},
    "one": {"devices": [6], "data": 1, "model": 1},
}


def check(batch: Any, on: Mesh, records: Any, specs: Any = SPECS) -> None:
    for name, want in (("x", ROWS[records]), ("n", records)):
        assert batch[name].sharding == NamedSharding(on, specs[name])
        np.testing.assert_array_equal(np.asarray(batch[name]), want)


@pytest.mark.parametrize("ahead", [0, 2])
def test_every_mesh_in_the_middle_of_an_epoch(ahead: int) -> None:
    with data() as ds, loader(ds, mesh(**WHOLE), device_prefetch=ahead) as it:
        loop = iter(it)
        kept = []
        for where in MESHES.values():
            on = mesh(**where)
            state = it.state()
            it.remesh(on)
            assert it.state() == state
            assert it.layout.report()["totals"]["steps_per_epoch"] == 8
            records = it.records(state["epoch"], state["position"])
            kept.append((next(loop), on, records))
            assert it.element_spec["x"].sharding.mesh == on
        assert it.step == len(MESHES)
        assert [int(batch["n"][0]) for batch in loop] == [
            int(it.records(0, 24 * step)[0]) for step in range(len(MESHES), 8)
        ]
        for batch, on, records in kept:
            check(batch, on, records)
        assert it.epoch == 1
        assert it.stats()["batches"] == 8 or ahead  # batches made ahead and dropped count too


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_the_epochs_are_those_of_an_undisturbed_run(remainder: str) -> None:
    with data() as ds, loader(ds, mesh(**WHOLE), remainder=remainder, epochs=3) as it:
        undisturbed = [np.asarray(batch["x"]) for batch in it]
    with data() as ds, loader(ds, mesh(**WHOLE), remainder=remainder, epochs=3) as it:
        positions = []
        for i, (batch, state) in enumerate(it.with_state()):
            np.testing.assert_array_equal(np.asarray(batch["x"]), undisturbed[i])
            assert state == it.state()
            positions.append((state["epoch"], state["position"]))
            it.remesh(mesh(**list(MESHES.values())[i % len(MESHES)]))
        assert (len(positions), positions[-1]) == (len(undisturbed), (3, 0))


def test_a_loop_ends_where_its_epoch_does() -> None:
    with data() as ds, loader(ds, mesh(**WHOLE)) as it:
        steps = 0
        for _ in it:
            steps += 1
            if it.step == 0:  # the epoch's last batch was just delivered
                it.remesh(mesh(**MESHES["shrink"]))
        assert (steps, it.epoch) == (8, 1)
        assert sum(1 for _ in it) == 8


def test_a_pass_keeps_its_mesh() -> None:
    with data() as ds, loader(ds, mesh(**WHOLE)) as it:
        evaluation = it.one_epoch(4)
        check(next(evaluation), mesh(**WHOLE), it.records(4, 0))
        it.remesh(mesh(**MESHES["shrink"]))
        for step, batch in enumerate(evaluation, 1):
            check(batch, mesh(**WHOLE), it.records(4, 24 * step))
        check(next(it.one_epoch(5)), mesh(**MESHES["shrink"]), it.records(5, 0))


def test_other_specs() -> None:
    rows = Mesh(np.array(jax.devices()[:6]), ("rows",))
    specs = {"n": P(), "x": P("rows")}
    with data() as ds, loader(ds, mesh(**WHOLE)) as it:
        first = next(iter(it))
        it.remesh(rows, specs)
        check(next(iter(it)), rows, it.records(0, 24), specs)
        it.remesh(Mesh(np.array(jax.devices()[2:4]), ("rows",)))  # keeps the new specs
        assert next(iter(it))["x"].sharding.spec == P("rows")
        check(first, mesh(**WHOLE), it.records(0, 0))


def test_shardings_get_the_mesh_and_keep_the_rest() -> None:
    def specs(on: Mesh) -> Any:
        kind = {"memory_kind": "unpinned_host"}
        return (mf.Array("x", NamedSharding(on, P("data", "model"), **kind)), {"n": P("data")})

    with data() as ds, loader(ds, None, specs(mesh(**WHOLE))[:1]) as it:
        small = mesh(**MESHES["shrink"])
        it.remesh(small)
        (x,) = next(iter(it))
        assert x.sharding == NamedSharding(small, P("data", "model"), memory_kind="unpinned_host")
        it.remesh(None, specs(mesh(**WHOLE))[:1])
        (x,) = next(iter(it))
        assert x.sharding.mesh == mesh(**WHOLE)
        with pytest.raises(mf.InvalidArgumentError, match=r"^Loader.remesh: a sharding of the fir"):
            it.remesh(Mesh(np.array(jax.devices()), ("other",)))
    with data() as ds, loader(ds, mesh(**WHOLE), specs(mesh(**WHOLE))) as it:
        it.remesh(small)
        x, n = next(iter(it))
        assert x.sharding.mesh == n["n"].sharding.mesh == small


def test_a_failed_remesh_changes_nothing() -> None:
    with data() as ds, loader(ds, mesh(**WHOLE)) as it:
        loop = iter(it)
        next(loop)
        with pytest.raises(mf.InvalidArgumentError) as e:
            it.remesh(mesh([0, 1, 2, 3, 4], data=5, model=1))
        assert str(e.value) == (
            'Loader.remesh: dimension 0 of array "x" of shape (24, 8) is split 5 ways by axis '
            '"data" (size 5), but 24 % 5 = 4; use a batch of 20 or 25'
        )
        with pytest.raises(mf.InvalidArgumentError, match='axis "model" of array "x" is not in'):
            it.remesh(Mesh(np.array(jax.devices()[:4]), ("data",)))
        with pytest.raises(mf.InvalidArgumentError, match=r"mesh=3: expected a jax.sharding.Mesh"):
            it.remesh(wrong(3))
        with pytest.raises(mf.NotFoundError, match="takes field 'y'"):
            it.remesh(mesh(**WHOLE), {"y": P()})
        check(next(loop), mesh(**WHOLE), it.records(0, 24))
    with pytest.raises(mf.InvalidStateError, match="the loader is closed"):
        it.remesh(mesh(**WHOLE))


def test_a_loader_without_a_mesh() -> None:
    for specs in (None, ["n"]):
        with data() as ds, mf.Loader(ds, specs=specs, batch_size=24) as it:
            with pytest.raises(mf.InvalidArgumentError) as e:
                it.remesh(mesh(**WHOLE))
            assert str(e.value) == (
                "Loader.remesh: this loader gives NumPy arrays, and has no mesh; "
                "give specs= too, or make another with state="
            )
            layout = it.layout
            first = next(iter(it))["n"]
            it.remesh(mesh(**WHOLE), {"n": P("data")})
            assert isinstance(first, np.ndarray)
            assert isinstance(next(iter(it))["n"], jax.Array)
    with data() as ds, mf.Loader(ds, layout=layout, process=0) as it:
        with pytest.raises(mf.InvalidArgumentError) as e:
            it.remesh(mesh(**WHOLE))
        assert str(e.value) == (
            "Loader.remesh: this loader simulates a process of a layout, and has no mesh; "
            "make another with layout=, process= and state="
        )


def test_threads_that_share_the_loader() -> None:
    with data() as ds, loader(ds, mesh(**WHOLE), epochs=6) as it:
        seen: list[tuple[int, ...]] = []
        failures: list[BaseException] = []

        def take() -> None:
            try:
                seen.extend(tuple(np.asarray(batch["n"]).tolist()) for batch in it)
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for where in [*MESHES.values()] * 4:
            it.remesh(mesh(**where))
        for thread in threads:
            thread.join()
        want = [tuple(it.records(e, 24 * s).tolist()) for e in range(6) for s in range(8)]
        assert (sorted(seen), failures) == (sorted(want), [])


class Device:
    """A device of a cluster with eight per process, with the attributes that planning reads."""

    platform = device_kind = "cpu"

    def __init__(self, number: int) -> None:
        self.id, self.process_index = number, number // 8


class Silent:
    """A store that the program's thread may not call."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _ask(self, *_: object) -> Any:
        if threading.current_thread() is threading.main_thread():
            self.asked.append("by the program")
        raise RuntimeError("the store is gone")

    set = get = try_get = delete = list = _ask


def test_a_job_is_joined_by_the_next_batch() -> None:
    hosts = np.array([Device(i) for i in range(64)])
    store = Silent()
    with data() as ds:
        more = {"coordinator": store, "name": "job"}
        with loader(ds, Mesh(hosts, ("data",)), {"n": P()}, **more) as it:
            it.remesh(Mesh(hosts.reshape(32, 2), ("data", "model")))
            it.remesh(Mesh(hosts, ("data",)))
            assert store.asked == []
            with pytest.raises(RuntimeError, match="the store is gone"):
                next(iter(it))
            assert store.asked == ["by the program"]


def test_a_mesh_of_this_process_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a job the next mesh may span processes, so the loader looks for the store."""
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    with data() as ds, loader(ds, mesh(**WHOLE)) as it:
        next(iter(it))
        with pytest.raises(mf.UnsupportedError, match="the mesh spans processes"):
            it.remesh(Mesh(np.array([Device(i) for i in range(24)]), ("data",)), {"n": P()})


def test_no_batch_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread gets no batch of a new position or mesh before the processes agree."""
    hosts = np.array([Device(i) for i in range(16)])
    with data() as ds:
        with loader(ds, Mesh(hosts, ("data",)), {"n": P()}, coordinator=Silent()) as it:
            locked = []
            moved = Cluster.moved

            def watch(self: Cluster, state: Any, call: str) -> None:
                locked.append("locked" in repr(it._engine.cursor.lock).split()[0])
                moved(self, state, call)

            monkeypatch.setattr(Cluster, "moved", watch)
            state = it.state()
            it.seek(epoch=1)
            it.restore(state)
            it.remesh(Mesh(hosts.reshape(8, 2), ("data", "model")))
            assert locked == [True] * 3


@pytest.mark.parametrize("coordinator", [False, Silent()], ids=["alone", "joined"])
def test_four_thousand_devices(coordinator: Any) -> None:
    hosts = np.array([Device(i) for i in range(4096)]).reshape(512, 8)
    order = np.random.default_rng(0)
    times = []
    with data() as ds:
        more = {"batch_size": 4096, "coordinator": coordinator, "remainder": "pad"}
        with loader(ds, Mesh(hosts, ("data", "model")), {"n": P("data")}, **more) as it:
            for _ in range(9):
                on = Mesh(order.permutation(hosts).reshape(1024, 4), ("data", "model"))
                began = time.perf_counter()
                it.remesh(on, {"n": P(("data", "model"))})
                times.append(time.perf_counter() - began)
            (mine,) = [p for p in it.layout.report()["processes"] if p["process"] == 0]
            assert sum(stop - start for start, stop in mine["rows"]) == 8
    assert min(times) < 20 * 0.01  # a bound for hangs; the promise is 10 ms
