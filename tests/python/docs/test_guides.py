"""Every guide runs as a program in an empty folder, within the memory that its first table states.

The table of a guide also states its running time, measured on two quiet cores. The tests allow 20
times as long, because other work may run beside them.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

import meshfeed as mf
from tests.python import ROOT

FOLDER = ROOT / "docs/guides"
SLOW = {"in_depth", "jax_page", "tokens", "transforms", "tuning"}
GUIDES = [
    pytest.param(name, marks=pytest.mark.deep) if name in SLOW else name
    for name in sorted(path.stem for path in FOLDER.glob("*.py"))
]
MEASURED = Path(__file__).with_name("measured.py")
ALLOWANCE = 20  # times the stated running time

HEADER = re.compile(
    r"# (?P<title>\S.*)\n"
    r"\n"
    r"(?P<sentence>\S.*(?:\n\S.*)*)\n"
    r"\n"
    r"\| level \| before you begin \| running time \| memory \|\n"
    r"\| --- \| --- \| --- \| --- \|\n"
    r"\| (?P<level>beginner|intermediate|advanced) \| (?P<needs>.+) \| (?P<seconds>\d+) s"
    r" \| (?P<megabytes>[\d,]+) MB \|\n"
)


class Ran(NamedTuple):
    """One run of a guide."""

    seconds: float
    peak: int  # bytes of the largest process
    printed: str


def header(page: Path) -> re.Match[str]:
    """Returns the title, the sentence and the table at the top of a guide."""
    text = page.read_text()
    if page.suffix == ".py":
        (first,) = re.findall(r"\A(?:# ruff: .*\n\n)?# %% \[markdown\]\n((?:#.*\n)+)", text)
        text = re.sub(r"^# ?", "", first, flags=re.MULTILINE)
    found = HEADER.match(text)
    assert found, f"{page.name} does not begin with a title, a sentence and the table of guides"
    return found


def run(name: str, limit: float) -> Ran:
    """Runs a guide in an empty folder, and checks that it leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        empty, temporary, result = (Path(folder) / name for name in ("empty", "tmp", "result"))
        empty.mkdir()
        temporary.mkdir()
        asked = {"JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "JAX_PLATFORMS", "MESHFEED_DEEP"}
        env = {k: v for k, v in os.environ.items() if k not in asked}
        env |= {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(temporary)}
        guide = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
        process = subprocess.Popen(
            [sys.executable, str(MEASURED), str(result), *guide],
            cwd=empty,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, errors = process.communicate()
            pytest.fail(f"{name} took over {limit:.0f} s\n{printed}{errors}")
        assert process.returncode == 0, printed + errors
        assert "Warning" not in errors, errors
        assert [*empty.iterdir(), *temporary.iterdir()] == []
        return Ran(**json.loads(result.read_text()), printed=printed)


@functools.cache
def ran(name: str) -> Ran:
    """Returns the run of a guide, which the tests share."""
    limit = ALLOWANCE * int(header(FOLDER / f"{name}.py")["seconds"])
    return run(name, limit)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_runs_within_its_memory(name: str) -> None:
    stated = header(FOLDER / f"{name}.py")
    seconds, peak, _ = ran(name)
    print(f"{name}: {seconds:.1f} s, {peak / 1e6:.0f} MB")
    assert peak <= int(stated["megabytes"].replace(",", "")) * 10**6


@pytest.mark.parametrize("page", [*FOLDER.glob("*.py"), *FOLDER.glob("*.md")], ids=lambda p: p.stem)
def test_a_guide_says_what_the_reader_learns_and_needs(page: Path) -> None:
    assert header(page)["sentence"].endswith(".")


def test_the_readme_quotes_the_guide() -> None:
    """tests/python/docs/test_readme.py compares these sums with the table in the README."""
    printed = ran("distributed").printed
    for line in ("by rank, shape (8,), sum  28", "sum  92", "by mesh, shape (16,), sum 120"):
        assert line in printed


def linked(name: str, mark: str) -> list[str]:
    """Returns the documents inside the links that a guide prints."""
    fragments = re.findall(rf"layout\.html#{mark}=([\w-]+)", ran(name).printed)
    packed = [base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) for text in fragments]
    return [zlib.decompress(document, wbits=-15).decode() for document in packed]


def test_every_layout_is_drawn_and_linked_in_order() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "docs/layouts").glob("*.json"))]
    layouts = [mf.Layout.from_json(text) for text in texts]
    assert len(layouts) == 10
    assert linked("layouts", "v1") == [layout.to_json() for layout in layouts]
    for layout in layouts:
        assert str(layout) in ran("layouts").printed


def test_every_strategy_is_asked_and_linked() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "docs/strategies").glob("*.json"))]
    assert len(texts) == 8
    asked = sorted(linked("strategy", r"strategy\.v1"))
    assert asked == sorted(mf.Advice(text).to_json() for text in texts)


NUMBER = re.compile(r"\d+(?:[.,]\d+)+")
ADDRESS = re.compile(r"\((?:https?:|\.\./)[^)]*\)")
# core/plan/strategy tests these rows.
RUNS = re.compile(r"^# \|.* \| \d+ of \d+ \|.*$", re.MULTILINE)


def unprinted(guide: str, printed: str) -> list[str]:
    """Returns the numbers with a point or a comma in the text of a guide that it does not print."""
    cells = re.split(r"^# %%", guide, flags=re.MULTILINE)
    text = "\n".join(cell for cell in cells if cell.startswith(" [markdown]"))
    found = NUMBER.findall(RUNS.sub("", ADDRESS.sub("", text)))
    known = set(NUMBER.findall(printed))
    return [number for number in found if number not in known]


def test_the_text_about_strategies_repeats_numbers_of_its_programs() -> None:
    guide = (FOLDER / "strategy.py").read_text()
    printed = ran("strategy").printed
    assert unprinted(guide, printed) == []
    assert unprinted(guide.replace("16.1 GB, fit", "16.3 GB, fit"), printed) == ["16.3"]
