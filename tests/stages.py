"""Runs the stages of a suite one after the other and prints what each took.

    python tests/stages.py test|check|test-deep

A stage is a command line. All stages run even if one fails, so that one run
shows every fault; the exit status says whether all passed. Needs nothing but
Python's standard library, and is started by the Makefile, which sets PYTHON to
the interpreter of the project's own environment.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.environ.get("PYTHON", sys.executable)

# What a user of another platform or of the wasm guest compiles.
PORTABLE = "./core/... ./arrowio ./cmd/..."
GUEST = " ".join(
    f"./core/{name}"
    for name in (
        "status",
        "guard",
        "dtype",
        "jsontext",
        "mesh",
        "sharding",
        "sampler",
        "source",
        "arrowmeta",
        "layout",
        "batch",
    )
)
RACED = (
    "./core/loader/... ./core/batch/... ./arrowio/..."
    " ./core/gomlxfeed ./core/gomlxfeed/internal/..."
)

# The engine of GoMLX computes addresses in a way that checkptr, which -race
# switches on, ends the process for. It stays on for everything else.
RACE = "go test -race '-gcflags=github.com/gomlx/compute/...=-d=checkptr=0'"


@dataclass(frozen=True)
class Stage:
    """One command of a suite."""

    name: str
    command: str
    env: dict[str, str] = field(default_factory=dict)


def cross(goos: str, goarch: str, packages: str = PORTABLE) -> Stage:
    env = {"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0"}
    return Stage(f"compile {goos}/{goarch}", f"go build {packages}", env)


TEST = [
    Stage("go vet", "go vet ./..."),
    Stage("go test", "go test ./..."),
    Stage("go test -race", f"{RACE} {RACED}"),
    Stage("compile without cgo", f"go build {PORTABLE}", {"CGO_ENABLED": "0"}),
    cross("wasip1", "wasm", f"{GUEST} ./core/gomlxfeed"),
    Stage(
        "go test -tags page",
        "go test -tags page -run 'Page|Serve|HTML|Hosted' ./cmd/meshfeed ./wasm/page",
    ),
    Stage(
        "the page in a browser",
        "sh -c '.build/node/bin/node --test wasm/page/tests/*.test.mjs'",
    ),
    Stage("pytest", f"{PYTHON} -m pytest -q tests/python"),
    Stage("real processes", f"{PYTHON} -m pytest -q tests/distributed"),
    Stage("doctests", f"{PYTHON} -m pytest -q --doctest-modules python/meshfeed"),
]

LINT = [
    Stage("gofmt", "sh -c 'test -z \"$(gofmt -l . | tee /dev/stderr)\"'"),
    Stage("staticcheck", "go tool -modfile=tools/go.mod staticcheck ./..."),
    Stage("ruff", f"{PYTHON} -m ruff check ."),
    Stage("ruff format", f"{PYTHON} -m ruff format --check ."),
    Stage("mypy", f"{PYTHON} -m mypy"),
    Stage(
        "clang-format",
        'sh -c \'git ls-files "*.c" "*.h" "*.cc" |'
        " xargs .venv/bin/clang-format --dry-run --Werror'",
    ),
    Stage("go.mod is tidy", "go mod tidy -diff"),
    cross("linux", "arm64"),
    cross("darwin", "arm64"),
    cross("windows", "amd64"),
]

DEEP_ENV = {"MESHFEED_DEEP": "1"}

# What the wasm guest is made of, as it is compiled for it.
WASM_TESTS = " ".join(
    f"./core/{name}" for name in ("jsontext", "mesh", "sharding", "arrowmeta", "layout")
)
WASM_ENV = {"GOOS": "wasip1", "GOARCH": "wasm"}

DEEP = [
    Stage("deep go test", "go test -timeout 40m ./...", DEEP_ENV),
    Stage("runner of wasip1", "go build -o .build/wasip1 ./tests/wasip1"),
    Stage(
        "the core's tests as wasm",
        f"go test -tags guest -exec {shlex.quote(str(ROOT / '.build/wasip1'))} {WASM_TESTS}",
        WASM_ENV,
    ),
    Stage("deep go test -race", f"{RACE} -timeout 40m ./core/... ./arrowio/... ./tests/..."),
    Stage("deep pytest", f"{PYTHON} -m pytest -q tests/python", DEEP_ENV),
    Stage("deep real processes", f"{PYTHON} -m pytest -q tests/distributed", DEEP_ENV),
    Stage("conformance tables", f"{PYTHON} tests/conformance/make_tables.py --check"),
]

SUITES = {"test": TEST, "check": LINT + TEST, "test-deep": DEEP}


def run(stage: Stage) -> tuple[bool, float]:
    print(f"\n=== {stage.name}: {stage.command}", flush=True)
    began = time.monotonic()
    done = subprocess.run(
        shlex.split(stage.command), cwd=ROOT, env={**os.environ, **stage.env}, check=False
    )
    return done.returncode == 0, time.monotonic() - began


def main(suite: str) -> int:
    # Whoever is started in the background inherits that Ctrl-C is ignored; tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = [(stage.name, *run(stage)) for stage in SUITES[suite]]
    width = max(len(name) for name, _, _ in results)
    print(f"\n{suite}\n{'-' * (width + 18)}")
    for name, passed, seconds in results:
        print(f"{name:<{width}}  {seconds:7.1f} s  {'ok' if passed else 'FAILED'}")
    total = sum(seconds for _, _, seconds in results)
    failed = sum(not passed for _, passed, _ in results)
    print(f"{'-' * (width + 18)}\n{'in all':<{width}}  {total:7.1f} s")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SUITES:
        sys.exit(f"usage: python tests/stages.py {'|'.join(SUITES)}")
    sys.exit(main(sys.argv[1]))
