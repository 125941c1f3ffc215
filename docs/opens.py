"""What opens: kinds of rows in every format and library, tried one by one.

Every cell of the tables comes from a program that writes three rows, opens them and loads a batch,
and compares its values. The functions return Markdown for pages.py.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import json
import logging
import struct
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import duckdb
import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import safetensors.numpy

import meshfeed as mf

ROWS = 3
LENGTH = 4  # to which rows are padded, at least as long as the longest
FILL = 7

RAW = np.arange(12, dtype=np.float32).reshape(ROWS, 2, 2)

# Three rows of every kind, and what a batch has of them: None if Arrow's values are it.
KINDS: dict[str, tuple[pa.Array, Any]] = {
    "numbers": (pa.array([1.5, 2.5, 3.5], pa.float32()), None),
    "booleans": (pa.array([True, False, True]), None),
    "timestamps": (pa.array([1, 2, 3], pa.timestamp("us")), [1, 2, 3]),
    "numbers with nulls": (pa.array([1, None, 3], pa.int32()), [1, FILL, 3]),
    "vectors of a fixed size": (
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
        None,
    ),
    "lists of one length": (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32())), None),
    "images (lists of lists)": (
        pa.array([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.uint8()))),
        None,
    ),
    "lists of any length": (pa.array([[1], [2, 3], []], pa.list_(pa.int32())), None),
    "text": (pa.array(["a", "bc", ""]), [list(b"a"), list(b"bc"), []]),
    "bytes": (pa.array([b"a", b"bc", b""]), [list(b"a"), list(b"bc"), []]),
    "raw arrays in bytes": (pa.array([x.tobytes() for x in RAW]), RAW),
    "text in a dictionary": (
        pa.array(["a", "bc", "a"]).dictionary_encode(),
        [list(b"a"), list(b"bc"), list(b"a")],
    ),
    "lists of lists of any length": (
        pa.array([[[1], [2, 3]], [], [[4]]], pa.list_(pa.list_(pa.int32()))),
        None,
    ),
    "lists of text": (pa.array([["a"], ["bc", "d"], []]), None),
    "structs": (pa.array([{"a": 1}] * ROWS), None),
    "decimals": (pa.array([1, 2, 3], pa.decimal128(9, 2)), None),
}

Open = Callable[[pa.Table, Path], mf.Dataset]


def ipc(compression: str | None) -> Open:
    def write(table: pa.Table, folder: Path) -> mf.Dataset:
        path, options = folder / "rows.arrow", pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table)
        return mf.open(path, cache="memory")

    return write


def ipc_stream(table: pa.Table, folder: Path) -> mf.Dataset:
    with pa.ipc.new_stream(folder / "rows.arrows", table.schema) as writer:
        writer.write_table(table)
    return mf.open(folder / "rows.arrows", cache="memory")


def parquet(table: pa.Table, folder: Path) -> mf.Dataset:
    pq.write_table(table, folder / "rows.parquet")
    return mf.open(folder / "rows.parquet", cache="memory")


def json_lines(table: pa.Table, folder: Path) -> mf.Dataset:
    text = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    (folder / "rows.jsonl").write_text(text)
    return mf.open(folder / "rows.jsonl", cache="memory")


def hugging_face(table: pa.Table, _: Path) -> mf.Dataset:
    return mf.from_arrow(datasets.Dataset(datasets.table.InMemoryTable(table), fingerprint="x"))


FORMATS: dict[str, Open] = {
    "Arrow file": ipc(None),
    "Arrow file, LZ4": ipc("lz4"),
    "Arrow file, zstd": ipc("zstd"),
    "Arrow stream": ipc_stream,
    "Parquet": parquet,
    "JSON Lines": json_lines,
    "pyarrow": lambda table, _: mf.from_arrow(table),
    "polars": lambda table, _: mf.from_arrow(pl.from_arrow(table)),
    "pandas": lambda table, _: mf.from_arrow(pd.DataFrame(table.to_pandas())),
    "DuckDB": lambda table, _: mf.from_arrow(duckdb.from_arrow(table)),
    "datasets": hugging_face,
}


def shape_of(rows: list[Any]) -> tuple[int, ...]:
    """Returns the shape that all rows of lists have, or ()."""
    try:
        return np.shape(rows)[1:]
    except ValueError:
        return ()


def outcome(ds: mf.Dataset, want: Any) -> str:
    """Loads a batch of field "x". Returns what was needed for it, or the reason of a refusal.

    Raises:
        AssertionError: the batch has other values.
    """
    for skipped in ds.skipped:
        if skipped.name == "x":
            return f"refused: {skipped.reason}"
    field, word = ds.schema["x"], "opens"
    rows = ds.select(["x"])
    if isinstance(want, np.ndarray):
        rows, word = rows.reshape("x", want.shape[1:], dtype=want.dtype), "`reshape`"
    elif field.ragged == 1 and (shape := shape_of(want)):
        rows, word = rows.reshape("x", shape), "`reshape`"
    elif field.ragged:
        try:
            rows, word = rows.pad("x", length=LENGTH), "`pad`"
        except mf.UnsupportedError as e:
            return "rows only: " + str(e).rpartition("; ")[2]
        want = [row + [0] * (LENGTH - len(row)) for row in want]
    has_null = FILL in np.ravel(want).tolist()
    fill = {"x": FILL} if has_null and field.nullable else None
    with mf.Loader(rows, batch_size=ROWS, epochs=1, fill=fill) as loader:
        got = np.asarray(next(iter(loader))["x"])
    assert np.array_equal(got, np.asarray(want)), f"{ds.schema['x']}: {got}, not {want}"
    return "`fill`" if has_null and not field.ragged else word


def tried(kind: str, name: str) -> str:
    """Returns the result of a kind of rows in a format, or "" if the library has no such type."""
    rows, want = KINDS[kind]
    table = pa.table({"x": rows})
    with tempfile.TemporaryDirectory() as folder:
        try:
            ds = FORMATS[name](table, Path(folder))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pl.exceptions.PolarsError):
            return ""
        except TypeError:  # JSON has no such value
            return ""
        want = rows.to_pylist() if want is None else want
        with ds:
            found, shape = outcome(ds, want), shape_of(want)
        lines = Path(folder) / "rows.jsonl"
        if found.startswith("rows only") and shape and lines.exists():
            with mf.open(lines, shapes={"x": shape}) as ds:
                assert outcome(ds, want) == "opens"
            return "`reshape`"
        return found


@functools.cache
def cells() -> dict[str, dict[str, str]]:
    """Returns the results by kind and format."""
    log = logging.getLogger("meshfeed")
    level = log.level
    log.setLevel(logging.ERROR)  # without warnings of slow orders
    datasets.disable_progress_bars()
    try:
        return {kind: {name: tried(kind, name) for name in FORMATS} for kind in KINDS}
    finally:
        log.setLevel(level)


# Sources, and the openers that the page shows: each runs in a folder with these files.
SOURCES: dict[str, list[str]] = {
    "Arrow IPC file or stream, also LZ4 and zstd": ['mf.open("rows.arrow")'],
    "Parquet files, by a glob or a list": ['mf.open("shards/*.parquet")'],
    "JSON Lines, also with gzip or zstd": ['mf.open("rows.jsonl")', 'mf.open("more.jsonl.gz")'],
    "TFRecord with `tf.Example`, also with gzip": ['mf.open("rows.tfrecord")'],
    "a folder that has a folder of images for each class": ['mf.open("photos", images=True)'],
    "archives of WebDataset": ['mf.open("shards-{000..001}.tar")'],
    "a directory of files": ['mf.open("shards")'],
    "a directory with names such as `year=2024`": ['mf.open("hive")'],
    "a directory of Hugging Face's `save_to_disk`": ['mf.open("saved", split="train")'],
    "a download of `huggingface_hub`": ['mf.open("hub/datasets--org--name", split="train")'],
    "a live Hugging Face dataset, also shuffled": ["mf.from_arrow(dataset.shuffle(seed=0))"],
    "a table of pyarrow, polars, pandas or DuckDB": [
        "mf.from_arrow(table)",
        "mf.from_arrow(pl.from_arrow(table))",
        "mf.from_arrow(table.to_pandas())",
        "mf.from_arrow(duckdb.from_arrow(table))",
    ],
    "arrays of numbers in .npy files": ['mf.open("rows.npy")'],
    "raw numbers without a header, also after bytes to skip": [
        'mf.open("rows.bin", dtype="float32")',
        'mf.open("headed.bin", dtype="float32", skip=7)',
    ],
    "documents of Megatron, from its `.idx` and `.bin`": ['mf.open("corpus.idx")'],
    "arrays of NumPy": ['mf.from_arrays({"x": array})'],
    "weights: safetensors, .npy, .npz": ['mf.open_arrays("weights.safetensors")'],
}


# A file of TFRecord that TensorFlow would write, with the values of "x".
RECORDS = """
EQAAAAAAAACdbbUuCg8KDQoBeBIIEgYKBAAAwD/j87OXEQAAAAAAAACdbbUuCg8KDQoBeBIIEgYKBAAAIEB6iyA9EQAAAAAA
AACdbbUuCg8KDQoBeBIIEgYKBAAAYEBlSRe5
"""
REVISION = "0123456789abcdef" * 2 + "01234567"  # of a download


def fill(folder: Path, table: pa.Table) -> None:
    """Writes the files that the openers name."""
    ipc("zstd")(table, folder).close()
    hub = folder / "hub/datasets--org--name"
    for shards in (folder / "shards", hub / "snapshots" / REVISION / "data"):
        shards.mkdir(parents=True)
        for n in range(2):
            pq.write_table(table, shards / f"train-{n:05}-of-00002.parquet")
    (hub / "blobs").mkdir()
    (hub / "refs").mkdir()
    (hub / "refs/main").write_text(REVISION)
    hive = table.append_column("year", pa.array([2023, 2024, 2024]))
    pyarrow.dataset.write_dataset(
        hive, folder / "hive", format="parquet", partitioning=["year"], partitioning_flavor="hive"
    )
    datasets.DatasetDict({"train": datasets.Dataset(table)}).save_to_disk(folder / "saved")
    np.save(folder / "rows.npy", table["x"].to_numpy())
    raw = table["x"].to_numpy().tobytes()
    (folder / "rows.bin").write_bytes(raw)
    (folder / "headed.bin").write_bytes(b"headers" + raw)
    lines = "".join(json.dumps({"x": x}) + "\n" for x in table["x"].to_pylist())
    (folder / "rows.jsonl").write_text(lines)
    (folder / "more.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for name in "123":
        (folder / "photos" / name).mkdir(parents=True)
        (folder / "photos" / name / f"{name}.png").write_bytes(name.encode())
    (folder / "rows.tfrecord").write_bytes(base64.b64decode(RECORDS))
    for shard, keys in enumerate(("12", "3")):
        with tarfile.open(folder / f"shards-{shard:03}.tar", "w") as archive:
            for key in keys:
                archive.addfile(tarfile.TarInfo(f"{key}.txt"))
    documents = np.array([1, 2, 3], np.int32)  # of one token each
    (folder / "corpus.bin").write_bytes(documents.tobytes())
    index = struct.pack("<9sQBQQ3i3q4q", b"MMIDIDX", 1, 4, 3, 4, 1, 1, 1, 0, 4, 8, 0, 1, 2, 3)
    (folder / "corpus.idx").write_bytes(index)
    safetensors.numpy.save_file({"x": table["x"].to_numpy()}, folder / "weights.safetensors")


def whole(weights: mf.StoredArrays) -> Any:
    """Loads the array "x" of a file of weights."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("one",))
    spec = jax.sharding.PartitionSpec()
    return mf.load_array(weights, "x", jax.sharding.NamedSharding(mesh, spec))


@functools.cache
def opened() -> dict[str, str]:
    """Runs every opener, and returns the first of each source.

    Raises:
        AssertionError: a source has other values.
    """
    table = pa.table({"x": pa.array([1.5, 2.5, 3.5], pa.float32())})
    names = {"mf": mf, "pl": pl, "duckdb": duckdb, "table": table}
    names |= {"dataset": datasets.Dataset(table), "array": table["x"].to_numpy()}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        fill(Path(scratch), table)
        for source, programs in SOURCES.items():
            for program in programs:
                with eval(program, names) as made:
                    stored = isinstance(made, mf.StoredArrays)
                    values = np.asarray(whole(made) if stored else next(iter(made[:].values())))
                found = np.ravel(values).astype(int).tolist()  # documents and keys
                assert sorted(set(found)) == [1, 2, 3], f"{source}: {values}"
    return {source: programs[0] for source, programs in SOURCES.items()}


def table_of(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


PAGE = """\
# What opens

A program tried every cell of this page: it wrote three rows, opened them, loaded a batch, and
compared its values. `make pages` runs it, and so does a test.

- **opens**: a loader delivers the rows as they are.
- **`pad`**: the rows have different lengths. `ds.pad("x", length=...)` makes rows of one
  length, and `ds[7]` returns them as they are.
- **`reshape`**: each value is an array of one shape. `ds.reshape("x", (16, 16, 3),
  dtype="float32")` says which, and so does `shapes=` of `mf.open`. Lists get a shape likewise,
  and lists of lists by `shapes=`.
- **`fill`**: a loader needs a value for nulls, `fill={"x": 0}`.
- **rows only**: `ds[7]` returns them, and a loader refuses them.
- **refused**: the column is in `ds.skipped`, and the other columns load.
- An empty cell: the format has no such values.

"""


def page() -> str:
    """Returns the page with all cells, the reasons, and the openers."""
    found = cells()
    rows = [
        [kind, *(shown.partition(":")[0] for shown in row.values())] for kind, row in found.items()
    ]
    reasons = {
        (kind, shown.partition(": ")[2])
        for kind, row in found.items()
        for shown in row.values()
        if ": " in shown
    }
    why = "".join(f"- {kind}: {reason}.\n" for kind, reason in sorted(reasons))
    sources = [[source, f"`{program}`"] for source, program in opened().items()]
    return (
        PAGE
        + table_of(["rows", *FORMATS], rows)
        + f"\n## Why, and what to do instead\n\n{why}"
        + f"\n## Openers\n\n{table_of(['source', 'opener'], sources)}"
    )
