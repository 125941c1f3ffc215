"""Measures functions of rows: what `ds.map` costs, and threads beside processes.

`python -m tests.bench.maps` takes three minutes and prints two tables. Run it on an idle machine.
There, the report must name the lock for `loop` and `encode`, and not for `crop` and `resize`.
"""

from __future__ import annotations

import functools
import io
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
from PIL import Image

import meshfeed as mf

ROUNDS, SECONDS = 3, 1.5
WORKERS = 2
ROWS = 16  # of a call

Job = Callable[[int], Any]  # computes the rows of a call from a seed, and returns them


def main() -> None:
    print("| rows | loader | µs a row | of these in the map |\n| --- | --- | --- | --- |")
    for rows, made in datasets().items():
        for what, ds, batch in made:
            found = [loading(ds, batch) for _ in range(ROUNDS)]
            row, inside = (statistics.median(f[i] for f in found) for i in (0, 1))
            print(f"| {rows} | {what} | {row:.2f} | {inside:.2f} |", flush=True)
    print(
        "\n| function | calls/s on 1 thread | 2 threads | 2 processes | the report names the lock |"
    )
    print("| --- | --- | --- | --- | --- |")
    spawn = multiprocessing.get_context("spawn")
    for job in crop, resize, encode_batch, encode, loop:
        one, threads, processes = [], [], []
        with ProcessPoolExecutor(WORKERS, spawn) as pool:
            for _ in range(ROUNDS):
                one.append(rate(ThreadPoolExecutor(1), job))
                threads.append(rate(ThreadPoolExecutor(WORKERS), job))
                processes.append(rate(pool, job))
        first = statistics.median(one)
        ratios = [f"{statistics.median(list_) / first:.2f} x" for list_ in (threads, processes)]
        cells = [job.__name__, f"{first:.0f}", *ratios, "yes" if locked(job) else "no"]
        print(f"| {' | '.join(cells)} |", flush=True)


# ---- what a map costs ----


def same(rows: Any) -> dict[str, Any]:
    return {"x": rows["x"]}


def datasets() -> dict[str, list[tuple[str, mf.Dataset, int]]]:
    """Returns datasets without a map, with one that changes nothing, and with one for each row."""
    rng = np.random.default_rng(0)
    found = {}
    for name, shape, dtype, n, batch in [
        ("64 bytes, 256 in a batch", (16,), "float32", 200_000, 256),
        ("64 bytes, 4,096 in a batch", (16,), "float32", 200_000, 4096),
        ("150 kB, 64 in a batch", (224, 224, 3), "uint8", 4000, 64),
    ]:
        x = rng.integers(0, 256, (n, *shape), np.uint8).astype(dtype)
        base, out = mf.from_arrays({"x": x}), {"x": mf.Field(shape, dtype)}
        found[name] = [
            ("no map", base, batch),
            ("batched", base.map(same, out), batch),
            ("batched=False", base.map(same, out, batched=False), batch),
        ]
    return found


def loading(ds: mf.Dataset, batch: int) -> tuple[float, float]:
    """Returns the microseconds to load a row, and the part of them in functions."""
    with mf.Loader(ds, batch_size=batch, shuffle=True, epochs=-1) as loader:
        batches = iter(loader)
        for _ in range(8):
            next(batches)
        before, until = loader.stats(), time.perf_counter() + SECONDS
        while time.perf_counter() < until:
            next(batches)
        after = loader.stats()
    rows = (after["batches"] - before["batches"]) * batch
    build, inside = (
        (after[key] - before[key]) / rows * 1e6 for key in ("build_seconds", "map_seconds")
    )
    return build, inside


# ---- threads and processes ----


def rate(pool: Executor, job: Job) -> float:
    """Returns the calls in a second. Results come back to the caller, as rows of a batch do."""
    calls = iter(range(1 << 30))
    results = [pool.submit(job, next(calls)) for _ in range(2 * WORKERS)]
    results.pop(0).result()  # a process has imported the modules
    began, done = time.perf_counter(), 0
    while time.perf_counter() < began + SECONDS:
        results.append(pool.submit(job, next(calls)))
        results.pop(0).result()
        done += 1
    taken = time.perf_counter() - began
    for result in results:
        result.result()
    return done / taken


def locked(job: Job) -> bool:
    """Reports whether a loader's report says that a function waits for the interpreter's lock."""

    def fn(rows: Any) -> dict[str, Any]:
        job(int(rows["x"][0]))
        return {"y": rows["x"]}

    ds = mf.from_arrays({"x": np.arange(1024)}).map(fn, {"y": mf.Field((), int)}, workers=WORKERS)
    loading(ds, 2 * WORKERS)
    (function,) = ds._origin.functions
    return bool(function.contention.locked)


def _images(n: int) -> Iterator[np.ndarray[Any, Any]]:
    image = np.random.default_rng(0).integers(0, 256, (375, 500, 3), np.uint8)
    return iter([image] * n)


def crop(seed: int) -> Any:
    """NumPy: crops, mirrors and normalizes images."""
    out = np.empty((ROWS, 224, 224, 3), np.float32)
    for i, image in enumerate(_shared()):
        y, x = seed % 100, (seed + i) % 200
        out[i] = image[y : y + 224, x : x + 224][:, ::-1]
    out -= 127.5
    out /= 64
    return out


def resize(_: int) -> Any:
    """Pillow: decodes and resizes a JPEG file."""
    out = np.empty((ROWS, 224, 224, 3), np.uint8)
    for i in range(ROWS):
        image = Image.open(io.BytesIO(_jpeg()))
        out[i] = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR))
    return out


def encode_batch(_: int) -> Any:
    """Tokenizers: all texts of a call at once."""
    return [np.array(e.ids, np.int32) for e in _tokenizer().encode_batch(_texts())]


def encode(_: int) -> Any:
    """Tokenizers: a call for each text."""
    return [np.array(_tokenizer().encode(text).ids, np.int32) for text in _texts()]


def loop(seed: int) -> Any:
    """A loop in Python."""
    total = seed
    for i in range(100_000):
        total = (total * 31 + i) % 65537
    return total


@functools.cache
def _shared() -> list[Any]:
    return list(_images(ROWS))


@functools.cache
def _jpeg() -> bytes:
    file = io.BytesIO()
    smooth = np.asarray(Image.fromarray(next(_images(1))).resize((60, 40)).resize((500, 375)))
    Image.fromarray(smooth).save(file, "JPEG")
    return file.getvalue()


@functools.cache
def _texts() -> list[str]:
    words = (functools.__doc__ or "").split() + (statistics.__doc__ or "").split()
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, 500)) for _ in range(ROWS)]


@functools.cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel()
    trainer = BpeTrainer(
        vocab_size=1000, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    return tokenizer


if __name__ == "__main__":
    main()
