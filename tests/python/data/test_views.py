"""Views of datasets, alone and over each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import meshfeed as mf
from tests.python.samples import wrong

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) * 10


@pytest.fixture(params=["memory", "file"])
def ds(request: Any, tmp_path: Path) -> Iterator[mf.Dataset]:
    if request.param == "memory":
        with mf.from_arrays({"x": X, "y": Y}) as stored:
            yield stored
        return
    pairs = pa.FixedSizeListArray.from_arrays(X.ravel(), 2)
    path = tmp_path / "x.arrow"
    table = pa.table({"x": pairs, "y": Y, "t": ["a"] * 20})
    feather.write_feather(table, path, compression="uncompressed", chunksize=7)
    with mf.open(path) as stored:
        yield stored


def rows(ds: mf.Dataset) -> dict[str, list[Any]]:
    with mf.Loader(ds, batch_size=len(ds), shuffle=False) as loader:
        return {name: np.asarray(a).tolist() for name, a in next(iter(loader)).items()}


def test_select(ds: mf.Dataset) -> None:
    assert list(ds.select(["y", "x"]).schema) == ["y", "x"]
    assert rows(ds.select(["y"])) == {"y": Y.tolist()}
    assert ds.select(iter(["y"])).skipped == []


@pytest.mark.parametrize(
    "indices",
    [[3, 3, 19, 0], np.array([5], np.uint8), np.arange(20)[::-3], pa.array([2, 1]), range(4)],
    ids=str,
)
def test_take(ds: mf.Dataset, indices: Any) -> None:
    at = np.asarray(indices)
    assert rows(ds.select(["x", "y"]).take(indices)) == {"x": X[at].tolist(), "y": Y[at].tolist()}


def test_reshape(ds: mf.Dataset) -> None:
    """Rows have another shape of as many values, also a single value."""
    view = ds.reshape("x", (1, 2)).reshape("y", [1]).take([3, 19, 3])
    assert [str(view.schema[name]) for name in "xy"] == ["x: float32[1, 2]", "y: int64[1]"]
    at = [3, 19, 3]
    assert rows(view) == {"x": X[at][:, None].tolist(), "y": Y[at][:, None].tolist()}
    back = view.reshape("y", ()).reshape("x", (2, 1))
    assert rows(back) == {"x": X[at][:, :, None].tolist(), "y": Y[at].tolist()}
    raw = mf.from_arrays({"x": X.view(np.uint8), "y": Y})
    floats = raw.reshape("x", (2,), dtype=X.dtype)
    assert rows(floats)["x"] == X.tolist()
    prints = {v.fingerprint() for v in (raw, floats, floats.reshape("x", (1, 2)))}
    assert len(prints) == 3


def test_take_nothing(ds: mf.Dataset) -> None:
    assert len(ds.take([])) == 0


def test_composition(ds: mf.Dataset) -> None:
    """A view keeps what is below it: closing in any order is safe."""
    outer = ds.take(np.arange(10, 20)).select(["y"])
    inner = outer.slice(2, 8).take([5, 0])
    print_before = inner.fingerprint()
    outer.close()
    ds.close()
    assert rows(inner) == {"y": [170, 120]}
    assert inner.fingerprint() == print_before


def test_fingerprints(ds: mf.Dataset) -> None:
    """Equal records have one fingerprint through views that fold; others differ."""
    assert ds.take([4, 2]).fingerprint() == ds.slice(2, 9).take([2, 0]).fingerprint()
    assert ds.take([4, 2]).fingerprint() != ds.take([2, 4]).fingerprint()
    assert ds.select(["y"]).fingerprint() != ds.select(["x"]).fingerprint()


def test_state_of_another_view(ds: mf.Dataset) -> None:
    """A loader over a view rejects the state of another view, and accepts its own."""
    views = [ds.select(["y"]).take(np.arange(k, k + 8)) for k in (0, 1)]
    with mf.Loader(views[0], batch_size=2) as loader:
        next(iter(loader))
        state = loader.state()
    with mf.Loader(views[0], batch_size=2) as loader:
        loader.restore(state)
    with mf.Loader(views[1], batch_size=2) as loader, pytest.raises(mf.IncompatibleError):
        loader.restore(state)


NAMES = "expected a list of names"
NA = pd.array([True, None] * 10, dtype="boolean")
FLAT = "expected integers in one dimension"


def test_negative_numbers_count_from_the_end() -> None:
    ds = mf.from_arrays({"y": np.arange(20)})
    for start, stop in ((-3, None), (-20, -1), (5, -5), (0, 0), (-1, 20)):
        assert ds.slice(start, stop)[:]["y"].tolist() == list(range(20))[start:stop]
    assert ds.take([-1, 0, -20, 7])[:]["y"].tolist() == [19, 0, 0, 7]
    assert ds.take(np.array([-1, 1], "i1"))[:]["y"].tolist() == [19, 1]
    assert ds.take([-1]).fingerprint() == ds.take([19]).fingerprint()
    for start, stop in ((-21, 3), (3, -21), (-1, -3)):
        with pytest.raises(mf.OutOfRangeError, match="does not lie within the 20 records"):
            ds.slice(start, stop)


def test_a_split_is_frozen_and_complete() -> None:
    """The parts are as in C and Go. Their tests freeze the same numbers."""
    ds = mf.from_arrays({"y": np.arange(10), "patient": np.arange(10) % 4})
    parts = ds.split({"train": 0.7, "test": 0.3})
    got = {name: part[:]["y"].tolist() for name, part in parts.items()}
    assert got == {"train": [0, 2, 3, 5, 7, 8, 9], "test": [1, 4, 6]}
    assert ds.split({"train": 0.7, "test": 0.3}, seed=1)["test"][:]["y"].tolist() == [3, 5, 6]
    groups = ds.split({"a": 0.5, "b": 0.5}, seed=2, within="patient")
    values = [set(part[:]["patient"].tolist()) for part in groups.values()]
    assert values[0] | values[1] == {0, 1, 2, 3}
    assert values[0] & values[1] == set()
    by_text = mf.from_arrow(pa.table({"site": list("aabbccddee")}))
    sites = [
        part[:]["site"] for part in by_text.split({"a": 0.6, "b": 0.4}, within="site").values()
    ]
    assert sorted(sites[0] + sites[1]) == list("aabbccddee")
    assert set(sites[0]) & set(sites[1]) == set()
    with mf.Loader(parts["train"], batch_size=7, shuffle=True) as loader:
        assert sorted(next(iter(loader))["y"].tolist()) == got["train"]
    mask = np.isin(np.arange(10), got["test"])
    assert parts["test"].fingerprint() == ds.filter(mask).fingerprint()


@pytest.mark.parametrize(
    ("view", "error", "message"),
    [
        (lambda d: d.select("y"), mf.InvalidArgumentError, f"fields='y': {NAMES}"),
        (lambda d: d.select([]), mf.InvalidArgumentError, f"fields=[]: {NAMES}"),
        (lambda d: d.select([1]), mf.InvalidArgumentError, f"fields=[1]: {NAMES}"),
        (lambda d: d.select(3), mf.InvalidArgumentError, f"fields=3: {NAMES}"),
        (lambda d: d.select(["z"]), mf.NotFoundError, 'no field "z"; the fields are "x", "y"'),
        (lambda d: d.select(["y", "y"]), mf.InvalidArgumentError, 'selection are called "y"'),
        (lambda d: d.take([0, 20]), mf.OutOfRangeError, "index 20 at position 1 is outside the 20"),
        (lambda d: d.take([0, -21]), mf.OutOfRangeError, "index -21 at position 1 is outside"),
        (lambda d: d.split(["a"]), mf.InvalidArgumentError, "parts=['a']: expected a dict of"),
        (lambda d: d.split({"a": 1.0, 2: 0}), mf.InvalidArgumentError, "expected a dict of names"),
        (
            lambda d: d.split({"a": "1"}),
            mf.InvalidArgumentError,
            "parts['a']='1': expected a share",
        ),
        (lambda d: d.split({}), mf.InvalidArgumentError, "expected at least one part"),
        (lambda d: d.split({"a": 0.9}), mf.InvalidArgumentError, "parts add up to 0.9; give each"),
        (lambda d: d.split({"a": 1}, seed=0.5), mf.InvalidArgumentError, "seed=0.5: expected an"),
        (lambda d: d.split({"a": 1}, within="z"), mf.NotFoundError, 'no field "z"; the fields are'),
        (
            lambda d: d.split({"a": 0.99, "b": 0.01}),
            mf.InvalidArgumentError,
            'part "b" has no record: its share is 0.01 of 20 records; give it a larger share',
        ),
        (
            lambda d: d.take(np.array([2**64 - 1], "u8")),
            mf.OutOfRangeError,
            "index 18446744073709551615 at position 0 is in no dataset",
        ),
        (lambda d: d.take(NA), mf.InvalidArgumentError, "replace them: array.fillna(number)"),
        (lambda d: d.take("ab"), mf.InvalidArgumentError, f"indices='ab': {FLAT}"),
        (lambda d: d.take([0.5]), mf.InvalidArgumentError, f"indices=float64[1]: {FLAT}"),
        (lambda d: d.take([[1]]), mf.InvalidArgumentError, f"indices=int64[1, 1]: {FLAT}"),
        (lambda d: d.take(3), mf.InvalidArgumentError, f"indices=int64[]: {FLAT}"),
        (lambda d: d.take(["a"]), mf.InvalidArgumentError, FLAT),
        (lambda d: d.take(Y > 9), mf.InvalidArgumentError, "ds.filter(mask) takes a mask"),
        (
            lambda d: d.filter(Y),
            mf.InvalidArgumentError,
            "mask=int64[20]: expected one boolean for each of the 20 records; "
            "give array != 0, or record numbers to ds.take",
        ),
        (lambda d: d.filter([True]), mf.InvalidArgumentError, "mask=bool[1]: expected one boolean"),
        (lambda d: d.filter([]), mf.InvalidArgumentError, "mask=bool[0]: expected one boolean"),
        (lambda d: d.filter(X > 0), mf.InvalidArgumentError, "mask=bool[20, 2]: expected one"),
        (lambda d: d.filter(None), mf.InvalidArgumentError, "objects of the type NoneType"),
        (lambda d: d.filter("y"), mf.InvalidArgumentError, "mask=<U1[]: expected one boolean for"),
        (
            lambda d: d.filter(pa.array([True, None] * 10)),
            mf.InvalidArgumentError,
            "missing values",
        ),
        (lambda d: d.filter(NA), mf.InvalidArgumentError, "replace them: array.fillna(False)"),
        (lambda d: d.filter(Y / 3), mf.InvalidArgumentError, "compare, as in array == value"),
        (lambda d: d.rename({"z": "a"}), mf.NotFoundError, 'no field "z"; the fields are "x", "y"'),
        (lambda d: d.rename({"x": "y"}), mf.InvalidArgumentError, 'renaming are called "y"'),
        (lambda d: d.rename({"x": ""}), mf.InvalidArgumentError, "names='': expected a name"),
        (
            lambda d: d.rename({"x": "a\0"}),
            mf.InvalidArgumentError,
            "'a\\x00' has a character that",
        ),
        (lambda d: d.rename({"x": "\ud800"}), mf.InvalidArgumentError, "has a character that no"),
        (lambda d: d.rename({"y\0": "a"}), mf.NotFoundError, "the dataset has no field"),
        (lambda d: d.rename(["x"]), mf.InvalidArgumentError, "names=['x']: expected a dict"),
        (lambda d: d.stack(["x"]), mf.InvalidArgumentError, "stacks=['x']: expected a dict"),
        (lambda d: d.stack({"z": "y"}), mf.InvalidArgumentError, f"stacks['z']='y': {NAMES}"),
        (lambda d: d.stack({"z": []}), mf.InvalidArgumentError, f"stacks['z']=[]: {NAMES}"),
        (lambda d: d.stack({"x": ["y"]}), mf.InvalidArgumentError, 'of the stack are called "x"'),
        (lambda d: d.stack({"z": ["x", "y"]}), mf.InvalidArgumentError, "which is float32[2], and"),
        (lambda d: d.window(0), mf.InvalidArgumentError, "length=0: expected an integer from 1"),
        (lambda d: d.window(2, 0), mf.InvalidArgumentError, "stride=0: expected an integer from 1"),
        (lambda d: d.window(21), mf.InvalidArgumentError, "takes 21 records, but the dataset has"),
        (lambda d: d.window(2**40), mf.InvalidArgumentError, "takes 1099511627776 records"),
        (lambda d: d.window(2, within="z"), mf.NotFoundError, 'no field "z"'),
        (lambda d: d.window(2, within=3), mf.InvalidArgumentError, "within=3: expected a name"),
        (lambda d: d.window(2, within="y"), mf.InvalidArgumentError, 'one value of "y" has 1'),
        (lambda d: d.reshape("z", (2,)), mf.NotFoundError, 'no field "z"; the fields are "x", "y"'),
        (lambda d: d.reshape(3, (2,)), mf.InvalidArgumentError, "field=3: expected a name"),
        (lambda d: d.reshape("x", 2), mf.InvalidArgumentError, "shape=2: expected the lengths of"),
        (lambda d: d.reshape("x", "2"), mf.InvalidArgumentError, "shape[0]='2': expected an"),
        (lambda d: d.reshape("x", (1, 2.0)), mf.InvalidArgumentError, "shape[1]=2.0: expected an"),
        (lambda d: d.reshape("x", (2, -1)), mf.InvalidArgumentError, "none is computed from the"),
        (lambda d: d.reshape("x", (2**64,)), mf.InvalidArgumentError, "integer from 0 to 2^63-1"),
        (
            lambda d: d.reshape("x", (2**62, 4)),
            mf.InvalidArgumentError,
            "give positive lengths of at most 2 GiB in all",
        ),
        (
            lambda d: d.reshape("x", (3,)),
            mf.InvalidArgumentError,
            'Dataset.reshape: field "x" has rows of 8 bytes, but rows of shape [3] and type',
        ),
        (
            lambda d: d.reshape("x", (2,), dtype="int32"),
            mf.InvalidArgumentError,
            'field "x" holds float32, which cannot be read as int32; only bytes can be read',
        ),
        *(
            (
                lambda d, dtype=dtype: d.reshape("x", (2,), dtype=dtype),
                mf.InvalidArgumentError,
                f"dtype={dtype!r}: expected a little-endian type of numbers, such as",
            )
            for dtype in (
                "bool",
                ">f4",
                "nothing",
                3,
                object,
                "float8_e5m2",
                np.longdouble,
                [("a", "i4")],
            )
        ),
        (lambda d: mf.concat([]), mf.InvalidArgumentError, "datasets=[]: expected a list"),
        (lambda d: mf.concat(d), mf.InvalidArgumentError, "expected a list of at least one"),
        (
            lambda d: mf.concat([d, wrong(3)]),
            mf.InvalidArgumentError,
            "datasets[1]=3: expected a dataset",
        ),
        (
            lambda d: mf.concat([d, d, d.select(["x"])]),
            mf.InvalidArgumentError,
            "only dataset 0 has",
        ),
        (
            lambda d: mf.concat([d, d.window(2)]),
            mf.InvalidArgumentError,
            "is float32[2] and",
        ),
    ],
)
def test_wrong(view: Any, error: type[mf.Error], message: str) -> None:
    with mf.from_arrays({"x": X, "y": Y}) as ds, pytest.raises(error) as caught:
        view(ds)
    assert message in str(caught.value)


def test_missing_values() -> None:
    """Datasets with and without nulls are one; null rows of windows and stacks are filled."""
    whole = mf.from_arrow(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    lacking = mf.from_arrow(pa.table({"a": [5.0, None], "b": [None, 6.0]}))
    both = mf.concat([whole, lacking])
    assert both.schema["a"].nullable
    assert not whole.schema["a"].nullable
    view = both.stack({"x": ["b", "a"]}).window(2)
    with mf.Loader(view, batch_size=3, fill={"x": -1}) as loader:
        found = np.asarray(next(iter(loader))["x"])[:, :, 1]
    assert found.tolist() == [[1, 2], [2, 5], [5, -1]]


def test_logical_types() -> None:
    """Names of NumPy's types follow the fields."""
    days = np.arange(4).astype("datetime64[D]")
    ds = mf.from_arrays({"a": days, "b": days, "c": days.astype("datetime64[s]")})
    view = ds.rename({"a": "b", "b": "a"}).stack({"x": ["a", "b"]}).window(2)
    assert {f.name: str(f) for f in view.schema.values()} == {
        "c": "c: int64[2] (datetime64[s])",
        "x": "x: int64[2, 2] (datetime64[D])",
    }
    with pytest.raises(mf.InvalidArgumentError, match=r"int64 \(datetime64\[D\]\), and column"):
        ds.stack({"x": ["a", "c"]})
    with pytest.raises(
        mf.InvalidArgumentError, match=r'field "a" is int64 \(datetime64\[D\]\) and'
    ):
        mf.concat([ds.select(["a"]), ds.select(["c"]).rename({"c": "a"})])


def test_files(tmp_path: Path) -> None:
    """A view has the hash, the encodings and the comparison of all files below it."""
    paths = [tmp_path / f"{i}.arrow" for i in range(3)]
    for i, path in enumerate(paths):
        compression = "lz4" if i else "uncompressed"
        feather.write_feather(pa.table({"y": Y + i}), path, compression=compression)
    parts = [mf.open(paths[0]), mf.open(paths[1]), mf.open(paths[2], fingerprint="full")]
    view = (
        mf.concat([parts[0], mf.concat(parts[1:])])
        .filter(np.arange(60) % 2 == 0)
        .rename({"y": "label"})
    )
    with mf.open(paths) as all_files:
        assert view.sha256() == all_files.sha256()
    assert " records, encoded" in repr(view)
    assert view.fingerprint_covers == 1
    with pytest.raises(mf.UnsupportedError, match="in memory and has no files to hash"):
        mf.concat([parts[0], mf.from_arrays({"y": Y})]).sha256()
    with pytest.raises(mf.InvalidArgumentError, match=r"datasets\[0\] compares every byte"):
        mf.concat([view, mf.from_arrays({"label": Y})])


def test_thousands(ds: mf.Dataset) -> None:
    """A concatenation of many parts is one dataset. It outlives them."""
    y = ds.select(["y"])
    parts = [y.slice(i, i + 1) for i in range(20)]
    joined = mf.concat(parts * 500)
    for part in (ds, y, *parts):
        part.close()
    last = joined.take([9_999, 0, 5_007])
    joined.close()
    assert rows(last) == {"y": [190, 0, 70]}
    with pytest.raises(mf.InvalidStateError, match="the dataset is closed"):
        mf.concat([last, joined])
