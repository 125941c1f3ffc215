"""Compares the decoding of Parquet with pyarrow's: types, encodings, codecs and nulls.

    python -m tests.bench.decoding [--only WORD] [--turns 5] [--codecs]

Each case is a file with one column and two row groups of about 16 MB in the page cache. In every
turn, a process of meshfeed's Go benchmark `BenchmarkDecode` and then pyarrow read all row groups
three times before the clock starts, and three times after. Pyarrow runs
`read_row_group(use_threads=False)` in a process of its own. Both use the memory of results again:
meshfeed as for rows that it writes to its cache on disk. The times are medians of the turns:
milliseconds of processor time on one core, because other programs change it less than the elapsed
time. `ratio` is pyarrow's time divided by meshfeed's, with the lowest and the highest of the
turns. `2 cores` divides meshfeed's elapsed time on one core by its time on two.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
READS = 3  # of all row groups, in a turn
BYTES = 32 << 20  # of a column, in two row groups
PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none"}

Case = tuple[Callable[[], pa.Array], dict[str, Any]]


def numbers(dtype: str, high: int = 1 << 20, nulls: float = 0) -> Callable[[], pa.Array]:
    """Makes random numbers below `high`, a share of which is null."""

    def make() -> pa.Array:
        rng = np.random.default_rng(3)
        n = BYTES // np.dtype(dtype).itemsize
        drawn = rng.random(n) * high if dtype[0] == "f" else rng.integers(0, high, n)
        return pa.array(drawn.astype(dtype), mask=rng.random(n) < nulls if nulls else None)

    return make


def booleans(nulls: float = 0) -> Callable[[], pa.Array]:
    """Makes random booleans, a share of which is null."""

    def make() -> pa.Array:
        rng = np.random.default_rng(3)
        mask = rng.random(BYTES // 2) < nulls if nulls else None
        return pa.array(rng.random(BYTES // 2) < 0.5, mask=mask)

    return make


def texts(length: int, distinct: int = 1 << 20, nulls: float = 0) -> Callable[[], pa.Array]:
    """Makes texts of `length` bytes on average, a share of which is null."""

    def make() -> pa.Array:
        rng = np.random.default_rng(3)
        n = BYTES // (length + 4)
        lengths = rng.integers(length // 2, length * 3 // 2 + 1, min(n, distinct))
        letters = rng.integers(97, 105, int(lengths.sum()), dtype="u1").tobytes()
        ends = np.cumsum(lengths)
        each = [
            letters[e - k : e].decode()
            for k, e in zip(lengths.tolist(), ends.tolist(), strict=True)
        ]
        picked = pa.array(rng.integers(0, len(each), n), mask=rng.random(n) < nulls)
        return pa.array(each).take(picked)

    return make


def fixed(size: int) -> Callable[[], pa.Array]:
    """Makes binary values of `size` bytes."""

    def make() -> pa.Array:
        drawn = np.random.default_rng(3).bytes(BYTES // size * size)
        return pa.Array.from_buffers(pa.binary(size), BYTES // size, [None, pa.py_buffer(drawn)])

    return make


def vectors(dtype: str, size: int, high: int = 1 << 20) -> Callable[[], pa.Array]:
    """Makes lists of a fixed size."""

    def make() -> pa.Array:
        values = numbers(dtype, high)()
        return pa.FixedSizeListArray.from_arrays(values[: len(values) // size * size], size)

    return make


def lists(
    dtype: str, length: int, deep: int = 1, nulls: float = 0, elements: float = 0
) -> Callable[[], pa.Array]:
    """Makes lists of `length` elements on average, nested `deep` times.

    A share of the lists of each level and of the elements is null.
    """

    def make() -> pa.Array:
        rng, out = np.random.default_rng(3), numbers(dtype, nulls=elements)()
        for _ in range(deep):
            lengths = rng.integers(0, 2 * length + 1, len(out) // length)
            ends = np.minimum(np.cumsum(lengths), len(out)).astype("i4")
            gone = rng.random(len(ends) + 1) < nulls
            gone[-1] = False
            offsets = pa.array(np.concatenate([[0], ends]).astype("i4"), mask=gone)
            out = pa.ListArray.from_arrays(offsets, out)
        return out

    return make


def encoded(name: str, **more: Any) -> dict[str, Any]:
    return PLAIN | {"column_encoding": {"x": name}} | more


def cases(codecs: bool) -> Iterator[tuple[str, Case]]:
    """Yields the cases by name."""
    for dtype in ("f4", "f8", "i4", "i8", "i2", "u1"):
        high = 200 if dtype == "u1" else 30000
        yield f"{dtype} plain", (numbers(dtype, high), PLAIN)
    for share in (0.01, 0.1, 0.5, 0.9):
        yield f"f4 plain, {share:.0%} nulls", (numbers("f4", nulls=share), PLAIN)
    yield "i2 plain, 10% nulls", (numbers("i2", 30000, nulls=0.1), PLAIN)
    yield "i8 plain, 10% nulls", (numbers("i8", nulls=0.1), PLAIN)
    yield "i8 plain v2, 10% nulls", (numbers("i8", nulls=0.1), PLAIN | {"data_page_version": "2.0"})
    yield "bool plain", (booleans(), PLAIN)
    yield "bool plain, 10% nulls", (booleans(0.1), PLAIN)
    yield "bool rle", (booleans(), encoded("RLE", data_page_version="2.0"))
    for size in (4, 16, 12288):
        yield f"fixed({size}) plain", (fixed(size), PLAIN)
    yield "f4[3072] plain", (vectors("f4", 3072), PLAIN)
    yield "f4[8] plain", (vectors("f4", 8), PLAIN)
    yield "u1[3072] plain", (vectors("u1", 3072, 200), PLAIN)
    yield "list<i4> of 2048 plain", (lists("i4", 2048), PLAIN)
    yield "list<i4> of 8 plain", (lists("i4", 8), PLAIN)
    yield "list<i4> of 8 plain, 10% nulls", (lists("i4", 8, nulls=0.1), PLAIN)
    yield "list<f4> of 8, 20% null elements", (lists("f4", 8, elements=0.2), PLAIN)
    yield "list<list<f4>> of 8 plain", (lists("f4", 8, deep=2), PLAIN)
    for length in (8, 30, 300, 20_000):
        yield f"text of {length} plain", (texts(length), PLAIN)
    yield "text of 30 plain, 10% nulls", (texts(30, nulls=0.1), PLAIN)
    coded = {"use_dictionary": True, "compression": "none"}
    for dtype, high in (("f4", 1000), ("i8", 1000), ("i8", 5), ("i8", 50_000)):
        yield f"{dtype} dictionary of {high}", (numbers(dtype, high), coded)
    yield "i8 dictionary of 1000, 10% nulls", (numbers("i8", 1000, 0.1), coded)
    yield "text of 30 dictionary of 1000", (texts(30, 1000), coded)
    yield "text of 8 dictionary of 1000", (texts(8, 1000), coded)
    for dtype in ("i4", "i8"):
        yield f"{dtype} delta", (numbers(dtype), encoded("DELTA_BINARY_PACKED"))
    few = encoded("DELTA_BINARY_PACKED")
    yield "i8 delta of 20", (numbers("i8", 20), few)
    for dtype in ("f4", "f8"):
        yield f"{dtype} byte stream split", (numbers(dtype), encoded("BYTE_STREAM_SPLIT"))
    yield "text of 30 delta length", (texts(30), encoded("DELTA_LENGTH_BYTE_ARRAY"))
    yield "text of 30 delta", (texts(30), encoded("DELTA_BYTE_ARRAY"))
    for codec in ("snappy", "lz4", "zstd", "gzip", "brotli") if codecs else ():
        packed = PLAIN | {"compression": codec}
        yield f"i8 plain {codec}", (numbers("i8"), packed)
        yield f"text of 30 plain {codec}", (texts(30), packed)
        yield f"f4[3072] plain {codec}", (vectors("f4", 3072), packed)


PYARROW = f"""
import sys, time
import pyarrow.parquet as pq
for line in sys.stdin:
    file = pq.ParquetFile(line.rstrip())
    def read():
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=False)
    for _ in range({READS}):  # new memory does not count
        read()
    began = time.process_time()
    for _ in range({READS}):
        read()
    print((time.process_time() - began) / {READS}, flush=True)
"""


class Meshfeed:
    """The Go benchmark, built once."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "arrowio.test"
        build: list[str | Path] = ["go", "test", "-c", "-o", self.program, "./arrowio"]
        subprocess.run(build, cwd=ROOT, check=True)

    def seconds(self, path: Path, processors: int) -> tuple[float, float]:
        """Returns the elapsed and the processor seconds of one decoding of a file."""
        flags = ["run=^$", "bench=^BenchmarkDecode$", f"benchtime={READS}x", f"cpu={processors}"]
        command: list[str | Path] = [
            self.program,
            *(f"-test.{flag}" for flag in flags),
            f"-decode={path}",
        ]
        environment = os.environ | {"GOMAXPROCS": str(processors)}
        out = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=path.parent
        )
        found = re.search(r"([\d.]+) ns/op.*?([\d.]+) cpu-ns/op", out.stdout)
        if not found:
            raise RuntimeError(out.stdout + out.stderr)
        return float(found[1]) / 1e9, float(found[2]) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.decoding", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--codecs", action="store_true", help="compressed files too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Meshfeed(folder)
        arrow = subprocess.Popen(
            [sys.executable, "-c", PYARROW],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(
            f"{'case':36} {'pyarrow':>8} {'meshfeed':>8} {'ratio':>6} {'range':>12} {'2 cores':>8}"
        )
        for label, (make, how) in cases(options.codecs):
            if options.only in label:
                measure(label, write(make(), how, folder), ours, arrow, options.turns)
        arrow.communicate()


def write(column: pa.Array, how: dict[str, Any], folder: Path) -> Path:
    """Writes two row groups."""
    path = folder / "x.parquet"
    pq.write_table(pa.table({"x": column}), path, row_group_size=(len(column) + 1) // 2, **how)
    return path


def measure(label: str, path: Path, ours: Meshfeed, arrow: Any, turns: int) -> None:
    """Measures a file, and prints a line."""
    times: list[tuple[float, float, float]] = []  # pyarrow, meshfeed, meshfeed by cores
    for _ in range(turns):
        arrow.stdin.write(f"{path}\n")
        arrow.stdin.flush()
        theirs = float(arrow.stdout.readline())
        (one, busy), (two, _) = ours.seconds(path, 1), ours.seconds(path, 2)
        times.append((theirs, busy, one / two))
    theirs, busy, cores = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(a / b for a, b, _ in times)
    spread = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
    print(
        f"{label:36} {theirs * 1e3:8.1f} {busy * 1e3:8.1f} {statistics.median(ratios):6.2f} "
        f"{spread:>12} {cores:8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
