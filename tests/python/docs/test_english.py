"""The rules of plain English in CONTRIBUTING.md that a program can check.

Names, comments, documents and messages use words in their usual sense, the subject of a sentence
is a thing, and a sentence is short. `WORDS` says what to write instead of a word, and `HABITS` how
often a phrase may occur. `ALLOWED` lists the exceptions, each with its reason.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from tests.python.docs.prose import Paragraph, beside, paragraphs, sentences, written

pytestmark = pytest.mark.plain

THING = "the name of the thing: caller, process, producer, waiter"
PERSONS = re.compile(
    "(?:any|every|some)(?:body|one)|nobody|who(?:m|ever)?|(?:him|her)(?:self)?|his|s?he"
)

# What to write instead of a word and its forms, in American spelling. The words of a name
# count too: isLabelled, is_labelled.
WORDS = {
    "behaviour": "behavior",
    "centre": "center",
    "colour": "color",
    "favour": "favor",
    "generalise": "generalize",
    "initialise": "initialize",
    "labelled": "labeled",
    "neighbour": "neighbor",
    "normalise": "normalize",
    "optimise": "optimize",
    "organise": "organize",
    "recognise": "recognize",
    "serialise": "serialize",
}

# Habits of writing, and how many of 1,000 lines may have them. Repeat the noun, or say what
# the thing does: "copies the row of one span to another", "n int // number of rows".
HABITS = {
    r"\b(?:that|those) of\b": 4,
    r"(?:^|[.:!?] )Of (?!returns|describes)|^of ": 5.5,
    r"\bwhose\b": 6,
    r"\b(?:is|are|was|were) (?:no|none)\b": 3,
}

# Uses that are right: a file, a word, and the reason.
ALLOWED = {
    ("arrowio/permission_test.go", "nobody"): "the Unix user of this name",
    ("tests/python/docs/test_english.py", ""): "this list",
}

LONGEST = 35  # words of a sentence; 25 is the aim

# Links to layouts, digests and the like: encoded data, with letters that form no words.
DATA = re.compile(r"(?<![\w=+/-])(?=[\w=+/-]*\d)(?=[\w=+/-]*[A-Z])[\w=+/-]{40,}")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ENDINGS = ("", "s", "d", "ed", "ing")


@functools.cache
def better(word: str) -> str | None:
    """Returns what to write instead of a word, or None if it is right."""
    if PERSONS.fullmatch(word):
        return THING
    return next((WORDS[form] for end in ENDINGS if (form := word.removesuffix(end)) in WORDS), None)


def private_words(name: str, text: str) -> Iterator[str]:
    """Yields a complaint for each word that has a better one."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in WORD.findall(DATA.sub(" ", line)):
            instead = better(word.lower())
            if instead and (name, word.lower()) not in ALLOWED:
                yield f'{name}:{number}: "{word}": write {instead}'


def long_sentences(paragraph: Paragraph) -> Iterator[str]:
    """Yields a complaint for each sentence that is too long."""
    for sentence in sentences(paragraph.text):
        words = sentence.split()
        if len(words) > LONGEST:
            words = [w for w in words if re.search(r"\w", w)]
        if len(words) > LONGEST:
            where = f"{paragraph.file}:{paragraph.line}"
            yield f"{where}: {len(words)} words, at most {LONGEST}: {sentence}"


def frequent(found: list[Paragraph]) -> Iterator[str]:
    """Yields the places of a habit that too many lines have."""
    lines = sum(p.lines for p in found)
    for habit, most in HABITS.items():
        places = [f"{p.file}:{p.line}" for p in found for _ in re.findall(habit, p.text)]
        if len(places) * 1000 > most * lines:
            yield f"{habit}: {len(places)} in {lines} lines, at most {most} in 1,000: {places}"


def test_words_have_their_usual_sense() -> None:
    files = [(name, text) for name, text in written() if (name, "") not in ALLOWED]
    assert len(files) > 500
    complaints = [complaint for file in files for complaint in private_words(*file)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_every_exception_is_needed() -> None:
    files = dict(written())
    for name, word in ALLOWED:
        assert word in files[name].lower(), f"{name} no longer needs its exception for {word!r}"


def test_sentences_are_short_and_without_habits() -> None:
    found = [p for file in written() for p in paragraphs(*file)]
    assert sum(len(sentences(p.text)) for p in found) > 8000
    complaints = [complaint for p in found for complaint in long_sentences(p)]
    assert not complaints, "\n" + "\n".join(complaints)
    found += [p for file in written() for p in beside(*file)]
    assert not list(frequent(found))


def test_words_of_names_and_their_forms_are_found() -> None:
    text = "func isLabelled() { // Nobody normalised the colours of himself, as ahead of the rest\n"
    assert [c.split('"')[1] for c in private_words("x.go", text)] == [
        "Labelled",
        "Nobody",
        "normalised",
        "colours",
        "himself",
    ]
    assert list(private_words("x.md", "a link#v1=" + "1heShe" * 10)) == []
    assert list(private_words("x.py", "def test_" + "nobody_" * 9)) != []


def test_habits_are_found() -> None:
    text = (
        "n int // of rows\n// Its rows are those of a list whose end is none: Of these,\n// one\n"
    )
    found = [*beside("x.go", text), *paragraphs("x.go", text)]
    assert [c.split(": ")[1].split(",")[0] for c in frequent(found)] == [
        f"{n} in 3 lines" for n in (1, 2, 1, 1)
    ]
    assert not list(frequent([Paragraph("x.go", 1, "Of returns the type that T holds.", 1)]))


def texts(name: str, text: str) -> list[tuple[int, str]]:
    """Returns the lines and the texts of a file's paragraphs."""
    return [(p.line, p.text) for p in paragraphs(name, text)]


def test_prose_is_found() -> None:
    go = "// One\n// two.\n//\n// three\n//\n//\tcode\nvar x = 1 // beside\n\n/* four\n * five */\n"
    assert texts("x.go", go) == [(1, "One two."), (4, "three"), (9, "four five")]
    py = '"""One\n\ntwo.\n\n    code\n"""\n# three\n# four\nx = 1  # beside\n'
    assert texts("x.py", py) == [(1, "One"), (3, "two."), (7, "three four")]
    md = "# Title\n\nOne `a.\nb` two.\n- three\n- four\n  five\n```\ncode\n```\n| a | b |\n"
    assert texts("x.md", md) == [(3, "One `a. b` two."), (5, "- three"), (6, "- four five")]
    assert texts("Makefile", "# One\n# two\nall: ## beside\n") == [(1, "One two")]
    assert sentences("See [a](b.c). Is `x. y` 1.5? Yes.") == ["See [a].", "Is code 1.5?", "Yes."]
