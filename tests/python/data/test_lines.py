"""JSON Lines: values against Python's json, pyarrow and datasets, and use in views and loaders."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.json
import pytest

import meshfeed as mf

Row = dict[str, Any]


def random_rows(n: int) -> list[Row]:
    """Returns rows of every kind that opens. Keys are missing, and values are null, at random."""
    rng = random.Random(3)
    made: list[Row] = []
    for _ in range(n):
        row: Row = {
            "id": rng.randrange(-(2**63), 2**63),
            "score": rng.choice([rng.uniform(-1e300, 1e300), 5e-324, -0.0, rng.randrange(99)]),
            "ok": rng.random() < 0.5,
            "text": "".join(rng.choices('aß"\\/\n\t😀\u2028\x7f', k=rng.randrange(40))),
            "tokens": [rng.randrange(50_000) for _ in range(rng.randrange(9))],
            "flags": [rng.random() < 0.5 for _ in range(rng.randrange(20))],
            "grid": [[rng.random() for _ in range(3)] for _ in range(2)],
            "tags": ["x" * rng.randrange(3) for _ in range(rng.randrange(3))],
        }
        for key in list(row):
            chance = rng.random()
            if chance < 0.05:
                del row[key]
            elif chance < 0.1:
                row[key] = None
        made.append(dict(rng.sample(list(row.items()), len(row))))
    made[0]["id"] = 0
    return made


def write(path: Path, rows: list[Row]) -> Path:
    """Writes rows as json.dumps does, with and without escapes, compressed as the name says."""
    text = "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(rows))
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.CompressedOutputStream(path, codec) if codec else path.open("wb") as file:
        file.write(text.encode())
    return path


def plain(value: Any) -> Any:
    """Returns a value of a row as json has it."""
    if isinstance(value, np.ma.MaskedArray):
        return None if value.mask.all() else value.tolist()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json.zst"])
def test_values(tmp_path: Path, name: str) -> None:
    """Every value is what Python's json reads, and what pyarrow and datasets read."""
    rows = random_rows(400)
    path = write(tmp_path / name, rows)
    with mf.open(path, cache=tmp_path / "cache") as ds:
        assert set(ds.schema) == {key for row in rows for key in row}
        assert not ds.skipped
        got = [{key: plain(value) for key, value in row.items()} for row in ds]
    want = [{key: row.get(key) for key in got[0]} for row in rows]
    assert got == want
    if name == "a.jsonl":
        table = pa.json.read_json(path).to_pylist()
        assert [{key: row[key] for key in got[0]} for row in table] == got
        with mf.from_arrow(datasets.Dataset.from_json(str(path), cache_dir=str(tmp_path))) as live:
            assert [{key: plain(row[key]) for key in got[0]} for row in live] == got


def test_training(tmp_path: Path) -> None:
    """Documents of many files are filtered and packed, and a loader goes on from its state."""
    rng = random.Random(4)
    documents = [[rng.randrange(1000) for _ in range(rng.randrange(1, 50))] for _ in range(300)]
    for k, name in enumerate(["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"]):
        part = documents[k * 100 : k * 100 + 100]
        write(tmp_path / name, [{"tokens": d, "lang": len(d) % 2} for d in part])
    with mf.open(tmp_path, cache="memory") as ds:
        kept = ds.filter(lambda rows: rows["lang"] == 1)
        packed = kept.select(["tokens"]).pack("tokens", length=64)
        want = sorted(token for d in documents if len(d) % 2 for token in d)
        rows = packed[:]
        assert sorted(rows["tokens"][rows["segment_ids"] > 0].tolist()) == want
        with mf.Loader(packed, batch_size=4, shuffle=True, seed=1) as loader:
            batches = [
                np.asarray(batch["tokens"]) for _, batch in zip(range(6), loader, strict=False)
            ]
        with mf.Loader(packed, batch_size=4, shuffle=True, seed=1) as loader:
            for _ in zip(range(3), loader, strict=False):
                state = loader.state()
        with mf.Loader(packed, batch_size=4, shuffle=True, seed=1) as loader:
            loader.restore(state)
            np.testing.assert_array_equal(np.asarray(loader.peek()["tokens"]), batches[3])


def test_a_conflict_names_file_and_line(tmp_path: Path) -> None:
    """A line after the sample that does not fit is an error that says what to do."""
    rows: list[Row] = [{"a": 1, "b": "x" * 100}] * 12_000
    path = write(tmp_path / "a.jsonl", [*rows, {"a": 1.5}])
    with mf.open(path) as ds:
        want = rf'{path}: line 12001: "a" has 1.5 where the first lines have integers of 64 bits; '
        with pytest.raises(mf.IncompatibleError, match=want + ".*choose the other columns"):
            ds[12_000]
    with mf.open(path, columns=["b"]) as ds:
        assert ds[12_000]["b"] is None
