"""Archives of WebDataset: records against Python's tarfile, and errors."""

from __future__ import annotations

import io
import random
import re
import tarfile
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import meshfeed as mf

Files = dict[str, bytes]


def write(path: Path, files: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def records_of(path: Path) -> list[tuple[str, Files]]:
    """Returns the records of an archive as WebDataset groups them."""
    found: list[tuple[str, Files]] = []
    with tarfile.open(path) as archive:
        for member in archive:
            match = re.match(r"^((?:.*/|)[^./]+)[.]([^/]+)$", member.name)
            if not member.isfile() or not match:
                continue
            key, field = match[1], match[2].lower()
            if not found or found[-1][0] != key:
                found.append((key, {}))
            found[-1][1][field] = archive.extractfile(member).read()  # type: ignore[union-attr]
    return found


def random_files(seed: int, n: int) -> list[tuple[str, bytes]]:
    rng = random.Random(seed)
    files = [("README", b"no record"), (".hidden.jpg", b"no record")]
    for i in range(n):
        folder = rng.choice(["", "a/", "b.c/" + "long" * 35 + "/"])
        key = f"{folder}sample-ä-{seed}-{i:05}"
        ends = [end for end in ("jpg", "CLS", "seg.png") if rng.random() < 0.8] or ["jpg"]
        rng.shuffle(ends)
        for end in ends:
            size = rng.choice([0, 1, 12, 13, 511, 512, 513, 70_000])
            files.append((f"{key}.{end}", rng.randbytes(size)))
    return files


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("reads", ["auto", "read"])
def test_records(tmp_path: Path, form: int, reads: Literal["auto", "read"]) -> None:
    """Every record has the bytes that tarfile reads, in the order of the shards."""
    want = []
    for k in range(3):
        path = write(tmp_path / f"shard-{k:03}.tar", random_files(k, 60), form)
        want += records_of(path)
    with mf.open(tmp_path / "shard-{000..002}.tar", io=reads) as ds:
        assert len(ds) == len(want) == 180
        assert set(ds.schema) == {"__key__", "jpg", "cls", "seg.png"}
        for row, (key, files) in zip(ds, want, strict=True):
            assert row["__key__"] == key
            for name in ("jpg", "cls", "seg.png"):
                data = row[name]
                got = None if data is None else bytes(data)
                assert got == files.get(name), (key, name)
    with mf.open(tmp_path) as ds, mf.open(tmp_path / "*.tar") as again:
        assert ds.fingerprint() == again.fingerprint()
        first = ds.select(["cls"]).pad("cls", length=70_000)
        with mf.Loader(first, batch_size=60, shuffle=True, seed=1) as loader:
            assert np.asarray(loader.peek()["cls"]).shape == (60, 70_000)


def test_an_index_is_kept(tmp_path: Path) -> None:
    """A large archive is read once. A damaged index is made again."""
    files = [(f"{i:04}.bin", bytes([i % 256]) * 100_000) for i in range(200)]
    path = write(tmp_path / "a.tar", files)
    folder = tmp_path / "cache"
    for _ in range(2):
        with mf.open(path, cache=folder) as ds:
            assert bytes(ds[199]["bin"]) == files[199][1]
        (entry,) = folder.glob("*.units")
        written = entry.stat().st_mtime_ns
        with mf.open(path, cache=folder) as ds:
            assert bytes(ds[7]["bin"]) == files[7][1]
        assert entry.stat().st_mtime_ns == written
        entry.write_bytes(entry.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ([("a.jpg", b"x"), ("a.JPG", b"y")], mf.DataLossError, '"a" has two files for the field'),
        ([("a", b"x"), ("b/c", b"y")], mf.UnsupportedError, "no file in the archive has a name"),
        ([], mf.UnsupportedError, "no file in the archive has a name"),
        ([(f"a.{i}", b"") for i in range(257)], mf.UnsupportedError, "more than 256 different"),
    ],
)
def test_refused(
    tmp_path: Path, files: list[tuple[str, bytes]], error: type[Exception], message: str
) -> None:
    path = write(tmp_path / "a.tar", files)
    with pytest.raises(error, match=f"{path}: .*{message}"):
        mf.open(path)


@pytest.mark.parametrize("size", [512, 700, 1000, 1536, 1700, 2048, 4000, 6144])
def test_cut_short(tmp_path: Path, size: int) -> None:
    """An archive that is cut short inside of a file is an error; between files it has fewer."""
    path = write(tmp_path / "a.tar", [(f"{i}.bin", b"x" * 600) for i in range(4)])
    path.write_bytes(path.read_bytes()[:size])
    if size % 1536 == 0:
        with mf.open(path) as ds:
            assert len(ds) == size // 1536
    else:
        with pytest.raises(mf.DataLossError, match="damaged or cut short after"):
            mf.open(path)


def test_ranges_of_numbers(tmp_path: Path) -> None:
    """Every file of a range must be there."""
    for name in ("8", "9", "10"):
        write(tmp_path / f"{name}.tar", [(f"{name}.cls", name.encode())])
    with mf.open(tmp_path / "{8..10}.tar") as ds:
        assert [row["__key__"] for row in ds] == ["8", "9", "10"]
    with pytest.raises(mf.NotFoundError, match=r"11\.tar"):
        mf.open(tmp_path / "{8..11}.tar")
    with pytest.raises(mf.InvalidArgumentError, match="smaller number first"):
        mf.open(tmp_path / "{3..1}.tar")


def test_rows_computed_from_archives_are_kept_until_the_archive_changes(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.tar", tmp_path / "kept"

    def lengths(size: int) -> list[int]:
        write(path, [(f"{i}.jpg", b"x" * size) for i in range(3)])
        with mf.open(path) as ds:
            counted = ds.map(
                lambda rows: {"bytes": np.array([len(data) for data in rows["jpg"]])},
                {"bytes": mf.Field((), "int64")},
                key="bytes.1",
            )
            return list(counted.select(["bytes"]).cache(kept)[:]["bytes"])

    assert lengths(5) == [5] * 3
    assert any(kept.iterdir())
    assert lengths(6) == [6] * 3
