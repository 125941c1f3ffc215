"""Folders of images by class: records in the order of torchvision's ImageFolder."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import meshfeed as mf

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def samples(directory: Path) -> tuple[list[str], list[tuple[str, int]]]:
    """Returns the classes and samples by the rule of torchvision 0.27 (`make_dataset`)."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    found = []
    for number, name in enumerate(classes):
        for root, _, files in sorted(os.walk(directory / name, followlinks=True)):
            found += [
                (os.path.join(root, file), number)
                for file in sorted(files)
                if file.lower().endswith(EXTENSIONS)
            ]
    return classes, found


def fill(folder: Path, seed: int) -> None:
    """Writes classes with files in nested folders, whose names sort in different ways."""
    rng = random.Random(seed)
    parts = ["a", "a-b", "A", "a.b", "ä", "10", "2", "z z"]
    for name in parts[:6]:
        for i in range(12):
            inner = folder / name / Path(*rng.choices(parts, k=rng.randrange(3)))
            inner.mkdir(parents=True, exist_ok=True)
            suffix = rng.choice([*EXTENSIONS, ".JPG", ".txt", ""])
            (inner / f"{rng.choice(parts)}{i}{suffix}").write_bytes(
                rng.randbytes(rng.choice([0, 50]))
            )
        (folder / name / "one.jpg").write_bytes(b"one")
    (folder / "beside.jpg").write_bytes(b"of no class")
    (folder / "a" / "link").symlink_to(folder / "10", target_is_directory=True)


@pytest.mark.parametrize("seed", range(3))
def test_image_folder(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed)
    classes, want = samples(tmp_path)
    with mf.open(tmp_path, images=True) as ds:
        assert ds.schema["label"].names == tuple(classes)
        assert len(ds) == len(want)
        for row, (path, number) in zip(ds, want, strict=True):
            assert row["path"] == Path(path).relative_to(tmp_path).as_posix()
            assert row["label"] == number
            assert bytes(row["image"]) == Path(path).read_bytes()


def test_training(tmp_path: Path) -> None:
    """Decoded images and labels in a shuffled order, also after a conversion, and the verbs."""
    for number, name in enumerate(("cat", "dog")):
        for i in range(8):
            path = tmp_path / "train" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (9, 7), (number, i, 0)).save(path)
    for verb, last in (("inspect", ()), ("verify", ()), ("convert", (tmp_path / "out",))):
        command = [sys.executable, "-m", "meshfeed", verb, "--images", tmp_path / "train", *last]
        assert subprocess.run(command, check=False).returncode == 0
    for ds in (mf.open(tmp_path / "train", images=True), mf.open(tmp_path / "out")):
        assert ds.schema["label"].names == ("cat", "dog")
        rows = ds.decode_image("image", size=(4, 4)).select(["image", "label"])
        with ds, mf.Loader(rows, batch_size=16, shuffle=True, seed=3) as loader:
            batch = loader.peek()
            order = loader.records(0, 0)[:16]
        assert sorted(order) != list(order)
        assert np.asarray(batch["label"]).tolist() == [i // 8 for i in order]
        assert np.asarray(batch["image"])[:, 0, 0, 1].tolist() == [i % 8 for i in order]


def test_a_changed_image(tmp_path: Path) -> None:
    path = tmp_path / "a" / "1.jpg"
    path.parent.mkdir()
    path.write_bytes(b"before")
    with mf.open(tmp_path, images=True) as ds:
        path.write_bytes(b"after")
        with pytest.raises(mf.DataLossError, match=r"1\.jpg has changed since it was opened"):
            ds[0]
    with pytest.raises(mf.InvalidArgumentError, match="images=True takes a folder that has a"):
        mf.open(path, images=True)
