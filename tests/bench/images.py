"""Compares `Dataset.decode_image` with simplejpeg, OpenCV and Pillow: JPEG to 224 x 224 pixels.

    python -m tests.bench.images            # two minutes, writes a section of docs/benchmarks.md
    python -m tests.bench.images --quick    # half a minute, prints the table

Needs the packages simplejpeg and opencv-python-headless beside those of the tests. The files are
parts of the photographs of scikit-learn and matplotlib, in the sizes of datasets and of cameras.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import io
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import simplejpeg
from PIL import Image

import meshfeed as mf
from tests.bench import results, section

SIDE = 224
TURNS, QUICK = 15, 3
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
HEAD = """\
## JPEG files to 224 x 224 pixels

`python -m tests.bench.images` measures this section. {processor}, {cores} cores, {system};
{versions}. Measured {date}, commit {commit}. Every library cuts out the largest square, and takes
the means of areas (OpenCV's `INTER_AREA` for simplejpeg and OpenCV, Pillow's box filter for
Pillow). A library that can decode at a fraction of the size does so. meshfeed keeps twice the
pixels of the result in each direction, as *simplejpeg, twice* does; the others keep at least the
pixels of the result. *away* is the mean difference from the means of the image at its full size,
in levels of 255. All run in one process and take turns, {turns} of them. Times are medians in
milliseconds for an image: processor time on one core, and elapsed time with two threads.
*times* is the time of the library divided by meshfeed's: ✗ marks a faster library.

| file | library | away | one core, ms | times | two threads, ms | times |
| --- | --- | --: | --: | --: | --: | --: |
"""

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


def by_simplejpeg(file: bytes, least: int = SIDE) -> Any:
    return areas(simplejpeg.decode_jpeg(file, min_height=least, min_width=least))


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


def compare(name: str, files: list[bytes], turns: int) -> str:
    """Returns the rows of the table for files of one size."""
    ds = mf.from_arrow(pa.table({"image": pa.array(files, pa.binary())}))
    view = ds.decode_image("image", size=(SIDE, SIDE))
    others: dict[str, Callable[[bytes], Any]] = {
        "simplejpeg, twice": partial(by_simplejpeg, least=2 * SIDE),
        "simplejpeg": by_simplejpeg,
        "OpenCV": by_cv2,
        "Pillow": by_pillow,
    }

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
    rows = ""
    for k in libraries:
        cells = [name, k, f"{away[k]:.2f}"]
        for each in times:
            ratio = each[k] / each["meshfeed"]
            cells += [f"{each[k] / len(files) * 1e3:.2f}", f"{ratio:.2f}{' ✗' * (ratio < 1)}"]
        rows += f"| {' | '.join(cells)} |\n"
    return rows


def main() -> None:
    """Writes the section, or prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few turns, printed")
    turns = QUICK if parser.parse_args().quick else TURNS
    cv2.setNumThreads(1)
    rows = "".join(compare(name, photographs(*size), turns) for name, size in SIZES.items())
    machine = results.machine()
    packages = "simplejpeg", "opencv-python-headless", "pillow"
    machine["versions"] += "".join(f", {name} {version(name)}" for name in packages)
    head = HEAD.format(
        **machine, date=dt.date.today().isoformat(), commit=results.commit(), turns=turns
    )
    section.replace("images", head + rows, missing=["turns"] if turns == QUICK else [])


if __name__ == "__main__":
    main()
