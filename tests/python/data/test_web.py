"""Files of a web server: batches, counts, faults, several processes, and ends in the middle."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.data.closing import close_while_reading
from tests.python.programs import HANG
from tests.python.webserver import Bucket, Hub, WebServer, web_server

FILES, ROWS, WIDTH = 4, 3000, 64


def table(number: int) -> pa.Table:
    rng = np.random.default_rng(number)
    rows = pa.FixedSizeListArray.from_arrays(rng.integers(0, 2**62, ROWS * WIDTH), WIDTH)
    return pa.table({"x": rows, "id": np.arange(number * ROWS, (number + 1) * ROWS)})


@pytest.fixture(scope="module")
def stored() -> dict[str, bytes]:
    """Files by their paths: Parquet with 3 row groups, and Arrow without compression."""
    files = {}
    for number in range(FILES):
        out = io.BytesIO()
        pq.write_table(table(number), out, row_group_size=1000, compression="zstd")
        files[f"/a-{number:02}.parquet"] = out.getvalue()
        out = io.BytesIO()
        with pa.ipc.new_file(out, table(number).schema) as writer:
            writer.write_table(table(number), max_chunksize=1000)
        files[f"/a-{number:02}.arrow"] = out.getvalue()
    return files


@pytest.fixture
def server(stored: dict[str, bytes]) -> Iterator[WebServer]:
    with web_server() as state:
        state.files = dict(stored)
        yield state


def batches(ds: mf.Dataset, **options: Any) -> list[np.ndarray]:
    with mf.Loader(ds, batch_size=100, seed=5, **options) as loader:
        return [np.copy(batch["id"]) for batch in loader]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("order", [{"shuffle": True}, {"order": "blocks"}, {}])
def test_batches_equal_those_of_a_disk(
    kind: str, order: dict[str, Any], server: WebServer, tmp_path: Path
) -> None:
    for path, data in server.files.items():
        (tmp_path / path[1:]).write_bytes(data)
    cache = tmp_path / "cache"
    address = f"{server.url}/a-{{00..03}}.{kind}"
    with mf.open(str(tmp_path / f"a-{{00..03}}.{kind}")) as near:
        expected = batches(near, **order)
    with mf.open(address, cache=cache) as far:
        headers = 0 if kind == "parquet" else 3  # of record batches
        assert len(server.requests) == FILES * (1 + headers)
        compare(far, expected, order, server, kind)
        fingerprint = far.fingerprint()
    with mf.open(address) as again:
        assert again.fingerprint() == fingerprint
    server.version += 1
    with mf.open(address) as changed:
        assert changed.fingerprint() != fingerprint


def compare(
    far: mf.Dataset,
    expected: list[np.ndarray],
    order: dict[str, Any],
    server: WebServer,
    kind: str,
) -> None:
    """Loads two epochs from a server that is busy now and then."""
    server.before = lambda number: 503 if number % 7 == 0 else None
    opened = server.sent
    with mf.Loader(far, batch_size=100, seed=5, **order) as loader:
        got = [np.copy(batch["id"]) for batch in loader]
        stats = loader.stats()
    assert all(map(np.array_equal, got, expected))
    assert len(got) == len(expected) == 120
    assert stats["planned_bytes"] == stats["fetched_bytes"] == server.sent
    assert stats["requests"] == len(server.requests)
    stored = sum(len(data) for path, data in server.files.items() if path.endswith(kind))
    assert 0.9 < (server.sent - opened) / stored < 1.001
    requests = len(server.requests)
    assert all(map(np.array_equal, batches(far, **order), expected))
    assert len(server.requests) == requests  # a second epoch asks for nothing


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_equals_a_disk(
    scheme: str,
    stored: dict[str, bytes],
    server: WebServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Globs, partitions and splits in a bucket have the batches of the same files on a disk."""
    name, bucket = "AWS_ENDPOINT_URL" if scheme == "s3" else "STORAGE_EMULATOR_HOST", Bucket(server)
    monkeypatch.setenv(name, server.url)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files = [stored[f"/a-{number:02}.parquet"] for number in range(FILES)]
    server.files = {}
    for key, data in {
        "glob/train 0+a.parquet": files[0],
        "glob/train 1%.parquet": files[1],
        "hive/year=2024/a.parquet": files[0],
        "hive/year=2025/a.parquet": files[1],
        "split/train-00000-of-00002.parquet": files[0],
        "split/train-00001-of-00002.parquet": files[1],
        "split/test-00000-of-00001.parquet": files[2],
    }.items():
        bucket.put(key, data)
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    for path, split, requests in (
        ("glob/train*.parquet", None, 4),
        ("hive", None, 5),
        ("split", "train", 5),
    ):
        server.requests.clear()
        with (
            mf.open(str(tmp_path / path), split=split) as near,
            mf.open(f"{scheme}://bucket/{path}", split=split, cache=tmp_path / "cache") as far,
        ):
            assert len(server.requests) <= requests, server.requests
            assert far.schema == near.schema
            for a, b in zip(batches(near, shuffle=True), batches(far, shuffle=True), strict=True):
                np.testing.assert_array_equal(a, b)
    far = mf.open(f"{scheme}://bucket/glob/*.parquet")
    server.version += 1
    with far, pytest.raises(mf.DataLossError, match="has changed"):
        batches(far)
    with pytest.raises(mf.NotFoundError, match="the bucket has no such file or directory"):
        mf.open(f"{scheme}://bucket/none.parquet")


def test_a_changed_file_is_named(server: WebServer) -> None:
    ds = mf.open(server.url + "/a-00.parquet", cache="memory")
    server.version += 1
    expected = (
        rf"{server.url}/a-00.parquet: the file has changed since it was opened: "
        r'it had ETag "1", and has ETag "2"; do not replace files while they are read'
    )
    with ds, pytest.raises(mf.DataLossError, match=expected):
        batches(ds)


def test_a_commit_is_named(
    server: WebServer,
    stored: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dataset, its layout, its state and its certificate have the commit of a branch."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    first, equal, other = "a" * 40, "b" * 40, "c" * 40
    hub = Hub(server)
    a, b = (stored[f"/a-0{number}.parquet"] for number in range(2))

    def loader(state: Any = None, revision: str = "") -> mf.Loader:
        name = f"hf://datasets/org/name{revision}/data"
        with mf.open(name, cache="memory") as ds:
            assert f"from hf://datasets/org/name@{current}" in repr(ds.slice(0, 10))
            return mf.Loader(ds, batch_size=100, state=state)

    hub.commit(current := first, {"x.parquet": a})
    with loader() as begun:
        next(iter(begun))
        state, done = begun.state(), begun.certificate()
        text = begun.layout.to_json()
    assert state["commit"] == first
    assert len(json.dumps(state)) < 256
    assert done.commits == (f"hf://datasets/org/name@{first}",)
    assert f'"commits":["hf://datasets/org/name@{first}"]' in text
    hub.commit(current := equal, {"x.parquet": a})
    with loader(state) as again:  # the branch has moved, and the file is the same
        next(iter(again))
        both = done + again.certificate()
    assert len(caplog.records) == 1
    assert caplog.messages[0].endswith(
        f"at commit {first}, and the dataset is at commit {equal}; "
        "the files of the dataset are equal"
    )
    assert mf.Certificate.from_json(both.to_json()) == both
    assert [name[-1] for name in both.commits] == ["a", "b"]
    hub.commit(current := other, {"x.parquet": b})
    expected = (
        rf"commit saved {first}, live {other}; open the commit that was saved: write @{first}"
    )
    with pytest.raises(mf.IncompatibleError, match=expected):
        loader(state)
    current = first
    loader(state, f"@{first}").close()


def test_weights_by_ranges(
    server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process fetches the bytes of its shards, from a server and from a model of the hub."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    rows, columns = 4096, 512
    weights = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    np.savez(tmp_path / "w.npz", w=weights, other=weights)
    safetensors = json.dumps(
        {
            name: {
                "dtype": "F32",
                "shape": weights.shape,
                "data_offsets": [at, at + weights.nbytes],
            }
            for name, at in (("w", 0), ("other", weights.nbytes))
        }
    ).encode()
    data = struct.pack("<Q", len(safetensors)) + safetensors + 2 * weights.tobytes()
    np.save(tmp_path / "w.npy", weights)
    Hub(server, "models").commit("a" * 40, {"w.safetensors": data})
    server.files["/w.safetensors"] = data
    for name in ("w.npy", "w.npz"):
        server.files[f"/{name}"] = (tmp_path / name).read_bytes()
    mesh = mf.make_mesh({"model": -1})
    whole = NamedSharding(mesh, P())
    fixed = 2 * 65536 + 4096  # the end of a file, and headers
    for address in (f"{server.url}/w.safetensors", "hf://org/name/data/w.safetensors"):
        sent = server.sent
        with mf.open_arrays(address) as stored:
            assert list(stored) == ["w", "other"]
            assert server.sent - sent < fixed
            assert np.array_equal(mf.load_array(stored, "w", whole), weights)
        assert weights.nbytes <= server.sent - sent < weights.nbytes + fixed
    for name in ("w.npy", "w.npz"):
        with mf.open_arrays(f"{server.url}/{name}") as stored:
            assert np.array_equal(mf.load_array(stored, "w", whole), weights)
    server.version += 1
    with mf.open_arrays(f"{server.url}/w.npy") as stored:
        server.version += 1
        with pytest.raises(mf.DataLossError, match=r'it had ETag "2", and has ETag "3"'):
            mf.load_array(stored, "w", whole)


def test_a_shuffle_says_what_it_fetches(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A layout says it before anything is read, and a loader once, in its first process."""
    stored = sum(len(data) for path, data in server.files.items() if "parquet" in path)
    with mf.open(f"{server.url}/a-{{00..03}}.parquet", cache="memory") as ds:

        def plan(order: Any, repeats: int) -> mf.Layout:
            lay = mf.layout({"data": 4}, mf.P("data"), ds, batch_size=64, processes=4, order=order)
            document = json.loads(lay.to_json())
            assert document["dataset"]["far_bytes"] == stored
            document["dataset"]["far_bytes"] *= repeats
            return mf.Layout(json.dumps(document))

        def said(order: Any, repeats: int) -> mf.Problem:
            (found,) = (p for p in plan(order, repeats).check() if p.code.startswith("far-"))
            return found

        assert said("shuffle", 1).severity == "info"
        large = said("shuffle", 1000)
        assert (large.severity, large.code) == ("warning", "far-shuffle")
        assert large.facts["total_bytes"] == 4 * large.facts["bytes"] == 4000 * stored
        assert large.facts["requests"] == -(-1000 * stored // 2**23)
        assert large.facts["seconds"] == -(-1000 * stored // 800_000_000)
        assert said("local", 1000).facts["bytes"] == 250 * stored
        assert said("blocks", 1000).severity == "info"
        for process in (1, 0):
            assert not caplog.records
            mf.Loader(ds, layout=plan("shuffle", 1000), process=process, coordinator=False).close()
    assert [message.split(":")[0] for message in caplog.messages] == [large.message.split(":")[0]]


def test_a_close_ends_requests(server: WebServer) -> None:
    """A server that does not answer holds up neither a close nor the next program."""
    ds = mf.open(server.url + "/a-00.parquet", cache="memory")
    asked, release = threading.Event(), threading.Event()

    def hang(number: int) -> None:
        asked.set()
        release.wait(HANG)

    server.before = hang
    try:
        close_while_reading(ds, asked, HANG)
    finally:
        release.set()


def test_an_interrupt_ends_an_open(server: WebServer) -> None:
    """Ctrl-C works while a server does not answer."""
    asked, release = threading.Event(), threading.Event()

    def hang(number: int) -> None:
        asked.set()
        release.wait(HANG)

    server.before = hang
    code = "import meshfeed, sys; meshfeed.open(sys.argv[1])"
    arguments = [sys.executable, "-c", code, server.url + "/a-00.parquet"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as player:
        assert asked.wait(HANG)
        player.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in player.communicate(timeout=HANG)[1]
    release.set()


PLAYER = """
import sys, meshfeed as mf
ds = mf.open(sys.argv[1], cache=sys.argv[2])
print("open", flush=True)
sys.stdin.readline()
with mf.Loader(ds, batch_size=100, seed=int(sys.argv[3]), shuffle=True) as loader:
    print(sum(int(batch["id"].sum()) for batch in loader))
"""


def play(server: WebServer, cache: Path, seed: int = 0) -> subprocess.Popen[str]:
    """Starts a process that has opened the files, and waits for a line."""
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYER, server.url + "/a-{00..03}.parquet", cache, str(seed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert player.stdout is not None
    assert player.stdout.readline() == "open\n"
    return player


def test_processes_of_a_host_fetch_each_unit_once(server: WebServer, tmp_path: Path) -> None:
    players = [play(server, tmp_path, seed) for seed in range(3)]
    opened = server.sent
    for player in players:
        assert player.stdin is not None
        player.stdin.write("\n")
        player.stdin.flush()
    total = FILES * ROWS
    assert [p.communicate(timeout=HANG)[0] for p in players] == [
        f"{total * (total - 1) // 2}\n"
    ] * 3
    stored = sum(len(data) for path, data in server.files.items() if path.endswith("parquet"))
    assert 0.9 < (server.sent - opened) / stored < 1.001


def test_a_killed_process_leaves_no_part(server: WebServer, tmp_path: Path) -> None:
    """The next process finds whole parts only, and repeats what is missing."""
    asked, release = threading.Event(), threading.Event()
    player = play(server, tmp_path)
    first = len(server.requests)

    def hang(number: int) -> None:
        if number > first + 1:
            asked.set()
            release.wait(HANG)

    server.before = hang
    assert player.stdin is not None
    player.stdin.write("\n")
    player.stdin.flush()
    assert asked.wait(HANG)
    os.kill(player.pid, signal.SIGKILL)
    player.communicate(timeout=HANG)
    server.before = lambda number: None
    release.set()
    again = play(server, tmp_path)
    total = FILES * ROWS
    assert again.communicate("\n", timeout=HANG)[0] == f"{total * (total - 1) // 2}\n"
    assert not list(tmp_path.glob("*.scratch"))


@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX, which other tests import
def test_a_fork_leaves_the_parent_at_work(server: WebServer) -> None:
    """A forked child cannot use the library, and the requests of its parent go on."""
    ds = mf.open(server.url + "/a-00.parquet", cache="memory")
    child = os.fork()
    if child == 0:
        try:
            mf.open(server.url + "/a-00.parquet")
        except mf.ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with ds:
        assert len(batches(ds)) == ROWS // 100


def test_the_command(server: WebServer, tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "meshfeed", *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "home")},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    address = server.url + "/a-{00..03}.parquet"
    inspected = run("inspect", address)
    assert "12,000 records in 4 files" in inspected
    assert "fetches up to 7.4 MiB once per host: 1 request or more, 0.0 s at 16" in inspected
    assert "no damage found" in run("verify", "--hash", address)
    secret = address.replace("http://", "http://me:hunter2@")
    run("convert", secret, tmp_path / "out")
    with mf.open(tmp_path / "out") as near, mf.open(address) as far:
        assert all(map(np.array_equal, batches(near), batches(far)))
    assert not any(b"hunter2" in path.read_bytes() for path in (tmp_path / "out").iterdir())


def test_addresses_that_do_not_open(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for address, expected in {
        server.url + "/none.parquet": "there is no such file (404 Not Found)",
        server.url + "/a-*.parquet": "a web server does not list its files; name each file",
        server.url + "/": "a web server does not list its files; name each file",
        "ftp://host/x.parquet": 'nothing here opens URLs of the scheme "ftp", only of gs, hf, ',
    }.items():
        with pytest.raises((mf.NotFoundError, mf.UnsupportedError)) as error:
            mf.open(address)
        assert str(error.value).startswith(f"mf.open: {address}: ")
        assert expected in str(error.value)
    with pytest.raises(mf.InvalidArgumentError, match=r"join the datasets: mf\.concat"):
        mf.open([server.url + "/a-00.parquet", "x.parquet"])
    monkeypatch.setenv("MESHFEED_FAR", "off")
    asked = len(server.requests)
    with pytest.raises(mf.UnsupportedError, match="MESHFEED_FAR is off"):
        mf.open(server.url + "/a-00.parquet")
    assert len(server.requests) == asked
