"""The advice of the planner, from the question to batches on a mesh."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed import strategy
from tests.python import ROOT

DOCUMENTS = sorted((ROOT / "docs/strategies").glob("*.json"))
DEVICES = 8
PLAIN = {
    "meshfeed": 1,
    "model": {"preset": "gpt2"},
    "training": {"batch": 16},
    "cluster": {"device": "h100-80", "devices": DEVICES},
}


def scaled(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a document for eight devices that share the memory of all its devices."""
    cluster, training = document["cluster"], document["training"]
    plan = mf.Advice(json.dumps(document))
    memory = plan.candidates[0].memory["capacity"] * cluster["devices"] // DEVICES
    document["cluster"] |= {"devices": DEVICES, "memory_bytes": max(1, memory)}
    if training.pop("tokens", None) is not None:
        training["batch"] = plan.report["input"]["rows_per_step"]
    training["batch"] = min(64, training["batch"])
    axes = document.get("search", {}).get("axes")
    if axes is not None:
        axes |= dict.fromkeys(axes, 1) | dict.fromkeys(list(axes)[-3:], 2)  # a mesh of 2 x 2 x 2
    return document


def write(path: Path, layout: mf.Layout, rows: int) -> dict[str, np.ndarray[Any, Any]]:
    """Writes an Arrow file with the fields of a layout, and returns its columns."""
    arrays, columns = {}, {}
    for name, array in json.loads(layout.to_json())["arrays"].items():
        shape = (rows, *array["shape"][1:])
        arrays[name] = np.arange(math.prod(shape)).astype(array["dtype"]).reshape(shape)
        column = pa.array(arrays[name].ravel())
        for size in reversed(shape[1:]):
            column = pa.FixedSizeListArray.from_arrays(column, size)
        columns[name] = column
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return arrays


@pytest.mark.parametrize("path", [None, *DOCUMENTS], ids=lambda p: p.stem if p else "plain")
def test_the_advised_layout_loads_a_file(path: Path | None, tmp_path: Path) -> None:
    text = json.dumps(PLAIN) if path is None else path.read_text()
    document = json.loads(text)
    advice = mf.Advice(json.dumps(scaled(document)))
    best, layout = advice.best, advice.layout
    assert advice.fits == mf.Advice(text).fits
    if best is None:
        return
    assert math.prod(best.mesh.values()) == DEVICES
    if "parameters" in document["model"] and "inputs" not in document["model"]:
        assert layout is None
        return
    assert layout is not None
    assert best.specs is not None
    size = document["training"]["batch"]
    wanted = write(tmp_path / "data.arrow", layout, 2 * size)
    mesh = best.make_mesh()
    assert list(mesh.shape.items()) == list(best.mesh.items())
    with mf.open(tmp_path / "data.arrow") as ds, mf.Loader(ds, mesh, layout=layout) as loader:
        batches = list(loader)
        assert len(batches) == 2
        for name, spec in best.specs.items():
            sharding = NamedSharding(mesh, PartitionSpec(*spec.partitions))
            assert [batch[name].sharding for batch in batches] == [sharding] * 2
            whole = np.concatenate([np.asarray(batch[name]) for batch in batches])
            np.testing.assert_array_equal(whole, wanted[name])
    used = {axis for spec in best.specs.values() for entry in spec.partitions if entry
            for axis in ([entry] if isinstance(entry, str) else entry)}  # fmt: skip
    assert used == {axis for axis in best.mesh if axis in ("data", "fsdp", "expert", "context")}


def advised(**axes: int) -> mf.Advice:
    """Returns the advice for a mesh with these axes."""
    model = strategy.transformer(layers=4, hidden=64, heads=4, ffn=128, vocab=100, sequence=16)
    cluster = strategy.cluster("h100-80", devices=math.prod(axes.values()))
    whole = dict.fromkeys(("pipe", "data", "fsdp", "tensor"), 1)
    return mf.advise(model, strategy.training(batch=16), cluster, search={"axes": whole | axes})


def test_the_mesh_of_a_candidate() -> None:
    best = advised(fsdp=4, tensor=2).best
    assert best is not None
    assert best.layout is not None
    auto: tuple[AxisType, ...] = (AxisType.Auto,) * 2
    made = jax.make_mesh((4, 2), ("fsdp", "tensor"), axis_types=auto)
    assert best.make_mesh() == made
    kinds = (AxisType.Explicit, AxisType.Auto)
    assert best.make_mesh(axis_types=kinds).axis_types == kinds
    order = jax.devices()[::-1]
    made = jax.make_mesh((4, 2), ("fsdp", "tensor"), axis_types=auto, devices=order)
    assert best.make_mesh(devices=order) == made
    for candidate in mf.advise(
        "gpt2", {"batch": 8}, strategy.cluster("l4-24", devices=8)
    ).candidates:
        assert dict(candidate.make_mesh().shape) == candidate.mesh
    more = best.make_mesh(["tensor", "data"])
    names, auto = ("data", "fsdp", "tensor"), (AxisType.Auto,) * 3
    assert more == jax.make_mesh((1, 4, 2), names, axis_types=auto)
    with mf.from_arrays({"tokens": np.zeros((16, 16), np.int32)}) as ds:
        (batch,) = mf.Loader(ds, more, layout=best.layout)
        assert batch["tokens"].sharding == NamedSharding(more, PartitionSpec("fsdp"))
    one = advised(data=1).best
    assert one is not None
    assert one.mesh == {}
    assert one.layout is not None
    with mf.from_arrays({"tokens": np.zeros((16, 16), np.int32)}) as ds:
        for mesh in (one.make_mesh(), one.make_mesh(["fsdp", "tensor"])):
            assert len(mf.Loader(ds, mesh, layout=one.layout)) == 1


WRONG: list[tuple[dict[str, Any], dict[str, int], str]] = [
    (
        {},
        {"data": 16},
        "the mesh {'data': 16} needs 16 devices, but there are 8; "
        "plan for devices=8, or run on 16 devices; "
        "on a CPU, XLA_FLAGS=--xla_force_host_platform_device_count=16 makes as many",
    ),
    (
        {"devices": jax.devices()[:4]},
        {"data": 8},
        "the mesh {'data': 8} needs 8 devices, but there are 4; "
        "plan for devices=4, or run on 8 devices; "
        "on a CPU, XLA_FLAGS=--xla_force_host_platform_device_count=8 makes as many",
    ),
    (
        {"axes": "tensor"},
        {"data": 8},
        'axes=\'tensor\': expected names of axes, such as ("data", "fsdp")',
    ),
    (
        {"axes": ["data", "model"]},
        {"data": 8},
        'axes[1]=\'model\': expected "pipe", "data", "fsdp", "expert", "context" or "tensor"',
    ),
    (
        {"devices": 8},
        {"data": 8},
        "devices=8: expected a list of devices, such as jax.devices()",
    ),
    (
        {"axis_types": (AxisType.Auto,) * 2},
        {"data": 8},
        "jax.make_mesh failed for {'data': 8}: ValueError: Number of axis names should match the "
        "number of axis_types. Got axis_names=('data',) and axis_types=(Auto, Auto)",
    ),
]


@pytest.mark.parametrize(("given", "axes", "message"), WRONG)
def test_a_mesh_that_cannot_be_made(
    given: dict[str, Any], axes: dict[str, int], message: str
) -> None:
    best = advised(**axes).best
    assert best is not None
    with pytest.raises(mf.InvalidArgumentError) as caught:
        best.make_mesh(**given)
    assert str(caught.value) == f"Candidate.make_mesh: {message}"


def test_a_mesh_with_other_axes_than_the_layout() -> None:
    best = advised(fsdp=4, tensor=2).best
    assert best is not None
    assert best.layout is not None
    wrong: list[tuple[tuple[int, ...], tuple[str, ...]]] = [
        ((4, 2), ("data", "model")),
        ((2, 4), ("fsdp", "tensor")),
        ((2, 4), ("tensor", "fsdp")),
        ((8,), ("fsdp",)),
    ]
    with mf.from_arrays({"tokens": np.zeros((64, 16), np.int32)}) as ds:
        for sizes, names in wrong:
            mesh = Mesh(np.array(jax.devices()).reshape(sizes), names)
            with pytest.raises(mf.InvalidArgumentError) as caught:
                mf.Loader(ds, mesh, layout=best.layout)
            assert str(caught.value) == (
                f"mf.Loader: the mesh has the axes {dict(zip(names, sizes, strict=True))}, "
                "but the layout has {'fsdp': 4, 'tensor': 2}; "
                "give jax.make_mesh((4, 2), ('fsdp', 'tensor')), "
                "or make a layout for this mesh with mf.layout"
            )


def test_parts_of_an_advice_as_wrong_arguments_of_a_loader() -> None:
    advice = advised(fsdp=4, tensor=2)
    best = advice.best
    assert best is not None
    mesh: Any = best.make_mesh()
    loader: Any = mf.Loader
    has_devices = "expected a jax.sharding.Mesh, which has devices"
    cases: list[tuple[tuple[Any, ...], Any, str]] = [
        (
            (best.mesh,),
            best.layout,
            "mesh={'fsdp': 4, 'tensor': 2}: "
            f"{has_devices}; make one with jax.make_mesh((4, 2), ('fsdp', 'tensor'))",
        ),
        ((best,), best.layout, f": {has_devices}; call its make_mesh()"),
        ((mesh,), advice, ": expected a meshfeed.Layout; pass its layout"),
        ((mesh,), best, ": expected a meshfeed.Layout; pass its layout"),
        ((mesh,), best.specs, ": expected a meshfeed.Layout; make one with mf.layout"),
        ((mesh, best.layout), None, ": expected specs; pass layout= instead"),
        ((best.layout,), None, ": expected a mesh or a sharding; pass layout= instead"),
    ]
    with mf.from_arrays({"tokens": np.zeros((64, 16), np.int32)}) as ds:
        for arguments, layout, message in cases:
            with pytest.raises(mf.InvalidArgumentError) as caught:
                loader(ds, *arguments, layout=layout)
            assert str(caught.value).endswith(message)
