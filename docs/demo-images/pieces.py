"""The demo's data: pieces of photographs that Python packages contain, in archives of WebDataset.

scikit-learn contains china.jpg and flower.jpg (by danielbuechele and vultilion, CC BY 2.0),
matplotlib contains grace_hopper.jpg. Pieces for training come from the left two thirds of each
photograph, and pieces for the test from the rest. Brightness, size and quality differ.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
import sklearn.datasets
from PIL import Image, ImageEnhance

import meshfeed as mf

SIZE, BATCH, STEPS = 64, 32, 120  # pixels, images, steps
NAMES = ("china", "flower", "grace_hopper")
TRAIN, TEST = 480, 120  # pieces
SHARDS = 2
SIDES = (80, 160)  # pixels of a piece
PART = {"train": (0, 2 / 3), "test": (2 / 3, 1)}  # of the width of a photograph

Random = np.random.Generator


def photographs() -> list[Image.Image]:
    """Returns the photographs, in the order of NAMES."""
    folders = [Path(sklearn.datasets.__file__).parent / "images"]
    folders.append(Path(mpl.get_data_path()) / "sample_data")
    paths = [next(f / f"{n}.jpg" for f in folders if (f / f"{n}.jpg").exists()) for n in NAMES]
    return [Image.open(path).convert("RGB") for path in paths]


def write(folder: Path) -> None:
    """Writes archives with 000000.jpg, 000000.cls, and so on: two of training, one of the test."""
    rng, images = np.random.default_rng(0), photographs()
    for name, count, shards in (("train", TRAIN, SHARDS), ("test", TEST, 1)):
        for shard in range(shards):
            with tarfile.open(folder / f"{name}-{shard:03}.tar", "w") as archive:
                for number in range(shard * count // shards, (shard + 1) * count // shards):
                    label = number % len(NAMES)
                    _add(archive, f"{number:06}.jpg", _piece(images[label], PART[name], rng))
                    _add(archive, f"{number:06}.cls", b"%d" % label)


def _piece(photograph: Image.Image, part: tuple[float, float], rng: Random) -> bytes:
    """Returns a piece of a photograph as a JPEG file."""
    low, high = (round(photograph.width * share) for share in part)
    width, height = rng.integers(*SIDES, 2)
    left, top = rng.integers(low, high - width + 1), rng.integers(photograph.height - height + 1)
    piece = photograph.crop((left, top, left + width, top + height))
    piece = ImageEnhance.Brightness(piece).enhance(rng.uniform(0.7, 1.3))
    file = io.BytesIO()
    piece.save(file, "JPEG", quality=int(rng.integers(60, 96)))
    return file.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def training(folder: Path) -> mf.Dataset:
    """Opens the pieces for training, each with another crop in every epoch."""
    return _opened(folder, "train-*.tar", crop="random", flip="random")


def testing(folder: Path) -> mf.Dataset:
    return _opened(folder, "test-*.tar", crop="center")


def _opened(folder: Path, pattern: str, **how: str) -> mf.Dataset:
    ds = mf.open(folder / pattern).decode_image("jpg", size=(SIZE, SIZE), **how)
    ds = ds.map(_label, {"label": mf.Field((), "int32")}, fields=["cls"])
    return ds.rename({"jpg": "image"}).select(["image", "label"])


def _label(rows: dict[str, list[bytes]]) -> dict[str, np.ndarray]:
    return {"label": np.array([int(text) for text in rows["cls"]], np.int32)}
