"""Checks that a tag, VERSION, CITATION.cff and CHANGELOG.md name one version; prints its changes.

    python tools/release/version.py v0.1.0 > notes.md

The workflow of a release runs it first. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def changes(root: Path, tag: str) -> str:
    """Returns the changelog's section of a tag.

    Raises:
        ValueError: files of the folder name another version.
    """
    version = (root / "VERSION").read_text().strip()
    if tag != f"v{version}":
        raise ValueError(
            f"the tag is {tag}, but VERSION has {version}: tag the commit as v{version}"
        )
    cited = re.findall(r"^version: (.*)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    if cited != [version]:
        raise ValueError(f"CITATION.cff has the version {', '.join(cited)}: write {version}")
    _, heading, section = re.split(r"^## (.*)\n", (root / "CHANGELOG.md").read_text(), flags=re.M)[
        :3
    ]
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        wanted = f"{version} (year-month-day)"
        raise ValueError(f"CHANGELOG.md begins with the section {heading!r}: write {wanted!r}")
    return section.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/release/version.py v0.1.0")
    try:
        print(changes(ROOT, sys.argv[1]))
    except ValueError as e:
        sys.exit(str(e))
