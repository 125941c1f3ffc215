"""Errors of a library that does not fit the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshfeed._native import abi
from tests.python.programs import HANG, run

pytestmark = pytest.mark.plain

CODE = """
import meshfeed as mf
try:
    mf.layout({"data": 2}, mf.P("data"), {"x": ("int32", ())}, batch_size=2)
except mf.IncompatibleError as e:
    print(e)
"""
HINT = "; install package and library of one version, or in a checkout run: make lib\n"
NEEDED = f"{abi.VERSION[0]}.{abi.VERSION[1]}"


def error_of(folder: Path, source: str) -> tuple[str, str]:
    """Builds a library from a source. Returns its path and the error of the package."""
    library = folder / "libother.so"
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | {"MESHFEED_LIBRARY": str(library)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(library), done.stdout


@pytest.mark.parametrize(("major", "minor"), [(0, 9), (2, 0)])
def test_another_abi(tmp_path: Path, major: int, minor: int) -> None:
    number = major << 16 | minor
    path, text = error_of(tmp_path, f"unsigned mf_abi_version(void) {{ return {number}; }}")
    assert text == (
        f"mf.layout: {path} has ABI {major}.{minor}, and this package needs {NEEDED}{HINT}"
    )


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("int other;", "mf_abi_version"),
        (f"unsigned mf_abi_version(void) {{ return {1 << 16}; }}", "mf_version"),
    ],
)
def test_functions_are_missing(tmp_path: Path, source: str, missing: str) -> None:
    path, text = error_of(tmp_path, source)
    assert text == (
        "mf.layout: the C library lacks a function that this package calls: "
        f"{path}: undefined symbol: {missing}{HINT}"
    )


def test_a_library_without_the_page(faulty: str, tmp_path: Path) -> None:
    out = tmp_path / "layout.html"
    program = f"""
import meshfeed as mf
layout = mf.layout({{"data": 4}}, mf.P("data"), {{"x": ("int32", ())}}, batch_size=30)
for call in (lambda: layout.to_html({str(out)!r}), layout.serve):
    try:
        call()
    except mf.UnsupportedError as e:
        print(e)
"""
    message = "this build carries no page, since it was built without the tag page; "
    message += "pip install builds it in unless MESHFEED_PAGE=0 is set; "
    message += "in a checkout run: make page lib"
    printed = run(program, MESHFEED_LIBRARY=faulty)
    assert printed == f"Layout.to_html: {message}\nLayout.serve: {message}\n"
    assert not out.exists()
