"""MESHFEED_STRICT=1: what is a skip elsewhere is an error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import strict
from tests.python import ROOT
from tests.python.programs import HANG

pytestmark = pytest.mark.plain

TESTS = """
import pytest
pytestmark = pytest.mark.plain

def test_listed():
    pytest.skip("set MESHFEED_DEEP=1 (make test-deep)")

@pytest.mark.xfail
def test_expected():
    assert False

{skip}
"""
SKIPS = {
    "call": ('def test_skipped():\n    pytest.skip("no tool")', "no tool"),
    "mark": ('@pytest.mark.skipif(True, reason="no tool")\ndef test_skipped(): ...', "no tool"),
    "module": ('pytest.importorskip("meshfeed_absent", reason="no tool")', "no tool"),
    "doctest": (
        'def documented():\n    """\n    >>> 1 / 0  # doctest: +SKIP\n    """',
        "all tests skipped by +SKIP option",
    ),
}


def run(folder: Path, strict: str, *command: str) -> tuple[int, str]:
    """Returns the exit status of a command and what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"MESHFEED_STRICT": strict, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_skip_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    files = {kind: tmp_path / f"test_{kind}.py" for kind in SKIPS}
    for kind, file in files.items():
        file.write_text(TESTS.format(skip=SKIPS[kind][0]))
    options = ["-q", "-p", "no:cacheprovider", "-m", "", "--doctest-modules"]
    command = [sys.executable, "-m", "pytest", *options, "--continue-on-collection-errors", "."]
    assert run(tmp_path, "0", *command)[0] == 0
    status, printed = run(tmp_path, "1", *command)
    assert status == 1
    for kind, (_, reason) in SKIPS.items():
        line = rf"(FAILED|ERROR) test_{kind}\.py.* - MESHFEED_STRICT=1 permits no skip: .*"
        assert re.search(line + re.escape(reason), printed), printed
    for file in files.values():
        file.write_text(TESTS.format(skip=""))
    assert run(tmp_path, "1", *command)[0] == 0


GO = """package it

import "testing"

func TestGood(t *testing.T)   {}
func TestListed(t *testing.T) { t.Skip("takes a minute: set MESHFEED_DEEP=1") }
func TestOuter(t *testing.T) {
	t.Run("inner", func(t *testing.T) { BODY })
}
"""


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ("", 0, "ok  \tit\t#\n"),
        (
            't.Skip("no tool")',
            1,
            "ok  \tit\t#\n"
            "MESHFEED_STRICT=1 permits no skip: it TestOuter/inner: it_test.go:8: no tool\n",
        ),
        (
            't.Error("wrong")',
            1,
            "=== RUN   TestOuter\n--- FAIL: TestOuter (0.00s)\n",
        ),
        ("nonsense", 1, "# it [it.test]\n./it_test.go:8:38: undefined: nonsense\n"),
    ],
)
def test_a_skip_of_go(body: str, status: int, expected: str, tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module it\n")
    (tmp_path / "it_test.go").write_text(GO.replace("BODY", body))
    command = [sys.executable, str(ROOT / "tests/strict.py"), "go", "test", "-count=1", "./..."]
    ended, printed = run(tmp_path, "1", *command)
    printed = "".join(
        line[: line.rindex("\t")] + "\t#\n" if line.startswith("ok ") else line
        for line in printed.splitlines(keepends=True)
    )
    assert ended == status, printed
    assert expected in printed
    if "Skip" in body:
        assert run(tmp_path, "0", *command)[0] == 0


def test_a_test_that_does_not_end_is_shown() -> None:
    events = [
        {"Action": "output", "Package": "it", "Test": "TestLong", "Output": "panic: timed out\n"},
        {"Action": "output", "Package": "it", "Output": "FAIL\tit\t1.0s\n"},
        {"Action": "fail", "Package": "it"},
    ]
    shown: list[str] = []
    assert strict.go_test(map(json.dumps, events), shown.append) == []
    assert shown == ["FAIL\tit\t1.0s\n", "panic: timed out\n"]


def test_every_run_of_tests_is_strict() -> None:
    """In continuous integration, and for every stage that runs Go's tests."""
    from tests import stages

    assert "export MESHFEED_STRICT=1\n" in (ROOT / ".ci/run").read_text()
    for suite in stages.SUITES.values():
        for stage in suite:
            assert stage.command.count("go test") == stage.command.count("strict.py go test")
