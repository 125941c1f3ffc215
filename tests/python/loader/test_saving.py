"""State files are complete after any end of the process, and leave no scratch files."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._io import saving

OLD, NEW = "old" * 1000, "new" * 1000

# Saves NEW, and is killed just before or after the nth system call.
SAVER = """
import os, pathlib, signal, sys
from meshfeed._io import saving
path, n, before = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "before"
calls = 0
def watched(function):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == n and before:
            os.kill(os.getpid(), signal.SIGKILL)
        out = function(*args, **kwargs)
        if calls == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return out
    return call
os.fsync = watched(os.fsync)                          # calls 1 and 3
pathlib.Path.replace = watched(pathlib.Path.replace)  # call 2
saving.write_whole(path, "new" * 1000, op="test")
print(calls)
"""

# Saves one state after another until it is killed. The first save removes leftovers of others.
LOOP = """
import itertools, pathlib, sys
from meshfeed._io import saving
for n in itertools.count(1):
    saving.write_whole(pathlib.Path(sys.argv[1]), str(n) * 5000, op="test")
    if n == 1:
        print("ready", flush=True)
"""


def beside(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.iterdir() if p != path)


@pytest.mark.plain
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("call", "text"), [(1, OLD), (2, None), (3, NEW)])
def test_a_kill_leaves_the_old_or_the_new_text(
    call: int, text: str | None, moment: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    path.write_text(OLD)
    command = [sys.executable, "-c", SAVER, str(path), str(call), moment]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert path.read_text() == (text or (OLD if moment == "before" else NEW))
    assert len(beside(path)) == (call == 1 or (call, moment) == (2, "before"))
    saving.write_whole(path, NEW, op="test")
    assert (path.read_text(), beside(path)) == (NEW, [])


@pytest.mark.plain
def test_kills_at_random(tmp_path: Path, seed: int, deep: bool) -> None:
    path = tmp_path / "state.json"
    moments = random.Random(seed)
    for _ in range(200 if deep else 3):
        command = [sys.executable, "-c", LOOP, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as saver:
            assert saver.stdout
            assert saver.stdout.readline() == b"ready\n"
            time.sleep(moments.uniform(0, 0.05))
            saver.kill()
        text = path.read_text()
        assert text
        assert text == text[: len(text) // 5000] * 5000
        assert len(beside(path)) <= 1  # the scratch file of this process
    saving.write_whole(path, "", op="test")
    assert beside(path) == []


@pytest.mark.plain
def test_scratch_files_of_live_processes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a[1]*.json"
    host, dead = saving._host(), subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    parent = f".{path.name}.{host}-{os.getppid()}-1.tmp"
    elsewhere = f".{path.name}.0000beef-1-1.tmp"
    stay = [parent, elsewhere, ".a1x.json.0000beef-1-1.tmp", f".{path.name}.of-some-body.tmp"]
    gone = f".{path.name}.{host}-{dead.pid}-1.tmp"
    old = f".{path.name}.0000beef-2-1.tmp"
    for name in [*stay, gone, old]:
        (tmp_path / name).touch()
    os.utime(tmp_path / old, (0, 0))
    saving.write_whole(path, NEW, op="test")
    assert beside(path) == sorted(stay)


@pytest.mark.plain
def test_many_writers_of_one_path(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    failures: list[BaseException] = []

    def save() -> None:
        try:
            for _ in range(30):
                saving.write_whole(path, NEW, op="test")
                assert path.read_text() == NEW
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failures, beside(path)) == ([], [])


@pytest.mark.plain
def test_a_signal_handler_saves_inside_of_a_save(tmp_path: Path) -> None:
    """Each save has its own scratch file, also on one thread."""
    path, nested = tmp_path / "state.json", list[str]()
    path.write_text(OLD)

    def keeps(text: str) -> bool:
        signal.raise_signal(signal.SIGUSR1)
        return False

    def handler(*_: object) -> None:
        saving.write_whole(path, "handler", op="test")
        nested.append(path.read_text())

    usual = signal.signal(signal.SIGUSR1, handler)
    try:
        saving.write_whole(path, NEW, op="test", keeps=keeps)
    finally:
        signal.signal(signal.SIGUSR1, usual)
    assert (nested, path.read_text(), beside(path)) == (["handler"], NEW, [])


@pytest.mark.plain
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "choose a folder that can be written"),
        (errno.EIO, "try again, or choose another folder"),
    ],
)
@pytest.mark.parametrize("call", [(os, "fsync"), (Path, "replace")], ids=lambda call: call[1])
def test_an_error_says_what_to_do(
    code: int,
    remedy: str,
    call: tuple[object, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "state.json"
    path.write_text(OLD)

    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(*call, fails)
    with pytest.raises(mf.ReadError) as e:
        saving.write_whole(path, NEW, op="Loader.save_state")
    assert str(e.value) == (
        f"Loader.save_state: {str(path)!r} cannot be written: {os.strerror(code)}; "
        f"{remedy}; the old content is unchanged"
    )
    assert (path.read_text(), beside(path)) == (OLD, [])


@pytest.mark.plain
def test_a_full_disk(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full to write to")
    with pytest.raises(OSError, match="No space left"):
        saving._write(Path("/dev/full"), NEW)


@pytest.mark.plain
def test_a_read_only_folder(tmp_path: Path) -> None:
    path = tmp_path / "none" / "state.json"
    with pytest.raises(mf.NotFoundError) as e:
        saving.write_whole(path, NEW, op="Loader.save_state")
    assert str(e.value) == (
        f"Loader.save_state: {str(path)!r} cannot be written: "
        f"there is no folder {str(path.parent)!r}; make the folder"
    )
    (tmp_path / "folder").mkdir()
    for folder in (tmp_path / "folder", Path("/"), Path()):
        with pytest.raises(mf.ReadError, match="Is a directory; give the name of a file; the old"):
            saving.write_whole(folder, NEW, op="Loader.save_state")
    assert beside(tmp_path / "folder") == []
    if os.geteuid() == 0:
        return  # root is not denied
    tmp_path.chmod(0o500)
    with pytest.raises(mf.ReadError, match="denied; choose a folder that can be written; the old"):
        saving.write_whole(tmp_path / "state.json", NEW, op="Loader.save_state")


@pytest.mark.plain
def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link, file = tmp_path / "state.json", tmp_path / "disk" / "run.json"
    link.symlink_to(file)
    for text in (OLD, NEW):  # the first creates the file
        saving.write_whole(link, text, op="Loader.save_state")
        assert (link.is_symlink(), file.read_text()) == (True, text)
        assert (beside(link), beside(file)) == (["disk"], [])


@pytest.mark.plain
def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(mf.ReadError, match="Is a device or a pipe; give the name of a file; the"):
        saving.write_whole(pipe, NEW, op="Loader.save_state")
    assert (pipe.is_fifo(), beside(pipe)) == (True, [])


def test_the_file_is_the_state(tmp_path: Path) -> None:
    with mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=2) as loader:
        next(iter(loader))
        loader.save_state(tmp_path / "state.json")
        loader.save_state(str(tmp_path / "state.json"))
        assert json.loads((tmp_path / "state.json").read_text()) == loader.state()
        assert len((tmp_path / "state.json").read_bytes()) <= 256
        with pytest.raises(ValueError, match=r"Loader.save_state: path=5: expected a path$"):
            loader.save_state(5)  # type: ignore[arg-type]


@pytest.mark.plain
def test_containers_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers may have equal host names and different process numbers."""
    path, mine = tmp_path / "state.json", saving._host()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[1]")
    assert saving._host() != mine
    scratch = tmp_path / f".{path.name}.{mine}-{dead.pid}-1.tmp"
    scratch.touch()
    saving.write_whole(path, NEW, op="test")
    assert beside(path) == [scratch.name]


@pytest.mark.plain
def test_a_clock_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of another host's scratch file is measured by the file system's clock."""
    path = tmp_path / "state.json"
    scratch = tmp_path / f".{path.name}.0000beef-1-1.tmp"
    scratch.touch()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e6)
    saving.write_whole(path, NEW, op="test")
    assert beside(path) == [scratch.name]
