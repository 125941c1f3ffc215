"""Directories and objects of Hugging Face's libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meshfeed as mf

FEATURES = datasets.Features(
    {
        "label": datasets.ClassLabel(names=["cat", "dog", "a bird"]),
        "x": datasets.List(datasets.Value("float32"), length=2),
        "text": datasets.Value("string"),
    }
)


def dataset(rows: int, split: str = "train") -> datasets.Dataset:
    data = {
        "label": [k % 3 for k in range(rows)],
        "x": [[k, -k] for k in range(rows)],
        "text": [f"text number {k}" for k in range(rows)],
    }
    return datasets.Dataset.from_dict(data, features=FEATURES, split=split)


def column(ds: mf.Dataset, name: str) -> list[Any]:
    with mf.Loader(ds, specs=[name], batch_size=len(ds), shuffle=False) as loader:
        return list(np.asarray(next(iter(loader))[name]).tolist())


@pytest.fixture
def splits() -> datasets.DatasetDict:
    return datasets.DatasetDict({"train": dataset(6), "test": dataset(3, "test")})


def test_splits(tmp_path: Path, splits: datasets.DatasetDict) -> None:
    splits.save_to_disk(tmp_path / "saved")
    files = tmp_path / "files"
    files.mkdir()
    for name, part in splits.items():
        half = len(part) // 3
        part.select(range(half)).to_parquet(files / f"{name}-00000-of-00002.parquet")
        part.select(range(half, len(part))).to_parquet(files / f"{name}-00001-of-00002.parquet")
    shards = {name: f"{files}/{name}-*" for name in splits}
    loaded = datasets.load_dataset("parquet", data_files=shards, cache_dir=str(tmp_path / "cache"))
    loaded["train"].map(lambda row: {"more": 1}).filter(lambda row: row["label"] > 0)
    cached = Path(loaded["train"].cache_files[0]["filename"]).parent
    for directory in (tmp_path / "saved", files, cached):
        for name, part in splits.items():
            with mf.open(directory, split=name) as ds:
                assert column(ds, "x") == part["x"][:]
        with pytest.raises(mf.InvalidArgumentError, match="has the splits "):
            mf.open(directory)
        with pytest.raises(mf.NotFoundError, match='has no split "valid"; it has '):
            mf.open(directory, split="valid")
    with pytest.raises(mf.InvalidArgumentError, match="split=1"):
        mf.open(files, split=1)  # type: ignore[arg-type]


def test_a_live_dataset_keeps_its_order() -> None:
    whole = dataset(100)
    for chosen in (
        whole.shuffle(seed=3),
        whole.filter(lambda row: row["label"] == 1),
        whole.shuffle(seed=3).select([5, 1, 5]),
        whole.select(range(10, 20)),
        whole.select([]),
        datasets.concatenate_datasets([whole, whole]).shuffle(seed=1),
        whole.shuffle(seed=1).remove_columns(["text"]).rename_column("x", "y"),
    ):
        with mf.from_arrow(chosen) as ds:
            assert list(ds.schema) == chosen.column_names
            assert len(ds) == len(chosen)
            name = chosen.column_names[1]
            if len(chosen):
                assert column(ds, name) == chosen[name][:]


def test_formats_and_transforms(tmp_path: Path) -> None:
    """A format may leave columns out. A transform computes rows that are stored nowhere."""
    live = dataset(6).shuffle(seed=1)
    with mf.from_arrow(live.with_format("numpy", columns=["x", "label"])) as ds:
        assert pa.table(ds).to_pydict() == {"label": live["label"][:], "x": live["x"][:]}
    for whole in (
        live.with_format("numpy"),
        live.with_format("numpy", columns=["x"], output_all_columns=True),
    ):
        with mf.from_arrow(whole) as ds:
            assert list(ds.schema) == ["label", "x", "text"]
    with pytest.raises(mf.InvalidArgumentError, match="the dataset has a transform"):
        mf.from_arrow(live.with_transform(lambda rows: rows))
    with pytest.raises(mf.InvalidArgumentError, match="without streaming=True"):
        mf.from_arrow(live.to_iterable_dataset())
    datasets.DatasetDict({"train": live}).save_to_disk(tmp_path / "one")
    for split in (None, "train", datasets.Split.TRAIN):
        with mf.open(tmp_path / "one", split=split) as ds:
            assert column(ds, "x") == live["x"][:]


def test_saved_rows_are_those_that_the_library_loads(tmp_path: Path) -> None:
    """Files of indices that the library writes beside the data are not part of them."""
    whole = dataset(60)
    views = [
        whole.shuffle(seed=3),
        whole.filter(lambda row: row["label"] == 1),
        whole.shuffle(seed=5).select([5, 1, 5, 40]),
        whole.select(range(10, 20)),
        datasets.concatenate_datasets([whole.shuffle(seed=1), whole.select([3])]),
    ]
    for k, view in enumerate(views):
        directory = tmp_path / str(k)
        view.save_to_disk(directory, num_shards=2)
        loaded = datasets.load_from_disk(directory)
        assert isinstance(loaded, datasets.Dataset)
        loaded.shuffle(seed=1)
        loaded.filter(lambda row: row["label"] == 0)
        assert list(directory.glob("cache-*.arrow"))
        with mf.open(directory) as ds:
            assert pa.table(ds).to_pydict() == loaded.to_dict()


def test_rows_that_are_chosen_for_their_shape() -> None:
    """Rows are copied if only the chosen ones have one length, or no nulls."""
    data = {"list": [[1], [2, 3], [4, 5]], "null": [None, 1, 2]}
    chosen = datasets.Dataset.from_dict(data).select([2, 1, 2])
    with mf.from_arrow(chosen) as ds:
        assert ds.schema["list"].shape == (2,)
        assert not ds.schema["null"].nullable
        assert column(ds, "list") == [[4, 5], [2, 3], [4, 5]]


def test_names_of_classes(tmp_path: Path) -> None:
    """The names come from files of both formats, from live datasets, and from Arrow tables."""
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["cat", "dog", 'a "bird"']),
            "tags": datasets.List(datasets.ClassLabel(names=["day", "night"])),
            "number": datasets.Value("int64"),
        }
    )
    data = {"label": [0, 2, None], "tags": [[0], [1, 0], []], "number": [1, 2, 3]}
    live = datasets.Dataset.from_dict(data, features=features)
    live.save_to_disk(tmp_path / "saved")
    live.to_parquet(tmp_path / "x.parquet")
    opened = [mf.open(tmp_path / "saved"), mf.open(tmp_path / "x.parquet"), mf.from_arrow(live)]
    opened += [mf.from_arrow(live.data.table), mf.from_arrow(live.select([2, 0]))]
    for ds in opened:
        with ds:
            assert ds.schema["label"].names == ("cat", "dog", 'a "bird"')
            assert ds.schema["tags"].names == ("day", "night")
            assert ds.schema["number"].names == ()
            with ds.rename({"label": "y"}) as view:
                assert view.schema["y"].names == ("cat", "dog", 'a "bird"')
    for ds in (mf.from_arrow(live), mf.from_arrow(live).rename({"number": "n"}).slice(0, 2)):
        with ds:
            table = pa.table(ds)
        library = datasets.Dataset(table).features
        assert library["label"] == features["label"]
        assert library["tags"] == features["tags"]
        pq.write_table(table, tmp_path / "again.parquet")
        for copy in (mf.from_arrow(table), mf.open(tmp_path / "again.parquet")):
            with copy:
                assert copy.schema["label"].names == ("cat", "dog", 'a "bird"')
                assert copy.schema["tags"].names == ("day", "night")
    with mf.from_arrow(live.select_columns(["number"])) as ds:
        assert pa.table(ds).schema.metadata is None
    other = live.cast_column("label", datasets.ClassLabel(names=["dog", "cat", "x"]))
    with mf.from_arrow(live) as first, mf.from_arrow(other) as second:
        with pytest.raises(mf.InvalidArgumentError, match='class 0 is "cat" and "dog"'):
            mf.concat([first, second])


def encoded(rows: int) -> list[dict[str, Any] | None]:
    values: list[dict[str, Any] | None] = [
        {"bytes": b"image %d" % k, "path": f"{k}.png"} for k in range(rows)
    ]
    values[1] = None
    values[2] = {"bytes": b"", "path": None}
    return values


def test_encoded_files_are_bytes(tmp_path: Path) -> None:
    """Images and audio are rows of bytes, whatever stores them."""
    values = encoded(20)
    live = datasets.Dataset.from_dict({"image": values, "sound": values, "label": range(20)})
    live = live.cast_column("image", datasets.Image(decode=False))
    live = live.cast_column("sound", datasets.Audio(decode=False))
    live.save_to_disk(tmp_path / "saved")
    live.to_parquet(tmp_path / "x.parquet", batch_size=7)
    frame = pl.DataFrame(live.data.table)
    frame.write_ipc(tmp_path / "views.arrow")
    frame.write_ipc(tmp_path / "packed.arrow", compression="zstd", record_batch_size=6)
    frame.write_parquet(tmp_path / "polars.parquet")
    pq.write_table(live.data.table, tmp_path / "pages.parquet", row_group_size=3)
    want = [None if v is None else v["bytes"] for v in values]
    names = ["saved", "x.parquet", "views.arrow", "packed.arrow", "polars.parquet", "pages.parquet"]
    opened = [mf.open(tmp_path / name) for name in names]
    opened += [mf.from_arrow(live), mf.from_arrow(live.data.table), mf.from_arrow(frame)]
    order = [5, 1, 19, 2, 1]
    for ds in opened:
        with ds, ds.take(order) as some:
            table = pa.table(ds)
            assert table["image"].to_pylist() == table["sound"].to_pylist() == want
            assert pa.table(some)["image"].to_pylist() == [want[k] for k in order]
            assert (ds.schema["image"].dtype, ds.schema["image"].ragged) == ("uint8", 1)
            assert ds.skipped == []
            assert len(ds.fingerprint()) == 32
    for chosen in (live.select(order), live.shuffle(seed=4), live.select(range(1, 9))):
        with mf.from_arrow(chosen) as ds:
            assert pa.table(ds)["image"].to_pylist() == [
                None if v is None else v["bytes"] for v in chosen["image"]
            ]


def test_files_that_are_not_in_the_data(tmp_path: Path) -> None:
    """A path without bytes is an error, and the advice in it works."""
    (tmp_path / "a.png").write_bytes(b"abc")
    features = datasets.Features({"image": datasets.Image(decode=False)})
    path = {"bytes": None, "path": str(tmp_path / "a.png")}
    live = datasets.Dataset.from_dict({"image": [None, path]}, features=features)
    live.to_parquet(tmp_path / "x.parquet")
    with mf.from_arrow(live) as ds:
        assert list(ds.schema) == []
        assert "record 1 has a path and no bytes; put the files into" in ds.skipped[0].reason
    with mf.open(tmp_path / "x.parquet") as ds:
        message = 'x.parquet: field "image": record 1 has a path and no bytes; put the files into'
        with ds.pad("image", length=9) as padded:
            with pytest.raises(mf.UnsupportedError, match=message):
                mf.Loader(padded, batch_size=2)
    embed = datasets.table.embed_table_storage
    embedded = live.with_format("arrow").map(embed, batched=True).with_format(None)
    live.save_to_disk(tmp_path / "saved")
    for ds in (mf.from_arrow(embedded), mf.open(tmp_path / "saved")):
        with ds:
            assert pa.table(ds)["image"].to_pylist() == [None, b"abc"]
