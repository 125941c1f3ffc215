"""A mapped file that is cut in the middle of a gather, beside Python's faulthandler.

The library of these tests cuts the file itself, after it has checked the size and before it reads
the rows (capi/faults.go).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.native.test_process import HANG, START, run, started

CUT = """
import ctypes, pyarrow as pa, pyarrow.ipc
from meshfeed._native import library
path = {path!r}
values = pa.array(np.arange(5000 * 256, dtype=np.int32))
table = pa.table({{"x": pa.FixedSizeListArray.from_arrays(values, 256)}})
def write():
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
write()
def on(when):
    if when == {when!r}:
        import faulthandler; faulthandler.enable()
def cut(size):
    library.library()["mf_fault_cut"](path.encode(), ctypes.c_int64(size))
def loader():
    return mf.Loader(mf.open(path, io={io!r}), batch_size=100, epochs=-1, shuffle=True)
it = loader()
on("after opening")
loop = iter(it)
next(loop)
on("after a batch")
"""

WHEN = ["before", "after opening", "after a batch", "never"]


def flags(when: str) -> list[str]:
    return ["-X", "faulthandler"] if when == "before" else []


@pytest.mark.parametrize("when", WHEN)
def test_a_file_cut_in_a_gather_is_an_error(when: str, tmp_path: Path, faulty: str) -> None:
    """The second file is cut after the first one has raised an error."""
    out = run(
        CUT.format(path=str(tmp_path / "x.arrow"), when=when, io="map")
        + """
def is_an_error(size):
    cut(size)
    try:
        for _ in range(1000): next(loop)
    except mf.DataLossError as e:
        print(e.path == path, "ends before" in str(e))
    it.close()
is_an_error(2_000_000)
path += ".other"
write()
it = loader()
loop = iter(it)
next(loop)
is_an_error(0)
""",
        *flags(when),
        MESHFEED_LIBRARY=faulty,
    )
    assert out == "True True\n" * 2


def died(when: str, io: str, folder: Path, faulty: str) -> tuple[int, list[str]]:
    """Ends a program by another fault. Returns its status, and its errors without addresses."""
    path = folder / "x.arrow"
    process = started(
        CUT.format(path=str(path), when=when, io=io)
        + """
import mmap
for _ in range(100): next(loop)
with open(path + ".other", "w+b") as other:
    other.truncate(8192)
    pages = mmap.mmap(other.fileno(), 8192)
    other.truncate(0)
    pages[5000]
""",
        *flags(when),
        MESHFEED_LIBRARY=faulty,
    )
    _, err = process.communicate(timeout=START + HANG)
    path.unlink()
    return process.returncode, [line.split("0x")[0] for line in err.splitlines()]


@pytest.mark.parametrize("when", WHEN)
def test_other_faults_end_the_program_as_before(when: str, tmp_path: Path, faulty: str) -> None:
    code, err = died(when, "map", tmp_path, faulty)
    assert code < 0
    assert ("Fatal Python error: Bus error" in err) == (when != "never")
    assert (code, err) == died(when, "read", tmp_path, faulty)
