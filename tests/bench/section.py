"""Sections of docs/benchmarks.md. Each program that measures writes one, after its comment.

python -m tests.bench.section NAME FILE     the section of a program that is not in Python
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def replace(name: str, text: str, page: Path = PAGE, missing: Iterable[str] = ()) -> None:
    """Replaces a section of the page, up to the comment of the next one.

    Args:
        name: the name in the comment.
        text: the new text, which begins with a heading.
        page: the page.
        missing: measurements that the text lacks. If there are any, the text is only printed.

    Raises:
        ValueError: the page has no such section.
    """
    if lacks := list(missing):
        print(f"{text}\nThe page stays, because the section lacks: {', '.join(lacks)}")
        return
    head, begin, rest = page.read_text().partition(f"<!-- {name} -->\n")
    if not begin:
        raise ValueError(f"{page} has no section {name!r}")
    _, following, tail = rest.partition("\n<!-- ")
    page.write_text(f"{head}{begin}{filled(text.strip())}\n{following}{tail}")
    print(f"wrote the section {name} of {page}")


def filled(text: str) -> str:
    """Fills the lines of paragraphs; headings, tables and lists stay."""
    fill = textwrap.TextWrapper(150, break_long_words=False, break_on_hyphens=False).fill
    parts = re.split(r"\n{2,}", text)
    return "\n\n".join(p if p.startswith(("#", "|", "- ")) else fill(p) for p in parts)


if __name__ == "__main__":
    replace(sys.argv[1], Path(sys.argv[2]).read_text())
