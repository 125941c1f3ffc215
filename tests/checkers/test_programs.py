"""What mypy and pyright say in strict mode about programs that use the package.

`make check` runs these tests, because the extra `lint` has both checkers. Each runs once, over all
programs in one folder.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.docs.test_readme import blocks
from tests.python.programs import HANG

pytestmark = pytest.mark.plain

# A whole program with annotations.
TYPED = """
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import meshfeed as mf

Batch = dict[str, npt.NDArray[Any]]


def total(loader: mf.Loader[Batch]) -> int:
    return sum(int(batch["x"].sum()) for batch in loader)


ds = mf.from_arrays({"x": np.arange(8, dtype=np.int32)})
with mf.Loader(ds, batch_size=4, shuffle=True, order="local", epochs=-1) as loader:
    assert_type(total(loader), int)
    assert_type(loader, mf.Loader[Batch])
    loader.save_state("run.state")
    assert_type(loader.report(), mf.Report)
"""

START = """
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

import meshfeed as mf

ds = mf.from_arrays({"x": np.arange(8)})
mesh: Mesh = mf.make_mesh({"data": -1})
"""

# A wrong call, and a part of the first error of mypy and of an error of pyright about it.
MISTAKES = [
    (
        'mf.Loader(ds, mesh, P("data"), batch_size=8, shufle=True)',
        'Unexpected keyword argument "shufle" for overloaded function "Loader"; '
        'did you mean "shuffle"?',
        'No overloads for "__init__" match the provided arguments',
    ),
    (
        "mf.Loader(ds, batch_size=8, batch=8)",
        'Unexpected keyword argument "batch" for overloaded function "Loader"',
        'No overloads for "__init__" match the provided arguments',
    ),
    (
        'mf.Loader(ds, mesh, P("data"), batch_size=8, seed="a")',
        'No overload variant of "Loader" matches argument types',
        'cannot be assigned to parameter "seed" of type "int | None"',
    ),
    (
        'mf.Loader(ds, mesh, P("data"), batch_size=8, order="random")',
        'No overload variant of "Loader" matches argument types',
        'cannot be assigned to parameter "order" of type "Order | None"',
    ),
    (
        'mf.Loader(ds, mesh, P("data"))',
        'No overload variant of "Loader" matches argument types "Dataset", "Mesh", "P"',
        'No overloads for "__init__" match the provided arguments',
    ),
    (
        'mf.layout({"data": 2}, P("data"), ds, batch_size=8, load="global")',
        'Unexpected keyword argument "load" for "layout"',
        'No parameter named "load"',
    ),
    (
        'mf.make_mesh({"data": -1}, devices=8)',
        'Argument "devices" to "make_mesh" has incompatible type "int"',
        'cannot be assigned to parameter "devices"',
    ),
]


class Problem(NamedTuple):
    """An error that a checker prints, with the notes below it."""

    line: int
    text: str
    rule: str


Problems = dict[str, list[Problem]]  # by program


def public_names() -> Iterator[str]:
    """Yields a program that uses every public name, one a line."""
    yield "import meshfeed as mf"
    for name in dir(mf):
        yield f"print(mf.{name})"
        value = getattr(mf, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            members = (member for member in dir(value) if not member.startswith("_"))
            yield from (f"print(mf.{name}.{member})" for member in members)
    for name, value in vars(mf.strategy).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            yield f"print(mf.strategy.{name})"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with all programs."""
    folder = tmp_path_factory.mktemp("programs")
    texts = {f"readme_{i}": text for i, text in enumerate(blocks("python"))}
    texts["quick_reference"] = (ROOT / "docs/guides/quick_reference.py").read_text()
    texts |= {"typed": TYPED, "names": "\n".join(public_names())}
    texts["mistakes"] = START + "\n".join(call for call, _, _ in MISTAKES)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text.rstrip() + "\n")
    return folder


def output(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr  # there are mistakes
    return done.stdout


@pytest.fixture(scope="module")
def mypy(programs: Path) -> Problems:
    """Returns what mypy prints in strict mode. Functions of JAX without types are permitted."""
    settings = f"strict = true\nuntyped_calls_exclude = jax\nmypy_path = {ROOT / 'python'}\n"
    (programs / "mypy.ini").write_text(f"[mypy]\n{settings}")
    cache = ROOT / ".mypy_cache/programs"
    command = "-m", "mypy", "--no-error-summary", "--cache-dir", cache, "."
    found: Problems = defaultdict(list)
    for line in output(programs, sys.executable, *command).splitlines():
        parts = re.fullmatch(r"(\w+)\.py:(\d+): (\w+): (.*?)(?:  \[([\w-]+)\])?", line)
        assert parts, line
        program, number, severity, text, rule = parts.groups()
        if severity == "error":
            found[program].append(Problem(int(number), text, rule))
    return found


@pytest.fixture(scope="module")
def pyright(programs: Path) -> Problems:
    """Returns what pyright prints in strict mode."""
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "python")]}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    checker = Path(sys.executable).with_name("basedpyright")
    command = checker, "--outputjson", "--pythonpath", sys.executable
    found: Problems = defaultdict(list)
    for error in json.loads(output(programs, *command))["generalDiagnostics"]:
        line = error["range"]["start"]["line"] + 1
        found[Path(error["file"]).stem].append(Problem(line, error["message"], error["rule"]))
    return found


def test_annotated_programs_have_no_errors(mypy: Problems, pyright: Problems) -> None:
    assert mypy["typed"] + pyright["typed"] == []


def test_public_names_have_known_types(pyright: Problems) -> None:
    """Pyright refuses each call of a function of partially unknown type in strict mode."""
    assert pyright["names"] == []


# What remains: the pages do not annotate their functions, and JAX leaves types out.
UNANNOTATED = {"no-untyped-def", "reportMissingParameterType", "reportPossiblyUnboundVariable"}
JAX = {'"Sharding" has no attribute "spec"', 'Cannot access attribute "spec" for class "Sharding"'}


@pytest.mark.parametrize("program", ["readme_0", "readme_1", "quick_reference"])
def test_programs_of_the_pages(program: str, mypy: Problems, pyright: Problems) -> None:
    problems = mypy[program] + pyright[program]
    assert [
        problem
        for problem in problems
        if problem.rule not in UNANNOTATED
        and not problem.rule.startswith("reportUnknown")
        and problem.text.partition("\n")[0] not in JAX
    ] == []
    assert any(problem.rule in UNANNOTATED for problem in problems) == (program != "readme_1")


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=[call for call, _, _ in MISTAKES])
def test_mistakes(number: int, mypy: Problems, pyright: Problems) -> None:
    _, by_mypy, by_pyright = MISTAKES[number]
    line = len(START.splitlines()) + 1 + number
    first, *_ = (problem for problem in mypy["mistakes"] if problem.line == line)
    assert by_mypy in first.text
    texts = [problem.text for problem in pyright["mistakes"] if problem.line == line]
    assert any(by_pyright in text for text in texts), texts
    assert max(map(len, texts)) < 700
