"""The runner of the test suites: order, output, exit status, Ctrl-C, and stages that run once."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import stages
from tests.python import ROOT
from tests.python.programs import HANG, run
from tests.stages import Runner, Stage

pytestmark = pytest.mark.plain


def python(program: str) -> str:
    return f'{sys.executable} -c "{program}"'


def test_a_failure_is_shown_and_the_others_run(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    suite = [
        Stage("bad", "sh -c 'echo out; echo err >&2; exit 3'"),
        Stage("good", "sh -c 'echo $WORD'", {"WORD": "fine"}),
    ]
    assert stages.run("suite", suite, Runner(suite, jobs=1)) == 1
    out = capfdbinary.readouterr().out.decode()
    assert re.sub(r" +\d+\.\d s| \d+ s", " #", out) == (
        "... bad: sh -c 'echo out; echo err >&2; exit 3'\n"
        "\n=== bad: FAILED after #\nout\nerr\n\n"
        "... good: sh -c 'echo $WORD'\n"
        "\n=== good: ok after #\nfine\n\n"
        "\nsuite\n"
        "-------------------------------------\n"
        "          elapsed  processor\n"
        "bad # #  FAILED\n"
        "good # #  ok\n"
        "-------------------------------------\n"
        "in all # #\n"
        "1 passed, 1 failed\n"
    )


def test_two_stages_run_at_a_time(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Each of the first two stages waits for the other; the third starts after one has ended."""
    meet = "touch {0}; while ! test -e {1}; do sleep 0.01; done; echo {0}; touch {0}.ended"
    suite = [
        Stage("a", f"sh -c 'cd {tmp_path}; {meet.format('a', 'b')}'"),
        Stage("b", f"sh -c 'cd {tmp_path}; {meet.format('b', 'a')}'"),
        Stage("c", f"sh -c 'ls {tmp_path}/*.ended'"),
    ]
    assert stages.run("suite", suite, Runner(suite, jobs=2)) == 0
    out = capfdbinary.readouterr().out.decode()
    assert re.findall(r"=== (\w): ok after \d+ s\n(\w)\n", out) in (
        [("a", "a"), ("b", "b")],
        [("b", "b"), ("a", "a")],
    )


RUNNER = """
from tests import stages
import os
import sys
suite = [
    stages.Stage("polite", "sh -c 'touch polite; exec sleep 1000'"),
    stages.Stage("stubborn", "sh -c 'trap \\"\\" INT; touch stubborn; sleep 1000'"),
    stages.Stage("next", "true"),
]
stages.SUITES["suite"], stages.ROOT = suite, sys.argv[1]
stages.GRACE = 1
os.environ["MESHFEED_JOBS"] = "2"
sys.exit(stages.main("suite"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_control_c_ends_what_runs(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", RUNNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as runner:
        late = time.monotonic() + HANG
        while {path.name for path in tmp_path.iterdir()} != {"polite", "stubborn"}:
            assert time.monotonic() < late
            time.sleep(0.01)
        runner.send_signal(number)
        out, _ = runner.communicate(timeout=HANG)
    assert runner.returncode == 130
    ended = re.findall(r"=== (\w+): FAILED", out)
    assert ended == ["polite", "stubborn"]
    assert out.endswith("suite: interrupted\n")
    assert "next" not in out


def test_an_interrupt_waits_until_a_stage_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """An interrupt during a start must not leave a process behind."""
    suite = [Stage("first", "sleep 1000"), Stage("second", "true")]
    runner = Runner(suite, jobs=1)
    start = subprocess.Popen

    def interrupted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = start(*args, **options)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    old = signal.signal(signal.SIGINT, runner.interrupt)
    try:
        assert stages.run("suite", suite, runner) == 130
    finally:
        signal.signal(signal.SIGINT, old)
    out = capfdbinary.readouterr().out.decode()
    assert re.findall(r"^=== .*: \w+", out, re.MULTILINE) == ["=== first: FAILED"]


def test_stages_compile_with_the_flags_of_make_lib(capfd: pytest.CaptureFixture[str]) -> None:
    """Other flags would compile every package once more: 90 s of processor time."""
    (recipe,) = re.findall(r"^lib:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert " go build -buildmode=pie -trimpath " in recipe
    assert " -buildmode=c-shared -trimpath " in (ROOT / "capi/build.sh").read_text()
    suite = [Stage("native", "sh -c 'echo =$GOFLAGS='"), stages.cross("wasip1", "wasm", "errors")]
    assert stages.run("suite", suite, Runner(suite, jobs=1)) == 0
    assert " -buildmode=pie -trimpath=\n" in capfd.readouterr().out


def test_a_full_disk_ends_the_suite_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=119 << 20))
    with pytest.raises(SystemExit) as ended:
        stages.main("test")
    assert str(ended.value) == (
        f"test needs 2 GB of disk, but {ROOT} has 0.1 GB; "
        "make room, or set TMPDIR to a folder on another disk"
    )


def packages(pattern: str) -> list[str]:
    done = subprocess.run(
        ["sh", "-c", f"go list {pattern}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_packages_that_only_run_under_the_race_detector_do_the_same_without() -> None:
    raced = packages(stages.RACED)
    once = [name for name in packages("./...") if re.search(stages.RACE_ONLY, name)]
    assert once
    assert set(once) < set(raced)
    for name in once:
        folder = ROOT / name.removeprefix("github.com/meshfeed/meshfeed/")
        for test in folder.glob("*_test.go"):
            text = test.read_text()
            assert "build !race" not in text, f"{test} differs without -race: run {name} both ways"
            assert "AllocsPerRun" not in text, f"{test} counts allocations: run {name} both ways"
            fewer = re.search(r"random\.(Race|Count|Rounds)", text)
            assert not fewer, f"{test} does less under -race: run {name} both ways"


def test_every_deep_test_of_go_is_in_the_deep_suite() -> None:
    for folder in ("capi", "wasm/host"):
        assert re.search(stages.DEEP_IN, f"meshfeed/{folder}")
        for file in (ROOT / folder).glob("*_test.go"):
            _, *functions = re.split(r"^func ", file.read_text(), flags=re.MULTILINE)
            for function in functions:
                if re.search(
                    r"MESHFEED_DEEP|\bdeep\(t\)|sanitized\(t|random\.(Count|Rounds)", function
                ):
                    name = function.partition("(")[0]
                    helper = not name.startswith("Test")
                    assert helper or re.search(stages.DEEP_TESTS, name), f"{file}: {name}"


def test_packages_without_the_race_detector_start_no_goroutine() -> None:
    left_out = [name for name in packages("./...") if re.search(stages.UNRACED, name)]
    assert left_out
    for name in left_out:
        for file in (ROOT / name.removeprefix("github.com/meshfeed/meshfeed/")).glob("*.go"):
            started = re.search(r'^\s*(go \w|"sync)', file.read_text(), re.MULTILINE)
            assert not started, f"{file} starts a goroutine: run {name} under the race detector"


def test_every_folder_of_tests_runs_once() -> None:
    folders = sorted(path.parent.name for path in ROOT.glob("tests/python/*/__init__.py"))
    for which in (stages.QUICK, stages.SLOW):
        assert sorted(" ".join(which).split()) == folders
    for file in ROOT.glob("tests/python/**/test_*.py"):
        assert file.parent.name in folders, f"{file} is in no stage: move it into a folder"


def test_every_longer_test_is_in_the_deep_suite() -> None:
    listed = run(
        "import sys, pytest; sys.exit(pytest.main(['--collect-only', '-q', '-m', 'longer', "
        f"'{ROOT}/tests/python/loader/test_saving.py', '{ROOT}/tests/python/jobs/test_shared.py']))"
    )
    assert re.findall(r"::(\w+)", listed) == ["test_kills_at_random", "test_random_layouts"]
