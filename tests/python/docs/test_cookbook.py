"""Every recipe of the cookbook is short, runs alone, and prints what the page says."""

from __future__ import annotations

import re

import pytest

from tests.python import ROOT
from tests.python.programs import run

pytestmark = pytest.mark.plain

PAGE = ROOT / "docs/cookbook.md"
LONGEST = 15  # lines of a recipe
MARK = "--- recipe ---"

# Runs all recipes in one process, because imports take most of the time. Each recipe gets its own
# variables and an empty folder.
DRIVER = """
import os, tempfile
shared, *recipes = {blocks!r}
base = {{"__name__": "recipe"}}
exec(shared, base)
for recipe in recipes:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print({mark!r}, flush=True)
        exec(compile(recipe, "<recipe>", "exec"), dict(base))
        os.chdir("/")
"""


def blocks(language: str) -> list[str]:
    """Returns the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_every_recipe_prints_what_the_page_says() -> None:
    printed = run(DRIVER.format(blocks=blocks("python"), mark=MARK))
    first, *outputs = printed.split(MARK + "\n")
    assert first == ""
    assert outputs == blocks("text")


def test_recipes_are_short() -> None:
    _, *recipes = blocks("python")
    sections = re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(recipes) == len(sections)
    for title, recipe in zip(sections, recipes, strict=True):
        lines = [line for line in recipe.splitlines() if line.strip()]
        assert len(lines) <= LONGEST, title


def test_every_recipe_is_in_the_list() -> None:
    text = PAGE.read_text()
    listed = re.findall(r"\]\(#([\w-]+)\)", text.split("\n## ")[0])
    sections = [title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", text, re.M)]
    assert sorted(listed) == sorted(sections)
