"""The page of limits has the numbers of the code, and values beyond them are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.python import ROOT

PAGE = (ROOT / "docs/limits.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (\S.*?) \| `(\S+)` \|$", PAGE, re.MULTILINE)
UNITS = {"MiB": 2**20, "GiB": 2**30}


def stated(text: str) -> int:
    """Returns a number as the page writes it: 2^40, 1,024, 64 GiB."""
    number, _, unit = text.partition(" ")
    if "^" in number:
        base, exponent = number.split("^")
        return int(pow(int(base), int(exponent)))
    return int(number.replace(",", "")) * UNITS.get(unit, 1)


def constant(name: str) -> int:
    """Returns a constant of a Go package, such as core/mesh.MaxAxes."""
    package, _, short = name.rpartition(".")
    for path in sorted((ROOT / package).glob("*.go")):
        found = re.search(rf"^(?:const |\t){short} += (.+?)(?: +//.*)?$", path.read_text(), re.M)
        if found and not path.name.endswith("_test.go"):
            value = found[1].replace("_", "")
            if re.fullmatch(r"\d+(?: << \d+)?", value):
                base, _, shift = value.partition(" << ")
                return int(base) << int(shift or 0)
            return constant(aliased(path.read_text(), value))
    raise AssertionError(f"there is no constant {name}")


def aliased(source: str, value: str) -> str:
    """Returns the full name of a constant of another package."""
    package, _, short = value.partition(".")
    (found,) = re.findall(rf'^\t"github.com/meshfeed/meshfeed/(\S*\b{package})"$', source, re.M)
    return f"{found}.{short}"


@pytest.mark.parametrize(("what", "limit", "name"), ROWS, ids=[row[2] for row in ROWS])
def test_a_limit_is_that_of_the_code(what: str, limit: str, name: str) -> None:
    assert stated(limit) == constant(name), what


def test_every_row_is_read() -> None:
    tables = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(
        [line for line in tables if " --- " not in line and "| what" not in line]
    )


def document(**changes: Any) -> str:
    """Returns a layout document with some members replaced."""
    array = {"shape": ["B"], "dtype": "int32", "spec": ["data"]}
    whole: dict[str, Any] = {
        "meshfeed": 1,
        "mesh": {"axes": [["data", 1]]},
        "batch": {"size": 2},
        "arrays": {"x": array},
    }
    return json.dumps(whole | changes)


def arrays(count: int) -> str:
    one = {"shape": ["B"], "dtype": "int32", "spec": []}
    return document(arrays={f"x{i}": one for i in range(count)})


def rank(count: int) -> str:
    one = {"shape": ["B", *[1] * (count - 1)], "dtype": "int32", "spec": []}
    return document(arrays={"x": one})


def axes(count: int) -> str:
    return document(mesh={"axes": [[f"a{i}", 1] for i in range(count)]}, arrays={})


def devices(count: int) -> str:
    return document(mesh={"axes": [["data", count]]}, arrays={})


def name_of(count: int) -> str:
    one = {"shape": ["B"], "dtype": "int32", "spec": []}
    return document(arrays={"x" * count: one})


def padded(count: int) -> str:
    text = document()
    return text + " " * (count - len(text))


DOCUMENTS: dict[str, Callable[[int], str]] = {
    "core/mesh.MaxDevices": devices,
    "core/mesh.MaxAxes": axes,
    "core/layout.MaxArrays": arrays,
    "core/layout.MaxRank": rank,
    "core/layout.MaxName": name_of,
    "core/layout/document.MaxBytes": padded,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_beyond_a_limit_is_refused(name: str) -> None:
    limit = constant(name)
    mf.Layout.from_json(DOCUMENTS[name](limit))
    with pytest.raises(mf.InvalidArgumentError) as refused:
        mf.Layout.from_json(DOCUMENTS[name](limit + 1))
    numbers = re.sub(r"(?<=\d),(?=\d)", "", str(refused.value))
    assert str(limit) in numbers or "8 MiB" in numbers


@pytest.mark.parametrize(
    ("name", "option"), [("core/layout.MaxPrefetch", "prefetch"), ("core/sampler.MaxSeed", "seed")]
)
def test_an_option_beyond_a_limit_is_refused(name: str, option: str) -> None:
    ds = mf.from_arrays({"x": np.arange(4)})
    limit = constant(name)
    mf.Loader(ds, batch_size=2, **{option: limit}).close()  # type: ignore[call-overload]
    with pytest.raises(mf.InvalidArgumentError, match=option):
        mf.Loader(ds, batch_size=2, **{option: limit + 1})  # type: ignore[call-overload]


def test_a_group_that_is_too_large_to_draw() -> None:
    limit = constant("core/plan/diagram.maxLines")
    mf.diagram("collective", op="all-gather", devices=limit)
    with pytest.raises(mf.InvalidArgumentError, match=f"use 1 to {limit};"):
        mf.diagram("collective", op="all-gather", devices=limit + 1)


def test_the_number_of_epochs() -> None:
    (limit,) = re.findall(r"`epochs=` takes at most 2\^31 - (1), or -1 for no end", PAGE)
    most = 2**31 - int(limit)
    ds = mf.from_arrays({"x": np.arange(4)})
    mf.Loader(ds, batch_size=2, epochs=most).close()
    with pytest.raises(mf.InvalidArgumentError, match=f"from 1 to {most}, or -1"):
        mf.Loader(ds, batch_size=2, epochs=most + 1)
