"""Writes what the pages say from the first release on: `pip install meshfeed[jax]`, and its date.

    python tools/release/released.py 2026-12-31

Runs once, for the first release. Then this file, released.toml and
tests/python/package/test_released.py have no use, and are deleted.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write(root: Path, date: str) -> None:
    """Replaces the words in released.toml in the pages of a folder.

    Raises:
        ValueError: a page has other words.
    """
    version = (root / "VERSION").read_text().strip()
    for words in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["words"]:
        page = root / words["page"]
        text = page.read_text()
        if text.count(words["today"]) != 1:
            raise ValueError(f"{page.name} has other words than {words}: correct released.toml")
        released = words["released"].format(version=version, date=date)
        page.write_text(text.replace(words["today"], released))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/release/released.py 2026-12-31")
    write(ROOT, sys.argv[1])
