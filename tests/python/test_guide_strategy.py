"""The guide to strategies prints what its commands print, and repeats only numbers of theirs."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from types import ModuleType

import pytest

from meshfeed import _command
from tests.python.test_guide_layouts import refresh as refresh  # the fixture

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guides/strategy.md"
NAMES = sorted(path.stem for path in (ROOT / "docs/strategies").glob("*.json"))
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\((?:https?:|\.\./|layout\.html)[^)]*\)")
RUNS = re.compile(r"^\|.* \| \d+ of \d+ \|.*$", re.MULTILINE)  # core/strategy tests these rows
NUMBER = re.compile(r"\d+(?:[.,]\d+)+")


def unprinted(guide: str) -> list[str]:
    """Returns the numbers with a point or a comma that occur in the text of the guide only."""
    printed = set(NUMBER.findall("\n".join(FENCE.findall(guide))))
    text = RUNS.sub("", LINK.sub("", FENCE.sub("", guide)))
    return [number for number in NUMBER.findall(text) if number not in printed]


def test_the_guide_prints_what_its_commands_print(refresh: ModuleType) -> None:
    assert Path(_command.BINARY).exists(), "build the command: make lib"
    old = GUIDE.read_text()
    new = refresh.refreshed(old)
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), "committed", "now", n=1)
    hint = "python docs/refresh.py docs/guides/strategy.md, and read the changes"
    assert new == old, "\n".join([hint, *changes])


def test_the_product_in_jax_has_the_shapes_of_the_picture(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    exec(compile(program, str(GUIDE), "exec"), {})
    assert capsys.readouterr().out.strip() == program.rpartition("# ")[2].strip()


def test_the_text_repeats_numbers_of_the_commands() -> None:
    guide = GUIDE.read_text()
    assert unprinted(guide) == []
    assert unprinted(guide.replace("16.1 GB, fit", "16.7 GB, fit")) == ["16.7"]


def test_every_strategy_is_in_the_guide(refresh: ModuleType) -> None:
    assert len(NAMES) == 8
    blocks = refresh.BLOCKS.findall(GUIDE.read_text())
    commands = "\n".join(command for command, _ in blocks)
    assert [name for name in NAMES if name not in commands] == []
    assert [command for command, output in blocks if not output] == []
    assert [
        command for command, output in blocks if re.search(r"usage|error|not found", output)
    ] == []


def test_a_link_opens_the_strategy(refresh: ModuleType) -> None:
    links = refresh.LINKS.findall(GUIDE.read_text())
    assert [(folder, name) for folder, name, _, _ in links] == [
        ("strategies", f"{name}.json") for name in NAMES
    ]
    for folder, name, _, fragment in links:
        assert refresh.document_of(fragment) == refresh.document(folder, name)
