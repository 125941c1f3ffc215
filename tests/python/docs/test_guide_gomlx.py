"""The Go blocks of the guide to GoMLX are one program, and its output is on the page."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT
from tests.python.docs.test_guides import MEASURED, header

PAGE = ROOT / "docs" / "guides" / "gomlx.md"
PLUGIN = ROOT / ".build/plugins/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
HANG = 400  # seconds; it takes about 10 with an empty build cache


def blocks(kind: str) -> list[tuple[int, str]]:
    """Returns the blocks of a kind, each with the number of its first line."""
    text = PAGE.read_text()
    found = re.finditer(rf"^```{re.escape(kind)}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, block.start(1)) + 1, block[1]) for block in found]


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, tags: str = "") -> Path:
    """Builds the page as a package of the module, by an overlay."""
    pages = {
        "main.go": "".join(f"//line {PAGE}:{line}\n{code}\n" for line, code in blocks("go")),
        "xla.go": "".join(code for _, code in blocks("go xla.go")),
    }
    package = PAGE.with_suffix("")
    overlay = {}
    for name, code in pages.items():
        (folder / name).write_text(code)
        overlay[f"{package / name}"] = f"{folder / name}"
    (folder / "overlay.json").write_text(json.dumps({"Replace": overlay}))
    program = folder / "guide"
    where = ["-overlay", f"{folder / 'overlay.json'}", "-tags", tags]
    run(["go", "build", *where, "-o", f"{program}", f"./{package.relative_to(ROOT)}"], cwd=ROOT)
    return program


def write_digits(folder: Path) -> None:
    """Writes the files of the demo."""
    command = "import pathlib, sys, data; data.write(pathlib.Path(sys.argv[1]))"
    run([sys.executable, "-c", command, f"{folder}"], cwd=ROOT / "docs" / "demo")


def check_printed(printed: str) -> None:
    expected = "".join(text for _, text in blocks("text"))
    changes = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "page", "run", n=0)
    assert printed == expected, "\n".join(changes)


def test_the_page_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    assert len(blocks("go")) == len(blocks("text")) == 11
    write_digits(tmp_path / "digits")
    result = tmp_path / "result"
    measured = [sys.executable, f"{MEASURED}", f"{result}"]
    check_printed(run([*measured, f"{build(tmp_path)}"], cwd=tmp_path))
    peak = json.loads(result.read_text())["peak"]
    assert peak <= int(header(PAGE)["megabytes"].replace(",", "")) * 10**6


def test_the_code_is_formatted(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("\n".join(code for _, code in blocks("go")))
    (tmp_path / "xla.go").write_text(blocks("go xla.go")[0][1])
    assert run(["gofmt", "-d", "."], cwd=tmp_path) == ""


@pytest.mark.deep
@pytest.mark.parametrize("options", ["devices=8"])
def test_the_page_runs_on_xla(tmp_path: Path, options: str) -> None:
    if not PLUGIN.exists():
        pytest.skip("NOT TESTED: the guide to GoMLX on XLA; fetch its plugin: make plugin-cpu")
    write_digits(tmp_path / "digits")
    program = build(tmp_path, tags="xla")
    check_printed(run([f"{program}", f"xla:{PLUGIN}?{options}"], cwd=tmp_path))
