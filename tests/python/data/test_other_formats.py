"""What `mf.open` advises for files of other formats works."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import meshfeed as mf

Write = Callable[[Path], None]

X = np.arange(6, dtype=np.int64)


def write_csv(path: Path) -> None:
    path.write_text("x\n" + "\n".join(map(str, X)))


def test_tables_become_arrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "in.csv")
    with pytest.raises(mf.UnsupportedError) as caught:
        mf.open("in.csv")
    _, _, lines = str(caught.value).partition("with pyarrow: ")
    exec(lines.partition("; other text")[0])
    with mf.Loader(mf.open("out.arrow"), batch_size=6) as loader:
        assert (loader.peek()["x"] == X).all()


@pytest.mark.parametrize(
    ("name", "write", "module"),
    [
        ("in.npz", lambda path: np.savez(path, x=X), "numpy"),
        ("in.safetensors", lambda path: save_file({"x": X}, path), "safetensors.numpy"),
    ],
)
def test_arrays_become_records_or_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Write, module: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / name)
    with pytest.raises(mf.UnsupportedError) as caught:
        mf.open(name)
    hints = dict(hint.split(": ", 1) for hint in str(caught.value).split("; ")[1:])
    names: dict[str, Any] = {"mf": mf}
    exec(f"import {module}", names)
    with mf.Loader(eval(hints["as records"], names), batch_size=6) as loader:
        assert (loader.peek()["x"] == X).all()
    assert len(eval(hints["as weights"], names)(name)) == 1


def test_a_glob_of_array_records(tmp_path: Path) -> None:
    head = "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"  # of every such file
    (tmp_path / "a.array_record").write_bytes(bytes.fromhex(head) + bytes(100))
    message = "it is an ArrayRecord file; decode its records once with array_record, and write the"
    with pytest.raises(mf.UnsupportedError, match=message):
        mf.open(tmp_path / "*")
