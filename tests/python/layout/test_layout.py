"""Layouts: planned without devices or data, the same bytes as in Go."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import xml.etree.ElementTree as ET
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.python.layout.test_schema import TABLE, text_of
from tests.python.programs import run
from tests.python.samples import digits

P = PartitionSpec

FIELDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "image": ("float32", (8, 8)),
    "label": ("int32", ()),
}
SPECS = {"image": mf.P("data", None, "model"), "label": mf.P("data")}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_hostile_documents(row: dict[str, Any]) -> None:
    if row.get("error"):
        with pytest.raises(mf.Error) as caught:
            mf.Layout.from_json(text_of(row["text"]))
        assert str(caught.value) == row["error"].replace("layout: ", "mf.Layout: ", 1)
        # The C library returns the first 255 bytes of a path.
        path = row.get("path", "").encode()[:255].decode(errors="ignore")
        assert caught.value.path == path
    else:
        canonical = mf.Layout.from_json(text_of(row["text"])).to_json()
        assert canonical == row["canonical"]
        assert hashlib.sha256(canonical.encode()).hexdigest() == row["digest"]


def test_the_example_of_the_design() -> None:
    lay = mf.layout(
        {"data": 4, "model": 2}, SPECS, FIELDS, batch_size=256, records=1797, processes=4
    )
    report = lay.report()
    assert report["arrays"]["image"]["shard_shape"] == [64, 8, 4]
    assert report["arrays"]["image"]["devices"][3] == {
        "mesh_index": 3,
        "process": 1,
        "id": 3,
        "index": [[64, 128], [0, 8], [4, 8]],
        "replica": 0,
        "bytes": 8192,
    }
    assert report["processes"][2] == {
        "process": 2,
        "devices": 2,
        "rows": [[128, 192]],
        "bytes_per_step": 16640,
        "host_bytes": 49920,
        "interconnect_bytes": 0,
        "network_bytes": 0,
        "same_rows_as": [],
    }
    assert report["totals"] == {
        "batch_bytes": 66560,
        "read_bytes": 66560,
        "device_bytes": 8448,
        "host_bytes": 49920,
        "network_bytes": 0,
        "interconnect_bytes": 0,
        "steps_per_epoch": 7,
        "remainder_records": 5,
    }
    assert lay.check() == []
    assert (
        repr(lay)
        == "Layout(mesh=('data': 4, 'model': 2), arrays=['image', 'label'], batch_size=256)"
    )


def test_a_jax_mesh_gives_the_devices_in_its_own_order() -> None:
    devices = np.array(jax.devices())[::-1].reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("data", "model"))
    specs: dict[str, Any] = {
        "image": P("data", None, "model"),
        "label": NamedSharding(mesh, P("data")),
    }
    lay = mf.layout(mesh, specs, FIELDS, batch_size=8)
    document = json.loads(lay.to_json())
    assert document["mesh"]["devices"] == [[0, 7 - i] for i in range(8)]
    wanted: Any = NamedSharding(mesh, specs["image"]).devices_indices_map((8, 8, 8))
    listed = lay.report()["arrays"]["image"]["devices"]
    for entry, (device, index) in zip(listed, wanted.items(), strict=True):
        assert entry["id"] == device.id
        assert entry["index"] == [list(s.indices(8)[:2]) for s in index]


def test_an_abstract_mesh_has_axes_only() -> None:
    lay = mf.layout(
        AbstractMesh((2, 2), ("data", "model")), SPECS, FIELDS, batch_size=8, processes=2
    )
    assert json.loads(lay.to_json())["mesh"] == {
        "axes": [["data", 2], ["model", 2]],
        "processes": 2,
    }


def test_a_dataset_says_what_its_fields_are() -> None:
    with mf.from_arrays(digits(50)) as ds:
        lay = mf.layout({"data": 4, "model": 2}, SPECS, ds, batch_size=8, shuffle=True, seed=3)
    document = json.loads(lay.to_json())
    assert document["dataset"]["records"] == 50
    assert document["dataset"]["order"] == "shuffle.1"
    assert document["dataset"]["seed"] == 3


def test_columns_give_the_width() -> None:
    spec = mf.P("data")
    lay = mf.layout(
        {"data": 2},
        {"x": mf.Array("tokens", spec, columns=[(0, 4), (6, 8)])},
        {"tokens": ("int32", (9, 2))},
        batch_size=4,
    )
    assert lay.report()["arrays"]["x"]["global_shape"] == [4, 6, 2]
    assert lay.check() == []


def test_problems_name_the_path_the_numbers_and_the_remedy() -> None:
    lay = mf.layout({"data": 4}, mf.P("data"), {"x": ("float32", (8,))}, batch_size=30)
    (problem,) = lay.check()
    assert str(problem) == (
        'error: dimension 0 of array "x" of shape (30, 8) is split 4 ways by axis "data" (size 4), '
        "but 30 % 4 = 2; use a batch of 28 or 32"
    )
    assert problem.path == "/arrays/x/shape/0"
    assert problem.facts == {"size": 30, "tiles": 4, "remainder": 2}


def test_budgets() -> None:
    lay = mf.layout(
        {"data": 4}, mf.P("data"), FIELDS, batch_size=32, device_bytes=10, host_bytes=10
    )
    errors = {p.path for p in lay.check() if p.severity == "error"}
    assert errors == {"/budget/device_bytes", "/budget/host_bytes"}


def test_layouts_are_values() -> None:
    one, same, other = (
        mf.layout({"data": 4}, mf.P("data"), FIELDS, batch_size=n) for n in (32, 32, 64)
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.copy(one) == copy.deepcopy(one) == one
    assert mf.Layout.from_json(one.to_json()) == one


FORK = """
import copy, os, pickle, warnings
import meshfeed as mf
warnings.simplefilter("ignore")
lay = mf.layout({"data": 4}, mf.P("data"), {"x": ("int32", ())}, batch_size=8, processes=2)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    print(len(lay.report()["processes"]))
else:
    assert pickle.loads(pickle.dumps(lay)) == copy.deepcopy(lay) == lay
    print(repr(lay), list(lay.processes))
    for call in (lay.report, lay.check, lay.draw, lay.to_svg):
        try:
            call()
        except mf.ForkedError as e:
            print(e.op, flush=True)
    os._exit(0)
"""


def test_a_forked_child_can_read_and_send_a_layout() -> None:
    """It cannot draw one, because the library does not work there."""
    assert run(FORK).splitlines() == [
        "Layout(mesh=('data': 4), arrays=['x'], batch_size=8) [0, 1]",
        *("Layout.report", "Layout.report", "mf.Layout", "mf.Layout"),
        "2",
    ]


def test_pictures() -> None:
    lay = mf.layout({"data": 4, "model": 2}, SPECS, FIELDS, batch_size=256, processes=4)
    text = str(lay)
    assert text == lay.draw()
    assert max(map(len, text.splitlines())) <= 80
    assert "image" in text
    assert "label" in text
    assert "label" not in lay.draw("image").splitlines()[0]
    turned = lay.draw("image", dims=(2, 0)).splitlines()
    assert turned[1] == "  ↓ dimension 2 over model  → dimension 0 over data"
    ET.fromstring(lay.to_svg())
    assert "<svg" in lay._repr_html_()


def test_a_notebook_shows_problems_too() -> None:
    lay = mf.layout({"data": 4}, mf.P("data"), {"<x>": ("int8", ())}, batch_size=30)
    shown = lay._repr_html_()
    assert "30 % 4 = 2" in shown
    assert "<x>" not in shown
