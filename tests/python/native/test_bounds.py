"""Python checks the same bounds as the library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import meshfeed as mf
from meshfeed._data.fields import DECODED
from meshfeed._io.arguments import DEPTH, DEVICES, DIMENSIONS, PROCESSES, RECORDS, WIDE
from tests.python import ROOT


def document(**parts: Any) -> str:
    array = {"field": "x", "shape": ["B"], "dtype": "int32", "spec": []}
    plain = {"mesh": {"axes": [["d", 1]]}, "arrays": {"x": array}, "batch": {"size": 4}}
    return json.dumps({"meshfeed": 1, **plain, **parts})


def dataset(**parts: Any) -> dict[str, Any]:
    fields = {"x": {"shape": [], "dtype": "int32"}}
    return {"records": 16, "fields": fields, "order": "sequential.1", **parts}


def of_rank(rank: int) -> dict[str, Any]:
    shape = [f"B{i}" for i in range(rank)]
    arrays = {"x": {"field": "x", "shape": shape, "dtype": "int32", "spec": []}}
    return {"batch": {"size": [1] * rank}, "arrays": arrays}


Parts = Callable[[int], dict[str, Any]]

BOUNDS: dict[str, tuple[int, Parts]] = {
    "seed": (WIDE, lambda n: {"dataset": dataset(seed=n)}),
    "seed below zero": (WIDE, lambda n: {"dataset": dataset(seed=-n)}),
    "records": (RECORDS, lambda n: {"dataset": dataset(records=n)}),
    "batch size": (RECORDS, lambda n: {"batch": {"size": n}}),
    "batch dimensions": (DIMENSIONS, of_rank),
    "prefetch": (DEPTH, lambda n: {"prefetch": n}),
    "bytes": (WIDE, lambda n: {"budget": {"host_bytes": n}}),
    "devices": (DEVICES, lambda n: {"mesh": {"axes": [["d", n]]}}),
    "processes": (PROCESSES, lambda n: {"mesh": {"axes": [["d", DEVICES]], "processes": n}}),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds(name: str) -> None:
    bound, parts = BOUNDS[name]
    mf.Layout.from_json(document(**parts(bound)))
    with pytest.raises(mf.InvalidArgumentError):
        mf.Layout.from_json(document(**parts(bound + 1)))


def test_decoded_bytes() -> None:
    """Python warns if the library's cache of decoded record batches is too small."""
    source = (ROOT / "arrowio/internal/decoded/decoded.go").read_text()
    mebibytes = re.search(r"const Bytes = (\d+) << 20", source)
    assert mebibytes is not None
    assert int(mebibytes[1]) << 20 == DECODED
