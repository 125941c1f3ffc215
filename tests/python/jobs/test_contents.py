"""Processes that compare every byte of their files."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import meshfeed as mf
from meshfeed._data.dataset import compared_files
from meshfeed._jobs import contents
from meshfeed._native import calls, files
from tests.python.players import ALIKE, DIFFER, HANG, Memory, threads, together, until

N = 2_400_000  # records: files of more than 16 MiB, which the fingerprint samples
LAYOUT = mf.layout(
    {"data": 2}, mf.P("data"), {"x": ("int64", ())}, batch_size=8, records=2 * N, processes=2
)


def write(folder: Path, changed: int | None = None) -> list[Path]:
    """Writes two files; one value of the second may differ."""
    folder.mkdir()
    x = np.arange(2 * N)
    if changed is not None:
        x[changed] = -1
    paths = [folder / "a.arrow", folder / "b.arrow"]
    for path, part in zip(paths, np.split(x, 2), strict=True):
        batch = pa.table({"x": part})
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write_table(batch)
    return paths


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write(tmp_path_factory.mktemp("files") / "good")


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write(tmp_path_factory.mktemp("files") / "stale", N + N // 2 + 5)


@contextmanager
def job(*paths: list[Path], full: int = 2) -> Iterator[list[mf.Loader]]:
    """Plays two processes, each with its own files; they share no block.

    Args:
        paths: the files of each process.
        full: how many processes compare every byte.
    """
    store = Memory()
    given: dict[str, Any] = {"name": "train", "epochs": -1, "agree_timeout": HANG}
    given["late_after"] = 0.3  # threads of a forgotten loader end after a third of it
    loaders = []
    for p, ours in enumerate(paths):
        with mf.open(ours, fingerprint="full" if p < full else "sampled") as ds:
            loaders.append(mf.Loader(ds, layout=LAYOUT, process=p, coordinator=store, **given))
    try:
        yield loaders
    finally:
        together([loader.close for loader in loaders])


def until_error(loaders: list[mf.Loader]) -> list[Exception]:
    """Steps until both processes have failed; returns the errors."""
    found: list[Any] = [None, None]

    def run(p: int) -> None:
        late = time.monotonic() + HANG
        try:
            while time.monotonic() < late:
                next(iter(loaders[p]))
        except mf.Error as e:
            found[p] = e

    together([lambda: run(0), lambda: run(1)])
    return found


def test_a_stale_copy_on_one_host_is_found_and_named(good: list[Path], stale: list[Path]) -> None:
    with job(good, stale) as loaders:
        other, own = until_error(loaders)
    here, there = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (stale[1], good[1]))
    text = (
        f"processes 0 and 1 read different files: {stale[1]}, whose SHA-256 is {here} on process 1 "
        f"and {there} on process 0; copy the files again; "
        "meshfeed verify --hash prints the SHA-256 of each"
    )
    assert isinstance(own, mf.IncompatibleError)
    assert str(own) == f"mf.Loader: {text}"
    assert isinstance(other, mf.PeerError)
    assert str(other).endswith(text)


def test_equal_files_are_compared_in_every_generation(
    good: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = threading.Semaphore(0)
    original = contents.Contents._compare

    def counted(self: contents.Contents, mine: files.Hashes) -> None:
        original(self, mine)
        compared.release()

    monkeypatch.setattr(contents.Contents, "_compare", counted)
    with job(good, good) as loaders:
        for position in (0, 80):
            for loader in loaders:
                loader.seek(epoch=0, position=position)
            together([lambda loader=loader: next(iter(loader)) for loader in loaders])  # type: ignore[misc]
            for _ in loaders:
                assert compared.acquire(timeout=HANG)
        together([lambda loader=loader: next(iter(loader)) for loader in loaders])  # type: ignore[misc]


def test_all_processes_ask_for_it_or_none(good: list[Path]) -> None:
    with job(good, good, full=1) as loaders:
        got = until_error(loaders)
    text = "fingerprint is 'full' on process 0, 'sampled' on process 1"
    assert [str(e) for e in got] == [DIFFER + text + ALIKE] * 2


def test_a_close_ends_a_hash_that_is_not_ready(
    good: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "dataset_hash", lambda handle, *, wait: None)
    with job(good, good) as loaders:
        together([lambda loader=loader: next(iter(loader)) for loader in loaders])  # type: ignore[misc]
    assert "meshfeed.contents" not in threads()


def test_a_forgotten_loader_ends_its_hash(
    good: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that hashes holds no reference to the loader."""
    monkeypatch.setattr(calls, "dataset_hash", lambda handle, *, wait: None)
    with job(good, good) as loaders:
        together([loader.__next__ for loader in map(iter, loaders)])
        assert threads().count("meshfeed.contents") == 2
        loaders.clear()
        until(lambda: threads() == [])


def test_slices_compare_the_files_beneath(good: list[Path], stale: list[Path]) -> None:
    with mf.open(good, fingerprint="full") as ds:
        part = compared_files(ds.slice(0, 5))
        assert part is not None
        assert part.paths == [str(path) for path in good]
        hashes = part.hashes(threading.Event())
        assert hashes is not None
        assert hashes["sha256"] == ds.sha256()
    with mf.open(good) as ds:
        assert compared_files(ds) is None
    gc.collect()
