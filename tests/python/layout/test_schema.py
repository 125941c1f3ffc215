"""The JSON Schema of layout documents, against documents that are accepted and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.python import ROOT

pytestmark = pytest.mark.plain

SCHEMA = json.loads((ROOT / "core/layout/document/layout.schema.json").read_text())
TABLE = json.loads((ROOT / "core/layout/document/testdata/documents.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
READY = sorted((ROOT / "docs/layouts").glob("*.json"))

# Rules that a schema cannot say, by the names of documents that break them.
UNSAID = {
    "B where the batch is listed",
    "B0 where the batch is a number",
    "array twice",
    "array with a name that is too long, in bytes",
    "axis twice",
    "batch dimension in second place",
    "batch dimension twice",
    "batch dimensions out of order",
    "batch product beyond 2^40",
    "columns that end before they begin",
    "device twice",
    "more processes than devices",
    "more than 2^20 devices",
    "nested key twice",
    "only one of two batch dimensions",
    "processes that do not divide the devices",
    "too few devices",
}


def text_of(parts: list[Any]) -> bytes:
    """Joins the parts of a document, as testdata/README.md describes them."""
    text = b""
    for part in parts:
        if isinstance(part, str):
            text += part.encode()
        elif "hex" in part:
            text += bytes.fromhex(part["hex"])
        elif "#" not in part["repeat"]:
            text += part["repeat"].encode() * part["times"]
        else:
            numbered = (part["repeat"].replace("#", str(i)) for i in range(part["times"]))
            text += "".join(numbered).encode()
    return text


def parsed(text: bytes) -> Any:
    """Parses JSON. Raises ValueError for a text that every parser refuses."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text.decode(), parse_constant=refuse)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [path.name for path in READY] != []


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_ready_layouts_fit(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_text()))


def test_every_accepted_document_fits() -> None:
    accepted = [row for row in TABLE if "canonical" in row]
    assert len(accepted) > 30
    for row in accepted:
        for text in (text_of(row["text"]), row["canonical"].encode()):
            errors = [e.message for e in VALIDATOR.iter_errors(parsed(text))]
            assert errors == [], row["name"]


def test_refused_documents_do_not_fit() -> None:
    fits = set()
    for row in TABLE:
        if "canonical" in row:
            continue
        try:
            value = parsed(text_of(row["text"]))
        except (ValueError, RecursionError):
            continue
        if VALIDATOR.is_valid(value):
            fits.add(row["name"])
    assert fits == UNSAID
