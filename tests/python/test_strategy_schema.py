"""The JSON Schema of strategy documents, against random documents."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import meshfeed as mf
from meshfeed._native import calls

pytestmark = pytest.mark.plain

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "core/strategy/document/strategy.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

WORDS = [
    *("gpt2", "llama3-8b", "h100-80", "tpu-v5e", "NVIDIA A100-SXM4-40GB", "adamw", "muon"),
    *("1f1b", "interleaved", "float32", "bfloat16", "int4", "switch", "torus2", "w", "é", "a/b~c"),
]

# An accepted document with nearly all members.
WHOLE = json.loads("""
{"meshfeed": 1,
 "model": {
   "transformer": {
    "layers": 4, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 128, "gated": true,
    "vocab": 256, "tied": false, "sequence": 32, "biases": true, "qkv_biases": true,
     "norm": "layer", "positions": "learned", "dropout": true, "causal": true,
     "experts": {"count": 4, "active": 2, "every": 2, "ffn": 64, "shared": 1, "capacity": 1.5}},
   "inputs": {"tokens": {"shape": ["B", 32], "dtype": "int32"}}},
 "training": {
  "batch": 16, "micro_batch": 1, "optimizer": "lion", "recomputation": "full", "attention": "plain",
   "schedule": "interleaved", "chunks": 2, "sequence_parallel": false, "overlap": {"fsdp": false},
   "efficiency": [0.3, 0.5],
   "precision": {"compute": "bfloat16", "weights": "float32", "master": null,
                 "gradients": "float32", "moments": "float32"}},
 "cluster": {
   "device": "h100-80", "devices": 8, "per_node": 4, "memory_bytes": 8000000000,
   "flops_per_second": 1000000000000, "hbm_bytes_per_second": 1000000000000,
   "host_bytes": 1000000000000,
   "node_bytes_per_second": 100000000000, "network_bytes_per_second": 10000000000,
   "node_latency_ns": 10, "network_latency_ns": 100, "topology": "switch"},
 "search": {"axes": {"tensor": [1, 2]}, "zero": [0], "margin": 0.1, "keep": 5, "pruned": true},
 "input": {"rows_per_second": 100, "processes": 2}}
""")

# Errors of a text that does not have the form of a document. The schema has all these rules.
STRUCTURAL = re.compile(
    r"is not a key|needs the key|is longer than|outside ±2|is not written|more than \d+ elements"
    r"|from \S+ to \S+, but found|but found (an?|null|true|false)\b|the list has \d"
)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with the members that it refers to."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**SCHEMA["$defs"][name], **schema} if name else schema


def made(r: random.Random, schema: dict[str, Any]) -> Any:
    """Returns a random value that fits a schema."""
    schema = resolved(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return r.choice(schema["enum"])
    if "anyOf" in schema:
        return made(r, r.choice(schema["anyOf"]))
    kind = schema["type"]
    if kind == "object":
        return made_object(r, schema)
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        first = [made(r, item) for item in schema.get("prefixItems", [])]
        count = r.randint(least, min(most, least + 2)) - len(first)
        return first + [made(r, schema["items"]) for _ in range(count)]
    if kind == "integer":
        least, most = schema["minimum"], schema["maximum"]
        near = min(most, least + r.choice([1, 8, 64, 4096]))
        return r.choice([least, most, *[r.randint(least, near) for _ in range(8)]])
    if kind == "number":
        least, most = (round(1000 * schema[bound]) for bound in ("minimum", "maximum"))
        return r.randint(least, min(most, 1000)) / 1000
    return {"boolean": r.random() < 0.5, "string": r.choice(WORDS), "null": None}[kind]


def made_object(r: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a random object with the required members and some of the others."""
    required = (
        schema.get("required", []) + r.choice(schema.get("oneOf", [{"required": []}]))["required"]
    )
    alternatives = {key for one in schema.get("oneOf", []) for key in one["required"]}
    value = {
        key: made(r, member)
        for key, member in schema.get("properties", {}).items()
        if key in required or (key not in alternatives and r.random() < 0.3)
    }
    if isinstance(schema.get("additionalProperties"), dict):
        for _ in range(r.randint(schema.get("minProperties", 0), 2)):
            value[made(r, schema["propertyNames"])] = made(r, schema["additionalProperties"])
    return value


def positions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every object and list in a value with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from positions(value[key])


def changed(r: random.Random, document: Any) -> Any:
    """Returns a copy of a document with one random change."""
    document = copy.deepcopy(document)
    parent, key = r.choice(list(positions(document)))
    others: list[Any] = [
        None,
        True,
        -1,
        0,
        1,
        3,
        0.5,
        2**53 + 1,
        "auto",
        "",
        [],
        {},
        [1, 2, 3],
        {"a": 1},
    ]
    if isinstance(parent[key], (int, float)):
        others += [0, 1, parent[key] - 1, parent[key] + 1, parent[key] * 2, 2**53, 0.001, 0.9, 0.95]
    change = r.randrange(4)
    if change == 0 and isinstance(parent, dict):
        del parent[key]
    elif change == 1 and isinstance(parent, dict):
        parent[r.choice([key.upper(), key + "s", "sequence", "devices"])] = r.choice(others)
    else:
        parent[key] = r.choice(others)
    return document


def error_of(document: Any) -> str | None:
    """Returns the error about a document, or None."""
    try:
        calls.advise(json.dumps(document), "document")
    except mf.InvalidArgumentError as error:
        return str(error)
    return None


def test_documents_that_fit_the_schema_have_the_right_form(seed: int) -> None:
    r = random.Random(seed)
    accepted = 0
    for _ in range(2000):
        document = made(r, SCHEMA)
        error = error_of(document)
        assert not (error and STRUCTURAL.search(error)), f"{error}\n{json.dumps(document)}"
        accepted += error is None
    assert accepted > 0


def test_documents_that_are_accepted_fit_the_schema(seed: int) -> None:
    r = random.Random(seed)
    accepted = refused = 0
    ready = [json.loads(path.read_text()) for path in (ROOT / "docs/strategies").glob("*.json")]
    assert error_of(WHOLE) is None
    for _ in range(3000):
        document = changed(r, r.choice([WHOLE, WHOLE, *ready]))
        if error_of(document) is None:
            assert VALIDATOR.is_valid(document), json.dumps(document)
            accepted += 1
        else:
            refused += 1
    assert accepted > 50
    assert refused > 50


def members(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every member that a schema describes, with its path."""
    if isinstance(schema, dict):
        for name, member in schema.get("properties", {}).items():
            yield f"{path}/{name}", member
        for key, part in schema.items():
            yield from members(part, f"{path}/{key}")
    elif isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from members(part, f"{path}/{i}")


def test_every_member_has_a_description() -> None:
    found = list(members(SCHEMA, ""))
    assert len(found) > 60
    assert [path for path, member in found if "description" not in resolved(member)] == []
