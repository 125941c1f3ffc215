"""The guide to layouts prints what its commands print, and its links hold the layouts."""

from __future__ import annotations

import difflib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from meshfeed import _command

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guides/layouts.md"
NAMES = sorted(path.name for path in (ROOT / "docs/layouts").glob("*.json"))


@pytest.fixture(scope="module")
def refresh() -> ModuleType:
    """Returns docs/refresh.py as a module."""
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs/refresh.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_guide_prints_what_its_commands_print(refresh: ModuleType) -> None:
    assert Path(_command.BINARY).exists(), "build the command: make lib"
    old = GUIDE.read_text()
    new = refresh.refreshed(old)
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), "committed", "now", n=1)
    hint = "python docs/refresh.py docs/guides/layouts.md, and read the changes"
    assert new == old, "\n".join([hint, *changes])


def test_every_layout_is_drawn_and_linked_in_order(refresh: ModuleType) -> None:
    text = GUIDE.read_text()
    assert len(NAMES) == 10
    assert re.findall(r"^\[([\w-]+\.json)\]", text, re.MULTILINE) == NAMES
    blocks = refresh.BLOCKS.findall(text)
    plain = [command for command, _ in blocks if re.match(r"meshfeed plan docs/layouts/", command)]
    assert [name for name in NAMES if not any(name in command for command in plain)] == []
    assert [command for command, output in blocks if not output] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_link_holds_the_layout(refresh: ModuleType, name: str) -> None:
    (fragment,) = [link[3] for link in refresh.LINKS.findall(GUIDE.read_text()) if link[1] == name]
    document = refresh.document("layouts", name)
    assert refresh.document_of(fragment) == document
    assert refresh.document_of(refresh.fragment_of(document)) == document


def test_wrong_links_are_rewritten(refresh: ModuleType) -> None:
    text = GUIDE.read_text()
    for wrong in ("", "AAAA", "A", refresh.fragment_of("{}")):
        broken = re.sub(r"#v1=[\w-]+", f"#v1={wrong}", text, count=1)
        links = refresh.LINKS.findall(refresh.linked(broken))
        assert refresh.document_of(links[0][3]) == refresh.document("layouts", NAMES[0])
