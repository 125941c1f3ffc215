"""Batches of other loaders, which a thread reads ahead and places."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._native import library
from tests.python.arrays.putting import grid, is_within, memory
from tests.python.interrupts import trials
from tests.python.loader.test_traced import TRACED

P = PartitionSpec
HANG = 20.0  # seconds; twenty times what a close may take


def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "meshfeed.place_batches"]


def over() -> None:
    """Waits until no thread reads ahead."""
    until(lambda: not readers())


def place(source: Any, **options: Any) -> mf.PlacedBatches:
    return mf.place_batches(source, grid(4, 2), P("a"), **options)


def number(batch: Any) -> int:
    return int(np.asarray(batch)[0])


def batch(n: int) -> Any:
    return np.full(8, n, np.int32)


class Source:
    """An endless generator that records what happens to it."""

    def __init__(self, end: int = 2**31, error: BaseException | None = None) -> None:
        self.made, self.closed = 0, False
        self._end, self._error = end, error

    def has_made(self, number: int) -> bool:
        return self.made == number

    def __iter__(self) -> Iterator[Any]:
        try:
            while self.made < self._end:
                self.made += 1
                yield batch(self.made - 1)
            if self._error is not None:
                raise self._error
        finally:
            self.closed = True


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_batches_come_in_order_and_end(prefetch: int) -> None:
    source = Source(20)
    with place(source, prefetch=prefetch) as batches:
        got = list(batches)
    assert [number(x) for x in got] == list(range(20))
    assert got[0].sharding == NamedSharding(grid(4, 2), P("a"))
    assert source.closed
    over()


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_no_more_than_prefetch_batches_are_read_ahead(prefetch: int) -> None:
    source = Source()
    with place(source, prefetch=prefetch) as batches:
        for taken in range(1, 8):
            next(batches)
            until(partial(source.has_made, taken + prefetch))
        time.sleep(0.05)  # the thread waits now
        assert source.made == 7 + prefetch
    assert source.closed


def test_without_prefetch_nothing_is_read_ahead() -> None:
    source = Source()
    batches = place(iter(source), prefetch=0)
    assert ([number(next(batches)) for _ in range(3)], source.made) == ([0, 1, 2], 3)
    assert readers() == []
    batches.close()
    assert source.closed
    with pytest.raises(StopIteration):
        next(batches)


# ---- loops ----


def test_an_iterable_is_read_anew_by_every_loop() -> None:
    source = [batch(n) for n in range(3)]
    with place(source) as batches:
        assert len(batches) == 3
        assert [number(x) for x in batches] == [0, 1, 2]
        pairs = [(number(a), number(b)) for a in batches for b in batches]
        assert pairs == [(a, b) for a in range(3) for b in range(3)]
        assert number(next(batches)) == 0
        assert number(next(batches)) == 1


def test_an_iterator_is_read_once() -> None:
    with place(iter(Source(5))) as batches:
        assert number(next(batches)) == 0
        for x in batches:
            assert number(x) == 1
            break
        assert [number(x) for x in batches] == [2, 3, 4]
        assert list(batches) == []
        with pytest.raises(TypeError, match=r"^an object of type generator has no len\(\)$"):
            len(batches)


def test_a_sequence_without_iter_is_an_iterable() -> None:
    class Items:
        def __getitem__(self, i: int) -> Any:
            if i == 3:
                raise IndexError
            return batch(i)

    assert [number(x) for x in place(Items())] == [0, 1, 2]


@pytest.mark.parametrize("way", ["break", "with", "delete", "close", "error"])
def test_a_loop_that_is_left_early_ends_its_thread(way: str) -> None:
    source = Source()
    if way == "break":
        for _ in place(source):
            break
    elif way == "with":
        with place(source) as batches:
            for _ in batches:
                break
    elif way == "delete":
        batches = place(source)
        next(batches)
        del batches
    elif way == "close":
        batches = place(source)
        next(batches)
        batches.close()
        batches.close()
        with pytest.raises(mf.InvalidStateError) as caught:
            iter(batches)
        assert str(caught.value) == "mf.place_batches: the batches are closed; call it again"
    else:
        with pytest.raises(ZeroDivisionError), place(source) as batches:
            raise ZeroDivisionError(next(batches))
    gc.collect()
    over()
    until(lambda: source.closed)


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("kind", [list, iter])
def test_a_loop_after_the_close_is_an_error(kind: Callable[[Any], Any], prefetch: int) -> None:
    """A loop that has begun ends, as a loop over a closed generator does."""
    batches = place(kind([batch(n) for n in range(5)]), prefetch=prefetch)
    loop = iter(batches)
    next(loop)
    batches.close()
    with pytest.raises(StopIteration):
        next(loop)
    for _ in range(2):
        with pytest.raises(mf.InvalidStateError) as caught:
            list(batches)
        assert str(caught.value) == "mf.place_batches: the batches are closed; call it again"


def test_batches_outlive_the_loop() -> None:
    with place(Source()) as batches:
        kept = [next(batches) for _ in range(6)]
    gc.collect()
    assert [number(x) for x in kept] == list(range(6))


def test_an_iterable_may_reuse_the_memory_of_its_batches() -> None:
    host = memory((8, 64))

    def source() -> Iterator[Any]:
        for n in range(20):
            host[...] = n
            yield host

    with place(source()) as batches:
        assert [set(np.asarray(x).flat) for x in batches] == [{n} for n in range(20)]


def test_memory_is_shared_if_it_may_be() -> None:
    hosts = [memory((8, 64)) for _ in range(3)]
    with place(hosts, may_alias=True) as batches:
        for placed, host in zip(batches, hosts, strict=True):
            assert is_within(placed, host)


def test_batches_of_grain() -> None:
    """A data set, with loops that start again, and its iterator."""
    import grain

    rows = [{"x": np.arange(4) + n, "n": n} for n in range(32)]
    loader = grain.MapDataset.source(rows).shuffle(seed=1).batch(8)
    specs = {"x": P("a", "b"), "n": P("a")}
    with mf.place_batches(loader, grid(4, 2), specs) as batches:
        for _ in range(2):
            for placed, want in zip(batches, loader, strict=True):
                assert np.array_equal(np.asarray(placed["x"]), want["x"])
                assert np.array_equal(np.asarray(placed["n"]), want["n"])
        assert len(batches) == 4
    with mf.place_batches(iter(loader.to_iter_dataset()), grid(4, 2), specs) as batches:
        assert len(list(batches)) == 4


# ---- errors ----


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("error", [ValueError("broken"), KeyError("x"), SystemExit(3)], ids=repr)
def test_an_exception_comes_in_the_place_of_its_batch(prefetch: int, error: BaseException) -> None:
    batches = iter(place(Source(3, error), prefetch=prefetch))
    assert [number(next(batches)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(type(error)) as caught:
        next(batches)
    assert caught.value is error
    trace = traceback.extract_tb(caught.value.__traceback__)
    assert (trace[-1].name, trace[-1].line) == ("__iter__", "raise self._error")
    with pytest.raises(StopIteration):
        next(batches)
    over()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_that_cannot_be_placed_is_an_error_in_its_place(prefetch: int) -> None:
    source = [{"x": batch(0)}, {"x": np.zeros(6)}]
    loop = iter(place(source, prefetch=prefetch))
    next(loop)
    with pytest.raises(mf.InvalidArgumentError) as caught:
        next(loop)
    assert str(caught.value).startswith(
        'mf.place_batches: dimension 0 of array "x" of shape (6,) is split 4 ways by axis "a"'
    )
    over()


def test_an_iterable_whose_iter_fails() -> None:
    class Broken:
        def __iter__(self) -> Iterator[Any]:
            raise OSError("no such stream")

    with pytest.raises(OSError, match="no such stream"):
        next(place(Broken()))


def test_a_generator_that_fails_when_it_is_closed_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Iterator[Any]:
        try:
            while True:
                yield batch(0)
        finally:
            raise OSError("cannot close")

    batches = place(broken())
    next(batches)
    batches.close()
    over()
    assert "the generator that was read failed when it was closed" in caplog.text
    assert "cannot close" in caplog.text


@pytest.mark.parametrize(
    ("iterable", "text"),
    [
        (
            {"x": batch(0)},
            "iterable={'x': array([0, 0, 0, 0, 0, 0, 0, 0], dtype=int32)}: expected an iterable "
            "of batches; mf.put places one batch",
        ),
        ("abc", "iterable='abc': expected an iterable of batches; mf.put places one batch"),
        (3, "iterable=3: expected an iterable of batches"),
    ],
)
def test_things_that_are_no_iterable_of_batches(iterable: Any, text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        place(iterable)
    assert str(caught.value) == f"mf.place_batches: {text}"


def test_wrong_arguments_are_errors_at_once() -> None:
    for options in ({"prefetch": -1}, {"prefetch": 1.5}, {"rows": "mine"}, {"may_alias": 3}):
        with pytest.raises(mf.InvalidArgumentError):
            place([], **options)


@pytest.mark.parametrize(
    ("mesh", "specs", "text"),
    [
        (2, None, "specs are missing; give one spec for all arrays, such as PartitionSpec("),
        (P("a"), None, "specs are missing; the mesh is a spec, so write specs= before it"),
        (
            None,
            P("a"),
            "a PartitionSpec was given without a mesh; pass mesh=, or call jax.set",
        ),
        ("mesh", P("a"), "mesh='mesh': expected a jax.sharding.Mesh"),
        (2, "a", "specs have the leaf 'a'; a spec is written PartitionSpec('a')"),
        (2, P("z"), 'axis "z" of the specs is not in Mesh(\'a\': 2); use "a"'),
        (2, {"x": [P("z")]}, 'axis "z" of array "x/0" is not in Mesh(\'a\': 2); use "a"'),
        (2, P("a", "a"), 'axis "a" partitions dimension 0 and dimension 1 of the specs; an'),
        (2, P(("a", "a")), 'axis "a" partitions dimension 0 twice of the specs; an'),
        (2, P(P.UNCONSTRAINED), f"{P(P.UNCONSTRAINED)} leaves a dimension unconstrained"),
        (2, {"x": P(), 1: P()}, "the keys of the dict specs are of the types int, str; JAX "),
    ],
    ids=str,
)
def test_specs_that_fit_no_batch_are_errors_at_once(mesh: Any, specs: Any, text: str) -> None:
    with pytest.raises(mf.Error) as caught:
        mf.place_batches([], grid(2) if mesh == 2 else mesh, specs)
    assert str(caught.value).startswith(f"mf.place_batches: {text}")


def test_shardings_of_two_meshes_are_an_error_at_once() -> None:
    with pytest.raises(mf.InvalidArgumentError, match="the arrays are on two meshes, "):
        mf.place_batches([], grid(2), {"x": NamedSharding(grid(4), P())})


@pytest.mark.parametrize("specs", [{}, {"x": None}, [P(), P("a", None)], {"x": P(("a", "b"))}])
def test_specs_that_may_fit_a_batch_are_no_errors(specs: Any) -> None:
    mf.place_batches([], grid(4, 2), specs)


# ---- contexts ----


def test_the_thread_places_as_the_caller_would() -> None:
    """The mesh and x64 come from the call, which are local to its thread."""
    mesh = grid(8)
    with jax.set_mesh(mesh), jax.enable_x64(True):
        batches = mf.place_batches([np.arange(8)], specs=P("a"))
    got = next(batches)
    assert (got.dtype, got.sharding.mesh) == (np.int64, mesh)
    on = NamedSharding(grid(4), P("a"))
    with jax.set_mesh(mesh):  # not the mesh of these shardings
        assert next(mf.place_batches([np.arange(8)], specs=on)).sharding is on


@pytest.mark.parametrize("way", TRACED)
def test_a_batch_cannot_become_part_of_a_program(way: str) -> None:
    with place(Source()) as batches:
        with pytest.raises(mf.InvalidStateError) as caught:
            TRACED[way](lambda x: x * number(next(batches)))
        assert str(caught.value).startswith("mf.place_batches: a batch was asked for inside of a")
        assert number(next(batches)) == 0


# ---- threads, Ctrl-C, fork and exit ----


@pytest.mark.parametrize("prefetch", [1, 4])
def test_threads_share_a_loop_and_lose_nothing(prefetch: int) -> None:
    seen: list[int] = []
    loop = iter(place(Source(200), prefetch=prefetch))
    takers = [
        threading.Thread(target=lambda: seen.extend(number(x) for x in loop)) for _ in range(6)
    ]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join(HANG)
    assert sorted(seen) == list(range(200))
    over()


def test_closing_ends_a_wait_on_another_thread() -> None:
    blocked, taken = threading.Event(), list[Any]()

    def source() -> Iterator[Any]:
        blocked.wait()
        yield batch(0)

    batches = place(source())
    taker = threading.Thread(target=lambda: taken.extend(batches))
    taker.start()
    until(lambda: bool(readers()))
    closer = threading.Thread(target=batches.close)
    closer.start()
    taker.join(HANG)
    assert not taker.is_alive()
    closer.join(HANG)  # it waits for the source for a second, and no longer
    assert not closer.is_alive()
    blocked.set()
    over()
    assert taken == []


def test_ctrl_c_ends_a_wait_at_once() -> None:
    release = threading.Event()

    def source() -> Iterator[Any]:
        yield batch(0)
        release.wait()

    def interrupt() -> None:
        until(waiting.is_set)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    waiting = threading.Event()
    sender = threading.Thread(target=interrupt)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with place(source()) as batches:
            next(batches)
            sender.start()
            began = time.monotonic()
            waiting.set()
            raise AssertionError(next(batches))
    except KeyboardInterrupt:
        assert time.monotonic() - began < 20 * 0.2
    finally:
        signal.signal(signal.SIGINT, usual)
    sender.join()
    release.set()
    over()


def test_ctrl_c_at_any_point_leaves_a_loop_that_goes_on() -> None:
    """Ctrl-C may lose the batch that is being taken."""
    with place(iter(Source()), prefetch=1) as batches:
        last, places = number(next(batches)), 0
        assert batches._own is not None
        stream = batches._own._stream
        assert stream is not None
        for trial in trials(lambda: lambda: next(batches)):
            places += trial.caught is not None
            until(lambda: not stream._channel.items.empty())
            before, last = last, number(next(batches))
            assert last > before, trial.where
    assert places > 3


HEAD = """
import os, sys, threading, time
os.environ["JAX_NUM_CPU_DEVICES"] = "2"
import jax, numpy as np, meshfeed as mf
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2,), ("a",))
def endless(wait=None):
    n = 0
    while True:
        yield np.full(8, n)
        n += 1
        if wait is not None and n > 2: wait.wait()
"""


def run(body: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize(
    "body",
    [
        "batches = mf.place_batches(endless(), mesh, P('a')); next(batches)",
        "batches = mf.place_batches(endless(threading.Event()), mesh, P('a')); next(batches)",
        "batches = mf.place_batches(endless(), mesh, P('a'), prefetch=100); next(batches)",
        "batches = [mf.place_batches(endless(), mesh, P('a')) for _ in range(20)]; "
        "list(map(next, batches))",
        "sys.cycle = batches = mf.place_batches(endless(), mesh, P('a')); next(batches); "
        "batches.self = batches",
        "host = np.ones((8, 64)); host.setflags(write=False); "
        "held = [mf.put({'x': host, 'y': n * host}, mesh, P('a')) for n in range(4)]",
    ],
    ids=["waits", "blocked", "runs", "many", "cycle", "arrays"],
)
def test_the_exit_waits_for_no_iterable(body: str) -> None:
    assert run(f"{body}; print('ok')") == "ok\n"


def test_the_exit_closes_generators() -> None:
    assert (
        run("""
        def source():
            try:
                yield from endless()
            finally:
                print("closed")
        batches = mf.place_batches(source(), mesh, P("a"))
        next(batches)
        """)
        == "closed\n"
    )


def test_a_forked_child_gets_an_error_and_drops_what_it_inherits() -> None:
    out = run("""
        import warnings; warnings.simplefilter("ignore")
        batches = mf.place_batches(endless(), mesh, P("a"))
        next(batches)
        for _ in range(2):
            mf.put(np.ones(8), mesh, P("a"))
        sys.stdout.flush()
        if (pid := os.fork()) == 0:
            for call in (lambda: next(batches), lambda: mf.put(np.ones(8), mesh, P("a"))):
                try: call()
                except mf.ForkedError as e: print(e)
            batches.close()
            del batches
            sys.stdout.flush(); os._exit(0)
        print(os.waitpid(pid, 0)[1], int(np.asarray(next(batches))[0]))
    """)
    first, second, last = out.splitlines()
    assert first.startswith("mf.place_batches: the thread that reads ahead does not exist in a")
    assert second.startswith("mf.put: the library was loaded before fork()")
    assert last == "0 1"


def test_nothing_is_left_in_the_library() -> None:
    lib = library.library()
    before = lib.mf_live_handles()
    with place(Source()) as batches:
        for _ in range(10):
            next(batches)
    assert lib.mf_live_handles() <= before + 1
