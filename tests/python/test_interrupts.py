"""Ctrl-C at every place where it can come, and `sys.exit`: nobody waits, and nothing is lost."""

from __future__ import annotations

import dis
import functools
import gc
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._feed.joined import JoinedCursor
from meshfeed._native import calls
from tests.python.conftest import flushed
from tests.python.test_process import HANG, START, run, started
from tests.python.test_remesh import Device, Silent

# A release that waits until it is let go, as it would for a file that does not answer.
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

_OPS = dis.opmap
_CALLS = {_OPS[name] for name in _OPS if name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX")}
_PACKAGE = str(Path(mf.__file__).parent)
_MODULES = """
    _native/calls _native/dlpack _native/handle _native/library _native/owner
    _feed/batches _feed/cursor _feed/engine _feed/position placed
"""
_WATCHED = {f"{_PACKAGE}/{name}.py" for name in _MODULES.split()}


class Interrupt:
    """Raises KeyboardInterrupt at the n-th place where Python looks for signals.

    That is at the beginning of every function and behind every call, in the modules where
    something may be lost.
    """

    def __init__(self, n: int) -> None:
        self.left, self.where = n, ""
        self._last: dict[int, int] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        caller = frame.f_back.f_code.co_name if frame.f_back else ""
        if frame.f_code.co_filename not in _WATCHED or "__del__" in (frame.f_code.co_name, caller):
            return None  # an exception in a finalizer is lost, whose ever it is
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last.pop(id(frame), None)  # of another one, which is gone
        return self._opcode

    def _opcode(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode" and self._hears(frame):
            if self.left == 0:
                self.where = f"{frame.f_code.co_qualname}, line {frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
            self.left -= 1
        return self._opcode

    def _hears(self, frame: FrameType) -> bool:
        code, at = frame.f_code, frame.f_lasti
        before, self._last[id(frame)] = self._last.get(id(frame), at), at
        if code.co_code[at] == _OPS["RESUME"]:
            return True
        # Behind a call is still within it, for what handles exceptions.
        behind_call = code.co_code[before] in _CALLS
        return behind_call and _handlers(code)[before] == _handlers(code)[at]


@functools.cache
def _handlers(code: CodeType) -> dict[int, tuple[int, ...]]:
    """Gives for every instruction the exception handlers that it stands in."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return {
        at: tuple(e.target for e in entries if e.start <= at < e.end)
        for at in range(0, len(code.co_code), 2)
    }


@functools.cache
def _source() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(400, dtype=np.int32)})


def _loader(ahead: int) -> mf.Loader:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    return mf.Loader(
        _source(), mesh, P("data"), batch_size=8, shuffle=True, device_prefetch=ahead, prefetch=4
    )


def _remesh(loader: mf.Loader, _: mf.Devices) -> None:
    loader.remesh(jax.make_mesh((2, 4), ("data", "model")))


def _export(loader: mf.Loader, devices: mf.Devices) -> None:
    shard = next(loader.place(devices))["x"].shards[0]
    np.asarray(shard)
    np.from_dlpack(shard)


def _with(loader: mf.Loader, _: mf.Devices) -> None:
    with mf.Loader(_source(), batch_size=8) as other:
        next(iter(other))


WORK: dict[str, Callable[[mf.Loader, mf.Devices], object]] = {
    "next": lambda loader, _: next(iter(loader)),
    "peek": lambda loader, _: loader.peek(),
    "peek and next": lambda loader, _: (loader.peek(), next(iter(loader))),
    "seek": lambda loader, _: loader.seek(epoch=1, position=40),
    "skip": lambda loader, _: loader.skip(3),
    "restore": lambda loader, _: loader.restore({**loader.state(), "position": 40}),
    "remesh": _remesh,
    "one_epoch": lambda loader, _: next(loader.one_epoch(1)),
    "one_epoch padded": lambda loader, _: next(loader.one_epoch(1, remainder="pad")),
    "place": lambda loader, devices: next(loader.place(devices)),
    "export": _export,
    "with": _with,
    "slice": lambda loader, _: _source().slice(0, 10).fingerprint(),
}


def _goes_on(loader: mf.Loader, where: str) -> None:
    """Checks that the next batches are those of the place that the loader names."""
    for _ in range(3):
        state = loader.state()
        expected = loader.records(state["epoch"], state["position"])
        batch = next(iter(loader))
        assert isinstance(batch["x"], jax.Array), where
        assert np.array_equal(np.asarray(batch["x"]), expected), where
    assert not loader._engine.cursor.lock.locked(), where


@pytest.mark.parametrize(
    ("what", "ahead"),
    [*((what, 0) for what in WORK), ("next", 2), ("seek", 2), ("skip", 2), ("place", 2)],
)
def test_at_every_place(what: str, ahead: int) -> None:
    """The loader goes on where it says that it stands, and nothing stays behind.

    The exception is kept while it does so, as a notebook keeps the last one.
    """
    _source()
    with mf.devices("virtual:8") as devices:
        before = flushed()
        gc.freeze()  # what a collection would look at in vain, a hundred times
        try:
            for n in itertools.count():
                loader, interrupt, kept = _loader(ahead), Interrupt(n), None
                next(iter(loader))
                sys.settrace(interrupt)
                try:
                    WORK[what](loader, devices)
                except KeyboardInterrupt as e:
                    kept = e
                finally:
                    sys.settrace(None)
                where = interrupt.where
                assert (kept is None) == (not where), f"lost at {where}"
                _goes_on(loader, where)
                loader.close()
                del loader, interrupt, kept
                for thread in threading.enumerate():
                    if thread.name == "meshfeed.release":
                        thread.join(HANG)
                assert flushed() == before, where
                if not where:
                    break
        finally:
            gc.unfreeze()
    assert n > 5
    _source.cache_clear()


def test_a_remesh_in_a_job_at_every_place() -> None:
    """The loader is on the old mesh or on the new one, with all that belongs to it."""
    meshes = [Mesh(np.array([Device(i) for i in range(n)]), ("data",)) for n in (16, 32)]
    for n in itertools.count():
        interrupt, kept = Interrupt(n), None
        options: dict[str, Any] = {"batch_size": 32, "coordinator": Silent(), "prefetch": 0}
        with mf.Loader(_source(), meshes[0], P("data"), **options) as loader:
            sys.settrace(interrupt)
            try:
                loader.remesh(meshes[1])
            except KeyboardInterrupt as e:
                kept = e
            finally:
                sys.settrace(None)
            where, engine = interrupt.where, loader._engine
            assert (kept is None) == (not where), f"lost at {where}"
            cursor = engine.cursor
            assert isinstance(cursor, JoinedCursor)
            assert engine.batch.info == calls.loader_info(cursor.handle.value), where
            assert cursor.feed is engine.batch.feed, where
            joined = cursor._cluster
            assert joined is None or joined._evidence.layout == engine.batch.document, where
        if not where:
            break
    assert n > 10
    assert joined is not None
    _source.cache_clear()
