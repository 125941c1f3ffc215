"""Views: `Dataset.select` and `Dataset.take`, alone and over each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import meshfeed as mf

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
FLAT = "expected integers in one dimension"


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
        (lambda d: d.take([0, 1, -1]), mf.OutOfRangeError, "index -1 at position 2 is outside"),
        (lambda d: d.take(np.array([2**64 - 1], "u8")), mf.OutOfRangeError, "at position 0"),
        (lambda d: d.take([0.5]), mf.InvalidArgumentError, f"indices=float64[1]: {FLAT}"),
        (lambda d: d.take([[1]]), mf.InvalidArgumentError, f"indices=int64[1, 1]: {FLAT}"),
        (lambda d: d.take(3), mf.InvalidArgumentError, f"indices=int64[]: {FLAT}"),
        (lambda d: d.take(["a"]), mf.InvalidArgumentError, FLAT),
        (lambda d: d.take(Y > 9), mf.InvalidArgumentError, "give np.flatnonzero(mask)"),
    ],
)
def test_wrong(view: Any, error: type[mf.Error], message: str) -> None:
    with mf.from_arrays({"x": X, "y": Y}) as ds, pytest.raises(error) as caught:
        view(ds)
    assert message in str(caught.value)
