"""Functions of `Dataset.map` that fail, or do what no function should do."""

from __future__ import annotations

import logging
import resource
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._native.contention import Contention
from tests.python import programs

X = {"x": mf.Field((), "int64")}


def files(folder: Path) -> list[str]:
    """Writes two files with 8 labels each, and returns their paths."""
    paths = [str(folder / f"{i}.arrow") for i in range(2)]
    for i, path in enumerate(paths):
        data = pa.table({"label": np.arange(8) + 8 * i})
        with pa.OSFile(path, "wb") as f, pa.ipc.new_file(f, data.schema) as writer:
            writer.write_table(data)
    return paths


def unlucky(rows: Any) -> dict[str, Any]:
    if 13 in rows["label"]:
        raise ValueError("unlucky")  # the line that a traceback shows
    return {"x": rows["label"] + 1}


def test_an_error_shows_the_line_of_the_function(tmp_path: Path) -> None:
    """The exception is the cause of the error, and its traceback begins in the function."""
    files(tmp_path)
    ds = mf.open(str(tmp_path))
    mapped = ds.map(unlucky, X)

    def load() -> None:
        with mf.Loader(mapped, batch_size=4, epochs=1) as loader:
            list(loader)

    for read in (lambda: mapped[13], lambda: mapped[:], load):
        with pytest.raises(mf.InvalidArgumentError, match="unlucky") as caught:
            read()
        cause = caught.value.__cause__
        assert isinstance(cause, ValueError)
        assert traceback.extract_tb(cause.__traceback__)[0].name == "unlucky"
        shown = "".join(traceback.format_exception(caught.value))
        assert "# the line that a traceback shows" in shown
    with pytest.raises(mf.OutOfRangeError) as other:
        mapped[99]
    assert other.value.__cause__ is None
    inside = ds.map(lambda rows: {"x": mf.from_arrays({"x": np.arange(2)})[99]["x"]}, X)
    with pytest.raises(mf.OutOfRangeError, match=r"record 0: .*99") as error:
        inside[0]
    assert isinstance(error.value.__cause__, mf.OutOfRangeError)


def test_an_error_names_file_and_row_through_joined_datasets(tmp_path: Path) -> None:
    first, second = map(mf.open, files(tmp_path))
    joined = mf.concat([first, second.slice(4, 8)])
    with pytest.raises(mf.InvalidArgumentError, match=r"1\.arrow: row 5: record 9: .*unlucky") as e:
        joined.map(unlucky, X)[:]
    assert e.value.path.endswith("1.arrow")
    mixed = mf.mix({"a": first, "b": second}, {"a": 1, "b": 1}, seed=3, shuffle=True)
    with mf.Loader(mixed.map(unlucky, X), batch_size=4, epochs=4) as loader:
        with pytest.raises(
            mf.InvalidArgumentError, match=r"1\.arrow: row 5: record \d+: .*unlucky"
        ):
            list(loader)
    apart = {"a": first.map(unlucky, X), "b": second.map(unlucky, X)}
    with mf.Loader(mf.mix(apart, {"a": 1, "b": 1}), batch_size=4, epochs=4) as loader:
        with pytest.raises(mf.InvalidArgumentError, match=r"1\.arrow: record 5: .*unlucky"):
            list(loader)


def odd(rows: Any) -> dict[str, Any]:
    """Fails for labels that divide by 5."""
    if any(label % 5 == 0 for label in rows["label"]):
        raise ValueError("a multiple of 5")
    return {"x": rows["label"] * 10, "words": [str(label) for label in rows["label"]]}


ODD = {**X, "words": mf.Field((None,), "uint8", logical="string")}


@pytest.mark.parametrize("shape", [(1, 8), (4, 2), (8, 1)])
def test_bad_rows_are_zeros_on_any_mesh(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, shape: tuple[int, int]
) -> None:
    files(tmp_path)
    ds = mf.open(str(tmp_path)).map(odd, ODD, bad="zero")
    assert ds[5] == {"label": 5, "x": 0, "words": ""}
    assert ds[:7]["x"].tolist() == [0, 10, 20, 30, 40, 0, 60]
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(shape), ("data", "model"))
    options: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 1, "epochs": 1}
    with caplog.at_level(logging.WARNING, "meshfeed"):
        with mf.Loader(ds.select(["label", "x"]), mesh, P("data"), **options) as loader:
            for batch in loader:
                label = np.asarray(batch["label"])
                assert np.array_equal(batch["x"], np.where(label % 5, label * 10, 0))
            assert loader.stats()["bad"] == 4
            assert "4 records have rows of zeros" in str(loader.report())
    (record,) = caplog.records
    assert "arrow: " in record.message
    assert "a multiple of 5" in record.message
    assert "its rows are zeros" in record.message


def test_images_that_cannot_be_decoded_are_zeros(caplog: pytest.LogCaptureFixture) -> None:
    ds = mf.from_arrow(pa.table({"image": pa.array([b"no image", None], pa.binary())}))
    images = ds.slice(0, 1).decode_image("image", size=(2, 2), bad="zero")
    assert not images[0]["image"].any()
    with mf.Loader(images, batch_size=1, epochs=2, fill={"image": 0}) as loader:
        assert [int(batch["image"].sum()) for batch in loader] == [0, 0]
        assert loader.stats()["bad"] == 2
    assert caplog.text.count("the image of record 0") == 1
    assert images.fingerprint() != ds.slice(0, 1).decode_image("image", size=(2, 2)).fingerprint()


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (MemoryError("large"), mf.ResourceExhaustedError),
        (KeyboardInterrupt(), mf.InvalidStateError),
        (SystemExit(3), mf.InvalidStateError),
        (GeneratorExit(), mf.InvalidStateError),
    ],
)
def test_what_no_record_causes_is_an_error(raised: BaseException, kind: type[mf.Error]) -> None:
    """It ends neither the program nor the thread, and is an error also if bad rows are zeros."""
    fails = [True]

    def fn(rows: Any) -> dict[str, Any]:
        if fails:
            raise raised
        return {"x": rows["label"]}

    ds = mf.from_arrays({"label": np.arange(4)}).map(fn, X, workers=1, bad="zero")
    with pytest.raises(kind, match=type(raised).__name__) as error:
        ds[0]
    assert error.value.__cause__ is raised
    fails.clear()
    assert ds[3]["x"] == 3


def test_reads_of_the_own_rows_and_of_loaders_are_refused() -> None:
    """They would wait for the function, which waits for them. Reads of other rows are allowed."""
    base = mf.from_arrays({"label": np.arange(8)})
    made: dict[str, Any] = {}

    def own(rows: Any) -> dict[str, Any]:
        return {"x": made["view"][rows["label"]]["x"]}

    def loads(rows: Any) -> dict[str, Any]:
        return {"x": next(iter(made["loader"]))["x"][: len(rows["label"])]}

    def below(rows: Any) -> dict[str, Any]:
        return {"x": base[rows["label"][::-1]]["label"][::-1]}

    ds = base.map(own, X, workers=1)
    made["view"] = ds.slice(0, 4)
    with pytest.raises(mf.InvalidStateError, match="reads the rows that it computes itself"):
        ds[0]
    loading = base.map(loads, X)
    with mf.Loader(loading, batch_size=2) as loader:
        made["loader"] = loader
        with pytest.raises(mf.InvalidStateError, match="may wait for the function"):
            next(iter(loader))
    assert base.map(below, X)[:]["x"].tolist() == list(range(8))
    made.clear()


def test_input_may_be_changed_and_kept() -> None:
    """The rows are the function's own: neither a change nor a reference reaches other calls."""
    kept: list[Any] = []

    def fn(rows: Any) -> dict[str, Any]:
        kept.append(rows)
        rows["label"] += 100
        rows["text"].append("more")
        rows.pop("image")
        return {"x": rows["label"]}

    base = mf.from_arrow(
        pa.table(
            {
                "label": np.arange(64),
                "text": [str(i) for i in range(64)],
                "image": [np.full(4096, i, np.uint8) for i in range(64)],
            }
        )
    )
    with base.map(fn, X, workers=2) as ds:
        assert ds[:]["x"].tolist() == list(range(100, 164))
        assert ds[:]["label"].tolist() == list(range(64))
        assert ds[7]["image"].max() == 7
    labels = np.concatenate([rows["label"] for rows in kept])
    assert sorted(set(labels.tolist())) == list(range(100, 164))


def test_large_rows_get_the_same_memory_again() -> None:
    """New memory costs a page fault for each 4 KiB. Rows that the function keeps never change."""
    kept: list[Any] = []

    def fn(rows: Any) -> dict[str, Any]:
        if len(kept) < 8:
            kept.append(rows["x"])
            return {"y": rows["x"] + np.uint8(1)}
        rows["x"] += 1
        return {"y": rows["x"]}

    x = np.repeat(np.arange(64, dtype=np.uint8)[:, None], 1 << 20, axis=1)
    ds = mf.from_arrays({"x": x}).map(fn, {"y": mf.Field((1 << 20,), "uint8")}, workers=1)
    with mf.Loader(ds.select(["y"]), batch_size=1, epochs=2) as loader:
        batches = iter(loader)
        assert [int(next(batches)["y"][0, -1]) for _ in range(64)] == [*range(1, 65)]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        assert [int(next(batches)["y"][0, 0]) for _ in range(64)] == [*range(1, 65)]
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 64 * 128
    assert [(int(rows.min()), int(rows.max())) for rows in kept] == [(i, i) for i in range(8)]


FORKS = """
import os, subprocess, sys
import numpy as np
import meshfeed as mf
def fn(rows):
    if (child := os.fork()) == 0:
        if rows["x"][0] % 2:
            os._exit(7)
        return {"y": rows["x"]}  # the child returns where no library thread runs
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = subprocess.run([sys.executable, "-c", "print(5)"], capture_output=True, check=True)
    return {"y": rows["x"] * 0 + code + int(told.stdout)}
ds = mf.from_arrays({"x": np.arange(4)}).map(fn, {"y": mf.Field((), "int64")})
print([int(ds[i]["y"]) for i in range(4)])
"""


def test_a_function_forks() -> None:
    """A child that returns ends, and never delivers rows."""
    printed = programs.run(FORKS)
    assert "[6, 12, 6, 12]" in printed


def sleeps(rows: Any) -> dict[str, Any]:
    time.sleep(0.01)
    return {"x": rows["label"]}


def test_report_names_the_lock() -> None:
    """A function is said to hold the lock of the interpreter if its calls wait for that."""
    ds = mf.from_arrays({"label": np.arange(64)}).map(sleeps, X, workers=2)
    (function,) = ds._origin.functions
    with mf.Loader(ds, batch_size=4, epochs=1) as loader:
        list(loader)
        assert not function.contention.locked
        assert "interpreter's lock most" not in str(loader.report())
        for _ in range(100):
            function.contention.add(50_000_000, 25_000_000, 5_000_000)
        report = loader.report()
    assert report.bound == "map"
    assert "interpreter's lock most" in str(report)


@pytest.mark.parametrize(
    ("calls", "time", "waited", "entry", "locked"),
    [
        (100, 20e6, 10e6, 4e6, True),  # two loops in Python: half of the time, up to 5 ms at once
        (100, 2e6, 1e6, 0.6e6, True),  # short calls
        (100, 20e6, 10e6, 0.01e6, False),  # waits for a file: the lock is free
        (100, 20e6, 1e6, 0.9e6, False),  # one call at a time
        (7, 200e6, 100e6, 5e6, False),  # few calls
        (100, 1e6, 0.5e6, 0.5e6, False),  # little time
    ],
)
def test_contention(calls: int, time: float, waited: float, entry: float, locked: bool) -> None:
    contention = Contention()
    for _ in range(calls):
        contention.add(int(time), int(waited), int(entry))
    assert contention.locked == locked


def test_functions_of_several_threads_keep_their_causes() -> None:
    def fn(rows: Any) -> dict[str, Any]:
        raise KeyError(f"{rows['label'][0]}")

    ds = mf.from_arrays({"label": np.arange(16)}).map(fn, X, workers=2)
    wrong: list[Any] = []

    def read(i: int) -> None:
        try:
            ds[i]
        except mf.InvalidArgumentError as e:
            if e.__cause__ is None or str(i) not in str(e.__cause__):
                wrong.append((i, e.__cause__))

    for _ in range(20):
        threads = [threading.Thread(target=read, args=(i,)) for i in (3, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
