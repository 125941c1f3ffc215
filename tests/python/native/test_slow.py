"""A file system that answers late or never does not block anything else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python import ROOT
from tests.python.native.test_process import HANG, started
from tests.python.slowfile import MIB, Slow, served

NEVER = 3600

pytestmark = pytest.mark.deep

OPENED = """
import gc
def other():
    return next(iter(loader()))["x"].tolist() == list(range(10))
slow = mf.Loader(mf.open({path!r}, io={io!r}), batch_size=256, epochs=-1, shuffle=True)
print("made", flush=True)  # the fingerprint has read some rows; now the file becomes slow
while not os.path.exists({go!r}): time.sleep(0.01)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    with served(tmp_path) as file:
        yield file


def hang(slow: Slow, process: subprocess.Popen[str]) -> None:
    """Slows the file down after the program has made its loader, and continues the program."""
    assert line(process) == "made\n"
    slow.delay(NEVER)
    Path(slow.go).touch()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def ended(process: subprocess.Popen[str], bound: float = HANG) -> tuple[int, str, str, float]:
    """Waits for a program. Returns its status, output, errors and the seconds it took."""
    began = time.monotonic()
    out, err = process.communicate(timeout=bound)
    return process.returncode, out, err, time.monotonic() - began


@pytest.mark.parametrize("io", ["auto", "map", "read"])
def test_reads_of_two_seconds(slow: Slow, io: str) -> None:
    process = started(
        OPENED.format(path=slow.path, go=slow.go, io=io)
        + """
rows = slow.records(0, 0)
assert (next(iter(slow))["x"][:, 0] == 256 * rows).all()
slow.close()
print("ok")
"""
    )
    assert line(process) == "made\n"
    slow.delay(2, 8 * MIB, 9 * MIB)
    Path(slow.go).touch()
    code, out, err, _ = ended(process, 20 * HANG)
    assert (code, out, err) == (0, "ok\n", "")


@pytest.mark.parametrize("io", ["read"])
def test_other_loaders_and_collections_continue(slow: Slow, io: str) -> None:
    process = started(
        OPENED.format(path=slow.path, go=slow.go, io=io)
        + """
threading.Thread(target=lambda: next(iter(slow)), daemon=True).start()
time.sleep(0.3)
for _ in range(200):  # creates garbage in Python and Go
    assert other()
gc.collect()
print("others")
os._exit(0)
"""
    )
    hang(slow, process)
    code, out, err, _ = ended(process, 20 * HANG)
    assert (code, out, err) == (0, "others\n", "")


# In the body of `with` a mapped file is already in memory.
INTERRUPTED = [(w, io) for w in ("opening", "making") for io in ("auto", "map", "read")]


@pytest.mark.parametrize(("where", "io"), [*INTERRUPTED, ("with", "read")])
def test_ctrl_c_while_reads_hang(slow: Slow, where: str, io: str) -> None:
    if where != "with":
        slow.delay(NEVER, *((0, 32 * MIB + 4096) if where == "opening" else ()))
    bodies = {
        "opening": f"""
try:
    print("waiting", flush=True)
    mf.open({slow.path!r}, io={io!r}).fingerprint
except KeyboardInterrupt: print("interrupted", flush=True)
""",
        "making": f"""
try:
    print("waiting", flush=True)
    with mf.Loader(mf.open({slow.path!r}, io={io!r}), batch_size=256, shuffle=True) as it: list(it)
except KeyboardInterrupt: print("interrupted", flush=True)
""",
        "with": OPENED.format(path=slow.path, go=slow.go, io=io)
        + """
try:
    with slow:
        print("waiting", flush=True)
        next(iter(slow))
except KeyboardInterrupt: print("interrupted", flush=True)
assert other()
print("on", flush=True)
""",
    }
    process = started(bodies[where])
    if where == "with":
        hang(slow, process)
    assert line(process) == "waiting\n"
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == "interrupted\n"
    seconds = time.monotonic() - sent
    print(f"{where} {io}: interrupted after {seconds:.3f} s")
    assert seconds < HANG * 0.2
    code, _, err, took = ended(process)
    print(f"{where} {io}: ended after {took:.3f} s")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("io", ["read"])
@pytest.mark.parametrize("daemon", [False, True])
def test_exit_during_a_read_of_five_seconds(slow: Slow, io: str, daemon: bool) -> None:
    process = started(
        OPENED.format(path=slow.path, go=slow.go, io=io)
        + f"""
def take():
    try: next(iter(slow))
    except mf.CancelledError: pass
threading.Thread(target=take, daemon={daemon}).start()
time.sleep(0.3)
print("leaving", flush=True)
"""
    )
    hang(slow, process)
    assert line(process) == "leaving\n"
    code, _, err, took = ended(process)
    print(f"{io}: exit took {took:.3f} s")
    assert (code, err) == (0, "")


def test_a_c_program_is_not_blocked(slow: Slow, tmp_path: Path, faulty: str) -> None:
    program = tmp_path / "slow"
    source = ROOT / "capi" / "ctest" / "slow.c"
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'capi' / 'include'}"]
    link = [faulty, "-pthread", f"-Wl,-rpath,{Path(faulty).parent}"]
    subprocess.run(["cc", *warnings, source, "-o", program, *link], check=True)
    process = subprocess.Popen(
        [program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FILE": slow.path},
    )
    assert line(process) == "made\n"
    slow.delay(NEVER)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert line(process) == "leaving\n"
    code, _, err, took = ended(process)
    print(f"exit took {took:.3f} s")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("io", ["read"])
def test_close_does_not_wait_for_the_file(slow: Slow, io: str) -> None:
    process = started(
        OPENED.format(path=slow.path, go=slow.go, io=io)
        + """
threading.Thread(target=lambda: next(iter(slow), None), daemon=True).start()
threading.excepthook = lambda args: None
time.sleep(0.3)
began = time.monotonic()
slow.close()
print(time.monotonic() - began, flush=True)
os._exit(0)
"""
    )
    hang(slow, process)
    code, out, err, _ = ended(process)
    print(f"{io}: close took {out}")
    assert (code, err) == (0, "")
    assert float(out) < HANG
