"""The rules of plain English in CONTRIBUTING.md that a program can check.

Names, comments, documents and messages have no persons and use American spelling. A sentence of
a comment or a document is short, and some habits of writing are rare.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.python import ROOT

pytestmark = pytest.mark.plain

# Files that people write. Generated ones and the inputs of tests are left out.
WRITTEN = re.compile(
    r"\.(?:go|s|c|cc|h|py|pyi|ts|mjs|html|sh|md|toml|yml)$|(?:^|/)(?:Makefile|run)$"
)
LEFT_OUT = re.compile(r"/testdata/|/snapshots/|^tests/python/docs/test_english\.py$")

# Words that need another one: the name of the thing (caller, process), and American spelling.
WORDS = {"who", "whom", "whoever", "nobody", "he", "him", "himself", "his", "she", "her", "herself"}
WORDS |= {many + body for many in ("any", "every", "some") for body in ("body", "one")}
for word in ("behaviour", "centre", "colour", "favour", "neighbour", "labelled"):
    WORDS |= {word, f"{word}s", f"{word}d", f"{word}ed", f"{word}ing"}
for word in ("general", "initial", "normal", "optim", "organ", "recogn", "serial"):
    WORDS |= {f"{word}ise", f"{word}ises", f"{word}ised", f"{word}ising"}

# Habits of writing, each in at most `MOST` of 1,000 lines. Repeat the noun, or say what the
# thing does: "copies the row of one span to another", "n int // number of rows".
HABITS = (
    r"\b(?:that|those) of\b",
    r"(?:^|[.:!?] )Of (?!returns|describes)|^of ",
    r"\bwhose\b",
    r"\b(?:is|are|was|were) (?:no|none)\b",
)
MOST = 2

LONGEST = 35  # words of a sentence; 25 is the aim

# How files mark comments: of one line, and of several.
MARKS = dict.fromkeys((".go", ".s", ".c", ".cc", ".h", ".ts", ".mjs"), ("//", "/*", "*/"))
MARKS |= dict.fromkeys((".py", ".pyi"), ("#", '"""', '"""'))
OTHERS = ("#", "\n", "\n")  # no comment of several lines

NAME_PART = re.compile(r"[A-Z]?[a-z]+")  # isLabelled, is_labelled
DATA = re.compile(r"[\w=+/-]{40,}|\"\w+\"")  # encoded data, and values such as a user's name
ITEM = re.compile(r"[-*] |\d+\. ")  # the start of an item of a list
NO_PROSE = re.compile(r"^\s|\S {3}|^\||^go:|^export ")  # code, tables, and directives of Go


class Paragraph(NamedTuple):
    """Some lines of prose that belong together."""

    where: str
    text: str
    lines: int = 1


def written() -> Iterator[tuple[str, str]]:
    """Yields name and text of every file that people write."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if WRITTEN.search(name) and not LEFT_OUT.search(name) and (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def wrong_words(name: str, text: str) -> Iterator[str]:
    """Yields the places of words that need another one."""
    if WORDS.isdisjoint(map(str.lower, set(NAME_PART.findall(text)))):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for word in NAME_PART.findall(DATA.sub(" ", line)):
            if word.lower() in WORDS:
                yield f"{name}:{number}: {word}"


def prose(name: str, text: str) -> Iterator[Paragraph]:
    """Yields the prose of a file: a document, or comments and docstrings."""
    kind = Path(name).suffix
    if kind == ".html":
        return
    marks = MARKS.get(kind, OTHERS)
    lines = document(text) if kind == ".md" else comments(text, *marks)
    first, words = 0, list[str]()
    for number, line in lines:
        part = "" if NO_PROSE.search(line) else line.strip()
        if words and (not part or ITEM.match(part)):
            yield Paragraph(f"{name}:{first}", " ".join(words), len(words))
            words = []
        if part:
            first = first if words else number
            words.append(part)
    if words:
        yield Paragraph(f"{name}:{first}", " ".join(words), len(words))
    if marks[0] == "//":
        for number, line in enumerate(text.splitlines(), 1):
            if beside := re.search(r"\S\s+(?://|/\*) ?(.+)", line):
                yield Paragraph(f"{name}:{number}", beside[1])


def document(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines of a Markdown document without code, tables and headings."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        code = fence or fenced or re.match(r"\s*(?:\||#|<)", line)
        yield number, "" if code else line.strip()


def comments(text: str, mark: str, start: str, end: str) -> Iterator[tuple[int, str]]:
    """Yields the comments that have lines of their own. Other lines are empty."""
    margin = -1  # the indentation of a comment of several lines
    string = False  # inside of a string of several lines
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if string or (start == end and margin < 0 and not bare.startswith((mark, start))):
            string ^= line.count(end) % 2 == 1
            yield number, ""
            continue
        begins = margin < 0 and bare.startswith(start)
        margin = line.index(start) if begins else margin
        if margin >= 0:
            inner = bare.removeprefix(start) if begins else line[margin:]
            part, closed, _ = inner.partition(end)
            yield number, re.sub(r"^ *\*+ ?|^ +", "", part) if end == "*/" else part
            margin = -1 if closed else margin
        else:
            yield number, bare.removeprefix(mark).removeprefix(" ") if bare.startswith(mark) else ""


def sentences(text: str) -> list[str]:
    """Splits a paragraph. A period inside of a word, such as a file name, ends no sentence."""
    plain = re.sub(r"`[^`]*`|\{.*\}", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?])[\"')\]*]*\s+", plain)


def long_sentences(found: list[Paragraph]) -> Iterator[str]:
    """Yields the sentences that are too long."""
    for p in found:
        for sentence in sentences(p.text) if p.text.count(" ") >= LONGEST else ():
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > LONGEST:
                yield f"{p.where}: {len(words)} words, at most {LONGEST}: {sentence}"


def habits(found: list[Paragraph]) -> Iterator[str]:
    """Yields the places of a habit that too many lines have."""
    lines = sum(p.lines for p in found)
    for habit in HABITS:
        places = [p.where for p in found for _ in re.findall(habit, p.text)]
        if len(places) * 1000 > MOST * lines:
            yield f"{habit}: {len(places)} in {lines} lines, at most {MOST} in 1,000: {places}"


def test_plain_english() -> None:
    files = list(written())
    assert len(files) > 500
    found = [p for file in files for p in prose(*file)]
    assert sum(p.lines for p in found) > 20_000
    wrong = [place for file in files for place in wrong_words(*file)]
    wrong += [*long_sentences(found), *habits(found)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_faults_are_found() -> None:
    text = "func isLabelled() { // Nobody normalised the colours of himself, as ahead of the rest\n"
    words = ["Labelled", "Nobody", "normalised", "colours", "himself"]
    assert [c.split()[-1] for c in wrong_words("x.go", text)] == words
    assert list(wrong_words("x.md", "a link#v1=" + "1heShe" * 10)) == []
    text = (
        "n int // of rows\n// Its rows are those of a list whose end is none: Of these,\n// one\n"
    )
    numbers = [c.split(": ")[1].split(",")[0] for c in habits(list(prose("x.go", text)))]
    assert numbers == [f"{n} in 3 lines" for n in (1, 2, 1, 1)]
    assert not list(habits([Paragraph("x.go:1", "Of returns the type that T holds.")]))
    assert len(list(long_sentences([Paragraph("x.md:1", "word " * 36 + "end. Short.")]))) == 1


def test_prose_is_found() -> None:
    def texts(name: str, text: str) -> list[str]:
        return [f"{p.where.split(':')[1]} {p.text}" for p in prose(name, text)]

    go = "// One\n// two.\n//\n// three\n//\n//\tcode\nvar x = 1 // beside\n\n/* four\n * five */\n"
    assert texts("x.go", go) == ["1 One two.", "4 three", "9 four five", "7 beside"]
    py = 'def f():\n    """One\n\n    two.\n\n        code\n    """\n    # three\n    # four\n'
    py += 'x = """\ntext\n"""\ny = 1\n'
    assert texts("x.py", py) == ["2 One", "4 two.", "8 three four"]
    md = "# Title\n\nOne `a.\nb` two.\n- three\n- four\n  five\n```\ncode\n```\n| a | b |\n"
    assert texts("x.md", md) == ["3 One `a. b` two.", "5 - three", "6 - four five"]
    assert texts("Makefile", "# One\n# two\nall: ## beside\n") == ["1 One two"]
    assert sentences("See [a](b.c). Is `x. y` 1.5? Yes.") == ["See [a].", "Is code 1.5?", "Yes."]
