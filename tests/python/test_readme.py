"""The README's first example runs as it stands, on the data that it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

ROOT = Path(__file__).resolve().parents[2]


def write_digits(folder: Path) -> int:
    """Writes uneven files of 8 by 8 images, and gives the number of records."""
    folder.mkdir(parents=True)
    sizes = [300, 41, 256]
    for i, n in enumerate(sizes):
        pixels = pa.array(np.random.default_rng(i).random(n * 64, np.float32))
        rows = pa.FixedSizeListArray.from_arrays(pixels, 8)
        table = pa.table(
            {
                "image": pa.FixedSizeListArray.from_arrays(rows, 8),
                "label": pa.array(np.arange(n, dtype=np.int32) % 10),
            }
        )
        with pyarrow.ipc.new_file(folder / f"train-{i}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    return sum(sizes)


def test_the_first_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    records = write_digits(tmp_path / "demo-out" / "data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    try:
        assert names["loader"].epoch == 3
        assert names["state"] == names["loader"].state()
        assert names["state"]["records"] == records
        assert isinstance(names["batch"]["image"], jax.Array)
        assert "image" in capsys.readouterr().out
    finally:
        names["loader"].close()
        names["ds"].close()
