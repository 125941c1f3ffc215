"""The programs and the command lines of capi/README.md run as printed."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.docs.test_readme import write_digits
from tests.python.programs import HANG

pytestmark = pytest.mark.plain

TEXT = (ROOT / "capi" / "README.md").read_text()
PROGRAMS = {"c": ["program.c", "plan.c"], "cpp": ["program.cc"]}
LINES = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
CXX = re.findall(r"`(c\+\+ .*?)`", TEXT)

FIRST = "".join(
    f"{name}: 8 rows from {8 * device} for device {device}\n"
    for name in ("image", "label")
    for device in range(4)
)
PRINTED = {"program.c": FIRST + "18 batches\n"}


def write_programs(folder: Path) -> None:
    """Writes the programs of the README, and the files that they read."""
    for language, names in PROGRAMS.items():
        programs = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
        for name, program in zip(names, programs, strict=True):
            (folder / name).write_text(program)
    write_digits(folder / "digits")
    for file in (folder / "digits").iterdir():
        file.rename(folder / file.name)


def printed_after(folder: Path, batches: int, **options: Any) -> tuple[int, int, int]:
    """Returns rows, sum of labels and number of the batches after the first ones."""
    files = str(folder / "train-*.arrow")
    with mf.Loader(mf.open(files), specs=["label"], batch_size=32, epochs=2, **options) as loader:
        labels = [batch["label"] for batch in itertools.islice(loader, batches, None)]
    return sum(map(len, labels)), int(np.concatenate(labels).sum()), len(labels)


def printed_by_cpp(folder: Path) -> str:
    rows, total, _ = printed_after(folder, 10)
    return f"{rows} rows, sum {total}\n"


def shell(folder: Path, lines: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs shell lines in a folder."""
    return subprocess.run(
        ["sh", "-eu", "-c", lines],
        cwd=folder,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def run(folder: Path, lines: str, **env: str) -> str:
    """Returns the output of shell lines that succeed."""
    done = shell(folder, lines, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns a folder with the programs and their data."""
    folder = tmp_path / "project"
    folder.mkdir()
    write_programs(folder)
    return folder


def test_the_readme_has_the_tested_commands() -> None:
    assert [lines.split()[0] for lines in LINES] == [
        "cc",
        '"$MESHFEED"/capi/build.sh',
        "make",
        "rustc",
    ]
    assert [line.split()[:3] for line in CXX] == [["c++", "-std=c++17", "program.cc"]]


def test_from_a_checkout(project: Path) -> None:
    assert run(project, LINES[1], MESHFEED=str(ROOT)) == PRINTED["program.c"]
    if not shutil.which("rustc"):
        pytest.skip("rustc is not installed")
    _, total, batches = printed_after(project, 20, shuffle=True, seed=7)
    saved, where, rest = run(project, LINES[3], MESHFEED=str(ROOT)).splitlines()
    assert saved.startswith('saved {"meshfeed":1,"order":"shuffle.1",')
    assert where == "continues at step 2 of epoch 1"
    assert rest == f"{batches} more batches, sum of labels {total}"


def test_installed(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    caches = run(ROOT, 'echo "GOCACHE=$(go env GOCACHE) GOPATH=$(go env GOPATH)"').split()
    go = dict(pair.split("=", 1) for pair in caches)  # folders that Go derives from HOME
    printed = run(project, LINES[2], MESHFEED=str(ROOT), HOME=str(home), **go)
    assert printed.endswith(PRINTED["program.c"])
    local = home / ".local"
    names = sorted(path.relative_to(local).as_posix() for path in local.rglob("*"))
    assert [name for name in names if (local / name).is_file()] == [
        "bin/meshfeed",
        "include/meshfeed.h",
        "include/meshfeed.hpp",
        "include/meshfeed_certificate.h",
        "include/meshfeed_devices.h",
        "include/meshfeed_views.h",
        "lib/libmeshfeed.so",
        "lib/libmeshfeed.so.1",
        "lib/pkgconfig/meshfeed.pc",
        "share/doc/meshfeed/LICENSE",
        "share/doc/meshfeed/THIRD_PARTY_LICENSES",
        "share/meshfeed/diagnosis.schema.json",
        "share/meshfeed/diagram.schema.json",
        "share/meshfeed/layout.schema.json",
        "share/meshfeed/measurements.schema.json",
        "share/meshfeed/memory.schema.json",
        "share/meshfeed/report.schema.json",
        "share/meshfeed/strategy.schema.json",
        "share/meshfeed/view.schema.json",
    ]
    asked = run(project, f"PKG_CONFIG_PATH={local}/lib/pkgconfig pkg-config --modversion meshfeed")
    assert asked.strip() == mf.__version__

    # No installed file contains its path, so the tree may be staged and moved.
    staged = tmp_path / "staged"
    run(ROOT, f"make install DESTDIR={staged} PREFIX=/opt/meshfeed")
    moved = tmp_path / "moved"
    (staged / "opt" / "meshfeed").rename(moved)
    flags = "$(pkg-config --cflags --libs meshfeed)"
    lines = f"{CXX[0].partition('$(')[0]}{flags} -o moved && ./moved"
    assert run(project, lines, PKG_CONFIG_PATH=f"{moved}/lib/pkgconfig") == printed_by_cpp(project)


PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("name", "right", "wrong", "message"),
    [
        (
            "program.c",
            '.order = "shuffle.1"',
            '.order = "shuffle.9"',
            'MF_INVALID_ARGUMENT: sampler: there is no order "shuffle.9"\n'
            "  use one of sequential.1, shuffle.1, local.1:G:B with G parts for batches of B, "
            "or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also "
            "take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of "
            "W blocks of B records\n",
        ),
        (
            "program.c",
            ".epochs = 1",
            ".epochs = 1, .process = 1",
            "MF_OUT_OF_RANGE: loader: process is 1, but the layout has process 0 alone\n"
            "  number processes from 0; if the run has processes outside the mesh, say in "
            "processes how many it has\n",
        ),
        (
            "program.cc",
            "options.epochs = 2",
            "options.epochs = -2",
            "loader: epochs is -2, but must be positive, 0 for one epoch per loop, or "
            "-1 for no end\n",
        ),
    ],
)
def test_a_program_reports_a_wrong_option(
    project: Path, name: str, right: str, wrong: str, message: str
) -> None:
    text = (project / name).read_text()
    assert text.count(right) == 1
    (project / name).write_text(text.replace(right, wrong))
    lines = LINES[0] if name == "program.c" else f"{CXX[0]} && ./program"
    done = shell(project, lines, PATH=PATH)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_with_the_package_of_a_checkout(project: Path) -> None:
    assert run(project, LINES[0], PATH=PATH) == PRINTED["program.c"]
    assert run(project, f"{CXX[0]} && ./program", PATH=PATH) == printed_by_cpp(project)
    printed = run(project, LINES[0].replace("program", "plan"), PATH=PATH)
    assert "\noptimizer                    16 MiB  adamw\n" in printed
    assert printed.startswith("llama3-8b")
    done = subprocess.run(
        [sys.executable, "-m", "meshfeed", "--pkgconfigdir"], capture_output=True, text=True
    )
    folder = Path(mf.get_library()).parent / "pkgconfig"
    assert done.stderr == (
        f"meshfeed: python: this installation has no pkg-config file: {folder}; "
        "install a wheel, or in a checkout run: make install\n"
    )
    assert done.returncode == 1
