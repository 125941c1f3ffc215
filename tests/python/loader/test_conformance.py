"""Compares the C library with results of JAX that are recorded in tests/conformance."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

import meshfeed as mf
from tests.python import ROOT

TABLES = ROOT / "tests/conformance/testdata/sharding.json.gz"


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    with gzip.open(TABLES, "rt") as f:
        loaded: dict[str, Any] = json.load(f)
    assert len(loaded["cases"]) >= 5000
    return loaded


def by_mesh(rows: list[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    groups: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for row in rows:
        groups[row["mesh"]].append(row)
    return groups


def report(mesh: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the report of a layout: arrays without a batch dimension, one per row."""
    document = {
        "meshfeed": 1,
        "mesh": {"axes": mesh["axes"], "devices": mesh["devices"]},
        "arrays": {
            str(i): {"shape": row["shape"], "dtype": "int8", "spec": row["spec"]}
            for i, row in enumerate(rows)
        },
    }
    return mf.Layout.from_json(json.dumps(document)).report(tables=True)


def test_the_index_of_every_device(tables: dict[str, Any]) -> None:
    meshes = tables["meshes"]
    for mesh, rows in zip(meshes, by_mesh(tables["cases"], len(meshes)), strict=True):
        found = report(mesh, rows)
        assert [p for p in found["problems"] if p["severity"] == "error"] == []
        for i, row in enumerate(rows):
            array = found["arrays"][str(i)]
            devices = array["devices"]
            assert array["shard_shape"] == row["shard"]
            assert array["replicated"] == row["replicated"]
            assert [d["index"] for d in devices] == [row["distinct"][k] for k in row["device"]]
            assert [d["replica"] for d in devices] == row["replica"]
            assert [[d["process"], d["id"]] for d in devices] == mesh["devices"]
            assert [d["mesh_index"] for d in devices] == list(range(len(devices)))


def test_every_error(tables: dict[str, Any]) -> None:
    meshes = tables["meshes"]
    for mesh, rows in zip(meshes, by_mesh(tables["errors"], len(meshes)), strict=True):
        if not rows:
            continue
        problems = [p for p in report(mesh, rows)["problems"] if p["severity"] == "error"]
        for i, row in enumerate(rows):
            here = [p for p in problems if p["path"].startswith(f"/arrays/{i}/")]
            # JAX stops at the first problem; a layout lists them all.
            assert any(matches(p, row, mesh) for p in here), (mesh, row, here)


def matches(problem: dict[str, Any], row: dict[str, Any], mesh: dict[str, Any]) -> bool:
    facts, error = problem["facts"], row["error"]
    if error == "duplicate" and row["axis"] not in dict(mesh["axes"]):
        error = "unknown"  # JAX reports the duplicate name first
    return (
        problem["code"] == CODES[error]
        and all(facts[key] == row[key] for key in ("tiles", "size") if key in row)
        and row.get("axis", "") in problem["message"].replace('\\"', '"')
    )


# The code of the problem, by the name of the error in the tables.
CODES = {
    "duplicate": "duplicate-axis",
    "unknown": "unknown-axis",
    "rank": "spec-rank",
    "indivisible": "indivisible",
}
