"""Decoded rows of Parquet and of compressed files, kept in a folder."""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import meshfeed as mf
from meshfeed._loader.decoding import Watch


def write(folder: Path) -> tuple[Path, Path]:
    """Writes the same 500 rows as Parquet, in 10 row groups, and as an Arrow file."""
    rng = np.random.default_rng(3)
    columns = {
        "x": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(1500, np.float32)), 3),
        "y": pa.array(rng.integers(0, 9, 500)),
    }
    packed, plain = folder / "x.parquet", folder / "x.arrow"
    pyarrow.parquet.write_table(pa.table(columns), packed, row_group_size=50)
    pyarrow.feather.write_feather(pa.table(columns), plain, compression="uncompressed")
    return packed, plain


def batches(ds: mf.Dataset, **options: Any) -> list[dict[str, Any]]:
    with mf.Loader(ds, batch_size=32, epochs=2, seed=7, **options) as loader:
        return [{name: np.asarray(a) for name, a in batch.items()} for batch in loader]


@pytest.mark.parametrize("order", ["shuffle", "sequential", mf.Blocks(window=2, records=50)])
@pytest.mark.parametrize("io", ["auto", "read"])
def test_batches_from_a_cache_are_those_of_an_arrow_file(
    order: Any, io: Any, tmp_path: Path
) -> None:
    packed, plain = write(tmp_path)
    want = batches(mf.open(plain), order=order)
    for _ in range(2):  # makes the cache, then finds it
        got = batches(mf.open(packed, cache=tmp_path / "cache", io=io), order=order)
        assert len(got) == len(want) == 2 * 15
        for a, b in zip(got, want, strict=True):
            assert a.keys() == b.keys()
            assert all((a[name] == b[name]).all() for name in a)
    assert len(list((tmp_path / "cache").glob("*.units"))) == 1


def test_a_second_epoch_reads_no_parquet(tmp_path: Path) -> None:
    packed, _ = write(tmp_path)
    with (
        mf.open(packed, cache=tmp_path / "cache") as ds,
        mf.Loader(ds, batch_size=50, shuffle=True, epochs=2, prefetch=0) as loader,
    ):
        steps = iter(loader)
        for _ in range(10):
            next(steps)
        os.truncate(packed, 0)
        assert len(list(steps)) == 10


def test_a_removed_cache_is_made_again(tmp_path: Path) -> None:
    packed, plain = write(tmp_path)
    for _ in range(2):
        got = batches(mf.open(packed, cache=tmp_path / "cache"), shuffle=True)
        assert (got[-1]["x"] == batches(mf.open(plain), shuffle=True)[-1]["x"]).all()
        for entry in (tmp_path / "cache").iterdir():
            entry.unlink()


def test_none_refuses_to_shuffle(tmp_path: Path) -> None:
    packed, plain = write(tmp_path)
    with mf.open(packed, cache=None) as ds, ds.slice(0, 100) as part:
        for order in ("sequential", "blocks"):
            mf.Loader(part, batch_size=4, order=order).close()
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(part, batch_size=4, shuffle=True)
    assert str(caught.value) == (
        f"mf.Loader: {packed} is encoded (snappy), and its order is random, but it was opened with "
        'cache=None; use order="blocks", or open it with cache="auto"'
    )
    with mf.open(plain, cache=None) as ds:
        mf.Loader(ds, batch_size=4, shuffle=True).close()
        both = mf.concat(
            [ds, mf.open(packed)]
        )  # only the second one is encoded, and it has a cache
        mf.Loader(both, batch_size=4, shuffle=True).close()


def test_none_refuses_what_shuffles_below_a_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mixture shuffles its datasets; a packed row may need documents that lie far apart."""
    packed, plain = write(tmp_path)
    ds = mf.open(packed, cache=None)
    for how in ({"shuffle": False}, {"order": mf.Blocks(records=20)}):
        mf.Loader(mf.mix({"a": ds}, {"a": 1}, **how), batch_size=4).close()
    for mixed in (
        mf.mix({"a": ds}, {"a": 1}),
        mf.mix({"b": mf.open(plain), "a": ds}, {"b": 1, "a": 1}),
    ):
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(mf.mix({"a": mixed.slice(0, 50)}, {"a": 1}, shuffle=False), batch_size=4)
        assert str(caught.value) == (
            f"mf.Loader: {packed} is encoded (snappy), and a mixture shuffles it, but it was "
            'opened with cache=None; give mf.mix order="blocks", or open it with cache="auto"'
        )
    mf.Loader(mf.mix({"a": ds.cache("memory")}, {"a": 1}), batch_size=4).close()
    lists = tmp_path / "lists.parquet"
    pyarrow.parquet.write_table(pa.table({"t": [[1] * (i % 9) for i in range(400)]}), lists)
    documents = mf.open(lists, cache=None)
    mf.Loader(documents.pack("t", length=16), batch_size=4).close()
    monkeypatch.setattr("meshfeed._data.dataset.DECODED", 400 * 4 * 8 // 2)
    mf.Loader(documents.pack("t", length=16, group=100), batch_size=4).close()
    mf.Loader(documents.pack("t", length=16, method="split"), batch_size=4).close()
    with pytest.raises(
        mf.InvalidArgumentError, match=r"rows lie far apart, but .*; give ds.pack a sm"
    ):
        mf.Loader(documents.pack("t", length=16), batch_size=4)


def test_wrong_arguments(tmp_path: Path) -> None:
    packed, _ = write(tmp_path)
    wrong: list[dict[str, Any]] = [{"cache": 3}, {"cache": ""}, {"cache_bytes": 0}]
    for arguments in wrong:
        with pytest.raises(mf.InvalidArgumentError, match=r"mf\.open: cache"):
            mf.open(packed, **arguments)
    with pytest.raises(OSError, match=r"the cache in .*x\.parquet/y: not a directory"):
        mf.open(packed, cache=packed / "y")
    with (
        mf.open(packed, cache=tmp_path / "cache", cache_bytes=100) as ds,
        pytest.raises(
            mf.ResourceExhaustedError,
            match=r"the decoded fields take 10000 bytes, but the cache in .* may have 100;",
        ),
    ):
        mf.Loader(ds, batch_size=4)


@pytest.fixture(scope="module")
def much(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file of nine row groups. Each has 32 MiB decoded."""
    path = tmp_path_factory.mktemp("much") / "zeros.parquet"
    zeros = pa.table({"x": pa.array(np.zeros(1 << 22, np.int64))})
    with pyarrow.parquet.ParquetWriter(path, zeros.schema) as writer:
        for _ in range(9):
            writer.write_table(zeros)
    return path


def test_a_cache_that_fails_in_a_loop_warns_once(
    much: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the disk becomes full, no further part can be written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "meshfeed" / "units"
    with (
        mf.open(much, cache_bytes=1 << 29) as ds,
        ds.slice(0, 3 << 22) as part,
        mf.Loader(part, batch_size=1 << 21, prefetch=0) as loader,
    ):
        for batch in loader:
            assert not np.asarray(batch["x"]).any()
            if loader.step == 1:
                shutil.rmtree(folder)
        watch = Watch(ds)
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert re.fullmatch(
        "decoded data are kept in memory alone from now on: arrowio: the cache in "
        rf"{re.escape(str(folder))}: no such file or directory; about \d+ bytes more are needed; "
        r"make room, or give another folder \(cache\) or limit \(cache_bytes\); "
        "or set cache to memory",
        warning,
    )
    watch.look(at_end=True)  # the dataset is closed
    assert len(caplog.records) == 1


def test_auto_keeps_much_data_on_disk(
    much: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Fields of more than 256 MiB go to the user's cache, and to memory if that is unusable."""
    caplog.set_level(logging.INFO, "meshfeed")
    path = much
    folder = tmp_path / "home" / "meshfeed" / "units"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with (
        mf.open(path, cache_bytes=1 << 29) as ds,
        mf.Loader(ds, batch_size=4, order=mf.Blocks(window=1)) as loader,
    ):
        assert not np.asarray(next(iter(loader))["x"]).any()
    assert 1 <= len(list(folder.glob("*.units"))) < 9  # what the first window takes, and the next
    (message,) = caplog.messages
    kept = f"{path} and the other encoded files are decoded once, into {folder}, which has at most "
    assert message.startswith(kept)

    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    caplog.clear()
    with (
        mf.open(path, cache_bytes=1 << 29) as ds,
        mf.Loader(ds, batch_size=4, shuffle=True, prefetch=0),
    ):
        problem, slow = caplog.messages
    assert problem == (
        "decoded data are kept in memory alone, because of a problem: arrowio: the cache in "
        f"{path}/meshfeed/units: not a directory; give a folder that this user may write, or keep "
        'decoded rows in memory (cache="memory")'
    )
    assert slow.startswith(f"{path} is encoded (snappy), and its order is random: 268435456 of ")
