"""Global arrays: every shard of every batch equals `batch[index]`, without a copy."""

from __future__ import annotations

import itertools
import random
from collections import OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.python.samples import (
    DTYPES,
    Arrays,
    assert_sharded,
    digits,
    filled,
    mesh_of,
    numbers,
    taken,
)

P = PartitionSpec
AUTO, EXPLICIT = (AxisType.Auto,) * 2, (AxisType.Explicit,) * 2


def check(loader: mf.Loader, arrays: Arrays, shardings: dict[str, Any], steps: int = 3) -> None:
    """Compares the next batches with their records."""
    loop = iter(loader)
    for _ in range(steps):
        state = loader.state()
        whole = taken(arrays, loader.records(state["epoch"], state["position"]))
        batch = next(loop)
        assert list(batch) == list(shardings)
        for name, sharding in shardings.items():
            assert_sharded(batch[name], whole[name], sharding)


MESHES = {
    "4x2": mesh_of(),
    "8": mesh_of((8,)),
    "2x2x2": mesh_of((2, 2, 2)),
    "explicit": mesh_of(types=EXPLICIT),
    "auto": mesh_of(types=AUTO),
    "permuted": mesh_of(order=[3, 7, 1, 0, 6, 2, 5, 4]),
    "subset": mesh_of((2, 2), order=[6, 1, 3, 4, 0, 2, 5, 7]),
    "one": mesh_of((1, 1)),
    "size one": mesh_of((1, 8)),
}


@pytest.mark.parametrize("name", MESHES)
def test_meshes(name: str) -> None:
    mesh = MESHES[name]
    arrays = digits(64)
    axes = mesh.axis_names
    inner = axes[1] if len(axes) > 1 else None
    specs = {"image": P("data", None, inner), "label": P("data")}
    with (
        mf.from_arrays(arrays) as ds,
        mf.Loader(ds, mesh, specs, batch_size=16, shuffle=True, seed=3) as loader,
    ):
        check(loader, arrays, {n: NamedSharding(mesh, s) for n, s in specs.items()})


@pytest.mark.parametrize(
    "spec",
    [
        P(),
        P(None, None, None),
        P("data"),
        P(("data", "model")),
        P(("model", "data")),
        P("model", "data"),
        P(None, ("data", "model")),
        P(None, None, "model"),
        P("data", None, "model"),
        P(("data",), "model", None),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["explicit", "auto"])
def test_specs(spec: P, kind: str) -> None:
    mesh = MESHES[kind]
    arrays = {"x": filled((40, 8, 4), "int32")}
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, mesh, spec, batch_size=8) as loader:
        check(loader, arrays, {"x": NamedSharding(mesh, spec)})


def random_case(rng: np.random.Generator) -> tuple[Mesh, P, tuple[int, ...], int, str]:
    """Returns a mesh over permuted devices, with a spec and a shape that fit it."""
    sizes = rng.permutation([(8,), (4, 2), (2, 2, 2), (2, 4), (2, 1, 2), (1,)][rng.integers(6)])
    names = tuple(rng.permutation(["a", "b", "c"])[: len(sizes)])
    mesh = mesh_of(tuple(int(s) for s in sizes), names, order=rng.permutation(8))
    rank = int(rng.integers(1, 5))
    entries: list[list[str]] = [[] for _ in range(rank)]
    for axis in rng.permutation(names)[: rng.integers(len(names) + 1)]:
        entries[rng.integers(rank)].append(str(axis))
    tiles = [int(np.prod([mesh.shape[a] for a in entry], dtype=int)) for entry in entries]
    shape = tuple(t * int(rng.integers(1, 4)) for t in tiles)
    spec = P(*(tuple(entry) or None for entry in entries[: max(1, int(rng.integers(rank + 1)))]))
    if len(spec) < rank and any(entries[len(spec) :]):
        spec = P(*(tuple(entry) or None for entry in entries))
    return mesh, spec, shape[1:], shape[0], str(rng.choice(DTYPES))


def test_random_meshes_specs_shapes_and_types(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        mesh, spec, row, size, kind = random_case(rng)
        arrays = {"x": filled((3 * size + 1, *row), kind)}
        with (
            mf.from_arrays(arrays) as ds,
            mf.Loader(ds, mesh, spec, batch_size=size, shuffle=True, seed=seed) as loader,
        ):
            check(loader, arrays, {"x": NamedSharding(mesh, spec)})


@pytest.mark.parametrize("name", DTYPES)
def test_types(name: str) -> None:
    mesh = MESHES["4x2"]
    arrays = {"x": filled((32, 6), name)}
    with (
        mf.from_arrays(arrays) as ds,
        mf.Loader(ds, mesh, P("data", "model"), batch_size=8) as loader,
    ):
        check(loader, arrays, {"x": NamedSharding(mesh, P("data", "model"))})


# ---- 64 bits ----


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_with_x64_all_types_stay(name: str) -> None:
    mesh = MESHES["4x2"]
    arrays = {"x": filled((24, 2), name)}
    with jax.enable_x64(True), mf.from_arrays(arrays) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=8) as loader:
            check(loader, arrays, {"x": NamedSharding(mesh, P("data"))})


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_without_x64_types_are_narrowed(name: str) -> None:
    mesh = MESHES["4x2"]
    arrays = {"x": filled((24, 2), name)}
    narrow = {"x": arrays["x"].astype(name.replace("64", "32").replace("128", "64"))}
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, mesh, P("data"), batch_size=8) as loader:
        check(loader, narrow, {"x": NamedSharding(mesh, P("data"))})


def test_a_number_that_does_not_fit_is_an_error_at_its_step() -> None:
    numbers = np.arange(32)
    numbers[21] = 2**40 + 7
    with mf.from_arrays({"ids": numbers}) as ds:
        with mf.Loader(ds, MESHES["8"], P("data"), batch_size=8) as loader:
            loop = iter(loader)
            next(loop), next(loop)
            with pytest.raises(mf.OutOfRangeError) as caught:
                next(loop)
            assert str(caught.value) == (
                'mf.Loader: step 2 of epoch 0: field "ids": record 21 holds 1099511627783, which '
                "int32 cannot; deliver the field as int64 (in JAX: "
                'jax.config.update("jax_enable_x64", True)), or store smaller values'
            )
            assert loader.state()["position"] == 16


# ---- trees ----


def test_trees_keep_their_form() -> None:
    mesh = MESHES["4x2"]
    arrays = digits(16)
    specs = {
        "in": {"image": P("data")},
        "out": (mf.Array("label", P("data")), [mf.Array("label", P())]),
    }
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, mesh, specs, batch_size=8) as loader:
        batch = next(iter(loader))
        structure: Any = jax.tree.structure(batch)
        assert structure == jax.tree.structure(loader.element_spec)
        assert_sharded(batch["in"]["image"], arrays["image"][:8], NamedSharding(mesh, P("data")))
        assert_sharded(batch["out"][0], arrays["label"][:8], NamedSharding(mesh, P("data")))
        assert_sharded(batch["out"][1][0], arrays["label"][:8], NamedSharding(mesh, P()))


def test_subclasses_of_dict_are_kept() -> None:
    specs = OrderedDict(label=P("data"), image=OrderedDict(image=P()))
    with mf.from_arrays(digits(16)) as ds:
        with mf.Loader(ds, MESHES["4x2"], specs, batch_size=8, remainder="pad") as loader:
            batch = next(iter(loader))
            assert (type(batch), list(batch)) == (OrderedDict, ["label", "image", "valid"])
            del batch["valid"]
            structure: Any = jax.tree.structure(batch)
            assert structure == jax.tree.structure(specs)
            assert list(specs) == ["label", "image"]


def test_columns_are_gathered_in_their_order() -> None:
    mesh = MESHES["4x2"]
    tokens = filled((24, 17), "int32")
    specs = {
        "inputs": mf.Array("tokens", P("data", "model"), columns=[(0, 16)]),
        "targets": mf.Array("tokens", P("data", "model"), columns=[(1, 17)]),
        "zigzag": mf.Array(
            "tokens", P("data", "model"), columns=[(0, 4), (12, 16), (4, 8), (8, 12)]
        ),
        "label": mf.Array("label", P("data")),
    }
    label = np.arange(24, dtype=np.int32)
    with mf.from_arrays({"tokens": tokens, "label": label}) as ds:
        with mf.Loader(ds, mesh, specs, batch_size=8, shuffle=True) as loader:
            zigzag = tokens[:, [*range(4), *range(12, 16), *range(4, 12)]]
            arrays = {"inputs": tokens[:, :16], "targets": tokens[:, 1:], "zigzag": zigzag}
            both = NamedSharding(mesh, P("data", "model"))
            shardings = dict.fromkeys(arrays, both) | {"label": NamedSharding(mesh, P("data"))}
            check(loader, arrays | {"label": label}, shardings)


def test_tuple_batches_deliver_the_same_records() -> None:
    mesh = MESHES["4x2"]
    arrays = digits(64)
    specs = {"image": P(None, "data", None, "model"), "label": P(None, "data")}
    flat = {"image": P("data"), "label": P("data")}
    with mf.from_arrays(arrays) as ds:
        split = mf.Loader(ds, mesh, specs, batch_size=(4, 8), shuffle=True)
        whole = mf.Loader(ds, mesh, flat, batch_size=32, shuffle=True)
        for parts, batch in itertools.zip_longest(split, whole):
            assert parts["image"].shape == (4, 8, 8, 8)
            for name, array in batch.items():
                shaped = np.asarray(array).reshape(parts[name].shape)
                assert_sharded(parts[name], shaped, NamedSharding(mesh, specs[name]))
        split.close()
        whole.close()


def test_padding_and_extras() -> None:
    mesh = MESHES["4x2"]
    arrays = digits(20)
    specs = {"image": P("data", None, "model"), "label": P("data")}
    with mf.from_arrays(arrays) as ds:
        loader = mf.Loader(
            ds, mesh, specs, batch_size=8, remainder="pad", extras=("key", "record"), seed=5
        )
        batches = list(loader)
        assert len(batches) == loader.steps_per_epoch == 3
        for step, batch in enumerate(batches):
            records = loader.records(0, 8 * step)
            assert list(batch) == ["image", "label", "valid", "key", "record"]
            whole = taken(arrays, records)
            for name, spec in specs.items():
                assert_sharded(batch[name], whole[name], NamedSharding(mesh, spec))
            data = NamedSharding(mesh, P("data"))
            rows = NamedSharding(mesh, P("data", None))
            assert_sharded(batch["valid"], records >= 0, data)
            halves = np.stack([records & 0xFFFFFFFF, records >> 32], 1).astype(np.uint32)
            assert_sharded(batch["record"], halves, rows)
            assert batch["key"].shape == (8, 2)
            keys = np.asarray(batch["key"])
            assert (keys[records < 0] == 0).all()
            assert len({tuple(k) for k in keys[records >= 0]}) == (records >= 0).sum()
        assert batches[-1]["valid"].tolist() == [True] * 4 + [False] * 4
        jax.random.wrap_key_data(batches[0]["key"])
        loader.close()


def test_the_mask_takes_a_name_and_a_spec() -> None:
    mesh = MESHES["4x2"]
    with mf.from_arrays(digits(20)) as ds:
        loader = mf.Loader(
            ds,
            mesh,
            P("data"),
            batch_size=8,
            remainder="pad",
            mask_name="real",
            mask_spec=P(("data", "model")),
        )
        batch = next(iter(loader))
        assert batch["real"].sharding == NamedSharding(mesh, P(("data", "model")))
        loader.close()


# ---- shardings ----


KINDS = [memory.kind for memory in jax.devices()[0].addressable_memories()]


@pytest.mark.parametrize("kind", KINDS)
def test_memory_kinds_of_the_user_are_kept(kind: str) -> None:
    sharding = NamedSharding(MESHES["4x2"], P("data"), memory_kind=kind)
    with mf.from_arrays(digits(16)) as ds:
        specs = {"image": sharding, "label": sharding}
        with mf.Loader(ds, specs=specs, batch_size=8) as loader:
            batch = next(iter(loader))
            assert batch["image"].sharding is sharding
            assert batch["image"].sharding.memory_kind == kind
            np.testing.assert_array_equal(batch["label"], digits(8)["label"])


def test_a_sharding_supplies_the_mesh() -> None:
    mesh = MESHES["4x2"]
    specs = {"image": NamedSharding(mesh, P("data")), "label": P("data")}
    with mf.from_arrays(digits(16)) as ds, mf.Loader(ds, mesh, specs, batch_size=8) as loader:
        assert next(iter(loader))["label"].sharding == NamedSharding(mesh, P("data"))


def test_element_spec() -> None:
    mesh = MESHES["4x2"]
    with mf.from_arrays(digits(16)) as ds, mf.Loader(ds, mesh, P("data"), batch_size=8) as loader:
        lowered = jax.jit(lambda b: jnp.sum(b["image"])).lower(loader.element_spec)
        total = lowered.compile()(next(iter(loader)))
        np.testing.assert_allclose(total, digits(8)["image"].sum())


def test_without_a_copy() -> None:
    mesh = MESHES["4x2"]
    with mf.from_arrays(digits(64)) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
            for name in ("image", "label"):
                pointers: dict[str, set[int]] = {}
                for shard in next(iter(loader))[name].addressable_shards:
                    at = shard.data.unsafe_buffer_pointer()
                    assert at % 64 == 0
                    pointers.setdefault(str(shard.index), set()).add(at)
                assert len(pointers) == 4
                # Replicas have one address: they alias the library's memory.
                assert all(len(at) == 1 for at in pointers.values())


def test_blocks_are_found_in_any_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """JAX may ask for blocks in any order, and may change the order after equal ones."""
    rng, made = random.Random(seed), jax.make_array_from_callback
    calls: list[Any] = []

    def shuffled(shape: Any, sharding: NamedSharding, block: Any, **more: Any) -> jax.Array:
        indexes = list(sharding.addressable_devices_indices_map(shape).values())
        calls.append(shape)
        if len(calls) > 4:
            rng.shuffle(indexes)
        blocks = {id(index): block(index) for index in indexes}
        return made(shape, sharding, lambda index: blocks[id(index)], **more)

    monkeypatch.setattr(jax, "make_array_from_callback", shuffled)
    with numbers(160) as ds, mf.Loader(ds, mesh_of((8,)), P("data"), batch_size=16) as it:
        for step, batch in enumerate(it):
            assert np.asarray(batch["x"]).tolist() == list(range(16 * step, 16 * step + 16))


# ---- errors before any call of JAX ----


@pytest.mark.parametrize(
    ("specs", "size", "text"),
    [
        (
            {"image": P("data")},
            30,
            'mf.Loader: dimension 0 of array "image" of shape (30, 8, 8) is split 4 ways by axis '
            '"data" (size 4), but 30 % 4 = 2; use a batch of 28 or 32',
        ),
        (
            {"label": P("data", "model")},
            8,
            "mf.Loader: spec P('data', 'model') of array \"label\" has 2 entries, "
            "but shape (8,) has rank 1; give at most one entry per dimension",
        ),
        (
            {"label": P("rows")},
            8,
            "mf.Loader: axis \"rows\" of array \"label\" is not in Mesh('data': 4, 'model': 2); "
            'use one of "data", "model"',
        ),
        (
            {"label": P("data"), "image": P("data", "data")},
            8,
            'mf.Loader: axis "data" partitions dimension 0 and dimension 1 of array "image"; '
            "an axis can partition one dimension once",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["explicit", "auto"])
def test_specs_that_do_not_fit(specs: Any, size: int, text: str, kind: str) -> None:
    with mf.from_arrays(digits(64)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, MESHES[kind], specs, batch_size=size)
    assert str(caught.value) == text


def test_two_meshes() -> None:
    specs = {"image": NamedSharding(MESHES["8"], P()), "label": NamedSharding(MESHES["one"], P())}
    with mf.from_arrays(digits(16)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, specs=specs, batch_size=8)
    assert str(caught.value) == (
        f"mf.Loader: the arrays are on two meshes, {MESHES['8']} and {MESHES['one']}; "
        "put all arrays on one mesh"
    )


MANUAL = mesh_of(types=(AxisType.Auto, AxisType.Manual))


@pytest.mark.parametrize(
    ("mesh", "text"),
    [
        (
            Mesh(np.empty((), object), ()),  # jax.sharding.get_mesh() before set_mesh
            "mf.Loader: the mesh has no devices; "
            "jax.make_mesh makes one; jax.sharding.get_mesh() returns the mesh of jax.set_mesh",
        ),
        (
            MANUAL,
            f"mf.Loader: {MANUAL} has Manual axes, which exist only inside of shard_map; "
            "use Auto or Explicit ones; shard_map makes them Manual itself",
        ),
    ],
)
def test_meshes_that_cannot_hold_arrays(mesh: Mesh, text: str) -> None:
    with mf.from_arrays(digits(16)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, mesh, P(), batch_size=8)
    assert str(caught.value) == text


def test_half_of_the_arrays_without_a_spec() -> None:
    specs = {"image": P("data"), "label": mf.Array("label")}
    with mf.from_arrays(digits(16)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, MESHES["8"], specs, batch_size=8)
    assert str(caught.value) == (
        "mf.Loader: array 'label' has no spec, but others have one; "
        "give every array a spec; P() puts the whole array on every device"
    )


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        (
            (mf.Array("label", P("data")),),
            "mf.Loader: the specs must be a dict, to which 'valid', 'key' are added; "
            'wrap them in one, such as {"batch": specs}',
        ),
        (
            {"valid": {"label": P("data")}},
            "mf.Loader: the name 'valid' is taken by an array; "
            "rename the array, or the mask with mask_name=",
        ),
    ],
)
def test_mask_and_extras_need_a_dict(specs: Any, text: str) -> None:
    with mf.from_arrays(digits(16)) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, MESHES["8"], specs, batch_size=8, remainder="pad", extras=("key",))
    assert str(caught.value) == text
