"""`Dataset.decode_image`: against Pillow, on photographs, on damaged and hostile files."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from PIL import Image

import meshfeed as mf

RNG = np.random.default_rng(5)


def packaged(package: str, path: str) -> Path:
    """Returns a file of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / path


PHOTO = packaged("matplotlib", "mpl-data/sample_data/grace_hopper.jpg")
FLOWER = packaged("sklearn", "datasets/images/flower.jpg")


def noise(height: int, width: int) -> Image.Image:
    return Image.fromarray(RNG.integers(0, 256, (height, width, 3), np.uint8))


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def dataset(*files: bytes | None) -> mf.Dataset:
    table = {"image": pa.array(files, pa.binary()), "label": np.arange(len(files))}
    return mf.from_arrow(pa.table(table))


def decoded(file: bytes, **options: Any) -> np.ndarray[Any, Any]:
    row: np.ndarray[Any, Any] = dataset(file).decode_image("image", **options)[0]["image"]
    return row


def near(got: Any, want: Any, most: int) -> None:
    """Compares pixels, up to a difference."""
    assert np.abs(np.asarray(got, int) - np.asarray(want, int)).max() <= most


@pytest.mark.parametrize(("height", "width"), [(60, 80), (30, 40), (90, 81), (61, 80), (30, 77)])
def test_pillow(height: int, width: int) -> None:
    """Where each pixel covers whole pixels, Pillow's box filter computes the same means."""
    image = noise(height, width)
    side = min(height // 3, width // 4)
    w, h = 4 * side, 3 * side
    if (w < width) == (h < height):  # the crop is the part that Pillow cuts below
        image = image.crop((0, 0, w, h))
    x, y = (image.width - w) // 2, (image.height - h) // 2
    boxed = (x, y, x + w, y + h)
    for size in ((3, 4), (h, w), (side, w // 3)):
        if h % size[0] == w % size[1] == 0 and size[0] * w == size[1] * h:
            want = image.resize(size[::-1], Image.Resampling.BOX, box=boxed)
            near(decoded(encoded(image), size=size), want, 1)


MODES: list[tuple[str, Callable[[Image.Image], Image.Image]]] = [
    (mode, lambda image, mode=mode: image.convert(mode)) for mode in ("RGB", "RGBA", "L", "LA", "1")
] + [
    ("P", lambda image: image.quantize(200)),
    ("I;16", lambda i: Image.fromarray(np.asarray(i.convert("L")).astype(np.uint16) * 256 + 77)),
]


@pytest.mark.parametrize(("mode", "convert"), MODES, ids=[mode for mode, _ in MODES])
def test_png(mode: str, convert: Callable[[Image.Image], Image.Image]) -> None:
    """Every kind of PNG has the pixels that Pillow reads."""
    image = convert(noise(6, 8))
    want = np.asarray(image.convert("RGB"))
    if mode == "I;16":
        want = np.repeat((np.asarray(image) >> 8).astype(np.uint8)[..., None], 3, axis=2)
    np.testing.assert_array_equal(decoded(encoded(image), size=(6, 8)), want)
    gray = decoded(encoded(image), size=(6, 8), color="gray")
    assert gray.shape == (6, 8, 1)
    np.testing.assert_array_equal(gray[..., 0], Image.fromarray(want).convert("L"))


@pytest.mark.parametrize("path", [PHOTO, FLOWER], ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 60}]
)
@pytest.mark.parametrize(("size", "most"), [(224, 1), (100, 1), (32, 2)])
def test_photographs(path: Path, options: dict[str, Any], size: int, most: float) -> None:
    """Photographs are near to the means of areas of what Pillow decodes.

    For the smaller arrays, the images are decoded at a quarter and an eighth of the size.
    """
    file = path.read_bytes()
    if options:
        with Image.open(path) as image:
            file = encoded(image, "JPEG", **options)
    with Image.open(io.BytesIO(file)) as read:
        side = min(read.size)
        x, y = (read.width - side) // 2, (read.height - side) // 2
        square = np.asarray(read.convert("RGB").crop((x, y, x + side, y + side)), float)
    pixels, edges = np.arange(side), np.linspace(0, side, size + 1)[:, None]
    covered = np.clip(np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels), 0, 1)
    want = np.einsum("iy,yxc,jx->ijc", covered, square, covered, optimize=True) * (size / side) ** 2
    got = decoded(file, size=(size, size))
    away = np.abs(got - want).mean()
    assert away < most


@pytest.mark.parametrize(
    "options", [{"quality": q} for q in (0, 30, 80, 100)] + [{"lossless": True}]
)
def test_webp(options: dict[str, Any]) -> None:
    """WebP files have the pixels of libwebp, of any size, and with transparency."""
    with Image.open(FLOWER) as photo:
        for width in range(1, 20):
            height = int(RNG.integers(1, 40))
            for image in (photo.crop((200, 200, 200 + width, 200 + height)), noise(height, width)):
                if width % 3 == 0:
                    image.putalpha(Image.fromarray(np.asarray(image)[..., 0]))
                file = encoded(image, "WEBP", exact=True, **options)
                with Image.open(io.BytesIO(file)) as read:
                    want = np.asarray(read.convert("RGB"))
                np.testing.assert_array_equal(decoded(file, size=(height, width)), want)


def test_cmyk_and_gray() -> None:
    """JPEG files with one channel, and with the four of printing, become RGB."""
    with Image.open(PHOTO) as photo:
        image = photo.resize((64, 80))
    for mode in ("L", "CMYK"):
        file = encoded(image.convert(mode), "JPEG", quality=95)
        want = Image.open(io.BytesIO(file)).convert("RGB")
        got = decoded(file, size=(80, 64)).astype(int)
        assert np.abs(got - np.asarray(want, int)).mean() < 2


def test_orientation_and_animation() -> None:
    """EXIF orientation is not applied, and an animated PNG has its first image, as in Pillow."""
    image, exif = noise(4, 6), Image.Exif()
    exif[0x0112] = 6
    turned = encoded(image, "JPEG", exif=exif, quality=95)
    assert Image.open(io.BytesIO(turned)).getexif()[0x0112] == 6
    np.testing.assert_array_equal(
        decoded(turned, size=(4, 6)), decoded(encoded(image, "JPEG", quality=95), size=(4, 6))
    )
    moving = encoded(image, save_all=True, append_images=[noise(4, 6)])
    np.testing.assert_array_equal(decoded(moving, size=(4, 6)), image)


def test_nulls_and_views() -> None:
    """A null stays null; views above and below, a sharded height, and bytes in files compose."""
    files = [encoded(noise(9, 9)) for _ in range(6)]
    ds = dataset(None, *files).decode_image("image", size=(4, 2))
    assert str(ds.schema["image"]).startswith("image: uint8[4, 2, 3]")
    assert ds[0]["image"] is None or np.ma.is_masked(ds[0]["image"])
    some = ds.take([6, 2, 3]).rename({"image": "x"})
    for k, record in enumerate([5, 1, 2]):
        np.testing.assert_array_equal(some[k]["x"], decoded(files[record], size=(4, 2)))
    again = dataset(*files).decode_image("image", size=(4, 2))
    prints = {again.fingerprint(), dataset(*files).fingerprint()}
    for change in ({"size": (2, 4)}, {"color": "gray"}, {"crop": "random"}, {"flip": "random"}):
        options: dict[str, Any] = {"size": (4, 2), **change}
        prints.add(dataset(*files).decode_image("image", **options).fingerprint())
    assert len(prints) == 6


def test_hugging_face(tmp_path: Path) -> None:
    """Files of Hugging Face hold images as structs of bytes and a path."""
    files = [encoded(noise(5, 5)) for _ in range(3)]
    rows = pa.array([{"bytes": f, "path": None} for f in files])
    pq.write_table(pa.table({"image": rows, "label": [0, 1, 2]}), tmp_path / "train.parquet")
    ds = mf.open(tmp_path / "train.parquet").decode_image("image", size=(5, 5))
    np.testing.assert_array_equal(ds[1]["image"], decoded(files[1], size=(5, 5)))


def test_random() -> None:
    """Random images differ by epoch, and are the same with any batch size, also after a resume."""
    ds = dataset(*(encoded(noise(40, 30)) for _ in range(12)))
    view = ds.decode_image("image", size=(8, 8), crop="random", flip="random")
    epochs = []
    for size in (3, 4):
        with mf.Loader(view, batch_size=size, shuffle=True, seed=9, epochs=2) as loader:
            rows = [dict(zip(b["label"], b["image"], strict=True)) for b in loader]
        flat = {(i >= 12 // size, k): x for i, b in enumerate(rows) for k, x in b.items()}
        epochs.append(flat)
    assert epochs[0].keys() == epochs[1].keys()
    for key, x in epochs[0].items():
        np.testing.assert_array_equal(x, epochs[1][key])
    assert any((epochs[0][False, k] != epochs[0][True, k]).any() for k in range(12))
    with pytest.raises(mf.UnsupportedError, match="random crops and flips differ in every epoch"):
        view.cache("memory")


def test_errors_name_the_record(tmp_path: Path) -> None:
    """A damaged image is the error of its batch; the rest of the dataset can be read."""
    good = encoded(noise(40, 40), "JPEG")
    path = tmp_path / "images.arrow"
    feather.write_feather(pa.table({"image": [good, good[:-200], good]}), path)
    ds = mf.open(path).decode_image("image", size=(8, 8))
    with pytest.raises(mf.DataLossError) as failed:
        ds[1]
    message = str(failed.value)
    assert 'field "image": the image of record 1 cannot be decoded: ' in message
    assert f"Dataset: {path}: " in message
    assert message.endswith("store another image, or leave out the record (ds.filter)")
    assert ds[2]["image"].shape == (8, 8, 3)
    assert len(ds.filter([True, False, True])[:]["image"]) == 2


@pytest.mark.parametrize(
    ("file", "error", "want"),
    [
        (b"", mf.InvalidArgumentError, "record 0 has no bytes"),
        (b"text", mf.InvalidArgumentError, 'record 0 is no image: it begins with "text"'),
        (
            encoded(noise(4, 4), "GIF"),
            mf.UnsupportedError,
            "0 has the format GIF; only JPEG",
        ),
        (
            encoded(noise(4, 4), "WEBP", save_all=True, append_images=[noise(4, 4)]),
            mf.UnsupportedError,
            "record 0 has the format animated WebP",
        ),
        (encoded(noise(4, 4), "BMP"), mf.UnsupportedError, "record 0 has the format BMP"),
        (encoded(noise(4, 4), "TIFF"), mf.UnsupportedError, "record 0 has the format TIFF"),
        (
            encoded(Image.new("1", (20_000, 5_001)), optimize=True),  # a few KB
            mf.UnsupportedError,
            "record 0 has 5001 x 20000 pixels, above the limit of 100000000 pixels",
        ),
    ],
    ids=["empty", "text", "gif", "webp", "bmp", "tiff", "bomb"],
)
def test_refused(file: bytes, error: type[Exception], want: str) -> None:
    with pytest.raises(error) as failed:
        decoded(file, size=(2, 2))
    assert want in str(failed.value)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"size": 224}, "size=224: expected a height and a width, such as (224, 224)"),
        ({"size": (224,)}, "size=(224,): expected a height and a width, such as (224, 224)"),
        ({"size": (0, 5)}, "images cannot have the size 0 x 5; give a height and a width from 1"),
        ({"size": (2, 2), "resize": "cubic"}, "resize='cubic': expected \"area\""),
        ({"size": (2, 2), "crop": None}, 'crop=None: expected "center" or "random"'),
        ({"size": (2, 2), "flip": "both"}, "flip='both': expected \"random\" or None"),
        ({"size": (2, 2), "color": "bgr"}, 'color=\'bgr\': expected "rgb" or "gray"'),
    ],
)
def test_wrong_arguments(options: dict[str, Any], want: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as failed:
        dataset(b"").decode_image("image", **options)
    assert want in str(failed.value)
    with pytest.raises(mf.InvalidArgumentError, match="which hold no image files"):
        dataset(b"").decode_image("label", size=(2, 2))
