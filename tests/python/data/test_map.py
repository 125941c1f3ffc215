"""`Dataset.map`: values, keys, other processes, resumes, mistakes, and programs that end."""

from __future__ import annotations

import functools
import gc
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil
import pyarrow as pa
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python import programs

ROWS = 48
TEXT = mf.Field((None,), "uint8", logical="string")
BYTES = mf.Field((None,), "uint8", logical="binary")


def table() -> mf.Dataset:
    """Returns records with an image, a label, a text and a list."""
    label = np.arange(ROWS, dtype=np.int64)
    image = (label[:, None] * np.ones((1, 6), np.int64)).astype(np.uint8).reshape(-1, 2, 3)
    return mf.from_arrow(
        pa.table(
            {
                "image": pa.FixedSizeListArray.from_arrays(pa.array(image.reshape(-1)), 6),
                "label": label,
                "text": [f"t{i}" * (i % 3) for i in label],
                "tokens": [list(range(i % 4)) for i in label],
            }
        )
    ).reshape("image", (2, 3))


def augmented(rows: Any, keys: Any) -> dict[str, Any]:
    """Computes fixed and ragged rows from all fields and from the keys."""
    words = [f"{text}!" for text in rows["text"]]
    pairs = [np.stack([t, t + 1], 1).astype(np.int32) for t in rows["tokens"]]
    shifted = rows["image"] + keys[:, 0].astype(np.uint8)[:, None, None]
    return {"image": shifted, "words": words, "pairs": pairs, "total": rows["label"] * 2.5}


OUT = {
    "image": mf.Field((2, 3), "uint8"),
    "words": TEXT,
    "pairs": mf.Field((None, 2), "int32"),
    "total": mf.Field((), "float64"),
}


def test_rows() -> None:
    ds = table().map(augmented, OUT, with_keys=True)
    assert list(ds.schema) == ["image", "label", "text", "tokens", "words", "pairs", "total"]
    assert ds.schema["pairs"] == mf.Field((None, 2), "int32", name="pairs")
    rows = ds[:]
    assert rows["words"] == [f"t{i}" * (i % 3) + "!" for i in range(ROWS)]
    assert [p.tolist() for p in rows["pairs"]] == [
        [[k, k + 1] for k in range(i % 4)] for i in range(ROWS)
    ]
    assert rows["total"].tolist() == [2.5 * i for i in range(ROWS)]
    assert rows["text"] == table()[:]["text"]
    assert ds[5]["words"] == "t5t5!"
    assert ds.head(1)["total"].tolist() == [0.0]
    assert "t2t2!" in ds._repr_html_()
    assert [row["total"] for row in ds] == rows["total"].tolist()
    assert ds.lengths("pairs").tolist() == [i % 4 for i in range(ROWS)]
    assert pa.table(ds)["words"].to_pylist() == rows["words"]


def test_inferred_and_single_rows() -> None:
    many = table().map(augmented, with_keys=True)
    assert {name: many.schema[name] for name in OUT} == {
        name: mf.Field(f.shape, f.dtype, name=name, logical=f.logical, ragged=f.ragged)
        for name, f in OUT.items()
    }

    def one(row: Any, key: Any) -> dict[str, Any]:
        batch = {
            name: [value] if isinstance(value, str) else value[None] for name, value in row.items()
        }
        return {name: value[0] for name, value in augmented(batch, key[None]).items()}

    single = table().map(one, OUT, with_keys=True, batched=False)
    for a, b in zip(many, single, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert mf.Field((None,), np.int32) == mf.Field((None,), np.dtype("int32"))
    assert mf.Field((), jax.numpy.bfloat16) == mf.Field((), "bfloat16")
    assert mf.Field((), np.bool_).dtype == "bool"
    for kind in (np.str_, object):
        upper = table().map(lambda rows, kind=kind: {"text": np.array(rows["text"], kind)})
        assert upper.schema["text"] == mf.Field((None,), "uint8", name="text", logical="string")
        assert upper[:]["text"] == table()[:]["text"]
    raw = table().map(lambda row: {"b": memoryview(row["text"].encode())}, batched=False)
    assert raw[1:3]["b"] == [b"t1", b"t2t2"]
    few = table().map(lambda rows: {"n": rows["label"].astype("f4")}, fields=["label"])
    assert few.schema["n"] == mf.Field((), "float32", name="n")


@pytest.mark.parametrize("shape", [(1, 8), (2, 4), (8, 1)])
def test_any_mesh_and_any_resume(shape: tuple[int, int]) -> None:
    """Keys are the keys of the loader, in every epoch."""

    def fn(rows: Any, keys: Any) -> dict[str, Any]:
        return {"key": keys.copy(), "image": rows["image"] ^ keys[:, 1, None, None].astype("u1")}

    ds = table().map(fn, with_keys=True).select(["key", "image"])
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3, "epochs": 2}
    with mf.Loader(ds, **options) as loader:
        expected = [{name: np.asarray(v) for name, v in batch.items()} for batch in loader]
    with mf.Loader(table(), extras=["key"], **options) as loader:
        assert all(
            np.array_equal(b["key"], e["key"]) for b, e in zip(loader, expected, strict=True)
        )
    assert len({e["key"].tobytes() for e in expected}) == 6
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(shape), ("data", "model"))
    specs = {"key": P("data"), "image": P("data")}
    with mf.Loader(ds, mesh, specs, **options) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state()
    with mf.Loader(ds, mesh, specs, state=state, **options) as loader:
        for e, batch in zip(expected[2:], loader, strict=True):
            assert all(np.array_equal(e[name], batch[name]) for name in e)


def test_under_and_over_views() -> None:
    ds = table()
    doubled = ds.map(lambda rows: {"label": rows["label"] * 2})
    assert doubled.slice(3, 6)[:]["label"].tolist() == [6, 8, 10]
    assert doubled.take([5, 5, 1])[:]["label"].tolist() == [10, 10, 2]
    assert doubled.filter(lambda rows: rows["label"] > 90)[:]["label"].tolist() == [92, 94]
    assert ds.filter(np.arange(ROWS) > 45).map(lambda r: {"label": r["label"] + 1})[:][
        "label"
    ].tolist() == [47, 48]
    assert mf.concat([doubled, doubled]).slice(ROWS - 1, ROWS + 1)[:]["label"].tolist() == [94, 0]
    assert doubled.map(lambda rows: {"label": rows["label"] + 1})[3]["label"] == 7
    mixed = mf.mix({"a": doubled, "b": doubled}, {"a": 1, "b": 1}, shuffle=False)
    assert sorted(mixed[:64]["label"].tolist())[:4] == [0, 0, 2, 2]
    tokens = ds.map(lambda rows: {"tokens": [t + 1 for t in rows["tokens"]]}, key="up.1")
    padded = tokens.pad("tokens", length=3)[:4]
    assert padded["tokens"].tolist() == [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3]]
    assert padded["tokens_length"].tolist() == [0, 1, 2, 3]
    with pytest.raises(mf.InvalidArgumentError, match="pack needs the lengths of all rows"):
        tokens.pack("tokens", length=8)
    packed = tokens.cache("memory").pack("tokens", length=6)
    assert sum(int((row["segment_ids"] > 0).sum()) for row in packed) == sum(
        i % 4 for i in range(ROWS)
    )
    over = packed.map(lambda rows: {"tokens": rows["tokens"] * 10})
    assert np.array_equal(over[:]["tokens"], packed[:]["tokens"] * 10)
    with mf.Loader(over, batch_size=2) as loader:
        assert next(iter(loader))["tokens"].shape == (2, 6)


def test_fingerprints() -> None:
    ds = table()
    field = {"x": mf.Field((), "int64")}
    plain = ds.map(plainly, field)
    assert plain.fingerprint() == ds.map(plainly, field, workers=1).fingerprint()
    others = [
        ds.map(plainly, field, key="a"),
        ds.map(plainly, field, key="b"),
        ds.map(plainly, {"x": mf.Field((1,), "int64")}),
        ds.map(plainly, field, fields=["label"]),
        ds.map(lambda rows: {"x": rows["label"]}, field),
        ds.map(functools.partial(print), field),  # type: ignore[arg-type]
    ]
    assert len({view.fingerprint() for view in [plain, *others]}) == 7
    assert ds.map(functools.partial(plainly), field).fingerprint() == plain.fingerprint()
    with pytest.raises(mf.UnsupportedError, match=r"name of the function .*plainly does not"):
        plain.cache("memory")
    with pytest.raises(mf.UnsupportedError, match="depend on keys"):
        ds.map(lambda rows, keys: {"k": keys}, with_keys=True, key="k").cache("memory")


def plainly(rows: Any) -> dict[str, Any]:
    return {"x": rows["label"]}


@pytest.mark.parametrize(
    ("fn", "out", "message"),
    [
        (lambda rows: rows["nothing"], {}, r"KeyError: 'nothing' .*test_map.py, line \d+, in"),
        (lambda _: 3, {}, "the function returned int: expected a dict of fields"),
        (lambda _: None, {}, "the function returned NoneType: expected a dict"),
        (lambda r: {"y": r["label"]}, {}, r"returned the fields \['y'\]: expected \['x'\]"),
        (lambda r: {"x": r["label"], "y": 1}, {}, r"the fields \['x', 'y'\]: expected"),
        (lambda r: {"x": r["label"][:0]}, {}, r"int64\[1\]; the first dimension counts the rows$"),
        (lambda _: {"x": 7}, {}, r"is int64\[\]: expected int64\[1\]; return an array"),
        (lambda r: {"x": r["label"].astype("f4")}, {}, r"; return value.astype\('int64'\)"),
        (lambda r: {"x": r["label"] / 2}, {}, "float64"),
        (lambda _: {"x": [1.5]}, {}, r"float64\[1\]: expected int64"),
        (lambda _: {"x": [300]}, {"x": mf.Field((), "uint8")}, r"int64\[1\]: expected uint8"),
        (lambda _: {"x": [np.zeros(1)]}, {"x": mf.Field((None,), "int32")}, "float64"),
        (lambda _: {"x": ["a"]}, {"x": mf.Field((None,), "int32")}, "a row of field 'x' is"),
        (lambda _: {"x": [1]}, {"x": TEXT}, "is int 1: expected str"),
        (lambda _: {"x": [1]}, {"x": BYTES}, "is int 1: expected bytes"),
        (lambda _: {"x": "text"}, {"x": TEXT}, "expected a list of 1 rows"),
        (lambda r: {"x": np.ma.masked_all(len(r["label"]), "i8")}, {}, "field 'x' has nulls"),  # type: ignore[no-untyped-call]
    ],
)  # fmt: skip
def test_mistakes(fn: Any, out: dict[str, Any], message: str) -> None:
    """The error of a batch names the record; so does the error of a row."""
    ds = table().slice(2, 3).map(fn, out or {"x": mf.Field((), "int64")})
    with pytest.raises(mf.InvalidArgumentError, match=f"record 0: the function .*{message}"):
        ds[0]
    if not ds.schema["x"].ragged:
        with mf.Loader(ds.select(["x"]), batch_size=1) as loader:
            with pytest.raises(mf.InvalidArgumentError, match=f"record 0: .*{message}"):
                next(iter(loader))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fn": 3}, "fn=3: expected a function of rows"),
        ({"out": {}}, "out={}: expected a dict of fields"),
        ({"out": {"x": "int64"}}, "out\\['x'\\]='int64': expected a field"),
        ({"out": {"x": mf.Field((None, None), "int64")}}, "expected a field with one None"),
        ({"out": {"x": mf.Field((0,), "int64")}}, r"shape \[0\]"),
        ({"out": {"x": mf.Field((), "text")}}, "text"),
        ({"fields": "label"}, "fields='label': expected a list of names"),
        ({"fields": ["no"]}, "no field 'no'|no field \"no\""),
        ({"workers": 0}, "workers=0"),
        ({"batched": 1}, "batched=1"),
        ({"key": ""}, "key"),
        ({"fn": lambda _: {"x": np.zeros(2)}}, "expected one row"),
        (
            {"fn": lambda rows: {"x": [list(t) for t in rows["text"]]}},
            r"'x'=\[\[\]\], which has no",
        ),
        ({"fn": lambda rows, keys: rows}, r"fn\(rows, keys\) cannot be called with rows: .*keys'"),
        ({"with_keys": True}, r"called with rows and keys: too many .*, or fn\(rows, keys\) with"),
        ({"fn": lambda _: 1 / 0}, "division by zero"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((mf.Error, ZeroDivisionError), match=message):
        table().map(**{"fn": plainly, **arguments})


def test_an_error_stops_nothing_else(tmp_path: Path) -> None:
    """The error names the record and its file; the loader goes on after a skip."""
    for i in range(2):
        with pa.OSFile(str(tmp_path / f"{i}.arrow"), "wb") as f:
            data = pa.table({"label": np.arange(8) + 8 * i})
            with pa.ipc.new_file(f, data.schema) as writer:
                writer.write_table(data)

    def fn(rows: Any) -> dict[str, Any]:
        if 13 in rows["label"]:
            raise ValueError("unlucky")
        return {"x": rows["label"] + 1}

    ds = mf.open(str(tmp_path)).map(fn, {"x": mf.Field((), "int64")})
    with mf.Loader(ds, batch_size=4, epochs=1) as loader:
        batches = iter(loader)
        assert [next(batches)["x"].tolist() for _ in range(3)][2] == [9, 10, 11, 12]
        with pytest.raises(
            mf.InvalidArgumentError, match=r"record 13: .*ValueError: unlucky"
        ) as error:
            next(batches)
        assert error.value.path.endswith("1.arrow")
    later = (
        mf.open(str(tmp_path))
        .filter(np.arange(16) > 7)
        .slice(2)
        .map(fn, {"x": mf.Field((), "int64")})
    )
    with pytest.raises(mf.InvalidArgumentError, match=r"1\.arrow: row 5: record 3: .*unlucky"):
        later[:]
    kept = ds.filter(np.arange(16) != 13)
    with mf.Loader(kept, batch_size=5, epochs=1) as loader:
        assert [batch["x"].tolist() for batch in loader][2] == [11, 12, 13, 15, 16]


def test_a_map_that_does_not_return() -> None:
    """Closing the loader does not wait for it, and neither does the exit of the program."""
    entered, go = threading.Event(), threading.Event()

    def fn(rows: Any) -> dict[str, Any]:
        entered.set()
        go.wait()
        return {"x": rows["label"]}

    ds = table().map(fn, {"x": mf.Field((), "int64")}, workers=1)
    loader = mf.Loader(ds.select(["x"]), batch_size=4)

    def take() -> None:
        with pytest.raises(mf.Error):
            next(iter(loader))

    waiting = threading.Thread(target=take)
    waiting.start()
    assert entered.wait(60)
    loader.close()
    waiting.join(60)
    assert not waiting.is_alive()
    go.set()


ENDLESS = """
import threading, time
import numpy as np
import psutil
import meshfeed as mf
entered = threading.Event()
def fn(rows):
    print("called", flush=True)
    entered.set()
    time.sleep(3600)
ds = mf.from_arrays({"x": np.arange(8)}).map(fn, {"x": mf.Field((), "int64")})
loader = mf.Loader(ds, batch_size=2)
threading.Thread(target=lambda: next(iter(loader)), daemon=True).start()
assert entered.wait(60)
"""


def test_a_program_ends_while_its_map_runs() -> None:
    assert "called" in programs.run(ENDLESS)


IMPORTS = """
import numpy as np
import psutil
import meshfeed as mf
def fn(rows):
    import jax.numpy as jnp
    print("in", len(rows["x"]))
    return {"y": np.asarray(jnp.asarray(rows["x"]) * 2)}
ds = mf.from_arrays({"x": np.arange(8, dtype=np.int32)}).map(fn, {"y": mf.Field((), "int32")})
with mf.Loader(ds, batch_size=4, epochs=1) as loader:
    print([b["y"].tolist() for b in loader])
"""


def test_a_map_prints_and_imports_jax() -> None:
    printed = programs.run(IMPORTS)
    assert "[[0, 2, 4, 6], [8, 10, 12, 14]]" in printed
    assert "in " in printed


def test_check_map() -> None:
    ds = table()
    mf.check_map(ds.map(augmented, OUT, with_keys=True).take(range(40)))
    mf.check_map(ds)
    for fn, how in [
        (lambda rows: {"label": rows["label"] - rows["label"].min()}, "alone"),
        (
            lambda rows: {"label": rows["label"] + int(np.random.randint(1 << 40))},
            "the second time",
        ),
        (lambda rows: {"label": rows["label"] + np.arange(len(rows["label"]))}, "in another order"),
    ]:
        with pytest.raises(
            mf.InvalidArgumentError, match=f"field 'label': record \\d+ differs {how}"
        ):
            mf.check_map(ds.map(fn, workers=1))
    with pytest.raises(mf.InvalidArgumentError, match="dataset=3: expected a dataset"):
        mf.check_map(3)  # type: ignore[arg-type]


def test_report_names_maps() -> None:
    def slow(rows: Any) -> dict[str, Any]:
        time.sleep(0.002)
        return {"x": rows["label"]}

    ds = table().map(slow, {"x": mf.Field((), "int64")}).select(["x"])
    with mf.Loader(ds, batch_size=4, epochs=3) as loader:
        for _ in loader:
            pass
        report, stats = loader.report(), loader.stats()
    assert 0.05 < stats["map_seconds"] <= stats["gather_seconds"]
    assert (report.bound, report.action) == ("map", "quicken-map")
    assert "map" in [part.name for part in report.parts]
    assert "functions of views" in str(report)


def serving() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "meshfeed.map"}


def test_threads_end_with_the_view() -> None:
    """The function is kept by the view, views over it, and loaders; then its threads end."""
    before = serving()
    ds = table().map(plainly, {"x": mf.Field((), "int64")}, workers=3)
    own = serving() - before
    assert len(own) == 3
    view = ds.slice(0, 8)
    ds.close()
    loader = mf.Loader(view.select(["x"]), batch_size=4)
    view.close()
    assert next(iter(loader))["x"].tolist() == [0, 1, 2, 3]
    loader.close()
    del ds, view, loader
    ends(own)


class Pipeline:
    """Refers to its dataset, whose function refers to the pipeline."""

    def __init__(self) -> None:
        self.ds = table().map(self.transform, {"x": mf.Field((), "int64")}, workers=2)

    def transform(self, rows: Any) -> dict[str, Any]:
        return {"x": rows["label"] + 1}


def test_a_function_may_refer_to_its_dataset() -> None:
    """The garbage collector finds the cycle when no loader needs it."""
    before = serving()
    pipeline = Pipeline()
    own = serving() - before
    loader = mf.Loader(pipeline.ds.select(["x"]), batch_size=4)
    del pipeline
    gc.collect()
    assert next(iter(loader))["x"].tolist() == [1, 2, 3, 4]
    loader.close()
    del loader
    ends(own)


def test_a_stream_keeps_its_function() -> None:
    before = serving()
    ds = table().map(lambda rows: {"x": rows["label"]}, {"x": mf.Field((), "int64")})
    stream = pa.RecordBatchReader.from_stream(ds.select(["x"]))
    own = serving() - before
    del ds
    gc.collect()
    assert stream.read_all()["x"].to_pylist() == list(range(ROWS))
    stream.close()
    ends(own)


def ends(threads: set[threading.Thread]) -> None:
    """Waits until threads end, after their view has no user."""
    assert threads
    until = time.monotonic() + 60
    while any(thread.is_alive() for thread in threads) and time.monotonic() < until:
        gc.collect()  # again, because a call under way keeps its function
        next(iter(threads)).join(0.05)
    assert not any(thread.is_alive() for thread in threads)


def test_no_growth(deep: bool) -> None:
    """Steps, errors, and views that come and go take no more memory after the first tenth."""
    steps = 20_000 if deep else 300
    ds = table().map(augmented, OUT, with_keys=True).pad("pairs", length=3)
    own, fields = serving(), ["image", "pairs", "total"]
    threads = process = 0

    def fails(rows: Any) -> dict[str, Any]:
        raise ValueError("no rows")

    with mf.Loader(ds.select(fields), batch_size=16, shuffle=True, epochs=-1) as loader:
        batches = iter(loader)
        for n in range(steps):
            next(batches)
            if n % 50 == 0:
                with table().map(fails, {"x": mf.Field((), "int64")}, workers=1) as failing:
                    with pytest.raises(mf.InvalidArgumentError, match="no rows"):
                        failing[3]
            if n == steps // 10:
                gc.collect()
                threads, process = threading.active_count(), psutil.Process().memory_info().rss
    gc.collect()
    if late := serving() - own:  # threads of the last views that fail
        ends(late)
    assert threading.active_count() <= threads + 2
    assert psutil.Process().memory_info().rss - process < 40e6


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import meshfeed as mf
entered = threading.Event()
def fn(rows):
    entered.set()
    time.sleep(3600)
ds = mf.from_arrays({"x": np.arange(8)}).map(fn, {"x": mf.Field((), "int64")}, workers=2)
def interrupt():
    entered.wait(60)
    entered.clear()
    os.kill(os.getpid(), signal.SIGINT)
for read in (lambda: next(iter(mf.Loader(ds, batch_size=2))), lambda: ds[3]):
    threading.Thread(target=interrupt).start()
    try:
        read()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_wait_for_a_map() -> None:
    assert programs.run(INTERRUPTED).count("interrupted") == 2
