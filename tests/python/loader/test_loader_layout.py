"""Layouts that are loaded on a JAX mesh: the same batches as with specs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed import strategy
from tests.python.samples import digits, numbers

P = PartitionSpec
AXES = {"data": 4, "model": 2}
SPECS = {"image": P("data", None, "model"), "label": P("data")}
KINDS = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}


def mesh_of(axes: dict[str, int], kind: AxisType = AxisType.Auto) -> Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def backwards() -> Mesh:
    return Mesh(np.array(jax.devices())[::-1].reshape(4, 2), tuple(AXES))


MESHES = {
    "auto": mesh_of(AXES),
    "explicit": mesh_of(AXES, AxisType.Explicit),
    "backwards": backwards(),
}


def assert_same(found: Any, wanted: Any) -> None:
    """Compares two batches: names, values, types and shardings."""
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert isinstance(found[name], jax.Array)
        assert found[name].sharding == array.sharding
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(array))


CASES: dict[str, dict[str, Any]] = {
    "plain": {"batch_size": 16},
    "pad": {"batch_size": 16, "remainder": "pad", "mask_name": "real", "mask_spec": P("data")},
    "pad by default": {"batch_size": 16, "remainder": "pad", "extras": ["key", "record"]},
    "micro-batches": {"batch_size": (4, 8)},
    "global": {"batch_size": 16, "loading": "global"},
    "device": {"batch_size": 16, "loading": "device"},
    "reshard": {"batch_size": 16, "loading": "reshard"},
    "shuffled": {"batch_size": 16, "shuffle": True, "seed": 5, "prefetch": 4},
}


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_a_layout_loads_as_its_specs_do(options: dict[str, Any], mesh: Mesh) -> None:
    with mf.from_arrays(digits(50)) as ds:
        layout = mf.layout(AXES, SPECS, ds, processes=4, **options)
        with (
            mf.Loader(ds, mesh, SPECS, **options) as wanted,
            mf.Loader(ds, mesh, layout=layout) as found,
        ):
            assert found.layout == wanted.layout
            assert found.element_spec == wanted.element_spec
            assert len(found) == len(wanted) > 0
            pairs = zip(found.with_state(), wanted.with_state(), strict=True)
            for (batch, state), (other, expected) in pairs:
                assert_same(batch, other)
                assert_same(found.reshard(batch), wanted.reshard(other))
                assert state == expected


def test_a_state_continues_with_a_layout_and_with_specs() -> None:
    mesh = MESHES["auto"]
    with mf.from_arrays(digits(48)) as ds:
        layout = mf.layout(AXES, SPECS, ds, batch_size=8)
        makes: list[Any] = [
            lambda **given: mf.Loader(ds, mesh, layout=layout, **given),
            lambda **given: mf.Loader(ds, mesh, SPECS, batch_size=8, **given),
        ]
        for first, second in (makes, makes[::-1]):
            with first(shuffle=True, seed=3) as whole:
                pairs = list(whole.with_state())
            _, state = pairs[2]
            with second(shuffle=True, seed=3, state=state) as rest:
                for batch, (wanted, _) in zip(rest, pairs[3:], strict=True):
                    assert_same(batch, wanted)
                assert rest.state() == pairs[-1][1]


def test_arguments_take_precedence_over_the_order_of_a_layout() -> None:
    with mf.from_arrays(digits(48)) as ds:
        layout = mf.layout(AXES, SPECS, ds, batch_size=8, shuffle=True, seed=3)
        with mf.Loader(ds, MESHES["auto"], layout=layout) as loader:
            assert (loader.state()["order"], loader.state()["seed"]) == ("shuffle.1", 3)
        given: dict[str, Any] = {"order": "sequential", "seed": 4}
        with mf.Loader(ds, MESHES["auto"], layout=layout, **given) as loader:
            assert (loader.state()["order"], loader.state()["seed"]) == ("sequential.1", 4)
            assert next(iter(loader))["label"].tolist() == list(range(7, 15))


def test_passes_and_other_meshes() -> None:
    with mf.from_arrays(digits(20)) as ds:
        layout = mf.layout(AXES, SPECS, ds, batch_size=8)
        with mf.Loader(ds, MESHES["auto"], layout=layout) as loader:
            masks = [batch["valid"].tolist() for batch in loader.one_epoch(remainder="pad")]
            assert masks == [[True] * 8, [True] * 8, [True] * 4 + [False] * 4]
            next(iter(loader))
            loader.remesh(mesh_of({"data": 2, "model": 4}))
            assert next(iter(loader))["image"].addressable_shards[0].data.shape == (4, 8, 2)
            loader.seek(epoch=0)
            loader.remesh(mesh_of({"rows": 8}), {"label": P("rows")})
            assert [list(batch) for batch in loader] == [["label"]] * 2


def test_names_columns_and_narrow_types() -> None:
    tokens = np.arange(8 * 5).reshape(8, 5)
    tree = {
        "in": {"x": mf.Array("tokens", P("data"), columns=[(0, 4)])},
        "out": {"y": mf.Array("tokens", P("data"), columns=[(1, 5)])},
    }
    mesh = mesh_of({"data": 8})
    with mf.from_arrays({"tokens": tokens}) as ds:
        assert ds.schema["tokens"].dtype == "int64"
        layout = mf.layout({"data": 8}, tree, ds, batch_size=8)
        with (
            mf.Loader(ds, mesh, tree, batch_size=8) as wanted,
            mf.Loader(ds, mesh, layout=layout) as loader,
        ):
            assert loader.layout == wanted.layout
            (batch,) = loader
            (nested,) = wanted
            flat = {"in/x": nested["in"]["x"], "out/y": nested["out"]["y"]}
            assert_same(batch, flat)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.skipif(
    not hasattr(jax.sharding, "get_mesh"), reason="JAX before 0.9 has no jax.sharding.get_mesh"
)
def test_the_mesh_of_set_mesh(kind: AxisType) -> None:
    mesh = mesh_of({"data": 8}, kind)
    with mf.from_arrays({"x": np.arange(16, dtype=np.int32)}) as ds:
        layout = mf.layout({"data": 8}, P("data"), ds, batch_size=8)
        with jax.set_mesh(mesh), mf.Loader(ds, layout=layout) as loader:
            wanted = NamedSharding(mesh, P("data"))
            assert [batch["x"].sharding for batch in loader] == [wanted] * 2
        with jax.set_mesh(mesh), mf.Loader(ds, layout=layout, process=0) as blocks:
            assert isinstance(next(iter(blocks))["x"], list)
        with jax.set_mesh(mesh_of({"rows": 8})), pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, layout=layout)
    assert str(caught.value).startswith("mf.Loader: the mesh has the axes {'rows': 8}, but ")


MISSING = (
    "mf.Loader: a layout has no devices: a mesh is missing, or the process whose blocks to load; "
    "for jax.Arrays use mf.Loader(ds, jax.make_mesh((8,), ('fsdp',)), layout=…); "
    "for NumPy blocks use mf.Loader(ds, layout=…, process=0)"
)
TWICE = (
    "mf.Loader: {} beside layout=, which contains specs, batch size, remainder, mask, extras and "
    "loading; leave that out, or make another layout with mf.layout"
)
AXIS = (
    "mf.Loader: the mesh has the axes {}, but the layout has {{'fsdp': 8}}; "
    "give jax.make_mesh((8,), ('fsdp',)), or make a layout for this mesh with mf.layout"
)
FSDP = mesh_of({"fsdp": 8})
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, MISSING),
    "both": (
        {"mesh": FSDP, "process": 0},
        "mf.Loader: a mesh beside process=: the blocks of a process go to no device; "
        "leave out process= for jax.Arrays on the mesh",
    ),
    "specs": ({"mesh": FSDP, "specs": P("fsdp")}, TWICE.format("specs=")),
    "size": ({"process": 0, "batch_size": 8}, TWICE.format("batch_size=")),
    "two": (
        {"mesh": FSDP, "batch_size": 8, "loading": "global"},
        TWICE.format("batch_size= and loading="),
    ),
    "remainder": ({"mesh": FSDP, "remainder": "pad"}, TWICE.format("remainder=")),
    "mask": ({"mesh": FSDP, "mask_name": "real"}, TWICE.format("mask_name=")),
    "mask spec": (
        {"process": 0, "remainder": "pad", "mask_spec": P()},
        TWICE.format("remainder= and mask_spec="),
    ),
    "extras": ({"process": 0, "extras": ["key"]}, TWICE.format("extras=")),
    "name": ({"mesh": mesh_of({"data": 8})}, AXIS.format("{'data': 8}")),
    "sizes": ({"mesh": mesh_of({"fsdp": 4})}, AXIS.format("{'fsdp': 4}")),
    "more": (
        {"mesh": mesh_of({"fsdp": 4, "tensor": 2})},
        AXIS.format("{'fsdp': 4, 'tensor': 2}"),
    ),
    "abstract": (
        {"mesh": AbstractMesh((8,), ("fsdp",))},
        f"mf.Loader: mesh={AbstractMesh((8,), ('fsdp',))}: "
        "expected a jax.sharding.Mesh, which has devices; "
        "jax.make_mesh gives one; mf.layout plans without devices",
    ),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_beside_a_layout(given: dict[str, Any], message: str) -> None:
    loader: Any = mf.Loader
    with numbers(16) as ds:
        layout = mf.layout({"fsdp": 8}, mf.P("fsdp"), ds, batch_size=8)
        with pytest.raises(mf.InvalidArgumentError) as caught:
            loader(ds, layout=layout, **given)
    assert str(caught.value) == message


def test_a_dataset_that_the_layout_is_not_for() -> None:
    layout = mf.layout({"fsdp": 8}, mf.P("fsdp"), {"x": ("float32", (5,))}, batch_size=8)
    with mf.from_arrays({"x": np.zeros((16, 4), np.float32)}) as ds:
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, FSDP, layout=layout)
        assert str(caught.value) == (
            'mf.Loader: rows of array "x" have shape (5,), but rows of field "x" have (4,); '
            "write (4,) after the batch dimensions"
        )
        layout = mf.layout({"fsdp": 8}, mf.P("fsdp"), ds, batch_size=8, records=15)
        with pytest.raises(mf.Error) as other:
            mf.Loader(ds, FSDP, layout=layout)
        assert "the layout is for a dataset of 15 records, but this one has 16" in str(other.value)


def test_a_layout_without_a_batch() -> None:
    text = (
        '{"meshfeed":1,"mesh":{"axes":[["fsdp",8]]},"arrays":{"x":{"shape":[8],"dtype":"int32"}}}'
    )
    wheres: list[dict[str, Any]] = [{"mesh": FSDP}, {"process": 0}]
    for where in wheres:
        with numbers(16) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
            mf.Loader(ds, layout=mf.Layout(text), **where)
        message = "mf.Loader: the layout has no batch, so there is nothing to load"
        assert str(caught.value) == message


def test_the_layout_of_an_advice() -> None:
    model = strategy.transformer(layers=2, hidden=64, heads=4, ffn=128, vocab=100, sequence=16)
    cluster = strategy.cluster("h100-80", devices=8)
    advice = mf.advise(model, strategy.training(batch=16), cluster)
    assert advice.best is not None
    assert advice.layout is not None
    mesh = mesh_of(dict(advice.best.mesh))
    tokens = np.arange(64 * 16, dtype=np.int32).reshape(64, 16)
    with mf.from_arrays({"tokens": tokens}) as ds:
        with (
            mf.Loader(ds, mesh, layout=advice.layout) as loader,
            mf.Loader(ds, mesh, advice.best.specs, batch_size=16) as wanted,
        ):
            batches = list(loader)
            for batch, other in zip(batches, wanted, strict=True):
                assert_same(batch, other)
        whole = np.concatenate([np.asarray(batch["tokens"]) for batch in batches])
        np.testing.assert_array_equal(whole, tokens)
