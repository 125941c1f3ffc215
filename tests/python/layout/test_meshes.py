"""Meshes of any number of devices, and the mesh of `jax.set_mesh` where none is given."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.python.samples import assert_sharded, digits

P = PartitionSpec
AUTO = (AxisType.Auto,) * 2
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=AUTO)
OTHER = jax.make_mesh((2, 4), ("data", "model"), axis_types=AUTO)
SPECS = {"image": P("data", None, "model"), "label": P("data")}
MISSING = "a PartitionSpec was given without a mesh"


# ---- mf.make_mesh ----


@pytest.mark.parametrize("count", range(1, 9))
def test_the_rest_of_any_number_of_devices(count: int) -> None:
    devices = jax.devices()[:count]
    for model in range(1, count + 1):
        axes = {"data": -1, "model": model}
        if count % model:
            with pytest.raises(mf.InvalidArgumentError, match=f"cannot form model={model}; "):
                mf.make_mesh(axes, devices=devices)
            continue
        mesh = mf.make_mesh(axes, devices=devices)
        names = "data", "model"
        sizes = count // model, model
        assert mesh == jax.make_mesh(sizes, names, devices=devices, axis_types=AUTO)


def test_all_devices_in_the_order_of_jax() -> None:
    assert mf.make_mesh({"data": -1, "model": 2}) == MESH
    assert mf.make_mesh({"data": 4, "model": 2}) == MESH
    axes: Any = {"a": np.int64(2), "b": -1, "c": 2}
    assert mf.make_mesh(axes).shape == {"a": 2, "b": 2, "c": 2}
    given = np.array(jax.devices()[::-1]).reshape(4, 2)
    want = jax.make_mesh((8,), ("data",), devices=jax.devices()[::-1], axis_types=AUTO[:1])
    assert mf.make_mesh({"data": 8}, devices=given) == want  # type: ignore[arg-type]


def test_axis_types() -> None:
    """Axes are Auto, unless the user gives other types."""
    axes = {"data": -1, "model": 2}
    auto, explicit = AxisType.Auto, AxisType.Explicit
    assert mf.make_mesh(axes).axis_types == (auto, auto)
    assert mf.make_mesh(axes, axis_types=explicit).axis_types == (explicit, explicit)
    assert mf.make_mesh(axes, axis_types=(auto, explicit)).axis_types == (auto, explicit)
    both: Any = [auto, explicit]
    assert mf.make_mesh(axes, axis_types=both).axis_types == (auto, explicit)


AXES = 'such as {"data": -1, "model": 2}, where -1 is the rest of the devices'


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        (
            {"data": -1, "model": 3},
            "8 devices cannot form model=3; sizes that divide 8 are 1, 2, 4, 8; "
            "devices=jax.devices()[:6] leaves the others out",
        ),
        (
            {"data": 2, "model": 2},
            "8 devices cannot form data=2 x model=2, which is 4; "
            "sizes that divide 8 are 1, 2, 4, 8; devices=jax.devices()[:4] leaves the others out",
        ),
        (
            {"data": 16},
            "8 devices cannot form data=16; sizes that divide 8 are 1, 2, 4, 8; "
            "on CPUs, JAX_NUM_CPU_DEVICES=16 makes as many",
        ),
        (
            {"data": -1, "model": 16},
            "8 devices cannot form model=16; sizes that divide 8 are 1, 2, 4, 8",
        ),
        (
            {"data": -1, "model": -1},
            "axes={'data': -1, 'model': -1}: more than one axis has the size -1; "
            "give the size of 'model'",
        ),
        ({}, "axes={}: expected the size of every axis; " + AXES),
        (MESH.axis_names, "axes=('data', 'model'): expected the size of every axis; " + AXES),
        ({"data": 0}, "axes['data']=0: expected an integer from 1 to 1048576, or -1 for the rest"),
        (
            {"data": 2.0},
            "axes['data']=2.0: expected an integer from 1 to 1048576, or -1 for the rest",
        ),
        ({1: 8}, "axes={1: 8}: expected names of axes, each with its size; " + AXES),
    ],
)
def test_wrong_axes(axes: Any, text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.make_mesh(axes)
    assert str(caught.value) == f"mf.make_mesh: {text}"


def test_a_device_that_is_given_twice() -> None:
    first, second = jax.devices()[:2]
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.make_mesh({"data": -1}, devices=[first, second, first])
    assert str(caught.value) == (
        f"mf.make_mesh: devices= has {first!r} twice; give every device once"
    )


@pytest.mark.parametrize("devices", [8, "cpu", [0, 1]])
def test_wrong_devices(devices: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError, match="expected a list of devices, such as jax"):
        mf.make_mesh({"data": -1}, devices=devices)


def test_no_devices() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.make_mesh({"data": -1}, devices=[])
    text = "mf.make_mesh: there are no devices; leave out devices=, or give some"
    assert str(caught.value) == text


def test_rows_per_device() -> None:
    """The line of the documentation for a number of rows per device."""
    mesh = mf.make_mesh({"data": -1, "model": 2})
    with mf.Loader(
        mf.from_arrays(digits(512)), mesh, SPECS, batch_size=64 * mesh.shape["data"]
    ) as loader:
        label = loader.peek()["label"]
        assert {shard.data.shape for shard in label.addressable_shards} == {(64,)}


# ---- the mesh of jax.set_mesh ----


def first(loader: mf.Loader, mesh: Mesh) -> None:
    """Checks the first batch of a loader of digits on a mesh."""
    arrays = digits(64)
    batch = loader.peek()
    for name, spec in SPECS.items():
        assert_sharded(batch[name], arrays[name][:16], NamedSharding(mesh, spec))


def test_a_loader_on_the_mesh_of_the_context() -> None:
    with jax.set_mesh(MESH), mf.from_arrays(digits(64)) as ds:
        with mf.Loader(ds, specs=SPECS, batch_size=16) as loader:
            first(loader, MESH)
        with mf.Loader(ds, OTHER, SPECS, batch_size=16) as loader:
            first(loader, OTHER)
        with mf.Loader(ds, batch_size=16) as whole:
            assert isinstance(whole.peek()["label"], np.ndarray)


def test_a_loader_keeps_the_mesh_of_the_context() -> None:
    """It delivers, and plans the passes of other remainders, outside of the context too."""
    with mf.from_arrays(digits(60)) as ds:
        with jax.set_mesh(MESH):
            loader = mf.Loader(ds, specs=SPECS, batch_size=16)
        with loader, jax.set_mesh(OTHER):
            first(loader, MESH)
            *_, last = loader.one_epoch(remainder="pad")
            assert last["label"].sharding == NamedSharding(MESH, P("data"))


def test_specs_and_shardings_in_a_context() -> None:
    """Bare specs join the shardings of the same mesh."""
    specs = {"image": NamedSharding(MESH, SPECS["image"]), "label": SPECS["label"]}
    with mf.from_arrays(digits(64)) as ds:
        with jax.set_mesh(MESH), mf.Loader(ds, specs=specs, batch_size=16) as loader:
            first(loader, MESH)
        with jax.set_mesh(OTHER), pytest.raises(mf.InvalidArgumentError, match="on two meshes"):
            mf.Loader(ds, specs=specs, batch_size=16)


def test_other_calls_on_the_mesh_of_the_context() -> None:
    table = np.arange(64, dtype=np.float32).reshape(16, 4)
    with jax.set_mesh(MESH), mf.from_arrays({"table": table}) as ds:
        loaded = mf.load_array(ds, "table", P("data", "model"))
        assert_sharded(loaded, table, NamedSharding(MESH, P("data", "model")))
        loaded = mf.load_array(ds, "table", mf.P("data"))
        assert loaded.sharding == NamedSharding(MESH, P("data"))
        lay = mf.layout(None, P("data"), ds, batch_size=8)
        assert lay == mf.layout(MESH, P("data"), ds, batch_size=8)
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.load_array(ds, "table", P("pipe"))
        assert str(caught.value).endswith("; name axes of the mesh, each once")


def wrong(message: str, call: str) -> None:
    """Checks the errors of calls with a bare spec."""
    with mf.from_arrays(digits(16)) as ds:
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, specs=P("data"), batch_size=8)
        assert str(caught.value) == f"mf.Loader: {message}; pass mesh=, or call {call}"
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.load_array(ds, "label", P("data"))
        remedy = f"use NamedSharding(mesh, spec), or call {call}"
        assert str(caught.value) == f"mf.load_array: {message}; {remedy}"


def test_no_mesh() -> None:
    wrong(MISSING, "jax.set_mesh(mesh) first")
    with mf.from_arrays(digits(16)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.layout(None, P("data"), ds, batch_size=8)
    text = "mf.layout: mesh=None: expected the size of every axis, or a JAX mesh; "
    assert str(caught.value) == text + 'such as {"data": 4, "model": 2}'


def test_an_abstract_mesh() -> None:
    with jax.sharding.use_abstract_mesh(MESH.abstract_mesh):
        text = f"{MISSING}, and the mesh of the context is abstract: it has no devices"
        wrong(text, "jax.set_mesh with a mesh of devices")


def test_the_mesh_of_a_with_block() -> None:
    """JAX deprecates `with mesh:`, and its own functions of the context ignore it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with MESH:
            wrong(MISSING, "jax.set_mesh(mesh) first")
