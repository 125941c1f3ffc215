"""Views that keep computed rows."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import meshfeed as mf
from meshfeed._command import BINARY

ROWS = 900


def write(path: Path, first: int = 0) -> Path:
    """Writes rows of all kinds, with 16 KiB of numbers in each."""
    rng = np.random.default_rng(first)
    x = rng.random((ROWS, 2048))
    columns = {
        "x": pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1]),
        "n": pa.array(np.arange(first, first + ROWS), pa.timestamp("us")),
        "tokens": pa.array([list(range(k % 5)) if k % 7 else None for k in range(ROWS)]),
        "text": pa.array([None if k % 3 == 0 else f"é{k}" for k in range(ROWS)]),
    }
    with pa.OSFile(str(path), "wb") as sink:
        table = pa.table(columns)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    return path


def view(path: Path) -> mf.Dataset:
    """Returns the view whose rows are kept."""
    return mf.open(path).pad("tokens", length=4).slice(50, ROWS)


def batches(ds: mf.Dataset, **options: Any) -> list[dict[str, Any]]:
    options = {"batch_size": 128, "epochs": 2, "seed": 7, "fill": {"tokens": 0}, **options}
    with mf.Loader(ds, specs=["x", "n", "tokens"], **options) as loader:
        return [{name: np.asarray(a) for name, a in batch.items()} for batch in loader]


def equal(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    return len(a) == len(b) > 0 and all(
        p.keys() == q.keys() and all((p[name] == q[name]).all() for name in p)
        for p, q in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("order", ["shuffle", "sequential", mf.Blocks(window=2)])
def test_batches_rows_and_states_are_those_of_the_view(order: Any, tmp_path: Path) -> None:
    ds = view(write(tmp_path / "x.arrow"))
    kept = ds.cache(tmp_path / "cache")
    assert (kept.fingerprint(), kept.schema) == (ds.fingerprint(), ds.schema)
    want = batches(ds, order=order)
    assert equal(batches(kept, order=order), want)
    assert kept[::50]["text"] == ds[::50]["text"]
    assert kept.lengths("text").tolist() == ds.lengths("text").tolist()
    options: dict[str, Any] = {"batch_size": 128, "specs": ["x"], "order": order, "seed": 7}
    with mf.Loader(ds, **options) as loader:
        for _, _ in zip(range(3), loader, strict=False):
            pass
        state = loader.state()
    with mf.Loader(kept, **options, state=state) as loader:
        assert (np.asarray(next(iter(loader))["x"]) == want[3]["x"]).all()


def test_later_epochs_read_nothing_and_changed_data_are_computed_again(tmp_path: Path) -> None:
    path, folder = write(tmp_path / "x.arrow"), tmp_path / "cache"
    kept = mf.open(path, io="read").cache(folder)
    with mf.Loader(kept, specs=["n"], batch_size=100, shuffle=True, epochs=2, prefetch=0) as loader:
        steps = iter(loader)
        for _ in range(9):
            next(steps)
        for part in folder.glob("*.units"):
            assert part.stat().st_size < 9 << 20
        os.truncate(path, 0)
        assert len(list(steps)) == 9
    write(path, first=1)
    assert equal(batches(view(path).cache(folder)), batches(view(path)))


PROGRAM = """
import os, signal, sys
import meshfeed as mf

ds = mf.open(sys.argv[1]).pad("tokens", length=4).slice(50, 900)
with mf.Loader(ds.cache(sys.argv[2]), specs=["x"], batch_size=30, shuffle=True) as loader:
    for k, batch in enumerate(loader):
        if len(sys.argv) > 3 or k == 27:
            break
if len(sys.argv) > 3:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_share_rows_and_may_be_killed(tmp_path: Path) -> None:
    path, folder = write(tmp_path / "x.arrow"), tmp_path / "cache"
    run = [sys.executable, "-c", PROGRAM, str(path), str(folder)]
    killed = subprocess.run([*run, "kill"], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    both = [subprocess.Popen(run, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    parts = sorted(folder.glob("*.units"))
    written = [part.stat().st_mtime_ns for part in parts]
    assert equal(batches(view(path).cache(folder)), batches(view(path)))
    assert sorted(folder.glob("*.units")) == parts
    assert [part.stat().st_mtime_ns for part in parts] == written
    listed = json.loads(
        subprocess.check_output([BINARY, "cache", "list", "--folder", str(folder), "--json"])
    )
    assert len(parts) == 2
    assert f"view {view(path).fingerprint()}" in json.dumps(listed)


def test_an_unusable_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ds = view(write(tmp_path / "x.arrow"))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/meshfeed")
    with caplog.at_level(logging.WARNING, "meshfeed"):
        assert equal(batches(ds.cache()), batches(ds))
    assert sum("kept in memory alone, because of a problem" in m for m in caplog.messages) == 1
    with pytest.raises(mf.errors.Error, match="/proc/meshfeed"):
        ds.cache("/proc/meshfeed")
    with pytest.raises(mf.errors.InvalidArgumentError, match='expected "auto"'):
        ds.cache(3)  # type: ignore[arg-type]
    large = mf.from_arrays({"x": np.zeros((300, 2**20), np.uint8)})
    with pytest.raises(mf.errors.UnsupportedError, match="store the data in a file"):
        large.cache("memory")
