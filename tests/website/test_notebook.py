"""The notebooks to download are valid, and a kernel of Jupyter runs two of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
HANG = 400  # seconds; the notebook takes about 10

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(os.environ.get("MESHFEED_DEEP") != "1", reason="MESHFEED_DEEP=1"),
]


def notebooks() -> list[Path]:
    found = sorted((SITE / "_downloads").rglob("*.ipynb"))
    assert found, "make site"
    return found


def test_the_notebooks_are_valid() -> None:
    nbformat = pytest.importorskip("nbformat")
    for path in notebooks():
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        kinds = {cell.cell_type for cell in notebook.cells}
        assert kinds == {"markdown", "code"}
        assert not [cell for cell in notebook.cells if cell.get("outputs")]
        assert "](../" not in "".join(cell.source for cell in notebook.cells)


@pytest.mark.parametrize(("name", "shown"), [("quick_reference", "text"), ("layouts", "<svg")])
def test_a_kernel_runs_a_notebook(
    name: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(SITE.parent / "python"))
    (path,) = [path for path in notebooks() if path.stem == name]
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=HANG, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert shown in str(outputs)
