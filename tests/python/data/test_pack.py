"""`Dataset.pack`: documents in rows of one length, from every format, on meshes, in attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf

RNG = np.random.default_rng(5)
TOKENS = [RNG.integers(1, 999, n).tolist() if n else None for n in RNG.integers(0, 30, 200)]
WEIGHT = [None if t is None else (np.array(t) / 1000).tolist() for t in TOKENS]
TABLE = pa.table(
    {
        "tokens": pa.array(TOKENS, pa.list_(pa.uint16())),
        "weight": pa.array(WEIGHT, pa.list_(pa.float32())),
        "text": [None if t is None else "ä" * len(t) for t in TOKENS],
        "id": np.arange(200),
    }
)


def arrow(path: Path) -> mf.Dataset:
    feather.write_feather(TABLE, path, compression="uncompressed", chunksize=17)
    return mf.open(path)


def compressed(path: Path) -> mf.Dataset:
    feather.write_feather(TABLE, path, compression="lz4", chunksize=17)
    return mf.open(path)


def parquet(path: Path) -> mf.Dataset:
    pq.write_table(TABLE, path, row_group_size=17)
    return mf.open(path)


def memory(path: Path) -> mf.Dataset:
    return mf.from_arrow(TABLE)


def documents(rows: dict[str, Any]) -> list[list[int]]:
    """Returns the documents of packed rows, or their pieces."""
    found = []
    for tokens, segments in zip(rows["tokens"], rows["segment_ids"], strict=True):
        found += [tokens[segments == s].tolist() for s in range(1, segments.max() + 1)]
    return found


@pytest.mark.parametrize("how", [arrow, compressed, parquet, memory])
def test_every_document_once(tmp_path: Path, how: Callable[[Path], mf.Dataset]) -> None:
    """All formats give the same rows, which have each document once, with its labels."""
    options: Any = {"length": 64, "with_fields": ["weight"], "labels": "labels"}
    ds = how(tmp_path / "data").pack("tokens", **options)
    rows, report = ds[:], ds.packing()
    whole = [t for t in TOKENS if t]
    assert sorted(documents(rows)) == sorted(whole)
    assert report["tokens"] == sum(map(len, whole))
    assert report["padding"] == rows["tokens"].size - report["tokens"]
    assert report["empty"] == TOKENS.count(None)
    assert (report["split"], report["rows"]) == (0, len(ds))
    assert report["real"] > 0.97
    assert sum(part["documents"] for part in report["lengths"]) == len(whole)
    real, next_one = rows["segment_ids"] > 0, rows["tokens"][:, 1:].astype(np.int32)
    np.testing.assert_allclose(rows["weight"], rows["tokens"] / np.float32(1000), rtol=1e-6)
    starts = np.diff(rows["segment_ids"], prepend=0) != 0
    assert (rows["positions"][starts & real] == 0).all()
    inside = (np.diff(rows["segment_ids"]) == 0) & real[:, 1:]
    want = np.where(inside, next_one, -100)
    np.testing.assert_array_equal(
        rows["labels"], np.pad(want, ((0, 0), (0, 1)), constant_values=-100)
    )
    assert rows["labels"].dtype == np.int32
    with how(tmp_path / "again").pack("tokens", **options) as again:
        assert again.fingerprint() == ds.fingerprint()


def test_pieces(tmp_path: Path) -> None:
    """Pieces of a document begin at position 0; their labels go on in the next piece."""
    ds = mf.from_arrow(pa.table({"tokens": [[1, 2, 3, 4, 5, 6, 7], [], [8, 9]]}))
    rows = ds.pack("tokens", length=4, labels="y", separator=0)[:]
    assert rows["tokens"].tolist() == [[1, 2, 3, 4], [5, 6, 7, 0], [8, 9, 0, 0]]
    assert rows["y"].tolist() == [[2, 3, 4, 5], [6, 7, 0, -100], [9, 0, -100, -100]]
    assert rows["positions"].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 0]]
    joined = ds.pack("tokens", length=4, method="split", overlap=1, labels="y", ignored_label=-1)
    assert joined[:]["tokens"].tolist() == [[1, 2, 3, 4], [4, 5, 6, 7], [7, 8, 9, 0]]
    assert joined[:]["y"].tolist() == [[2, 3, 4, 5], [5, 6, 7, -1], [-1, 9, -1, -1]]
    assert joined[:]["segment_ids"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 2, 2, 0]]
    cut = ds.pack("tokens", length=4, too_long="truncate")
    assert cut[:]["tokens"].tolist() == [[1, 2, 3, 4], [8, 9, 0, 0]]
    assert ds.pack("tokens", length=4, too_long="drop")[:]["tokens"].tolist() == [[8, 9, 0, 0]]
    assert len(ds.pack("tokens", length=9, max_documents=1)) == 2


def test_counts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many documents are counted once, unless nothing may be kept on disk."""
    lists = pa.ListArray.from_arrays(np.arange(70_001, dtype=np.int32) * 3, np.arange(210_000))
    pq.write_table(pa.table({"t": lists}), tmp_path / "data")
    report, entries = None, {None: 0, "memory": 0, "auto": 1, str(tmp_path / "mine"): 1}
    for cache, expected in entries.items():
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(len(str(cache)))))
        for damage in (False, True):
            with mf.open(tmp_path / "data", cache=cache) as ds:
                packed = ds.pack("t", length=16)
                report = report or packed.packing()
                assert packed.packing() == report
                assert (packed[9]["t"][:15] == np.arange(135, 150)).all()
            found = sorted(
                tmp_path.glob("*/meshfeed/units/*.units" if cache == "auto" else "mine/*")
            )
            assert len(found) == expected
            if found and damage:
                found[0].write_bytes(b"damaged")


def meshes() -> list[tuple[Mesh, P]]:
    devices = np.array(jax.devices()[:4])
    shapes = [(1, 1), (2, 2), (1, 4), (4, 1)]
    return [
        (Mesh(devices[: a * b].reshape(a, b), ("data", "seq")), P("data", "seq")) for a, b in shapes
    ]


def batches(loader: mf.Loader) -> list[dict[str, np.ndarray[Any, Any]]]:
    return [{name: np.asarray(x) for name, x in batch.items()} for batch in loader]


def test_meshes_and_resume(tmp_path: Path) -> None:
    """Batches do not depend on the mesh, and a loader resumes on another one in mid-epoch."""
    ds = arrow(tmp_path / "data").pack("tokens", length=32, with_fields=["weight"], labels="labels")
    options: Any = {"batch_size": 8, "shuffle": True, "seed": 3, "epochs": 1}
    whole = None
    for mesh, spec in meshes():
        with mf.Loader(ds, mesh, spec, **options) as loader:
            got = batches(loader)
        whole = whole or got
        jax.tree.map(np.testing.assert_array_equal, got, whole)
    assert whole is not None
    assert len(whole) > 5
    with mf.Loader(ds, *meshes()[1], **options) as loader:
        for _, _ in zip(range(4), loader, strict=False):
            pass
        state = loader.state()
    with mf.Loader(ds.cache("memory"), *meshes()[2], state=state, **options) as loader:
        jax.tree.map(np.testing.assert_array_equal, batches(loader), whole[4:])
    other = arrow(tmp_path / "other").pack("tokens", length=32)
    with pytest.raises(mf.IncompatibleError):
        mf.Loader(other, *meshes()[1], state=state, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"length": 0}, mf.InvalidArgumentError, "length=0: expected an integer from 1"),
        ({"length": -5}, mf.InvalidArgumentError, "length=-5: expected an integer from 1"),
        ({"length": 2.5}, mf.InvalidArgumentError, "length=2.5: expected an integer"),
        ({"field": "id"}, mf.InvalidArgumentError, 'field "id" has one value in each record'),
        ({"field": "word"}, mf.NotFoundError, 'the dataset has no field "word"'),
        ({"method": "ffd"}, mf.InvalidArgumentError, 'expected "best_fit" or "split"'),
        ({"too_long": "cut"}, mf.InvalidArgumentError, '"split", "truncate", "drop" or "error"'),
        ({"too_long": "error"}, mf.OutOfRangeError, "elements, but a row has 20; give longer rows"),
        ({"separator": -1}, mf.InvalidArgumentError, "is -1, but uint16 cannot hold it"),
        ({"separator": "a"}, mf.InvalidArgumentError, "separator='a': expected a number"),
        ({"overlap": 20}, mf.InvalidArgumentError, "overlap=20: expected an integer from 0 to 19"),
        ({"overlap": 2}, mf.InvalidArgumentError, "rows packed by best_fit do not overlap"),
        ({"group": 0}, mf.InvalidArgumentError, "group=0: expected an integer from 1"),
        ({"group": 9, "method": "split"}, mf.InvalidArgumentError, "has neither groups nor"),
        (
            {"max_documents": 0},
            mf.InvalidArgumentError,
            "max_documents=0: expected an integer from 1",
        ),
        ({"with_fields": ["text"]}, mf.InvalidArgumentError, 'elements in field "text", but'),
        ({"with_fields": "text"}, mf.InvalidArgumentError, "expected a list of names"),
        ({"labels": "positions"}, mf.InvalidArgumentError, 'are called "positions"'),
        ({"field": "weight", "labels": "y"}, mf.InvalidArgumentError, "labels are integers, but"),
        ({"labels": "y", "ignored_label": 2**40}, mf.InvalidArgumentError, "int32 cannot hold it"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with mf.from_arrow(TABLE) as ds, pytest.raises(error) as caught:
        ds.pack(**{"field": "tokens", "length": 20, **options})
    assert message in str(caught.value)


def test_nothing_to_pack() -> None:
    """Documents without elements make a dataset without rows, which a loader refuses."""
    nothing: list[list[list[int] | None]] = [[], [[], None, []]]
    for lists in nothing:
        table = pa.table({"tokens": pa.array(lists, pa.list_(pa.int32()))})
        ds = mf.from_arrow(table).pack("tokens", length=8)
        assert len(ds) == 0
        assert ds.packing()["empty"] == len(lists)
        with pytest.raises(mf.errors.Error, match="record"):
            mf.Loader(ds, batch_size=4)
    with pytest.raises(mf.InvalidArgumentError, match="this dataset was not packed"):
        mf.from_arrow(TABLE).packing()
    nulls = mf.from_arrow(pa.table({"tokens": [[1, 2], [3, None]]})).pack("tokens", length=8)
    with pytest.raises(mf.InvalidArgumentError, match="record 1 holds a null among its elements"):
        nulls[0]


def test_better_length() -> None:
    """Documents of just over half a row waste much, and the report names a better length."""
    tokens = [[1] * n for n in np.tile(np.arange(1020, 1180, 4), 20)]
    report = mf.from_arrow(pa.table({"tokens": tokens})).pack("tokens", length=2048).packing()
    assert report["real"] < 0.56
    assert report["better"]["length"] == 1176
    assert report["better"]["real"] > 0.9


def test_attention_inside_documents() -> None:
    """With the mask of the guide, a document does not change the outputs of its neighbors."""
    rng = np.random.default_rng(0)
    table = pa.table({"tokens": [rng.integers(0, 50, n).tolist() for n in (5, 4, 3)]})
    batch = mf.from_arrow(table).pack("tokens", length=16)[:1]
    segments = jnp.asarray(batch["segment_ids"])
    embedded = jnp.asarray(rng.normal(size=(50, 2, 8)), jnp.float32)

    def outputs(tokens: Any) -> Any:
        x = embedded[tokens]
        same = segments[:, None, :, None] == segments[:, None, None, :]
        return jax.nn.dot_product_attention(x, x, x, mask=same, is_causal=True)

    before = outputs(batch["tokens"])
    changed = np.where(batch["segment_ids"] == 1, 49 - batch["tokens"], batch["tokens"])
    after = outputs(changed)
    second = np.asarray(segments) >= 2
    np.testing.assert_array_equal(np.asarray(before)[second], np.asarray(after)[second])
    assert not np.array_equal(before, after)
    alone = outputs(np.where(second, batch["tokens"], 0))
    np.testing.assert_array_equal(np.asarray(before)[second], np.asarray(alone)[second])
