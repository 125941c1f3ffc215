"""Errors say what to do in Python, and not what to do in Go and in C."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import meshfeed as mf
from meshfeed._native.wording import in_python
from tests.python import ROOT

OTHERS = re.compile(r"\bMF_[A-Z]|\bin Python, |\(Go: |\(C: ")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            'ds.pad("a b", length=…) in Python, view.Pad in Go, mf_dataset_pad in C',
            'ds.pad("a b", length=…)',
        ),
        (
            'pass dataset="ignore" (Go: IgnoreDataset, C: MF_IGNORE_DATASET), or',
            'pass dataset="ignore", or',
        ),
        ('give a value (Python: fill={"x": -1}), or', 'give a value (fill={"x": -1}), or'),
        ('a value (Go: Fill, C: fill; Python: fill={"x": -1}), or', 'a value (fill={"x": -1}), or'),
        ("leave (Go: a; Python: b) and (C: c) or (Go: d; Python: e)", "leave (b) and or (e)"),
        (
            "give it (Python: certificate.check(dataset=ds)), or",
            "give it (certificate.check(dataset=ds)), or",
        ),
        ("Python, Go (a language) and C: all", "Python, Go (a language) and C: all"),
    ],
)
def test_other_languages_are_left_out(text: str, want: str) -> None:
    assert in_python(text) == want


def test_texts_of_the_library_have_these_forms() -> None:
    """A text that names C's constants or calls for programs in Python, too, must be known here."""
    found = 0
    for directory in ("core", "arrowio", "internal"):
        for file in (ROOT / directory).rglob("*.go"):
            if file.name.endswith("_test.go"):
                continue
            code = "\n".join(line.split("//")[0] for line in file.read_text().splitlines())
            for text in re.findall(r'`[^`\n]*`|"(?:[^"\\\n]|\\.)*"', code):
                if OTHERS.search(text):
                    found += 1
                    assert not OTHERS.search(in_python(text)), text
    assert found >= 5


def test_reasons_of_columns() -> None:
    with mf.from_arrow(pa.table({"x": [1], "text": ["a"]})) as ds:
        with pytest.raises(mf.UnsupportedError) as caught:
            mf.Loader(ds, specs=["text"], batch_size=1)
        assert str(caught.value).endswith('give the bytes one length: ds.pad("text", length=…)')
    with mf.from_arrow(pa.table({"x": [1], "s": [{"a": 1}]})) as ds:
        for attempt in (lambda: ds.pad("s", length=1), lambda: ds.lengths("s")):
            with pytest.raises(mf.UnsupportedError, match="a struct has no single type"):
                attempt()
        with pytest.raises(mf.InvalidArgumentError, match='field "x" has one value in each'):
            ds.lengths("x")
    with mf.from_arrow(pa.table({})) as ds, pytest.raises(mf.InvalidArgumentError) as empty:
        ds[:]
    assert str(empty.value) == "Dataset: the dataset has no field, because it has no columns"
