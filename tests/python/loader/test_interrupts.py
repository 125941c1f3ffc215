"""Ctrl-C at every possible place, and `sys.exit`: no hang, and no lost batch or handle."""

from __future__ import annotations

import functools
import gc
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._feed.joined import JoinedCursor
from meshfeed._native import calls
from tests.python.conftest import flushed, released
from tests.python.interrupts import Step, Trial, in_package, next_place, raise_twice, trials
from tests.python.loader.test_remesh import Device, Silent
from tests.python.native.test_process import HANG, START, run, started
from tests.python.players import evidence

# A release that blocks until `go` is set, like one of a file that does not answer.
HELD = """
    from meshfeed._native import library
    lib = library.library()
    release, events, go = lib.mf_release, [], threading.Event()
    def held(handle, error):
        go.wait(20)
        events.append("released on " + threading.current_thread().name)
        return release(handle, error)
    def live():
        return lib.mf_live_handles()
    before = live()
    ds = mf.from_arrays({"x": np.arange(1000, dtype=np.int32)})
    it = mf.Loader(ds, batch_size=10)
    ds._handle._release = it._engine.cursor.handle._release = lib.mf_release = held
"""


@pytest.mark.parametrize("what", ["it", "ds"])
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_an_interrupt_does_not_wait_for_the_release(what: str, error: str) -> None:
    out = run(
        HELD
        + f"""
    batch = next(iter(it))
    try:
        with {what}: raise {error}
    except {error}: events.append("left")
    try: {what}.close(); next(iter({what})) if {what} is it else ds.fingerprint()
    except mf.InvalidStateError: events.append("closed")
    go.set()
    for thread in threading.enumerate():
        if thread.name == "meshfeed.release": thread.join()
    print(*events)
    it.close(); ds.close()
    print(live() - before, batch["x"][:3], library._releasing)
    """
    )
    events, after = out.splitlines()
    assert events == "left closed released on meshfeed.release"
    assert after == "0 [0 1 2] set()"


def test_another_error_waits_for_the_release() -> None:
    out = run(
        HELD
        + """
    go.set()
    try:
        with it: raise ValueError
    except ValueError: events.append("left")
    print(*events)
    """
    )
    assert out == "released on MainThread left\n"


def test_leaving_during_a_release_that_does_not_end() -> None:
    process = started(
        HELD
        + """
    go.wait = lambda seconds: time.sleep(600)
    with it: sys.exit(3)
    """
    )
    out, err = process.communicate(timeout=START + HANG)
    assert (process.returncode, out, err) == (3, "", "")


# ---- Ctrl-C at every place ----


def _source() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(400, dtype=np.int32)})


def _loader(source: mf.Dataset, ahead: int) -> mf.Loader:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    return mf.Loader(
        source, mesh, P("data"), batch_size=8, shuffle=True, device_prefetch=ahead, prefetch=4
    )


class On(NamedTuple):
    """The arguments of the functions."""

    loader: mf.Loader
    devices: mf.Devices
    source: mf.Dataset


def _remesh(on: On) -> None:
    on.loader.remesh(jax.make_mesh((2, 4), ("data", "model")))


def _export(on: On) -> None:
    shard = next(on.loader.place(on.devices))["x"].shards[0]
    np.asarray(shard)
    np.from_dlpack(shard)


def _with(on: On) -> None:
    with mf.Loader(on.source, batch_size=8) as other:
        next(iter(other))


class _RecordBatch:
    """Exports a record batch, and no stream."""

    def __arrow_c_array__(self) -> Any:
        return pa.record_batch({"x": pa.array(range(100), pa.int32())}).__arrow_c_array__()


def _delete(on: On) -> None:
    """Deletes objects: one by its last reference, and one as garbage."""
    cycle: list[Any] = [on.source.slice(0, 10)]
    cycle.append(cycle)
    del cycle
    gc.collect(0)
    on.source.slice(0, 20)


WORK: dict[str, Callable[[On], object]] = {
    "next": lambda on: next(iter(on.loader)),
    "with_state": lambda on: next(on.loader.with_state()),
    "peek": lambda on: on.loader.peek(),
    "peek and next": lambda on: (on.loader.peek(), next(iter(on.loader))),
    "seek": lambda on: on.loader.seek(epoch=1, position=40),
    "skip": lambda on: on.loader.skip(3),
    "restore": lambda on: on.loader.restore({**on.loader.state(), "position": 40}),
    "remesh": _remesh,
    "one_epoch": lambda on: next(on.loader.one_epoch(1)),
    "one_epoch padded": lambda on: next(on.loader.one_epoch(1, remainder="pad")),
    "place": lambda on: next(on.loader.place(on.devices)),
    "export": _export,
    "with": _with,
    "split": lambda on: on.source.split({"a": 0.5, "b": 0.5})["a"].fingerprint(),
    "delete": _delete,
    "record batch": lambda on: len(mf.from_arrow(_RecordBatch())),
}


TAKES = ("next", "with_state", "place")  # take one batch, the second one of the loader


def _continues(loader: mf.Loader, where: str) -> None:
    """Checks that the next batches begin at the position that the loader reports."""
    for _ in range(3):
        state = loader.state()
        expected = loader.records(state["epoch"], state["position"])
        batch = next(iter(loader))
        assert isinstance(batch["x"], jax.Array), where
        assert np.array_equal(np.asarray(batch["x"]), expected), where
    loader.seek(epoch=0)  # hangs if the interrupt left the loader locked


QUICK = {("next", 2), ("peek and next", 0), ("restore", 0), ("remesh", 0), ("export", 0)}
PLACES = [*((what, 0) for what in WORK), ("next", 2), ("seek", 2), ("skip", 2), ("place", 2)]


@pytest.mark.parametrize(
    ("what", "ahead"),
    [pytest.param(*at, marks=[] if at in QUICK else pytest.mark.deep) for at in PLACES],
)
def test_at_every_place(what: str, ahead: int) -> None:
    """The loader continues at the position that it reports, and nothing is left behind.

    The trial keeps the exception meanwhile, as a notebook keeps the last one.
    """
    with mf.devices("virtual:8") as devices, _source() as source:
        loaders: list[mf.Loader] = []

        def prepare() -> Callable[[], object]:
            loaders.append(_loader(source, ahead))
            next(iter(loaders[-1]))
            return functools.partial(WORK[what], On(loaders[-1], devices, source))

        n, before = 0, flushed()
        gc.freeze()  # so that a hundred collections are fast
        try:
            for trial in trials(prepare):
                n, where = n + 1, trial.where
                if what in TAKES and trial.raised_at() is not None:
                    assert loaders[-1].step == 1, f"a batch was lost at {where}"
                for loader in loaders:
                    _continues(loader, where)
                    loader.close()
                loaders.clear()
                del loader
                assert trial.arrived == (trial.caught is not None), f"lost at {where}"
                trial.caught = None
                for thread in threading.enumerate():
                    if thread.name == "meshfeed.release":
                        thread.join(HANG)
                assert released(before) == before, where
        finally:
            gc.unfreeze()
    assert n > 15


@pytest.mark.parametrize(("what", "ahead"), [("next", 2), ("with_state", 0)])
def test_a_signal_handler_sees_no_batch_that_next_has_not_returned(
    what: str, ahead: int, tmp_path: Path
) -> None:
    """A program may save its state in a handler that interrupts `next` at any place.

    A signal before any of several successive instructions is handled at the same place.
    """
    path, seen = tmp_path / "state.json", list[tuple[object, ...]]()
    at: Step | None = None

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal at
        at = in_package(frame)
        if at is None:  # `next` has returned
            return
        loader.save_state(path)
        certificate, stats, saved = loader.certificate(), loader.stats(), path.read_text()
        assert (certificate.last, json.loads(saved)) == ((0, 8), loader.state())
        seen.append((loader.state()["position"], loader.step, loader.epoch, stats["position"]))
        seen.append((loader.last.position, loader.remaining))

    with mf.devices("virtual:8") as devices, _source() as source:
        steps, places, n, arrived = list[Step](), 0, sys.maxsize, True
        while arrived:
            with _loader(source, ahead) as loader:
                first = next(iter(loader))
                work = functools.partial(WORK[what], On(loader, devices, source))
                trial = Trial(work, n, handler)
                assert loader.state()["position"] == 16
                assert first["x"].shape == (8,)
            assert set(seen) <= {(8, 1, 0, 8.0), (0, 49)}, n
            if not steps:  # the first trial finds the places
                n, steps = 0, trial.steps
                continue
            n, places, arrived = next_place(steps, n, at), places + 1, trial.arrived
    assert len(seen) > 100
    assert places > 50


CALLS: dict[str, Callable[[mf.Loader], object]] = {
    "next": lambda loader: next(iter(loader)),
    "restore": lambda loader: loader.restore(loader.state()),
}


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_signal_handler_repeat_no_batch(name: str, ahead: int) -> None:
    """A handler calls the loader at every instruction of `next`, which may refuse the call."""
    taken, refused = list[int](), 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal refused
        if not in_package(frame):  # `next` has returned
            return
        try:
            take(CALLS[name](loader))
        except mf.InvalidStateError:
            refused += 1

    def take(batch: Any) -> None:
        if batch is not None:
            taken.append(int(batch["x"][0]))

    with (
        _source() as source,
        mf.Loader(source, batch_size=8, epochs=-1, device_prefetch=ahead) as loader,
    ):
        loop, n, arrived = iter(loader), 0, True
        while arrived:
            arrived = Trial(lambda: take(next(loop)), n, handler).arrived
            take(next(loop))
            n += 1
    assert taken == [8 * i % 400 for i in range(len(taken))]
    assert refused > 50


@pytest.mark.parametrize(
    "handler", [pytest.param(signal.default_int_handler, marks=pytest.mark.deep), None]
)
@pytest.mark.parametrize("ahead", [0, 2])
def test_interrupts_in_a_row_lose_no_batch(
    handler: Callable[[int, FrameType | None], Any] | None, ahead: int
) -> None:
    """One interrupt, or two in a row, at every place of `next`, and one more in the next `next`."""

    before, expected, first, pairs = flushed(), 0, "", 0
    places = list[int]()

    def position() -> int:
        return loader.epoch * 50 + loader.step

    def interrupted(n: int) -> Callable[[], object]:
        nonlocal expected, first
        expected = position()
        trial = Trial(take, n, handler or raise_twice())
        first = trial.where
        check(trial)
        return take

    def check(trial: Trial) -> None:
        nonlocal expected
        expected += trial.raised_at() is None
        assert position() == expected, f"{trial.where}, first {first}"
        trial.caught = None  # the traceback holds the batch

    def take() -> None:
        next(loop)

    with (
        _source() as source,
        mf.Loader(source, batch_size=8, epochs=-1, device_prefetch=ahead) as loader,
    ):
        loop = iter(loader)
        for trial in trials(lambda: take):
            places.append(trial.n)
            trial.caught = None
        for n in places:
            for trial in trials(functools.partial(interrupted, n)):
                where, step = f"{trial.where}, first {first}", loader.step
                check(trial)
                assert int(next(loop)["x"][0]) == 8 * step, where
                pairs += 1
    assert pairs > 500
    assert released(before) == before


@pytest.mark.parametrize("name", ["next", "peek", "seek", "skip", "restore", "remesh"])
def test_a_signal_handler_does_not_move_inside_of_next(name: str) -> None:
    """A handler on the same thread would wait forever, or change the position of the batch."""
    with mf.devices("virtual:8") as devices, _source() as source, _loader(source, 0) as loader:
        calls_of, on = list[str](), On(loader, devices, source)

        def handler(number: int, frame: FrameType | None) -> None:
            with pytest.raises(mf.InvalidStateError) as e:
                WORK[name](on)
            calls_of.append(str(e.value))

        previous, fetch = signal.signal(signal.SIGUSR1, handler), loader._engine.cursor._fetch

        def interrupted(*, wait: bool) -> Any:
            signal.raise_signal(signal.SIGUSR1)
            return fetch(wait=wait)

        loader._engine.cursor._fetch = interrupted  # type: ignore[method-assign]
        try:
            batch = next(iter(loader))
        finally:
            signal.signal(signal.SIGUSR1, previous)
        expected = "a signal handler has called this inside of another call of the same loader; "
        expected += "set a flag in the handler, and make the call after the other one has returned"
        assert [text.partition(": ")[2] for text in calls_of] == [expected]
        assert np.array_equal(np.asarray(batch["x"]), loader.records(0, 0))
        assert loader.step == 1


def test_a_remesh_in_a_job_at_every_place() -> None:
    """After an interrupt all parts of the loader belong to the same mesh."""
    meshes = [Mesh(np.array([Device(i) for i in range(n)]), ("data",)) for n in (16, 32)]
    options: dict[str, Any] = {"batch_size": 32, "coordinator": Silent(), "prefetch": 0}
    loaders: list[mf.Loader] = []
    n = 0
    with _source() as source:

        def prepare() -> Callable[[], object]:
            loaders.append(mf.Loader(source, meshes[0], P("data"), **options))
            return lambda: loaders[-1].remesh(meshes[1])

        for trial in trials(prepare):
            n += 1
            for loader in loaders:
                engine = loader._engine
                cursor = engine.cursor
                assert isinstance(cursor, JoinedCursor)
                assert engine.batch.info == calls.loader_info(cursor.handle.value), trial.where
                assert cursor.feed is engine.batch.feed, trial.where
                joined = cursor._cluster
                assert joined is None or evidence(loader).layout == engine.batch.plan.document
                loader.close()
            loaders.clear()
    assert n > 15
    assert joined is not None
