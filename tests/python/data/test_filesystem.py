"""`mf.open(paths, filesystem=...)`: file systems of fsspec, and stores like obstore's."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import fsspec.implementations.local
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import meshfeed as mf
from tests.python.data.closing import close_while_reading
from tests.python.native.test_process import HANG
from tests.python.webserver import WebServer, web_server

ROWS = 2000


def table(number: int, width: int = 1) -> pa.Table:
    rng = np.random.default_rng(number)
    rows = pa.FixedSizeListArray.from_arrays(rng.integers(0, 2**62, ROWS * width), width)
    return pa.table({"x": rows, "id": np.arange(number * ROWS, (number + 1) * ROWS)})


def parquet(number: int, width: int = 1) -> bytes:
    out = io.BytesIO()
    pq.write_table(table(number, width), out, row_group_size=1000, compression="zstd")
    return out.getvalue()


def batches(ds: mf.Dataset, **options: Any) -> list[np.ndarray]:
    with mf.Loader(ds, batch_size=100, seed=5, shuffle=True, **options) as loader:
        return [np.copy(batch["id"]) for batch in loader]


class Watched(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory of its own. It notes each read, which may wait."""

    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.reads: list[int] = []
        self.told = {"created"}  # what `info` tells
        self.asked, self.released = threading.Event(), threading.Event()
        self.released.set()

    def cat_file(self, path: str, start: Any = None, end: Any = None, **options: Any) -> bytes:
        self.reads.append(end - start)
        self.asked.set()
        assert self.released.wait(HANG)
        return bytes(super().cat_file(path, start, end, **options))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        found = super().info(path, **options)
        return {k: v for k, v in found.items() if k != "created" or k in self.told}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        found = super().ls(path, detail=True, **options)
        return [{k: v for k, v in e.items() if k != "created" or k in self.told} for e in found]


@pytest.fixture
def watched() -> Watched:
    fs = Watched()
    for number in range(4):
        fs.pipe_file(f"/data/year={number // 2}/a-{number}.parquet", parquet(number))
    return fs


@pytest.fixture
def near(tmp_path: Path, watched: Watched) -> Path:
    for path in watched.find("/data"):
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_bytes(MemoryFileSystem.cat_file(watched, path))
    return tmp_path / "data"


NAMES = ("memory://data", "/data/year=*/a-*.parquet", "data/year=1/a-{2..3}.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_rows_equal_those_of_a_disk(
    name: str, watched: Watched, near: Path, tmp_path: Path
) -> None:
    below = name.replace("memory://", "").lstrip("/").replace("data", str(near), 1)
    local = fsspec.implementations.local.LocalFileSystem()
    cache = tmp_path / "cache"
    with (
        mf.open(below) as expected,
        mf.open(below, filesystem=local) as third,
        mf.open(name, filesystem=watched, cache=cache) as ds,
    ):
        assert len(ds) == len(expected) == len(third)
        assert list(ds.schema) == list(expected.schema)
        assert all(map(np.array_equal, batches(ds), batches(expected)))
        assert all(map(np.array_equal, batches(third), batches(expected)))
    with mf.open(name, filesystem=watched, cache=cache) as ds:
        ds.fingerprint()
        opened = len(watched.reads)
        batches(ds)
        assert len(watched.reads) == opened  # the rows of the first run are kept
        watched.pipe_file("/data/year=1/a-3.parquet", parquet(3))
    with mf.open(name, filesystem=watched, cache=cache) as ds:
        ds.fingerprint()
        opened = len(watched.reads)
        batches(ds)
        assert len(watched.reads) > opened  # but not those of another time


def test_reads_are_blocks(watched: Watched) -> None:
    """A row group is one read, or several of 8 MiB, and `stats` counts them."""
    watched.pipe_file("/big.parquet", parquet(0, width=2000))
    with mf.open("/big.parquet", filesystem=watched, cache="memory") as ds:
        ds.fingerprint()
        watched.reads.clear()
        with mf.Loader(ds, batch_size=1000) as loader:
            for _ in loader:
                pass
            stats = loader.stats()
    assert max(watched.reads) == 8 << 20
    assert len(watched.reads) <= 6
    assert stats["planned_bytes"] == stats["fetched_bytes"] >= sum(watched.reads) > 30 << 20


def test_a_file_without_an_identity(
    watched: Watched, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched.told = set()
    with (
        caplog.at_level(logging.WARNING, "meshfeed"),
        mf.open("/data", filesystem=watched, cache=tmp_path / "cache") as ds,
    ):
        assert len(batches(ds)) == 80
    (record,) = caplog.records
    assert "neither a version nor a time of /data/year=" in record.message
    assert not list(tmp_path.glob("cache/*"))


def test_a_changed_file_is_named(watched: Watched) -> None:
    name = "/data/year=0/a-0.parquet"
    with mf.open(name, filesystem=watched, cache="memory") as ds:
        watched.pipe_file(name, parquet(1))
        expected = f"{name}: the file has changed since it was opened: it had created "
        with pytest.raises(mf.DataLossError, match=expected):
            batches(ds)


def test_what_is_missing(watched: Watched) -> None:
    for name in ("/none.parquet", "/data/none-*", "/none"):
        with pytest.raises(mf.NotFoundError, match="none"):
            mf.open(name, filesystem=watched)
    for wrong in (3, "s3"):
        with pytest.raises(mf.InvalidArgumentError, match="a file system of fsspec, or a store"):
            mf.open("/data", filesystem=wrong)


class Web(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Reads a web server, without retries."""

    cachable = False

    def _get(self, path: str, asked: str) -> Any:
        request = urllib.request.Request(path, headers={"Range": f"bytes={asked}"})
        with urllib.request.urlopen(request, timeout=HANG) as answer:
            return answer.headers, answer.read()

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        headers, _ = self._get(path, "-1")
        size = int(headers["Content-Range"].rpartition("/")[2])
        return {"name": path, "size": size, "type": "file", "ETag": headers["ETag"]}

    def cat_file(self, path: str, start: Any = None, end: Any = None, **options: Any) -> bytes:
        return bytes(self._get(path, f"{start}-{end - 1}")[1])


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as state:
        state.files = {f"/a-{number}.parquet": parquet(number) for number in range(3)}
        yield state


def test_an_exception_is_the_cause(server: WebServer) -> None:
    address, web = server.url + "/a-{0..2}.parquet", Web()
    with mf.open(address, filesystem=web, cache="memory") as ds, mf.open(address) as direct:
        assert ds.fingerprint() == direct.fingerprint() != ""
        server.before = lambda number: 503
        with pytest.raises(mf.ReadError, match=r"/a-\d.parquet: HTTPError: .* 503") as failed:
            batches(ds)
        assert isinstance(failed.value.__cause__, urllib.error.HTTPError)
        assert failed.value.path.startswith(server.url)
        server.before = lambda number: None
        assert len(batches(ds)) == 60
        server.version += 1
        with mf.open(address, filesystem=web) as changed:
            assert changed.fingerprint() != ds.fingerprint()


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "meshfeed.filesystem"]


def test_a_close_waits_for_no_read(watched: Watched) -> None:
    before = len(threads())
    ds = mf.open("/data", filesystem=watched, cache="memory")
    ds.fingerprint()  # a loader needs it
    watched.asked.clear()
    watched.released.clear()
    close_while_reading(ds, watched.asked, HANG)
    watched.released.set()
    end = time.monotonic() + HANG
    while len(threads()) > before and time.monotonic() < end:
        time.sleep(0.01)
    assert len(threads()) == before


INTERRUPTED = """
import threading, meshfeed as mf
from fsspec.implementations.memory import MemoryFileSystem
class Hanging(MemoryFileSystem):
    def info(self, path, **options):
        print("asked", flush=True)
        threading.Event().wait()
mf.open("/x.parquet", filesystem=Hanging())
"""


def test_an_interrupt_ends_an_open() -> None:
    """Ctrl-C works while a file system does not answer, and the program ends."""
    arguments = [sys.executable, "-c", INTERRUPTED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(arguments, **pipes) as player:  # type: ignore[call-overload]
        assert player.stdout.readline() == "asked\n"
        player.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in player.communicate(timeout=HANG)[1]


@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX, which other tests import
def test_a_fork_leaves_the_parent_at_work(watched: Watched) -> None:
    with mf.open("/data", filesystem=watched, cache="memory") as ds:
        child = os.fork()
        if child == 0:
            try:
                mf.open("/data", filesystem=watched)
            except mf.ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert len(batches(ds)) == 80


class PreconditionError(Exception):
    """As obstore's."""


class Store:
    """Has the methods of a store of obstore that are used."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tag = 1
        self.conditions: list[str] = []

    def _meta(self, path: str) -> dict[str, Any]:
        return {"path": path, "size": len(self.files[path]), "e_tag": f'"{self.tag}"'}

    def head(self, path: str) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self._meta(path)

    def list(self, prefix: str, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
        yield [self._meta(path) for path in self.files if path.startswith(prefix + "/")]

    def list_with_delimiter(self, prefix: str | None) -> dict[str, Any]:
        start = f"{prefix}/" if prefix else ""
        rest = [path[len(start) :] for path in self.files if path.startswith(start)]
        dirs = {start + r.partition("/")[0] for r in rest if "/" in r}
        objects = [self._meta(start + r) for r in rest if "/" not in r]
        return {"common_prefixes": sorted(dirs), "objects": objects}

    def get_range(self, path: str, *, start: int, end: int) -> memoryview:
        return memoryview(self.files[path])[start:end]

    def get(self, path: str, options: dict[str, Any]) -> Any:
        self.conditions.append(options["if_match"])
        if options["if_match"] != f'"{self.tag}"':
            raise PreconditionError(path)
        body = io.BytesIO(self.files[path][slice(*options["range"])])
        body.bytes = body.getvalue  # type: ignore[attr-defined]
        return body


def test_a_store_of_obstore() -> None:
    store = Store()
    for number in range(3):
        store.files[f"d/year={number}/a.parquet"] = parquet(number)
    for name, files in {"d": 3, "d/year=*/a.parquet": 3, "/d/year={0..1}/a.parquet": 2}.items():
        with mf.open(name, filesystem=store, cache="memory") as ds:
            assert len(ds) == files * ROWS
            assert ds[len(ds) - 1]["id"] == files * ROWS - 1
    for name in ("none", "d/none*", "none/*"):
        with pytest.raises(mf.NotFoundError):
            mf.open(name, filesystem=store)
    assert set(store.conditions) == {'"1"'}
    with mf.open("d", filesystem=store, cache="memory") as ds:
        store.tag = 2
        with pytest.raises(mf.DataLossError, match=r'it had e_tag "1", and has e_tag "2"'):
            batches(ds)
