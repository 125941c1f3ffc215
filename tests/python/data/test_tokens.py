"""Files of tokens: raw elements and NumPy's files, whole and in windows."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import meshfeed as mf

TOKENS = np.arange(1000, dtype=np.uint16) * 61


def headed(tokens: np.ndarray[Any, Any]) -> bytes:
    """Returns a file of tokens as llm.c and modded-nanoGPT write it."""
    header = np.zeros(256, np.int32)
    header[:3] = 20240520, 1, len(tokens)
    return header.tobytes() + tokens.tobytes()


@pytest.mark.parametrize("shape", [(1000,), (50, 20), (10, 5, 20)])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "uint16", "int32", "int64", "float16", "float64"]
)
def test_npy(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """A .npy file has the rows of its array."""
    array = np.arange(1000).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    with mf.open(tmp_path / "a.npy") as ds:
        field = ds.schema["tokens"]
        assert (list(ds.schema), field.dtype, field.shape) == (["tokens"], dtype, shape[1:])
        np.testing.assert_array_equal(ds[:]["tokens"], array)
        np.testing.assert_array_equal(ds[3]["tokens"], array[3])


@pytest.mark.parametrize("dtype", ["uint16", np.int32, np.dtype("<u8"), ml_dtypes.bfloat16])
@pytest.mark.parametrize("skip", [0, 5])
def test_raw(tmp_path: Path, dtype: Any, skip: int) -> None:
    """Several raw files are one dataset, in any type."""
    array = np.arange(300).astype(dtype)
    for k, part in enumerate((array[:100], array[100:101], array[101:])):
        (tmp_path / f"train-{k}.bin").write_bytes(b"?" * skip + part.tobytes())
    with mf.open(tmp_path / "train-*.bin", dtype=dtype, skip=skip) as ds:
        assert ds.schema["tokens"].dtype == array.dtype.name
        np.testing.assert_array_equal(ds[:]["tokens"], array)


@pytest.mark.parametrize("stride", [1, 16, 40])
def test_windows(tmp_path: Path, stride: int) -> None:
    """Windows over three files, over a slice, and over memory have the rows of NumPy's."""
    for k, part in enumerate((TOKENS[:307], TOKENS[307:310], TOKENS[310:])):
        (tmp_path / f"{k}.bin").write_bytes(headed(part))
    want = np.lib.stride_tricks.sliding_window_view(TOKENS, 17)[::stride]
    kept = np.lib.stride_tricks.sliding_window_view(TOKENS[100:900], 17)[::stride]
    with (
        mf.open(tmp_path / "*.bin", dtype="uint16", skip=1024) as ds,
        mf.from_arrays({"tokens": TOKENS}) as memory,
        mf.from_arrays({"tokens": TOKENS.repeat(3)[::3]}) as strided,
    ):
        for source in (ds, memory, strided):
            for below, rows in ((source, want), (source.slice(100, 900), kept)):
                with below.window(17, stride=stride) as windows:
                    np.testing.assert_array_equal(windows[:]["tokens"], rows)
                    with mf.Loader(windows, batch_size=4, remainder="pad") as loader:
                        got = np.concatenate([batch["tokens"] for batch in loader.one_epoch()])
                    np.testing.assert_array_equal(got[: len(rows)], rows)


def megatron(path: Path, documents: list[list[np.ndarray[Any, Any]]]) -> None:
    """Writes documents of several sequences as Megatron's tools do."""
    sequences = [sequence for document in documents for sequence in document]
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    starts = np.cumsum([0, *lengths[:-1] * 2], dtype=np.int64)[: len(lengths)]
    ends = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(ends))
    path.with_suffix(".idx").write_bytes(
        head + lengths.tobytes() + starts.tobytes() + ends.tobytes()
    )
    path.with_suffix(".bin").write_bytes(b"".join(sequence.tobytes() for sequence in sequences))


def test_megatron(tmp_path: Path) -> None:
    """A record of a pair of Megatron is a document, and the command reads it."""
    cuts = np.sort(np.random.default_rng(0).integers(0, 1000, 40))
    sequences = np.split(TOKENS, cuts)
    documents = [sequences[:3], [], *([s] for s in sequences[3:20]), sequences[20:]]
    megatron(tmp_path / "corpus", documents)
    want = [np.concatenate([np.empty(0, np.uint16), *d]) for d in documents]
    with mf.open(tmp_path / "corpus.idx") as ds, mf.open(tmp_path) as same:
        assert (len(ds), ds.schema["tokens"].ragged, len(same)) == (20, 1, 20)
        for got, row in zip(ds[:]["tokens"], want, strict=True):
            np.testing.assert_array_equal(got, row)
        rows = ds.pad("tokens", length=1000)
        with mf.Loader(rows, batch_size=20) as loader, rows.cache(tmp_path / "cache") as cached:
            batch = loader.peek()
            np.testing.assert_array_equal(batch["tokens_length"], list(map(len, want)))
            np.testing.assert_array_equal(cached[:]["tokens"], batch["tokens"])
    for verb in ("inspect", "verify", "convert"):
        words = [
            sys.executable,
            "-m",
            "meshfeed",
            verb,
            "corpus.idx",
            *(["out"] * (verb == "convert")),
        ]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    with mf.open(tmp_path / "out") as ds:
        np.testing.assert_array_equal(np.concatenate(ds[:]["tokens"]), TOKENS)


def test_state_and_copies(tmp_path: Path) -> None:
    """A state of one file continues over its copy, and over no file with other tokens."""
    for name, tokens in (("a", TOKENS), ("b", TOKENS), ("c", TOKENS[::-1])):
        tokens.tofile(tmp_path / f"{name}.bin")

    def loader(name: str) -> mf.Loader:
        ds = mf.open(tmp_path / f"{name}.bin", dtype="uint16")
        return mf.Loader(ds.window(11, stride=10), batch_size=8, shuffle=True)

    with loader("a") as first, loader("b") as second, loader("c") as third:
        batches = iter(first)
        next(batches)
        second.restore(first.state())
        np.testing.assert_array_equal(next(batches)["tokens"], next(iter(second))["tokens"])
        with pytest.raises(mf.IncompatibleError):
            third.restore(first.state())


def test_command(tmp_path: Path) -> None:
    """The command inspects, verifies and converts raw files."""
    TOKENS.tofile(tmp_path / "train.bin")

    def run(verb: str, *arguments: str) -> Any:
        words = [sys.executable, "-m", "meshfeed", verb, "train.bin", *arguments]
        words += ["--dtype", "uint16", "--json"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True, text=True)
        return json.loads(done.stdout)

    assert run("inspect")["records"] == 1000
    assert run("verify")["records"] == 1000
    run("convert", "out")
    with mf.open(tmp_path / "out") as ds:
        np.testing.assert_array_equal(ds[:]["tokens"], TOKENS)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("train.bin", TOKENS.tobytes(), {}, 'give their type, such as dtype="uint16"'),
        ("train.bin", headed(TOKENS), {}, 'give dtype="uint16" and skip=1024'),
        ("train.bin", headed(TOKENS), {"dtype": "uint16"}, "give skip=1024"),
        ("train.bin", b"123", {"dtype": "uint16"}, "not a multiple of the 2 bytes of uint16"),
        ("train.bin", b"123", {"dtype": ">u2"}, "mf.open: dtype='>u2': expected a little-endian"),
        ("train.bin", b"123", {"dtype": "bool"}, "mf.open: dtype='bool': expected"),
        ("train.bin", b"123", {"dtype": "uint8", "skip": -1}, "mf.open: skip=-1: expected"),
        ("train.bin", b"123", {"skip": 1}, "but dtype is not given"),
    ],
)
def test_errors(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((mf.InvalidArgumentError, mf.UnsupportedError)) as caught:
        mf.open(tmp_path / name, **options)
    assert message in str(caught.value)
