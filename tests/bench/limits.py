"""Ways to limit the memory of a program.

They are tried in order: a given control group, then one that systemd makes, then a ballast. A
control group limits only the program, including the page cache that it fills. A ballast is a
process that locks memory until only the limit is left on the whole machine. Each way describes
itself, or why it is impossible.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench import ballast

PROGRAMS = 768 << 20  # bytes for interpreter, JAX and buffers, beside the cache


@dataclass(frozen=True)
class Limit:
    """A limit, under which `prefix` before a command runs it."""

    way: str
    prefix: tuple[str, ...] = ()


@contextlib.contextmanager
def limited(cache: int, group: Path | None) -> Iterator[Limit]:
    """Leaves a number of bytes for the page cache during the context.

    Args:
        cache: the bytes.
        group: the folder of a control group (version 2) that this user may change.

    Raises:
        OSError: no way works on this machine; the error has the reasons.
    """
    reasons: list[str] = []
    if group is not None:
        yield _in_group(group, cache + PROGRAMS)
        return
    if (scope := _scope(cache + PROGRAMS, reasons)) is not None:
        yield scope
        return
    with _ballast(cache + PROGRAMS, reasons) as limit:
        yield limit


def _in_group(group: Path, size: int) -> Limit:
    if not (group / "cgroup.controllers").exists():
        raise NotADirectoryError(f"{group} is not a control group of version 2")
    (group / "memory.max").write_text(str(size))
    enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    return Limit(f"a control group of {size >> 20} MB", ("sh", "-c", enter, str(group)))


def _scope(size: int, reasons: list[str]) -> Limit | None:
    """Asks systemd for a scope of this user with a limit."""
    if shutil.which("systemd-run") is None:
        reasons.append("no systemd-run")
        return None
    prefix: tuple[str, ...] = (
        "systemd-run",
        "--user",
        "--scope",
        "--quiet",
        "-p",
        f"MemoryMax={size}",
    )
    prefix += ("-p", "MemorySwapMax=0")
    # Check the limit: without delegation, systemd makes a scope that has none.
    seen = 'cat "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max"'
    done = subprocess.run([*prefix, "sh", "-c", seen], capture_output=True, text=True, check=False)
    if done.returncode or done.stdout.strip() != str(size):
        reasons.append(f"systemd-run: {(done.stderr or done.stdout).strip().splitlines()[:1]}")
        return None
    return Limit(f"a systemd scope of {size >> 20} MB", prefix)


@contextlib.contextmanager
def _ballast(left: int, reasons: list[str]) -> Iterator[Limit]:
    if ballast.available() < left:
        raise OSError("; ".join([*reasons, f"less than {left >> 20} MB are available anyway"]))
    command = [sys.executable, "-m", "tests.bench.ballast", str(left >> 20)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = process.stdout.readline().strip()
        if not said:
            reasons.append(f"ballast: {process.stderr.read().strip().splitlines()[-1:]}")
            raise OSError("; ".join(reasons))
        yield Limit(f"{left >> 20} MB left on the whole machine: a ballast has {said}")
    finally:
        process.stdin.close()
        process.wait()
