"""An exception that ends the loop of one process ends the loops of the others."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._jobs import failures
from meshfeed._jobs.early import uncaught
from tests.python.players import HANG, Memory, heard, peers_of, players, threads, until


class BoomError(ValueError):
    """An error of the program."""


class NoTextError(Exception):
    """An error with an `__str__` that fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def leave(loader: mf.Loader, error: BaseException) -> None:
    """Ends a loader's block with an exception, which must be unchanged."""
    began = time.monotonic()
    with pytest.raises(type(error)) as raised, loader:
        raise error
    assert raised.value is error
    assert error.__context__ is None
    assert time.monotonic() - began < HANG


ENDS: list[tuple[BaseException, type[Exception], str]] = [
    (BoomError("the loss is nan"), ValueError, "BoomError: the loss is nan"),
    (KeyboardInterrupt(), Exception, "KeyboardInterrupt"),
    (SystemExit("out of budget"), Exception, "SystemExit: out of budget"),
    (SystemExit(3), Exception, "SystemExit: 3"),
    (StopIteration(7), Exception, "StopIteration: 7"),
    (UnicodeDecodeError("utf8", b"\xff", 0, 1, "odd"), Exception, "UnicodeDecodeError: 'utf8' co"),
    (ExceptionGroup("both", [BoomError()]), Exception, "ExceptionGroup: both (1 sub-exception)"),
    (FileNotFoundError(2, "none", "x.txt"), FileNotFoundError, "FileNotFoundError: [Errno 2] none"),
    (mf.InvalidStateError("the dataset is closed"), mf.InvalidStateError, "the dataset is closed"),
    (mf.PeerError("of another loader"), Exception, "of another loader"),
]


@pytest.mark.parametrize(("error", "kind", "text"), ENDS, ids=lambda v: type(v).__name__)
def test_the_program_fails(error: BaseException, kind: type[Exception], text: str) -> None:
    """An exception that ends one loop ends all loops with an error."""
    with players(prefetch=0) as job:
        job.step()
        leave(job.loaders[2], error)
        heard(job, 2)
        for p in (0, 1, 3):
            with pytest.raises(mf.PeerError) as e:
                list(job.loaders[p])
            assert str(e.value).startswith(f"mf.Loader: process 2, at epoch 0, step 1: {text}")
            assert isinstance(e.value, kind)
            assert not isinstance(e.value, StopIteration)
            assert (e.value.process, e.value.epoch, e.value.step) == (2, 0, 1)
    for thread in threading.enumerate():  # after Ctrl-C close does not wait
        if thread.name.startswith("meshfeed"):
            thread.join(HANG)
    assert threads() == []
    assert job.store.keys == {}


def test_long_texts_are_cut() -> None:
    """A message carries only the beginning of a long text."""
    with players() as job:
        job.step()
        leave(job.loaders[1], RuntimeError("x" * 100_000))
        heard(job, 1)
        with pytest.raises(mf.PeerError) as e:
            next(iter(job.loaders[0]))
        cut = "RuntimeError: " + "x" * (failures.LENGTH - len("RuntimeError: ") - 3) + "..."
        assert str(e.value) == f"mf.Loader: process 1, at epoch 0, step 1: {cut}"


@pytest.mark.parametrize(
    "error",
    [SystemExit(), SystemExit(0), GeneratorExit(), None],
    ids=lambda e: repr(e),
)
def test_an_end_in_good_order(error: BaseException | None) -> None:
    """A program that ends on purpose has departed, and not failed."""
    with players(epochs=1) as job:
        job.step()
        gone = job.loaders.pop(1)
        if error is None:
            with gone:
                pass
        else:
            leave(gone, error)
        until(lambda: all(peers_of(loader).departed for loader in job.loaders))
        assert all(peers_of(loader)._received is None for loader in job.loaders)
        text = "mf.Loader: process 1 has closed the loader after 1 batch, and this process "
        text += "takes another; end the loops of all processes at the same batch"
        assert [str(e) for e in job.step()] == [text] * 3


def test_one_failure_is_told_once() -> None:
    """Only the first failure of a process is reported."""
    with players() as job:
        job.step()
        peers_of(job.loaders[0]).report(mf.ReadError("a disk is gone"), 0, 1)
        told = {key: value for key, value in job.store.keys.items() if "/mailbox/" in key}
        calls = job.store.calls
        leave(job.loaders[0], BoomError())
        assert len(told) == 3
        assert {key: job.store.keys[key] for key in told} == told
        heard(job, 0)
        with pytest.raises(mf.PeerError, match="a disk is gone"):
            next(iter(job.loaders[1]))
        assert job.store.calls > calls  # of its departure


def test_before_the_first_batch() -> None:
    """Before the first batch mailboxes do not exist; the agreement will time out."""
    with players() as job:
        leave(job.loaders[1], BoomError())
        assert not any("/mailbox/" in key for key in job.store.keys)


@pytest.mark.parametrize("where", ["block", "next"])
def test_a_store_that_does_not_answer(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's exception is raised in bounded time, whatever the store does."""

    def fail(_: object) -> None:
        raise BoomError("x")

    monkeypatch.setattr("meshfeed._jobs.cluster.LEAVE", 0.05)
    stuck, go_on = threading.Event(), threading.Event()

    class Stuck(Memory):
        def set(self, key: str, value: bytes) -> None:
            if stuck.is_set():
                go_on.wait(HANG)
            super().set(key, value)

    with players(coordinator=Stuck(), verify_replicas="off") as job:
        job.step()
        stuck.set()
        began = time.monotonic()
        if where == "block":
            leave(job.loaders[0], BoomError("x"))
        else:
            inspector: Any = job.loaders[0]._engine.cursor._make
            inspector.make = fail
            with pytest.raises(BoomError):
                next(iter(job.loaders[0]))
        assert time.monotonic() - began < HANG / 2  # less than the store takes
        go_on.set()


@pytest.mark.parametrize("broken", ["text", "thread", "store"])
def test_nothing_hides_the_exception(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the report fails, the program still gets its own exception."""

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with players(verify_replicas="off", late_after=0.3) as job:
        job.step()
        watcher = peers_of(job.loaders[0])._thread
        with monkeypatch.context() as patch:
            if broken == "store":
                patch.setattr(job.store, "set", fail)
            if broken == "thread":
                patch.setattr(threading.Thread, "start", fail)
            leave(job.loaders[0], NoTextError() if broken == "text" else BoomError())
        watcher.join(HANG)
        assert not watcher.is_alive()


def test_a_loader_without_others_reports_nothing() -> None:
    """A loader without a cluster starts no thread when its block ends with an exception."""
    before = threads()
    ds = mf.from_arrays({"n": np.arange(8)})
    leave(mf.Loader(ds, batch_size=2), BoomError())
    assert threads() == before


def test_what_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter keeps an uncaught exception; at a prompt it does not end the program."""
    for name in ("ps1", "last_value"):
        monkeypatch.delattr(sys, name, raising=False)
    assert uncaught() is None
    boom = BoomError()
    monkeypatch.setattr(sys, "last_value", boom, raising=False)
    assert uncaught() is boom
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert uncaught() is None
