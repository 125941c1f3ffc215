"""`mf.benchmark` against a simulated clock and device, so that every time is known."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._io.arguments import Checks
from meshfeed._measure import timing
from tests.python.simulated import BATCH, BYTES, ROWS, Machine, Result, swept


@pytest.mark.parametrize(
    ("times", "closed", "ms", "alone", "waited"),
    [
        # A fast input and a slow step: the step hides the input, unless the loop is closed.
        ((3, 20, 1), False, 20, 20, 3 / 20),
        ((3, 20, 1), True, 24, 21, 3 / 24),
        # A slow input and a fast step: the input hides the step.
        ((30, 5, 1), False, 31, 5, 30 / 31),
        ((30, 5, 1), True, 36, 6, 30 / 36),
        # The dispatch takes longer than the step.
        ((2, 1, 10), False, 12, 10, 2 / 12),
    ],
)
def test_both_regimes(
    machine: Callable[..., Machine],
    times: tuple[float, ...],
    closed: bool,
    ms: float,
    alone: float,
    waited: float,
) -> None:
    host = machine(*times)
    found = mf.benchmark(host.batches(), host.step, batches=10, closed=closed)
    assert (found.batches, found.warmup, found.closed) == (10, 5, closed)
    assert found.seconds == pytest.approx([ms / 1e3] * 10)
    assert found.wait_seconds == pytest.approx([times[0] / 1e3] * 10)
    assert (found.ms, *found.spread_ms) == pytest.approx((ms, ms, ms))
    assert found.waited == pytest.approx(waited)
    assert found.step_ms == pytest.approx(alone)
    assert found.faster == pytest.approx(ms / alone)
    assert found.rows_per_second == pytest.approx(1e3 * ROWS / ms)
    assert found.bytes_per_second == pytest.approx(1e3 * BYTES / ms)  # of all arrays
    assert found.first_batch_ms == pytest.approx(times[0])
    assert found.notes == []
    assert host.most == (1 if closed or times[1] < times[2] else 2)


def test_the_clock_runs_while_the_loop_waits(machine: Callable[..., Machine]) -> None:
    host = machine(7, 0, 0)
    found = mf.benchmark(host.batches(), batches=4, warmup=1)
    assert found.ms == pytest.approx(7)
    assert found.waited == pytest.approx(1)
    assert (found.step_ms, found.faster, found.first_step_ms) == (None, None, None)


@pytest.mark.parametrize("closed", [False, True])
def test_transfers_of_batches(machine: Callable[..., Machine], closed: bool) -> None:
    host = machine(3, 20, 1)

    def arriving() -> Iterator[Any]:
        for batch in host.batches():
            yield {**batch, "image": Result(host, host.now + 5)}  # is on its way for 5 ms

    assert mf.benchmark(arriving(), batches=3, closed=closed).ms == pytest.approx(8)
    step = mf.benchmark(arriving(), lambda _: host.step(BATCH), batches=3, closed=closed)
    assert step.wait_seconds == pytest.approx([0.008 if closed else 0.003] * 3)


def test_the_spread_and_the_mean(machine: Callable[..., Machine]) -> None:
    host = machine(0, 0, 0)

    def batches() -> Iterator[Any]:
        for ms in (500, 10, 20, 30, 40, 100):
            host.now += ms
            yield BATCH

    found = mf.benchmark(batches(), batches=5, warmup=1)
    assert (found.ms, *found.spread_ms) == pytest.approx((30, 20, 40))
    assert found.mean_ms == pytest.approx(40)
    assert found.rows_per_second == pytest.approx(5 * ROWS / 0.2)
    assert found.first_batch_ms == pytest.approx(500)


@pytest.mark.parametrize(
    ("there", "warmup", "batches", "notes"),
    [
        (56, 5, 50, []),
        (54, 5, 49, ["there were 54 batches instead of 55"]),
        (5, 2, 3, ["there were 5 batches instead of 55"]),
        (2, 1, 1, ["there were 2 batches instead of 55"]),
    ],
)
def test_a_short_generator(
    machine: Callable[..., Machine], there: int, warmup: int, batches: int, notes: list[str]
) -> None:
    host = machine(3, 20)
    found = mf.benchmark(host.batches(there), host.step)
    assert (found.warmup, found.batches, found.epochs, found.notes) == (warmup, batches, 1, notes)
    assert np.isfinite([found.ms, *found.spread_ms, found.waited, found.faster or 0]).all()


def test_a_single_batch(machine: Callable[..., Machine]) -> None:
    host = machine(3, 20)
    found = mf.benchmark(host.batches(1), host.step)
    assert found.seconds == pytest.approx([0.024])  # input, dispatch and step
    assert found.notes == [
        "there was 1 batch instead of 55",
        "the time of the only batch includes the compilation of the step",
    ]
    assert (found.step_ms, found.faster) == (None, None)


def test_no_batch() -> None:
    over = mf.Loader(mf.from_arrays(BATCH), batch_size=8, epochs=1)
    assert len(list(over)) == 1
    sources: list[Any] = [[], iter([]), over]
    for source in sources:
        with pytest.raises(mf.InvalidArgumentError, match=r"^mf\.benchmark: source=.*: expected"):
            mf.benchmark(source)


def test_an_iterable_begins_again(machine: Callable[..., Machine]) -> None:
    host = machine(3, 20)
    found = mf.benchmark([BATCH] * 4, host.step, batches=5, warmup=5)
    assert (found.batches, found.epochs, found.notes) == (5, 3, [])
    loader = mf.Loader(mf.from_arrays(BATCH), batch_size=2)
    assert mf.benchmark(loader, batches=9, warmup=1).epochs == 3
    assert (loader.epoch, loader.step) == (2, 2)
    ends = mf.Loader(mf.from_arrays(BATCH), batch_size=2, epochs=2)
    assert mf.benchmark(ends, batches=9, warmup=1).notes == ["there were 8 batches instead of 10"]


W = {"w": jnp.ones(3)}


@pytest.mark.parametrize("carry", [jnp.ones(3), W, (W, W), [1.0], (W, (W, 2.0))])
@pytest.mark.parametrize("pair", [False, True])
def test_a_step_gets_the_carry_that_it_returned(carry: Any, pair: bool) -> None:
    seen = []

    def step(state: Any, batch: Any) -> Any:
        seen.append(float(np.sum(jax.tree.leaves(state)[0])))
        new = jax.tree.map(lambda x: x + 1, state)
        return (new, {"loss": batch["image"].sum()}) if pair else new

    mf.benchmark([BATCH] * 9, step, carry=carry, batches=2, warmup=2)
    assert np.all(np.diff(seen) > 0)


def test_a_step_without_a_result(machine: Callable[..., Machine]) -> None:
    host = machine(3, 20, 2)

    def no_result(batch: Any) -> None:
        host.step(batch)

    found = mf.benchmark(host.batches(), no_result, batches=2)
    assert found.ms == pytest.approx(5)  # nothing that could be waited for


@pytest.mark.parametrize("pair", [False, True])
def test_a_step_may_donate_the_carry(pair: bool) -> None:
    def update(w: Any, batch: Any) -> Any:
        return (w + 1, batch["image"].sum()) if pair else w + 1

    step = jax.jit(update, donate_argnums=0)
    w = jnp.zeros(1024)
    found = mf.benchmark([BATCH] * 9, step, carry=w, batches=3, warmup=2)
    assert w.is_deleted()
    assert found.step_ms is not None


def test_a_donated_carry_is_waited_for_before_the_next_step(
    machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(3, 20, 1)
    alive: list[Result] = []

    def step(batch: Any) -> Result:  # deletes the result of the step before
        alive[:] = [host.step(batch)]
        return alive[0]

    monkeypatch.setattr(timing, "_deleted", lambda x: isinstance(x, Result) and x != alive[0])
    found = mf.benchmark(host.batches(), step, batches=5)
    assert found.ms == pytest.approx(21)  # the step and its dispatch; the input is hidden


def test_a_donated_batch_is_not_used_again() -> None:
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)

    def step(batch: Any) -> Any:
        return donating(batch["x"]) + batch["y"]

    source = ({"x": jnp.ones(1024), "y": jnp.ones(1024)} for _ in range(9))
    found = mf.benchmark(source, step, batches=3, warmup=1)
    assert (found.batches, found.step_ms, found.faster) == (3, None, None)


def test_a_carry_of_other_shapes() -> None:
    """The usual mistake is to return (loss, carry)."""
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.benchmark([BATCH] * 9, lambda w, _: (w.sum(), w), carry=jnp.ones((8, 3)))
    assert str(error.value) == (
        "mf.benchmark: the step took a carry of shape (8, 3), and returned () for it; "
        "return the new carry, or (carry, loss)"
    )


def step_of_three(params: Any, _states: Any, _batch: Any) -> Any:
    return params


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"carry": (1.0, 2.0)},
            r"expected a function step\(carry, batch\); a step of several values takes one tuple, "
            r"such as carry=\(params, states\)$",
        ),
        (
            {},
            r"expected a function step\(batch\); pass parameters as carry=, for a function "
            r"step\(carry, batch\)$",
        ),
    ],
)
@pytest.mark.parametrize("step", [step_of_three, jax.jit(step_of_three)])
def test_a_step_of_other_arguments(step: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mf.InvalidArgumentError, match=message):
        mf.benchmark([BATCH] * 9, step, **options)


def test_a_step_without_a_signature() -> None:
    assert mf.benchmark([BATCH] * 9, type, batches=2, warmup=2).batches == 2


def test_a_sweep_whose_function_returns_the_step_first() -> None:
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.benchmark.sweep(lambda n: (len, [BATCH] * n), {"n": [9]})
    assert str(error.value).startswith("mf.benchmark.sweep: make returned (<built-in function len>")
    assert str(error.value).endswith(
        "whose second value is not a function; return (loader, step) or (loader, step, carry)"
    )


@pytest.mark.parametrize(
    ("more", "second"),
    [((None, None, 1), False), ((len, 1.0, 2.0), False), ((), False), ((BATCH,), True)],
)
def test_a_sweep_whose_function_returns_other_values(more: tuple[Any, ...], second: bool) -> None:
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.benchmark.sweep(lambda n: (iter([BATCH] * n), *more), {"n": [9]})
    assert str(error.value).startswith("mf.benchmark.sweep: make returned (<list_iterator object")
    assert str(error.value).endswith("; return (loader, step) or (loader, step, carry)")
    assert ("whose second value is not a function" in str(error.value)) == second


def test_a_sweep_without_a_step(machine: Callable[..., Machine]) -> None:
    host = machine(3, 0)
    table = mf.benchmark.sweep(lambda n: (host.batches(n), None), {"n": [9]}, batches=4, warmup=1)
    assert [point.result.ms for point in table.points if point.result] == [pytest.approx(3)]


def test_a_sweep_shows_the_mean_that_its_rates_are_of(machine: Callable[..., Machine]) -> None:
    (point, *_) = swept(machine).points
    assert point.result is not None
    result = dataclasses.replace(point.result, mean_ms=80.0, ms=64.0, rows_per_second=100.0)
    table = mf.Sweep((dataclasses.replace(point, result=result),))
    assert str(table).splitlines()[1].split()[2:7] == ["80.0", "64.0", "to", "64.0", "100"]


def test_a_wrong_carry() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.benchmark([BATCH] * 9, lambda w, _: {"loss": w}, carry=1.0)
    assert str(caught.value) == (
        "mf.benchmark: the step returned {'loss': 1.0}, which is not a carry; return the new "
        "carry, in the structure of the one given, or (carry, loss)"
    )


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (BATCH, {}, r"source={'image': .*: expected a loader or an iterable of batches; a dict or"),
        (np.ones(3), {}, r"source=array\(.*: expected a loader or an iterable of batches; a dict"),
        (3, {}, r"source=3: expected a loader or an iterable of batches; a dict or an array is"),
        ([], {"step": 3}, r"step=3: expected a function of a batch, or None$"),
        ([], {"carry": 3}, r"carry is given without a step; pass step= too$"),
        ([], {"batches": 0}, r"batches=0: expected an integer from 1 to 2147483647$"),
        ([], {"warmup": 0}, r"warmup=0: expected an integer from 1 to 2147483647; the first batch"),
        ([], {"closed": 1}, r"closed=1: expected True or False$"),
    ],
)
def test_wrong_arguments(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mf.InvalidArgumentError, match=rf"^mf\.benchmark: {message}"):
        mf.benchmark(source, **options)


def test_an_error_of_the_step_is_the_users() -> None:
    with pytest.raises(ZeroDivisionError):
        mf.benchmark([BATCH], lambda _: 1 // 0)


def test_a_loader_of_grain() -> None:
    grain = pytest.importorskip("grain")
    source = grain.MapDataset.source(np.arange(80, dtype=np.int32)).batch(8)
    found = mf.benchmark(source, jax.jit(jnp.sum), batches=20, warmup=2)
    assert (found.batches, found.epochs, found.notes) == (20, 3, [])
    assert found.memory["batch"] is None  # NumPy arrays, on the host


# ---- what a batch has ----


class Tensor:
    """An array of another library. Its type has `size` as TensorFlow's do."""

    shape = (8, 3)
    dtype = type("DType", (), {"size": 2})()


@pytest.mark.parametrize(
    ("batch", "rows", "size"),
    [
        (BATCH, ROWS, BYTES),
        (np.ones((8, 2), np.uint8), 8, 16),
        ((np.ones((8, 2), np.uint8), [np.ones(8, np.int64)]), 8, 80),
        ({"a": {"b": np.ones((8, 2), np.uint8)}, "step": np.int64(3)}, 8, 24),
        ([Tensor(), Tensor()], 8, 96),
        ({"text": ["a", "b"], "ids": np.ones((2, 4), np.int32)}, 2, None),
        ({"a": np.ones(3, np.uint8), "b": np.ones(4, np.uint8)}, None, 7),
        ({"none": None}, None, 0),
    ],
)
def test_rows_and_bytes(
    machine: Callable[..., Machine], batch: Any, rows: int | None, size: int | None
) -> None:
    host = machine(0, 0, 0)

    def batches() -> Iterator[Any]:
        while True:
            host.now += 1000
            yield batch

    found = mf.benchmark(batches(), batches=2, warmup=1)
    assert (found.rows_per_second, found.bytes_per_second) == (rows, size)
    assert (found.notes == []) == (rows is not None)


def test_micro_batches_count_their_rows(machine: Callable[..., Machine]) -> None:
    machine(0, 0, 0)
    data = mf.from_arrays({"x": np.ones((64, 3), np.float32)})
    loader = mf.Loader(data, batch_size=(4, 8))
    loop = timing.Loop(Checks("mf.benchmark"), loader, None, None, closed=False)
    assert [(lap.rows, lap.bytes) for lap in loop.laps(iter(loader), 9)] == [(32, 384)] * 2


def test_memory_of_a_device() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    data = mf.from_arrays({"x": np.ones((16, 8), np.float32), "y": np.ones(16, np.uint8)})
    loader = mf.Loader(data, mesh, {"x": P("data", "model"), "y": P()}, batch_size=8)
    w = jax.device_put(np.ones(16, np.float32), NamedSharding(mesh, P("model")))
    found = mf.benchmark(loader, lambda w, _: w, carry=w, batches=1, warmup=1)
    assert found.memory == {"batch": 2 * 4 * 4 + 8, "carry": 32, "peak": None, "limit": None}


def test_memory_that_the_device_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(stats: dict[str, int] | None) -> Any:
        return type("Device", (), {"memory_stats": lambda _: stats})()

    devices = [device(None), device({}), device({"peak_bytes_in_use": 7, "bytes_limit": 9})]
    monkeypatch.setattr(timing, "_per_device", lambda _: dict.fromkeys(devices, 5))
    found = mf.benchmark([BATCH] * 2, batches=1, warmup=1)
    assert found.memory == {"batch": 5, "carry": 5, "peak": 7, "limit": 9}


# ---- texts ----


def test_text(machine: Callable[..., Machine]) -> None:
    host = machine(3, 20)
    found = mf.benchmark(host.batches(40), host.step)
    assert str(found) == (
        "35 batches after 5 to warm up, pipelined\n"
        "  time        20.0 ms per batch, median 20.0 ms (half of them 20.0 to 20.0 ms)\n"
        "  throughput  400 rows/s, 8.00 kB/s\n"
        "  waiting     15.0 % of the time; the step alone takes 20.0 ms; "
        "without the input 1.00 times as fast\n"
        "  first       batch 3.00 ms, step 1.00 ms\n"
        "  note        there were 40 batches instead of 55"
    )
    assert str(found) in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["rows_per_second"] == pytest.approx(400)


def test_text_without_a_step(machine: Callable[..., Machine]) -> None:
    found = mf.benchmark(machine(2, 0).batches(), batches=1, warmup=1)
    assert str(found) == (
        "1 batch after 1 to warm up, without a step\n"
        "  time        2.00 ms per batch\n"
        "  throughput  4,000 rows/s, 80.0 kB/s\n"
        "  first       batch 2.00 ms"
    )


# ---- sweeps ----


def test_a_sweep_keeps_the_points_that_did_not_fail(machine: Callable[..., Machine]) -> None:
    table = swept(machine)
    assert repr(table) == "Sweep(6 points, 1 failed)"
    assert str(table) == (
        "devices  rows  ms per batch  half of them  rows/s     MB/s  waited  MB per device\n"
        "      1     8          64.0  64.0 to 64.0     125  0.00250   2.0 %\n"
        "      1    16           128    128 to 128      62  0.00125   1.0 %\n"
        "      2     8          32.0  32.0 to 32.0     250  0.00500   4.1 %\n"
        "      2    16        failed\n"
        "      4     8          16.0  16.0 to 16.0     500   0.0100   8.1 %\n"
        "      4    16          32.0  32.0 to 32.0     250  0.00500   4.1 %\n"
        "failed: devices=2, rows=16: RuntimeError: no memory"
    )
    failed = table.points[3]
    assert failed.result is None
    assert "in make" in (failed.traceback or "")
    assert str(table) in table._repr_html_()
    document = json.loads(json.dumps(table.to_dict()))["points"]
    assert document[3]["error"] == "RuntimeError: no memory"
    assert document[0]["values"] == {"devices": 1, "rows": 8}
    assert document[0]["result"]["batches"] == 4


def test_a_sweep_over_meshes_closes_its_loaders() -> None:
    data, made = mf.from_arrays({"x": np.ones((16, 8), np.float32)}), []

    def make(mesh: Any) -> Any:
        made.append(mf.Loader(data, mesh, P("data"), batch_size=8))
        return made[-1], jax.jit(lambda batch: batch["x"].sum()), None

    meshes = [jax.make_mesh((n, 8 // n), ("data", "model")) for n in (2, 8)]
    table = mf.benchmark.sweep(make, [{"mesh": mesh} for mesh in meshes], batches=2, warmup=1)
    assert [line.split("  ")[0].strip() for line in str(table).splitlines()[1:]] == [
        "data 2 x model 4",
        "data 8 x model 1",
    ]
    assert [p.result.memory["batch"] for p in table.points if p.result] == [128, 32]
    for loader in made:
        with pytest.raises(mf.InvalidStateError):
            next(iter(loader))


def test_a_sweep_in_which_all_points_fail() -> None:
    def make(n: int) -> Any:
        raise ValueError(f"no {n}")

    with pytest.raises(ValueError, match=r"^no 1$"):
        mf.benchmark.sweep(make, {"n": [1, 2]})


def test_a_sweep_is_interrupted() -> None:
    def make(n: int) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mf.benchmark.sweep(make, {"n": [1, 2]})


@pytest.mark.parametrize(
    ("make", "points", "message"),
    [
        (3, {"n": [1]}, "make=3: expected a function that returns a loader; such as: def make"),
        (list, {"n": 1}, "points={'n': 1}: expected the values of every argument; such as {"),
        (list, {"n": []}, "points={'n': []}: expected at least one point; such as {"),
        (list, {}, "points={}: expected at least one point; such as {"),
        (list, [{"n": 1}, {"m": 1}], "points=[{'n': 1}, {'m': 1}]: expected the same arguments"),
    ],
)
def test_wrong_arguments_of_a_sweep(make: Any, points: Any, message: str) -> None:
    with pytest.raises(
        mf.InvalidArgumentError, match=rf"^mf\.benchmark\.sweep: {re.escape(message)}"
    ):
        mf.benchmark.sweep(make, points)
