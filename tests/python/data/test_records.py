"""TFRecord with tf.Example: what TensorFlow wrote, as a loader and a conversion read it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import meshfeed as mf
from tests.python import ROOT, loaders
from tests.python.data import tensorflow_records as written

GOLDEN = ROOT / "arrowio/testdata/tfrecord"
HANG = 600  # seconds: 10 times what the programs take on a busy machine


def test_records_of_tensorflow(tmp_path: Path) -> None:
    """Every value is the one that TensorFlow wrote, also after a conversion."""
    want = written.rows(20)
    with mf.open(GOLDEN, split="train") as ds, mf.open(GOLDEN / "*") as again:
        assert len(ds) == 20
        ragged = {name for name, field in ds.schema.items() if field.ragged}
        assert ragged == {"image", "tokens", "words"}
        assert ds.schema["box"].shape == (4,)
        assert ds.schema["maybe"].nullable
        assert not ds.schema["id"].nullable
        for row, expected in zip(ds, want, strict=True):
            written.check(row, expected)
        assert ds.fingerprint() == again.fingerprint()
        rows = ds.select(["box", "id", "tokens"]).pad("tokens", length=9)
        with mf.Loader(rows, batch_size=20, shuffle=True, seed=1) as loader:
            batch = loader.peek()
            order = loader.records(0, 0)[:20]
        assert batch["id"].tolist() == [want[i]["id"] for i in order]
        assert np.asarray(batch["box"]).dtype == np.float32
    for verb, last in (("inspect", ()), ("verify", ()), ("convert", (tmp_path / "out",))):
        command: list[str | Path] = [sys.executable, "-m", "meshfeed", verb]
        command += [*sorted(GOLDEN.iterdir()), *last]
        assert subprocess.run(command, check=False).returncode == 0
    with mf.open(tmp_path / "out") as ds:
        for row, expected in zip(ds, want, strict=True):
            written.check(row, expected)


def test_columns(tmp_path: Path) -> None:
    """Only the chosen features are read, and a file that was cut short is an error."""
    with mf.open(GOLDEN, columns=["words", "id"]) as ds:
        assert list(ds.schema) == ["words", "id"]
        assert [row["id"] for row in ds] == [row["id"] for row in written.rows(20)]
    cut = shutil.copy(GOLDEN / written.NAMES[0], tmp_path / "a.tfrecord")
    os.truncate(cut, 100)
    with pytest.raises(mf.DataLossError, match=r"a\.tfrecord: record 0 at byte 0 is damaged"):
        mf.open(cut)


@pytest.mark.deep
def test_the_values_of_tf_data(tmp_path: Path) -> None:
    compare = ("-m", written.__name__, "compare", tmp_path, "3000")
    assert "3000 records are equal" in loaders.run(*compare, cwd=ROOT, timeout=HANG)
