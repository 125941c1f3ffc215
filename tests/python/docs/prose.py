"""Finds the prose of the repository: documents, comments and docstrings.

A paragraph is a run of lines. Code, tables, headings, and lines that are indented more than the
text around them are not prose.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator

from tests.python import ROOT

# Files that people write. Generated ones and the inputs of tests are left out.
WRITTEN = re.compile(
    r"\.(?:go|s|c|cc|h|py|pyi|ts|mjs|html|sh|md|toml|yml)$|(?:^|/)(?:Makefile|run)$"
)
LEFT_OUT = re.compile(r"/testdata/|/snapshots/")

MARKS = {"go": "//", "s": "//", "c": "//", "cc": "//", "h": "//", "ts": "//", "mjs": "//"}


ITEM = re.compile(r"[-*] |\d+\. ")  # the start of an item of a list
NO_PROSE = re.compile(r"^\s|\S {3}|^\||^go:|^export ")  # code, tables, and directives of Go


@dataclasses.dataclass
class Paragraph:
    """Some lines of prose that belong together."""

    file: str
    line: int
    text: str
    lines: int


def written() -> Iterator[tuple[str, str]]:
    """Yields name and text of every file that people write."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if WRITTEN.search(name) and not LEFT_OUT.search(name) and (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def paragraphs(name: str, text: str) -> Iterator[Paragraph]:
    """Yields the prose of a file."""
    kind = name.rsplit(".", 1)[-1]
    if kind == "md":
        yield from joined(name, document(text))
    elif kind in ("py", "pyi"):
        for block in python_blocks(text):
            yield from joined(name, block)
    elif kind != "html":
        for block in comment_blocks(text, MARKS.get(kind, "#")):
            yield from joined(name, block)


Lines = list[tuple[int, str]]


def document(text: str) -> Lines:
    """Returns the lines of a Markdown document without code, tables and headings."""
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append((number, "" if re.match(r"\s*(?:\||#|<)", line) else line.strip()))
    return lines


def python_blocks(text: str) -> Iterator[Lines]:
    """Yields the docstrings and the comments of a Python program."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node)
            if doc is not None:
                first = node.body[0].lineno
                yield list(enumerate(doc.splitlines(), first))
    block: Lines = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            if block and block[-1][0] != token.start[0] - 1:
                yield block
                block = []
            block.append((token.start[0], token.string[1:].removeprefix(" ")))
    yield block


def comment_blocks(text: str, mark: str) -> Iterator[Lines]:
    """Yields the comments that have lines of their own."""
    block: Lines = []
    inside = False  # of a comment between /* and */
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        inside = inside or (mark == "//" and bare.startswith("/*"))
        if inside:
            prose = re.sub(r"^/?\*+(?!/)|\*/.*", "", bare)
        elif bare.startswith(mark):
            prose = bare.removeprefix(mark)
        else:
            yield block
            block = []
            continue
        inside = inside and "*/" not in bare
        block.append((number, prose.removeprefix(" ")))
    yield block


def joined(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Paragraph]:
    """Joins lines to paragraphs. An empty line and an item of a list begin a new one."""
    first, words = 0, list[str]()
    for number, line in lines:
        text = "" if NO_PROSE.search(line) else line.strip()
        if words and (not text or ITEM.match(text)):
            yield Paragraph(name, first, " ".join(words), len(words))
            words = []
        if text:
            first = first if words else number
            words.append(text)
    if words:
        yield Paragraph(name, first, " ".join(words), len(words))


def beside(name: str, text: str) -> Iterator[Paragraph]:
    """Yields the comments at the ends of lines of code."""
    mark = MARKS.get(name.rsplit(".", 1)[-1])
    for number, line in enumerate(text.splitlines() if mark else (), 1):
        if match := re.search(r"\S\s+(?://|/\*) ?(.+)", line):
            yield Paragraph(name, number, match[1], 1)


def sentences(text: str) -> list[str]:
    """Splits a paragraph. A period inside of a word, such as a file name, ends no sentence."""
    plain = re.sub(r"`[^`]*`|\{.*\}", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?])[\"')\]*]*\s+", plain)
