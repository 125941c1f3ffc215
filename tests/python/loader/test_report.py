"""`Loader.report` finds what limits a loop."""

from __future__ import annotations

import json
import re
import threading
import time
import unittest.mock
import weakref
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._feed import clock
from meshfeed._feed.feed import Feed
from meshfeed._feed.sampling import Sample, Samples
from tests.python.native.test_process import HANG, START, started
from tests.python.slowfile import served

FIELDS = {"x": np.zeros((512, 4), np.float32)}


def usual(
    measured: Callable[[], mf.Report], expected: Callable[[mf.Report], bool], runs: int = 10
) -> mf.Report:
    """Returns an expected report. Another program may disturb all other runs."""
    for _ in range(runs):
        if expected(report := measured()):
            return report
    pytest.fail(f"{report.to_dict()}\n{report}")


def test_a_slow_step() -> None:
    def measured() -> mf.Report:
        with mf.Loader(ds, batch_size=16) as loader:
            for _ in loader:
                time.sleep(0.02)  # the step
            return loader.report()

    with mf.from_arrays(FIELDS) as ds:
        report = usual(measured, lambda report: report.waited < 0.05 and report.faster > 2)
    assert (report.bound, report.change, report.action) == ("step", None, "nothing")
    assert report.batches == 30
    found = re.findall(r"[0-9.,]+ times as fast", " ".join(report.sentences[1:]))
    assert len(found) == 2
    assert found[0] == found[1]
    assert report.sentences[2].startswith("Nothing to change: the input alone is ")


def test_many_small_arrays_on_many_devices() -> None:
    data = {f"x{i}": np.zeros((4096, 2), np.int32) for i in range(32)}
    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def measured() -> mf.Report:
        with mf.Loader(ds, mesh, P("data"), batch_size=8, epochs=-1) as loader:
            batches = iter(loader)
            for _ in range(100):
                next(batches)
            return loader.report()

    change = "batch_size", 128
    with mf.from_arrays(data) as ds:
        usual(measured, lambda report: (report.bound, report.change) == ("hand-over", change))


def test_the_report_counts_the_arrays_that_can_be_combined() -> None:
    """They have equal type, shape and partition. A mask is not a field."""
    one = np.zeros((64, 4), np.float32)
    for fields, specs, want in (
        ({"image": one, "label": np.zeros(64, np.int32)}, P("data"), 0),
        ({"a": one, "b": one, "c": one, "d": one[:, :2]}, P("data"), 2),
        ({"a": one, "b": one}, {"a": P("data"), "b": P()}, 0),
    ):
        options: dict[str, Any] = {"remainder": "pad", "extras": ("record",)}
        mesh = jax.make_mesh((2,), ("data",))
        with mf.from_arrays(fields) as ds:
            with mf.Loader(ds, mesh, specs, batch_size=24, **options) as loader:
                measured = loader._engine.measurements()
        assert measured["combinable"] == want, (fields.keys(), specs)
        assert measured["arrays"] == len(fields) + 2
    table = pa.table({"tokens": [[1, 2], [3]], "id": pa.array([1, 2], pa.int64())})
    with mf.from_arrow(table).pad("tokens", length=2) as ds:  # tokens_length is in no file
        with mf.Loader(ds, batch_size=2) as loader:
            assert loader._engine.measurements()["combinable"] == 0


def test_a_compressed_file(tmp_path: Path) -> None:
    def measured() -> mf.Report:
        one_of_each = np.arange(0, len(table), 16)  # so that copying takes little time
        with mf.open(path) as ds, mf.Loader(ds.take(one_of_each), batch_size=2) as loader:
            for _ in loader:
                pass
            return loader.report()

    values = np.random.default_rng(0).integers(0, 16, 40 << 20, np.uint8)  # slow to decode
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(values, 1 << 16)})
    for name in ("zstd", None):
        options = pyarrow.ipc.IpcWriteOptions(compression=name)
        path = tmp_path / f"{name}.arrow"
        with pyarrow.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=16)
        if name is None:  # what the advice asks for
            usual(measured, lambda report: report.bound != "decode", runs=3)
        else:
            report = usual(measured, lambda report: report.bound == "decode")
            assert report.action == "write-uncompressed"
            assert report.faster > 1


@jax.jit
def compute(x: jax.Array) -> jax.Array:
    """Computes for some hundredths of a second."""
    for _ in range(16):
        x = jnp.tanh(x @ x)
    return x


def work(seconds: float) -> None:
    """Keeps the thread of the program busy."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("synchronizes", [True, False])
def test_a_forced_synchronization(monkeypatch: pytest.MonkeyPatch, *, synchronizes: bool) -> None:
    """In both cases the input is ready, and the program works a third as long as the devices."""
    monkeypatch.setattr(clock, "RARE", 0)  # samples every step
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])

    def measured() -> mf.Report:
        x = jnp.ones((400, 400))
        float(compute(x)[0, 0])
        began = time.perf_counter()
        float(compute(x)[0, 0])
        lasts = time.perf_counter() - began
        with mf.Loader(ds, mesh, P("data"), batch_size=16, epochs=-1) as loader:
            for _ in loader:
                began = time.perf_counter()
                x = compute(x)
                if synchronizes:
                    float(x[0, 0])
                    lasts = time.perf_counter() - began
                work(lasts / 3)
                report = loader.report()
                if report.to_dict()["samples"]["inside"] >= 40 or report.batches > 200:
                    break
        return report

    with mf.from_arrays(FIELDS) as ds:
        if not synchronizes:
            usual(measured, lambda report: report.bound != "synchronization", runs=3)
            return
        report = usual(measured, lambda report: report.bound == "synchronization")
    assert report.faster > 1.05
    assert report.sentences[2].startswith("If the step reads results such as float(loss), ")


def test_a_sample_sees_the_work_of_devices() -> None:
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
        feed = loader._engine.batch.feed
        x = jax.block_until_ready(next(iter(loader)))["x"]
        sample = Sample(feed, feed.sent({"x": x}), 100.0)
        assert sample.dry
        assert sample._timer is not None
        assert sample._timer.interval == 100.0
        y = jnp.ones((600, 600))
        for _ in range(4):
            y = compute(y)  # for some tenths of a second at most
        assert feed.works(())
        assert not feed.works({id(y)})  # the results before it are gone
        assert sample.end() == (False, None)
        sample = Sample(feed, (), None)
        assert not sample.dry
        y.block_until_ready()
        assert sample.end() == (True, unittest.mock.ANY)
        assert not feed.works(())


def test_a_dropped_sample_probes_nothing() -> None:
    """A loop may end inside of a sampled step. Then the sample's thread keeps nothing alive."""
    probed = threading.Event()

    class Watched(Feed):
        def works(self, sent: Collection[int]) -> bool:
            probed.set()
            return False

    sample = Sample(Watched(lambda arrays: arrays, []), (), 0.05)
    assert probed.is_set()
    probed.clear()
    dropped, timer = weakref.ref(sample), sample._timer
    del sample
    assert dropped() is None
    assert timer is not None
    timer.join(HANG)
    assert not probed.is_set()


def test_a_look_and_a_measurement_of_the_thread_take_turns() -> None:
    """A look takes the lock of the interpreter from the thread, which would count as blocked."""
    samples, feed = Samples(), Feed(lambda arrays: arrays, [])
    for n in range(6):
        sample = samples.begin(feed, (), 100.0)
        looks = sample._timer is not None
        assert looks == (n % 2 == 1)
        before = samples.measured()
        samples.add(sample, 10**12)
        assert samples.measured()["step_ns"] - before["step_ns"] == (0 if looks else 10**12)
        assert (samples.measured()["cpu_ns"] > before["cpu_ns"]) == (not looks)


def test_a_slow_program_is_no_synchronization() -> None:
    """The devices have nothing to do at the end of a step, but also inside of it."""
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])

    def measured() -> mf.Report:
        with mf.Loader(ds, mesh, P("data"), batch_size=32) as loader:
            for batch in loader:
                float(batch["x"].sum())
                time.sleep(0.1)  # such as a write to a log on the network
            return loader.report()

    with mf.from_arrays(FIELDS) as ds:
        usual(measured, lambda report: report.bound == "step")


def test_a_slow_file(tmp_path: Path) -> None:
    def measured() -> mf.Report:
        with mf.Loader(ds, batch_size=8, shuffle=True, epochs=-1) as loader:
            slow.delay(0.05)
            batches = iter(loader)
            for _ in range(12):
                next(batches)
            slow.delay(0)
            return loader.report()

    with served(tmp_path) as slow, mf.open(slow.path, io="read") as ds:
        report = usual(measured, lambda report: report.waited > 0.9)
    assert (report.bound, report.action) == ("storage", "move-files"), report


def test_parts_add_up() -> None:
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, batch_size=16, epochs=2) as loader:
        began = time.perf_counter()
        for _ in loader:
            pass
        most = time.perf_counter() - began
        report = loader.report()
    parts = {part.name: part for part in report.parts}
    assert list(parts) == [
        *("wait", "hand-over", "step", "build", "storage", "decode", "gather", "other")
    ]
    shares = sum(parts[name].share for name in ("wait", "hand-over", "step"))
    assert shares == pytest.approx(1, abs=0.002)
    assert report.batches == 62
    assert 0 < sum(part.seconds for part in report.parts[:3]) * report.batches < most
    assert report.waited == pytest.approx(parts["wait"].share + parts["hand-over"].share, abs=0.002)


def test_the_first_batch_and_pauses_are_left_out() -> None:
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, batch_size=128) as loader:
        for _ in range(3):
            for _ in loader:
                pass
            time.sleep(0.3)  # between two loops, such as an evaluation
        report = loader.report()
        assert report.batches == 10  # of 12
        step = next(part for part in report.parts if part.name == "step")
        assert step.seconds * report.batches < 0.3, report
        assert loader.stats()["batches"] == 12


def test_a_break_ends_a_loop() -> None:
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, batch_size=16) as loader:
        for _ in range(2):
            for n, _ in enumerate(loader):
                if n == 9:
                    break
            time.sleep(0.3)
        report = loader.report()
        assert report.batches == 18
        step = next(part for part in report.parts if part.name == "step")
        assert step.seconds * report.batches < 0.3, report


def test_too_few_batches() -> None:
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, batch_size=16) as loader:
        assert loader.report().bound == "unknown"
        next(iter(loader))
        report = loader.report()
    assert (report.bound, report.batches, report.faster) == ("unknown", 0, 1)
    assert report.sentences[0] == "After 0 batches beside the first two there is no verdict yet."


def test_a_remesh_begins_anew() -> None:
    with mf.from_arrays(FIELDS) as ds:
        mesh = jax.make_mesh((2,), ("data",))
        with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
            batches = iter(loader)
            for _ in range(8):
                next(batches)
            assert loader.report().batches == 6
            loader.remesh(jax.make_mesh((4,), ("data",)))
            next(batches)
            assert loader.report().batches == 0


def test_other_forms() -> None:
    with mf.from_arrays(FIELDS) as ds, mf.Loader(ds, batch_size=16) as loader:
        for _ in loader:
            pass
        report = loader.report()
    found = report.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["bound"], found["batches"]) == (report.bound, report.batches)
    text = str(report)
    assert text.startswith("In 30 batches the loop waited for data for ")
    root = ET.fromstring(report._repr_html_())
    assert "hand-over" in "".join(root.itertext())
    assert repr(report).startswith(f"Report(bound={report.bound!r}, waited=")


def test_a_closed_loader() -> None:
    with mf.from_arrays(FIELDS) as ds:
        loader = mf.Loader(ds, batch_size=16)
        loader.close()
        with pytest.raises(mf.InvalidStateError, match=r"ask before close\(\)") as raised:
            loader.report()
    assert raised.value.op == "Loader.report"


def test_a_program_that_ends_within_a_sampled_step() -> None:
    """Its thread that probes the devices neither delays the exit nor fails in it."""
    process = started(
        """
import jax
from jax.sharding import PartitionSpec as P
ds = mf.from_arrays({"x": np.zeros((64, 2), np.float32)})
loop = iter(mf.Loader(ds, jax.make_mesh((1,), ("data",)), P("data"), batch_size=8))
for n in range(8):
    batch = next(loop)
    sample = loop._cursor.clock.sample
    if n > 2 and sample is not None and sample._timer is not None:
        print("ok")  # the probe of the step is due in up to half a second
        break
    time.sleep(0.5)
"""
    )
    out, err = process.communicate(timeout=START + HANG)
    assert (process.returncode, out, err) == (0, "ok\n", "")


def test_nothing_is_read_ahead() -> None:
    """With `prefetch=0` the loop waits for every batch, although it could be built in its step."""
    rows = np.ones((128, 1 << 20), np.uint8)  # zeros would all be in one page

    def measured() -> mf.Report:
        with mf.Loader(ds, batch_size=128, epochs=12, prefetch=0) as loader:
            for _ in loader:
                time.sleep(0.01)
            return loader.report()

    with mf.from_arrays({"x": rows}) as ds:
        usual(measured, lambda report: (report.bound, report.change) == ("gather", ("prefetch", 2)))


def test_whole_batches_are_gathered() -> None:
    """With `loading="global"` a process gathers the rows of all processes."""
    ds = mf.from_arrays({"x": np.zeros((64, 1 << 20), np.uint8)})
    specs, sizes = mf.P("data"), {"data": 8}
    lay = mf.layout(sizes, specs, ds, batch_size=32, processes=8, loading="global")

    def measured() -> mf.Report:
        with mf.Loader(ds, layout=lay, process=0, epochs=5) as loader:
            for _ in loader:
                pass
            return loader.report()

    change = "loading", "process"
    usual(measured, lambda report: (report.bound, report.change) == ("gather", change))
