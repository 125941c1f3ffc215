"""The JSON Schemas of documents, against random documents."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pytest

import meshfeed as mf
from meshfeed._native import reports
from tests.python import ROOT

pytestmark = pytest.mark.plain


WORDS = [
    *("gpt2", "llama3-8b", "h100-80", "tpu-v5e", "NVIDIA A100-SXM4-40GB", "adamw", "muon"),
    *("1f1b", "interleaved", "float32", "bfloat16", "int4", "switch", "torus2", "w", "é", "a/b~c"),
    *("B", "B0", "data", "model", "0123456789abcdef" * 2),
]

# An accepted strategy document with nearly all members.
STRATEGY = json.loads("""
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

# An accepted memory document with all members.
MEMORY = json.loads("""
{"meshfeed": 1, "mesh": {"axes": [["data", 4], ["model", 2]], "processes": 2},
 "arrays": {
  "wi": {"shape": [64, 128], "dtype": "bfloat16", "spec": [null, ["data", "model"]]},
  "wo": {"shape": [128, 64], "dtype": "float8_e4m3fn", "shard_shape": [64, 64],
         "memory_kind": "pinned_host"}},
 "optimizer": "muon", "precision": {"gradients": "float32", "master": "float32", "moments": "int8"},
 "batch": {"x": {"shape": [8, 64], "dtype": "int4", "spec": ["data"]}},
 "activation_bytes": [1024, 4096], "capacity_bytes": 1048576}
""")

# An accepted measurements document with all members.
MEASUREMENTS = json.loads("""
{"meshfeed": 1, "silent": [3, 1],
 "processes": [{
  "process": 1, "batches": 400, "age_ns": 1000, "wall_ns": 4000000000, "wait_ns": 2400000000,
  "peers_ns": 100000000, "hand_over_ns": 20000000, "build_ns": 4000000000, "gather_ns": 390000000,
  "storage_ns": 20000000, "decode_ns": 350000000, "stall_ns": 10000000, "rows": 25600,
  "bytes": 1000000, "gathered_bytes": 4000000, "arrays": 5, "combinable": 2, "devices": 8,
  "platform": "gpu", "batch_size": 64, "records": 10000, "prefetch": 2, "device_prefetch": 1,
  "bounded": true,
  "samples": {"steps": 40, "idle": 39, "dry": 38, "inside": 20, "busy": 18, "step_ns": 4000000,
              "cpu_ns": 1000000}}, {"process": 2}]}
""")

# Errors of a text that does not have the form of a document. The schema has all these rules.
STRUCTURAL = (
    r"is not a key|needs the key|is longer than|outside ±2|is not written|more than \d+ elements"
    r"|from \S+ to \S+, but found|but found (an?|null|true|false)\b|but the list has \d"
)


class Kind(NamedTuple):
    """A kind of documents."""

    read: Callable[[str], Any]  # raises an error about a document
    ready: list[Any]  # accepted documents
    structural: str  # a pattern of errors about rules that the schema has

    def error(self, document: Any) -> str | None:
        """Returns the error about a document, or None."""
        try:
            self.read(json.dumps(document))
        except mf.InvalidArgumentError as error:
            return str(error)
        return None


def documents(pattern: str) -> list[Any]:
    """Reads the documents with paths that match a pattern."""
    return [json.loads(path.read_text()) for path in sorted(ROOT.glob(pattern))]


KINDS = {
    "strategy": Kind(
        partial(reports.advise, form="document"),
        [STRATEGY, STRATEGY, *documents("docs/strategies/*.json")],
        STRUCTURAL,
    ),
    "layout": Kind(
        reports.layout_canonical,
        documents("docs/layouts/*.json"),
        STRUCTURAL + "|is not an element type",
    ),
    "memory": Kind(
        reports.memory_text,
        [MEMORY],
        # A schema cannot say that the second number is not less than the first one.
        rf"^(?!memory: /activation_bytes/1: expected a number).*({STRUCTURAL}"
        "|is not an? (element type|optimizer|memory kind)|a spec and a shard_shape)",
    ),
    "diagram": Kind(
        partial(reports.diagram, svg=False),
        documents("core/plan/diagram/document/testdata/*.json"),
        STRUCTURAL + "|is not an element type|no (schedule|operation) |is empty|is already",
    ),
    "measurements": Kind(partial(reports.diagnose, form="json"), [MEASUREMENTS], STRUCTURAL),
}
SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text())
    for path in ROOT.glob("core/**/document/*.schema.json")
}
every_kind = pytest.mark.parametrize("name", KINDS)
every_schema = pytest.mark.parametrize("name", sorted(SCHEMAS))


class Maker:
    """Makes random values that fit the parts of a schema, but for its conditions."""

    def __init__(self, r: random.Random, root: dict[str, Any]) -> None:
        self.r = r
        self.root = root

    def make(self, schema: dict[str, Any]) -> Any:
        """Returns a random value of a schema."""
        if schema.get("$ref", "").startswith("urn:"):
            other = self.root["$defs"]["layout"]
            assert other["$id"] == schema["$ref"]
            return Maker(self.r, other).make(other)
        schema = resolved(self.root, schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.r.choice(schema["enum"])
        if "anyOf" in schema:
            return self.make(self.r.choice(schema["anyOf"]))
        match schema["type"]:
            case "integer" | "number":
                return self.make_number(schema)
            case "string":
                pattern = schema.get("pattern", "")
                return self.r.choice([word for word in WORDS if re.search(pattern, word)])
            case "object":
                return self.make_object(schema)
            case "array":
                return self.make_list(schema)
            case kind:
                return {"boolean": self.r.random() < 0.5, "null": None}[kind]

    def make_number(self, schema: dict[str, Any]) -> float:
        """Returns a random number, or one of the bounds."""
        least, most = schema["minimum"], schema["maximum"]
        if schema["type"] == "number":
            return self.r.randint(round(1000 * least), min(round(1000 * most), 1000)) / 1000
        near = min(most, least + self.r.choice([1, 8, 64, 4096]))
        chosen: int = self.r.choice([least, most, *[self.r.randint(least, near)] * 8])
        return chosen

    def make_list(self, schema: dict[str, Any]) -> list[Any]:
        """Returns a random list, with at most two elements more than it needs."""
        first = [self.make(item) for item in schema.get("prefixItems", [])]
        if schema["items"] is False:
            return first
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        count = self.r.randint(least, min(most, least + 2)) - len(first)
        return first + [self.make(schema["items"]) for _ in range(count)]

    def make_object(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Returns a random object with the required members and some of the others."""
        r, choices = self.r, schema.get("oneOf", [{"required": []}])
        required = schema.get("required", []) + r.choice(choices)["required"]
        alternatives = {key for one in choices for key in one["required"]}
        value = {
            key: self.make(member)
            for key, member in schema.get("properties", {}).items()
            if key in required or (key not in alternatives and r.random() < 0.3)
        }
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for _ in range(r.randint(schema.get("minProperties", 0), 2)):
                value[self.make(schema["propertyNames"])] = self.make(others)
        return value


def resolved(root: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with the members that it refers to."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**root.get("$defs", {}).get(name, {}), **schema}


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


@every_schema
def test_the_schema_is_valid(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:meshfeed:{name}:1"


@every_kind
def test_documents_that_fit_the_schema_have_the_right_form(name: str, seed: int) -> None:
    kind, maker = KINDS[name], Maker(random.Random(seed), SCHEMAS[name])
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    fitting = accepted = 0
    for made in range(20_000):
        if made >= 1000 and accepted > 0:
            break
        document = maker.make(SCHEMAS[name])
        if not validator.is_valid(document):
            continue  # it breaks a condition
        error = kind.error(document)
        assert not re.search(kind.structural, error or ""), f"{error}\n{json.dumps(document)}"
        fitting += 1
        accepted += error is None
    assert fitting > 100
    assert accepted > 0


@every_kind
def test_documents_that_are_accepted_fit_the_schema(name: str, seed: int) -> None:
    r, kind = random.Random(seed), KINDS[name]
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    for document in kind.ready:
        assert kind.error(document) is None
        validator.validate(document)
    accepted = refused = 0
    for _ in range(1000):
        document = changed(r, r.choice(kind.ready))
        if kind.error(document) is None:
            assert validator.is_valid(document), json.dumps(document)
            accepted += 1
        else:
            refused += 1
    assert accepted > 10
    assert refused > 10


def members(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every member that a schema describes, with its path, without other schemas in it."""
    if isinstance(schema, dict) and not (path and "$id" in schema):
        for name, member in schema.get("properties", {}).items():
            yield f"{path}/{name}", member
        for key, part in schema.items():
            if key not in ("if", "then", "else"):
                yield from members(part, f"{path}/{key}")
    elif isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from members(part, f"{path}/{i}")


def test_reports_fit_the_schema_of_reports(seed: int) -> None:
    """The diagnoses of random measurements, one or several processes each."""
    r, kind = random.Random(seed), KINDS["measurements"]
    validator = jsonschema.Draft202012Validator(SCHEMAS["diagnosis"])
    maker = Maker(r, SCHEMAS["measurements"])
    bounds = set()
    for made in range(1000):
        document = maker.make(SCHEMAS["measurements"]) if made % 2 else copy.deepcopy(MEASUREMENTS)
        for process in document["processes"]:
            for name in r.sample(["wait_ns", "decode_ns", "peers_ns", "wall_ns", "prefetch"], 2):
                process[name] = r.choice([0, 1, 3_000_000_000, r.randrange(2**53)])
        report = json.loads(kind.read(json.dumps(document)))
        validator.validate(report)
        bounds.add(report["bound"])
    assert len(bounds) > 4


def test_reports_of_the_planner_fit_their_schema() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS["report"])
    reports = sorted((ROOT / "tests/strategies/testdata").glob("*.report.json"))
    assert len(reports) >= 8
    for path in reports:
        validator.validate(json.loads(path.read_text()))
    question = {**STRATEGY, "search": {**STRATEGY["search"], "pruned": True}}
    report = mf.Advice(json.dumps(question)).report
    validator.validate(report)
    assert report["pruned"]
    assert report["input"]["margin"] == pytest.approx(
        question["input"]["rows_per_second"] / report["input"]["rows_per_second"], abs=0.001
    )


def test_reports_of_loaders_fit_the_schemas() -> None:
    measurements = jsonschema.Draft202012Validator(SCHEMAS["measurements"])
    diagnosis = jsonschema.Draft202012Validator(SCHEMAS["diagnosis"])
    data = {"x": np.zeros((256, 4), np.float32), "y": np.zeros((256, 4), np.float32)}
    with mf.from_arrays(data) as ds, mf.Loader(ds, batch_size=8, epochs=-1) as loader:
        batches = iter(loader)
        for taken in (0, 1, 2, 20):
            for _ in range(taken):
                next(batches)
            for all_processes in (False, True):
                report = loader.report(all_processes=all_processes)
                measurements.validate(json.loads(report._document))
                diagnosis.validate(report.to_dict())


@every_schema
def test_every_member_has_a_description(name: str) -> None:
    found = list(members(SCHEMAS[name], ""))
    assert len(found) > 15
    root = SCHEMAS[name]
    assert [path for path, m in found if "description" not in resolved(root, m)] == []


def test_schemas_share_definitions() -> None:
    layout, memory = SCHEMAS["layout"]["$defs"], SCHEMAS["memory"]["$defs"]
    shared = ("name", "size", "sizes", "spec", "mesh")
    assert {name: memory[name] for name in shared} == {name: layout[name] for name in shared}
    assert SCHEMAS["diagram"]["$defs"]["layout"] == SCHEMAS["layout"]
    diagnosis, measurements = (SCHEMAS[name]["$defs"] for name in ("diagnosis", "measurements"))
    for name in diagnosis.keys() & measurements.keys():
        assert diagnosis[name] == measurements[name], name
