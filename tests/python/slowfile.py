"""A file on a file system that can become slow (see slowfs.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.python.native.test_process import HANG

MIB = 1 << 20


class Slow:
    """A file of 32 MiB in one record batch, on a file system that can become slow."""

    def __init__(self, folder: Path, server: subprocess.Popen[str]) -> None:
        self.path = str(folder / "x.arrow")
        self.go = str(folder.with_name("go"))
        self._server = server

    def delay(self, seconds: float, start: int = MIB, stop: int = 31 * MIB) -> None:
        """Slows down reads of rows. Reads of headers, footer and cached pages stay fast."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        line = f"{seconds} {start} {stop}\n"
        self._server.stdin.write(line)
        self._server.stdin.flush()
        assert self._server.stdout.readline() == line


@contextmanager
def served(folder: Path) -> Iterator[Slow]:
    """Serves the file, or skips the test where no file system can be mounted."""
    source, mount = folder / "source", folder / "mount"
    source.mkdir()
    mount.mkdir()
    values = pa.array(np.arange(32 * MIB // 4, dtype=np.int32))
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(values, 256)})
    with pyarrow.ipc.new_file(source / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("slowfs.py"), source, mount],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    if server.stdout.readline() != "serving\n":
        _, why = server.communicate()
        pytest.skip(f"no FUSE file system can be mounted here: {why.splitlines()[-1]}")
    yield Slow(mount, server)
    _, err = server.communicate(timeout=HANG)  # it answers the pending reads
    assert err == ""
