"""Runs the stages of a suite, three at a time, and prints the time of each.

    python tests/stages.py lint|test|check|test-deep

A stage is a command line. Its output is printed when it ends. All stages run
even if one fails, so that one run shows every failure; the exit status says
whether all passed. Ctrl-C ends the running stages, shows their output so far,
and ends this program. MESHFEED_JOBS=1 runs one stage after the other. Stages wait for
processes and browsers a part of their time, so three use two cores.

Needs nothing but Python's standard library, and is started by the Makefile,
which sets PYTHON to the interpreter of the project's own environment.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.environ.get("PYTHON", sys.executable)

# The packages that users of other platforms and of the wasm guest compile.
PORTABLE = "./core/... ./arrowio ./cmd/..."
GUEST = (
    "./core/status ./core/dtype ./core/mesh ./core/sharding ./core/sampler ./core/source"
    " ./core/layout/... ./core/batch ./internal/..."
)
RACED = (
    "./core/loader/... ./core/batch/... ./arrowio/internal/..."
    " ./arrowio/blob/... ./arrowio/cstream ./arrowio/tensors"
)

# These packages of RACED run once, with the race detector, because their tests
# are the same without it. The tests of the other packages do less under the
# detector or allow more memory, so they run both ways.
RACE_ONLY = (
    "/(arrowio/(blob|cstream|tensors|internal/(decoded|diskcache|parts|spare|table))|core/batch)$"
)

# With MESHFEED_STRICT=1, tests/strict.py makes a skipped test a failed one.
STRICT_GO = f"{PYTHON} tests/strict.py go"

# Go takes a result from its cache only if the flags are the same. With one time
# limit for all stages, test-deep does not repeat the tests that test has run. Lint runs go vet.
GO_TEST = f"{STRICT_GO} test -timeout 40m -vet=off"

# -race enables checkptr, which ends the process when GoMLX's engine computes
# addresses from integers. For that module checkptr is off. Position-independent
# code cannot have the race detector.
RACE = f"{GO_TEST} -race -buildmode=exe -gcflags=github.com/gomlx/compute/...=-d=checkptr=0"

# No package of these starts a goroutine. Go takes the results of RACED from its cache.
UNRACED = "/(core/(plan|layout|mesh|diagnosis)(/|$)|tests/(arch|layouts|strategies))"


@dataclass(frozen=True, eq=False)
class Stage:
    """One command of a suite."""

    name: str
    command: str
    env: dict[str, str] = field(default_factory=dict)


# `make lib` compiles packages as position-independent code without paths. With the same flags, all
# go commands of the stages take these packages from Go's cache and do not compile them again.
# Stages for other platforms have the flags of the caller, which is a stage if a test imports this.
AS_LIB = " -buildmode=pie -trimpath"
GOFLAGS = os.environ.get("GOFLAGS", "").replace(AS_LIB, "")


def cross(goos: str, goarch: str, packages: str = PORTABLE) -> Stage:
    env = {"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0", "GOFLAGS": GOFLAGS}
    return Stage(f"compile {goos}/{goarch}", f"go build {packages}", env)


WASM = cross("wasip1", "wasm", f"{GUEST} ./core/gomlxfeed")

# The packages that decode JPEG with libjpeg-turbo under the tag libjpeg.
RASTER = "./core/view/raster/..."

# Guides are programs of many processes, so they have a stage beside the other tests.
GUIDES = "tests/python/docs/test_guides.py"


# The tests of Python would take longest, so they are two stages of about equal time.
QUICK = "data jobs loader native", "arrays check docs layout package plan"
SLOW = "jobs layout loader native package", "arrays check data docs", "plan"


def pytest(folders: str, options: str) -> str:
    """Returns the command that tests some folders of tests/python."""
    paths = " ".join(f"tests/python/{folder}" for folder in folders.split())
    return f"sh -c '{PYTHON} -m pytest -q --durations=10 --durations-min=10 {options} {paths}'"


def quick_pytest(folders: str) -> Stage:
    return Stage(f"pytest {folders}", pytest(folders, f"--deselect {GUIDES}"))


def deep_pytest(folders: str) -> Stage:
    return Stage(f"deep pytest {folders}", pytest(folders, '-m "deep or longer"'), DEEP_ENV)


def browser(files: str) -> str:
    """Returns the command that runs tests of the page in one browser."""
    return f"sh -c '.build/node/bin/node --test-reporter=spec wasm/page/tests/all.mjs {files}'"


# Stages of Python and of the browser use one processor, and come first, the longest before the
# others. Stages of Go use all that are left, so that none idles at the end.
TEST = [
    *(quick_pytest(which) for which in QUICK),
    Stage("real processes", f"{PYTHON} -m pytest -q tests/distributed"),
    Stage("the page in a browser", browser("wasm/page/tests/*.test.mjs")),
    Stage("guides", f"{PYTHON} -m pytest -q {GUIDES}"),
    Stage("go test", f"sh -c '{GO_TEST} $(go list ./... | grep -Ev \"{RACE_ONLY}\")'"),
    Stage("go test -race", f"{RACE} {RACED}"),
    Stage("compile without cgo", f"go build {PORTABLE}", {"CGO_ENABLED": "0"}),
    Stage(
        "go test -tags page",
        f"{STRICT_GO} test -tags page -run 'Page|Serve|HTML|Hosted' ./cmd/meshfeed ./wasm/page",
    ),
    Stage(
        "go test -tags libjpeg",
        "sh -c 'python3 tools/libjpeg.py; case $? in"
        f" 0) go vet -tags libjpeg {RASTER} && {GO_TEST} -tags libjpeg {RASTER} ;;"
        " 3) echo NOT TESTED ;; *) exit 1; esac'",
    ),
    Stage("doctests", f"{PYTHON} -m pytest -q --doctest-modules python/meshfeed"),
]

LINT = [
    Stage("gofmt", "sh -c 'test -z \"$(gofmt -l . | tee /dev/stderr)\"'"),
    Stage("go vet", "go vet ./..."),
    Stage("staticcheck", "go tool -modfile=tools/go.mod staticcheck ./..."),
    Stage("actionlint", "go tool -modfile=tools/go.mod actionlint"),
    Stage("ruff", f"{PYTHON} -m ruff check ."),
    Stage("ruff format", f"{PYTHON} -m ruff format --check ."),
    Stage("mypy", f"{PYTHON} -m mypy"),
    Stage("programs under type checkers", f"{PYTHON} -m pytest -q tests/checkers"),
    Stage(
        "clang-format",
        'sh -c \'git ls-files "*.c" "*.h" "*.hpp" "*.cc" |'
        " xargs .venv/bin/clang-format --dry-run --Werror'",
    ),
    Stage("go.mod is tidy", "go mod tidy -diff"),
    cross("linux", "arm64"),
    cross("darwin", "arm64"),
    cross("windows", "amd64"),
    WASM,
]

DEEP_ENV = {"MESHFEED_DEEP": "1"}

# In these packages few tests do more in a deep run, and make test runs the others.
DEEP_IN, DEEP_TESTS = "/(capi|wasm/host)$", "Soak|Sanitized|LargestMesh|LaboriousDocuments"

# The packages of the wasm guest. Their tests also run as WebAssembly.
WASM_TESTS = (
    "./internal/jsontext ./internal/arrowmeta ./core/mesh ./core/sharding ./core/layout/..."
    " ./core/plan/hardware ./core/plan/collective"
)

DEEP = [
    *(deep_pytest(which) for which in SLOW),
    Stage(
        "deep real processes",
        f"{PYTHON} -m pytest -q -m 'deep or longer' tests/distributed",
        DEEP_ENV,
    ),
    Stage(
        "the site",
        f"sh -c 'docs/build.sh {PYTHON} && {PYTHON} -m pytest -q tests/website &&"
        " .build/node/bin/node --test --test-reporter=spec tests/website/site.test.mjs'",
        DEEP_ENV,
    ),
    Stage("deep page in a browser", browser("wasm/page/tests/deep/*.test.mjs")),
    Stage(
        "deep go test",
        f'sh -c \'{GO_TEST} $(go list ./... | grep -Ev "{DEEP_IN}"); others=$?;'
        f' {GO_TEST} -run "{DEEP_TESTS}" $(go list ./... | grep -E "{DEEP_IN}")'
        " && exit $others'",
        DEEP_ENV,
    ),
    Stage(
        "deep go test -race",
        f"sh -c '{RACE} $(go list ./arrowio/... ./core/... ./internal/... ./tests/... |"
        f' grep -Ev "{UNRACED}")\'',
    ),
    Stage(
        "the core's tests as wasm",
        "sh -c 'go build -o .build/wasip1 ./tests/wasip1 && GOOS=wasip1 GOARCH=wasm"
        f' {GO_TEST} -exec "$PWD/.build/wasip1" {WASM_TESTS}\'',
        {"GOFLAGS": GOFLAGS},
    ),
    WASM,
    Stage("conformance tables", f"{PYTHON} tests/conformance/make_tables.py --check"),
    Stage("conformance groups", f"{PYTHON} tests/conformance/make_groups.py --check"),
    Stage("conformance rings", f"{PYTHON} tests/conformance/make_rings.py --check"),
]

SUITES = {"lint": LINT, "test": TEST, "check": LINT + TEST, "test-deep": DEEP}

# GB that the stages of a suite write at most: files of tests, and Go's cache.
NEEDS = {"lint": 1, "test": 2, "check": 2, "test-deep": 4}


# Seconds that a stage has to end after Ctrl-C.
GRACE = 20


class Ended(NamedTuple):
    """The result of a stage."""

    stage: Stage
    passed: bool
    seconds: float
    processor: float  # seconds of the stage and its child processes
    output: bytes


class Runner:
    """Runs stages, a number of them at a time."""

    def __init__(self, stages: Iterable[Stage], jobs: int) -> None:
        self._left = list(stages)
        self._jobs = jobs
        self._groups: dict[Stage, int] = {}
        # None means that this program is interrupted. Signal handlers may use this queue.
        self._ended: queue.SimpleQueue[Ended | None] = queue.SimpleQueue()

    def results(self) -> Iterator[Ended]:
        """Runs the stages and yields each result; raises KeyboardInterrupt."""
        while self._left or self._groups:
            while self._left and len(self._groups) < self._jobs:
                self._start(self._left.pop(0))
            ended = self._next(None)
            if ended is None:
                raise KeyboardInterrupt
            yield ended

    def interrupt(self, *_: object) -> None:
        """Handles a signal. results raises at its next wait, and not while it starts a stage."""
        self._ended.put(None)

    def stop(self) -> Iterator[Ended]:
        """Interrupts the running stages and yields each result.

        Another interrupt, or a stage that takes longer than GRACE, kills what still runs.
        """
        ending = signal.SIGINT
        while self._groups:
            for group in self._groups.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, ending)
            late = time.monotonic() + GRACE
            with contextlib.suppress(queue.Empty):
                while self._groups and (ended := self._next(max(0, late - time.monotonic()))):
                    yield ended
            ending = signal.SIGKILL

    def _next(self, timeout: float | None) -> Ended | None:
        ended = self._ended.get(timeout=timeout)
        if ended is not None:
            del self._groups[ended.stage]
        return ended

    def _start(self, stage: Stage) -> None:
        print(f"... {stage.name}: {stage.command}", flush=True)
        output = tempfile.TemporaryFile()  # noqa: SIM115 - _wait closes it
        process = subprocess.Popen(
            shlex.split(stage.command),
            cwd=ROOT,
            env={**os.environ, "GOFLAGS": GOFLAGS + AS_LIB, **stage.env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that stop reaches the children of the stage
        )
        self._groups[stage] = process.pid
        threading.Thread(target=self._wait, args=(stage, process, output), daemon=True).start()

    def _wait(self, stage: Stage, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        began = time.monotonic()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds, processor = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        with output:
            output.seek(0)
            text = output.read()
        self._ended.put(Ended(stage, process.returncode == 0, seconds, processor, text))


def show(ended: Ended) -> None:
    """Prints the output of a stage."""
    print(f"\n=== {ended.stage.name}: {word(ended)} after {ended.seconds:.0f} s", flush=True)
    sys.stdout.buffer.write(ended.output)
    print(flush=True)


def word(ended: Ended) -> str:
    return "ok" if ended.passed else "FAILED"


def table(suite: str, results: list[Ended], seconds: float) -> str:
    """Returns a table of the times of the stages and their sum."""
    width = max(len("in all"), *(len(ended.stage.name) for ended in results))
    rule = "-" * (width + 31)
    lines = [suite, rule, f"{'':<{width}}  {'elapsed':>9}  {'processor':>9}"]
    for ended in results:
        took = f"{ended.seconds:7.1f} s  {ended.processor:7.1f} s"
        lines.append(f"{ended.stage.name:<{width}}  {took}  {word(ended)}")
    used = sum(ended.processor for ended in results)
    failed = sum(not ended.passed for ended in results)
    lines += [rule, f"{'in all':<{width}}  {seconds:7.1f} s  {used:7.1f} s"]
    return "\n".join([*lines, f"{len(results) - failed} passed, {failed} failed"])


def run(suite: str, stages: list[Stage], runner: Runner) -> int:
    """Runs a suite and returns its exit status."""
    began = time.monotonic()
    results = []
    try:
        for ended in runner.results():
            show(ended)
            results.append(ended)
    except KeyboardInterrupt:
        for ended in runner.stop():
            show(ended)
        print(f"{suite}: interrupted", flush=True)
        return 130
    results.sort(key=lambda ended: stages.index(ended.stage))
    print(f"\n{table(suite, results, time.monotonic() - began)}")
    return 1 if any(not ended.passed for ended in results) else 0


def require_room(suite: str) -> None:
    """Ends the program if a disk is too full, because the errors of tests would be misleading."""
    for folder in (str(ROOT), tempfile.gettempdir()):
        free = shutil.disk_usage(folder).free / 1e9
        if free < (needed := NEEDS.get(suite, 0)):
            remedy = "make room, or set TMPDIR to a folder on another disk"
            sys.exit(f"{suite} needs {needed} GB of disk, but {folder} has {free:.1f} GB; {remedy}")


def main(suite: str) -> int:
    require_room(suite)
    runner = Runner(SUITES[suite], int(os.environ.get("MESHFEED_JOBS", "3")))
    # A program started in the background ignores Ctrl-C, and so would its children. With a handler
    # here the stages do not inherit that. Some tests send Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, runner.interrupt)
    return run(suite, SUITES[suite], runner)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SUITES:
        sys.exit(f"usage: python tests/stages.py {'|'.join(SUITES)}")
    sys.exit(main(sys.argv[1]))
