"""The switch of the first release: what the pages say from that day on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT
from tests.python.docs import test_readme

pytestmark = pytest.mark.plain

PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PAGES += [f"docs/{path.name}" for path in sorted(ROOT.glob("docs/*.md"))]
TODAY = re.compile(r"not released|nothing is published|no release was|no version is released", re.I)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Returns a folder with the pages and the scripts of a release."""
    for name in ("tools/release", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("VERSION", "CITATION.cff", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(checkout: Path, script: str, argument: str) -> str:
    command = [sys.executable, str(checkout / "tools/release" / script), argument]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_pages_name_the_published_packages(checkout: Path) -> None:
    pages = [checkout / name for name in PAGES]
    assert any(TODAY.search(page.read_text()) for page in pages)
    run(checkout, "released.py", "2026-12-31")
    assert [page.name for page in pages if TODAY.search(page.read_text())] == []

    readme, install = (checkout / name for name in ("README.md", "docs/install.md"))
    assert "`pip install 'meshfeed[jax]'`" in readme.read_text()
    assert len(readme.read_text().splitlines()) <= 100
    lines = test_readme.commands(readme.read_text(), install.read_text())
    assert "pip install 'meshfeed[jax,arrow]'" in lines
    assert test_readme.untried(lines) >= test_readme.PUBLISHED

    version = (ROOT / "VERSION").read_text().strip()
    assert run(checkout, "version.py", f"v{version}").startswith("### ")


def test_other_words_are_an_error(checkout: Path) -> None:
    run(checkout, "released.py", "2026-12-31")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(checkout, "released.py", "2026-12-31")
    assert "README.md has other words than" in caught.value.stderr
