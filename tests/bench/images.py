"""Compares `Dataset.decode_image` with simplejpeg, OpenCV and Pillow: JPEG to 224 x 224 pixels.

    python -m tests.bench.images [--turns 5]

Needs the packages simplejpeg and opencv-python-headless beside those of the tests. The files are
parts of the photographs of scikit-learn and matplotlib, in the sizes of datasets and of cameras.
Every library reads the whole file at a fraction of its size where it can, cuts out the largest
square, and takes the means of areas. All run in one process and take turns. The times are medians
in milliseconds for an image: processor time on one core, and elapsed time with two threads. `away`
is the mean difference of the pixels from the means of the image at its full size.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import simplejpeg
from PIL import Image

import meshfeed as mf

SIDE = 224
SIZES = {"500 x 375": (500, 375, 24), "4000 x 3000": (4000, 3000, 6)}
MODES = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
PHOTOS = (
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
)


Runs = dict[str, Callable[[], Any]]


def photographs(width: int, height: int, count: int) -> list[bytes]:
    """Returns parts of photographs, as JPEG files of one size and quality 90."""
    rng, files = np.random.default_rng(1), []
    for k in range(count):
        package, path = PHOTOS[k % len(PHOTOS)]
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        with Image.open(Path(spec.origin).parent / path) as photo:
            w = int(min(photo.width, photo.height * width / height) * rng.uniform(0.8, 1))
            h = w * height // width
            x, y = (int(rng.integers(n + 1)) for n in (photo.width - w, photo.height - h))
            part = photo.crop((x, y, x + w, y + h)).resize((width, height))
        file = io.BytesIO()
        part.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def square(pixels: Any) -> Any:
    """Returns the largest square in the middle."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    y, x = (height - side) // 2, (width - side) // 2
    return pixels[y : y + side, x : x + side]


def areas(pixels: Any) -> Any:
    return cv2.resize(square(pixels), (SIDE, SIDE), interpolation=cv2.INTER_AREA)


def by_simplejpeg(file: bytes) -> Any:
    return areas(simplejpeg.decode_jpeg(file, min_height=SIDE, min_width=SIDE))


def by_cv2(file: bytes) -> Any:
    height, width = simplejpeg.decode_jpeg_header(file)[:2]
    fraction = max(n for n in MODES if min(height, width) // n >= SIDE)
    return areas(cv2.imdecode(np.frombuffer(file, np.uint8), MODES[fraction]))[..., ::-1]


def by_pillow(file: bytes) -> Any:
    image = Image.open(io.BytesIO(file))
    image.draft("RGB", (SIDE, SIDE))
    side = min(image.size)
    x, y = (image.width - side) // 2, (image.height - side) // 2
    box = (x, y, x + side, y + side)
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX, box=box))


def median(runs: Runs, clock: Callable[[], float], turns: int) -> dict[str, float]:
    """Returns the median time of each run."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            start = clock()
            run()
            spent[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in spent.items()}


def compare(name: str, files: list[bytes], turns: int) -> None:
    """Prints the rows of a table."""
    ds = mf.from_arrow(pa.table({"image": pa.array(files, pa.binary())}))
    view = ds.decode_image("image", size=(SIDE, SIDE))
    others = {"simplejpeg": by_simplejpeg, "OpenCV": by_cv2, "Pillow": by_pillow}

    def part(library: str, rows: slice) -> Any:
        if library == "meshfeed":
            return view[rows]["image"]
        return [others[library](file) for file in files[rows]]

    def both(pool: ThreadPoolExecutor, one: Callable[[slice], Any]) -> None:
        half = len(files) // 2
        list(pool.map(one, (slice(0, half), slice(half, len(files)))))

    libraries, whole = ["meshfeed", *others], slice(0, len(files))
    one: Runs = {k: partial(part, k, whole) for k in libraries}
    exact = [areas(simplejpeg.decode_jpeg(file)) for file in files]
    away = {k: np.abs(np.asarray(run(), int) - exact).mean() for k, run in one.items()}
    with ThreadPoolExecutor(2) as pool:
        two: Runs = {k: partial(both, pool, partial(part, k)) for k in libraries}
        times = median(one, time.process_time, turns), median(two, time.perf_counter, turns)
    for k in libraries:
        cells = [name, k, f"{away[k]:.2f}"]
        for each in times:
            cells += [f"{each[k] / len(files) * 1e3:.2f}", f"{each[k] / each['meshfeed']:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args().turns
    cv2.setNumThreads(1)
    print(
        "| file | library | away | ms, one core | of meshfeed's | ms, two threads | of meshfeed's |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (width, height, count) in SIZES.items():
        compare(name, photographs(width, height, count), turns)


if __name__ == "__main__":
    main()
