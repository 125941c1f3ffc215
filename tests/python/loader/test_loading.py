"""The four ways of loading, which deliver the same global arrays, and single arrays."""

from __future__ import annotations

import dataclasses
import importlib
import math
import random
import re
import time
from typing import Any, Literal, get_args

import jax
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.python.samples import Arrays, assert_sharded, digits, filled, mesh_of, taken

P = PartitionSpec
HANG = 60.0  # seconds
Way = Literal["process", "global", "device", "reshard"]
WAYS: tuple[Way, ...] = get_args(Way)
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def predicted(loader: mf.Loader) -> int:
    """Returns the bytes that this process gathers for the delivered batches, by the layout."""
    per_step: int = loader.layout.report()["processes"][0]["bytes_per_step"]
    return per_step * int(loader.stats()["batches"])


def check(arrays: Arrays, mesh: Mesh, specs: dict[str, PartitionSpec], **options: Any) -> None:
    """Compares all batches of all ways of loading with their records."""
    ds = mf.from_arrays(arrays)
    wanted = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    for how in WAYS:
        loader = mf.Loader(ds, mesh, specs, shuffle=True, seed=3, loading=how, **options)
        step = jax.jit(loader.reshard)
        for i, batch in enumerate(loader):
            records = loader.records(0, i * options["batch_size"])
            whole = taken(arrays, records)
            for name in batch:
                assert batch[name].sharding == loader.element_spec[name].sharding
            if how == "reshard":
                batch = step(batch)
            else:
                assert loader.reshard(batch) is batch
            for name, sharding in wanted.items():
                if how == "reshard":
                    assert batch[name].sharding.is_equivalent_to(sharding, whole[name].ndim)
                    np.testing.assert_array_equal(np.asarray(batch[name]), whole[name])
                else:
                    assert_sharded(batch[name], whole[name], sharding)
            if "valid" in batch:
                np.testing.assert_array_equal(np.asarray(batch["valid"]), records >= 0)
        assert loader.stats()["gathered_bytes"] == predicted(loader) > 0
        loader.close()


SPECS = [
    {"image": P("data"), "label": P("data")},
    {"image": P("model", None, "data"), "label": P(("model", "data"))},
    {"image": P(None, "data", "model"), "label": P()},
]


@pytest.mark.parametrize("specs", SPECS, ids=repr)
@pytest.mark.parametrize("types", [(AUTO, AUTO), (EXPLICIT, EXPLICIT), (EXPLICIT, AUTO)], ids=repr)
def test_same_arrays(specs: dict[str, PartitionSpec], types: Any) -> None:
    if types == (EXPLICIT, AUTO) and specs is SPECS[1]:
        specs = {**specs, "label": P("data")}
    check(digits(24), mesh_of(types=types), specs, batch_size=16)


def test_padding_and_extras() -> None:
    specs = {"image": P("data"), "label": P("data")}
    check(digits(20), mesh_of(), specs, batch_size=8, remainder="pad", extras=("record", "key"))


@pytest.mark.parametrize(
    ("axes", "spec"),
    [
        ({"data": 4, "model": 2}, P("data")),
        ({"model": 2, "data": 4}, P("data")),
        ({"data": 4, "model": 2}, P("data", "model")),
        ({"copies": 2, "data": 2, "model": 2}, P("data")),
        ({"data": 8}, P()),
    ],
    ids=repr,
)
def test_resharding_moves_the_predicted_bytes(axes: dict[str, int], spec: PartitionSpec) -> None:
    """The collectives of the compiled program move as many bytes as the plan predicts."""
    ds = mf.from_arrays({"x": np.zeros((32, 16), np.float32)})
    mesh = Mesh(np.array(jax.devices()).reshape(*axes.values()), tuple(axes))
    with mf.Loader(ds, mesh, spec, batch_size=32, loading="reshard") as loader:
        program = jax.jit(loader.reshard).lower(loader.element_spec).compile()
        totals = loader.layout.report()["totals"]
    assert received(program.as_text() or "") == totals["interconnect_bytes"] > 0


def received(program: str) -> int:
    """Sums the bytes that eight devices receive from others in a program of float32 arrays."""
    total = 0
    for shapes, kind, rest in COLLECTIVE.findall(program):
        size = sum(4 * math.prod(map(int, dims.split(","))) for dims in SHAPE.findall(shapes))
        if kind == "collective-permute":
            pairs = re.findall(r"\{(\d+),(\d+)\}", rest)
            total += size * sum(source != target for source, target in pairs)
        else:
            members = group(rest)
            total += 8 * size * (members - 1) // members
    return total


COLLECTIVE = re.compile(r" = (.+) (all-gather|all-to-all|collective-permute)\((.+)")
SHAPE = re.compile(r"f32\[([\d,]+)\]")


def group(rest: str) -> int:
    """Returns the number of devices in a group of a collective."""
    if among := re.search(r"replica_groups=\[\d+,(\d+)\]", rest):
        return int(among[1])
    named = re.search(r"replica_groups=mesh\[(.+?)\] \{(.+?)\}", rest)
    assert named, rest
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
    return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", named[2]))


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_memory_is_as_predicted(prefetch: int) -> None:
    """The batch that the program holds and the ready ones take as much memory as predicted."""
    arrays = digits(64)
    specs = {"image": P("data", None, "model"), "label": P("data")}
    with mf.from_arrays(arrays) as ds:
        lay = mf.layout(
            {"data": 4, "model": 2}, specs, ds, batch_size=8, processes=4, prefetch=prefetch
        )
        for process in lay.processes:
            with mf.Loader(ds, layout=lay, process=process, epochs=-1) as loader:
                batch = next(iter(loader))
                late = time.monotonic() + HANG
                while loader.stats()["queued"] < prefetch:
                    assert time.monotonic() < late
                assert loader.stats()["host_bytes"] == lay.report()["totals"]["host_bytes"]
                del batch


def test_random_meshes(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(12):
        shape = r.choice([(8,), (4, 2), (2, 4), (2, 2, 2), (2, 2), (1, 8), (1,)])
        mesh = mesh_of(shape, order=r.sample(range(8), 8))
        specs = {}
        for name, rank in (("image", 3), ("label", 1)):
            entries: list[list[str]] = [[] for _ in range(rank)]
            for axis in r.sample(mesh.axis_names, len(mesh.axis_names)):
                r.choice([*entries, []]).append(axis)
            specs[name] = P(*map(tuple, entries))
        check(digits(40), mesh, specs, batch_size=16, extras=("key",))


def test_micro_batches() -> None:
    arrays = digits(24)
    specs = {"image": P(None, "data"), "label": P(None, ("data", "model"))}
    loader = mf.Loader(
        mf.from_arrays(arrays), mesh_of(), specs, batch_size=(3, 8), loading="reshard"
    )
    assert loader.element_spec["image"].sharding.spec == P(None, ("data", "model"))
    (batch,) = loader
    batch = jax.jit(loader.reshard)(batch)
    for name, spec in specs.items():
        whole = arrays[name].reshape(3, 8, *arrays[name].shape[1:])
        assert batch[name].sharding.is_equivalent_to(NamedSharding(mesh_of(), spec), whole.ndim)
        np.testing.assert_array_equal(np.asarray(batch[name]), whole)


def test_every_device_has_its_own_memory() -> None:
    specs = {"image": P("data"), "label": P("data")}
    buffers: dict[Way, int] = {"process": 4, "device": 8}
    for how, n in buffers.items():
        loader = mf.Loader(mf.from_arrays(digits(8)), mesh_of(), specs, batch_size=8, loading=how)
        (batch,) = loader
        shards = batch["image"].addressable_shards
        assert len({shard.data.unsafe_buffer_pointer() for shard in shards}) == n


def test_nested_trees() -> None:
    specs = ({"a": mf.Array("image", P("data"))}, mf.Array("label", P("model")))
    loader = mf.Loader(mf.from_arrays(digits(8)), mesh_of(), specs, batch_size=8, loading="reshard")
    (batch,) = loader
    moved = jax.jit(loader.reshard)(batch)
    assert moved[0]["a"].sharding.spec == P("data")
    assert moved[1].sharding.spec == P("model")
    with pytest.raises(mf.InvalidArgumentError) as e:
        loader.reshard(batch[0])
    assert str(e.value) == (
        "Loader.reshard: the batch has the tree PyTreeDef({'a': *}), but batches of this loader "
        "have PyTreeDef(({'a': *}, *)); pass a batch of this loader, unchanged"
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    """A dataclass that JAX knows, with a member that is not a child."""

    image: Any
    label: Any
    split: str = dataclasses.field(default="train", metadata={"static": True})


@jax.tree_util.register_pytree_with_keys_class
class ByHand:
    """A class that flattens itself, to children in an order of its own."""

    def __init__(self, image: Any, label: Any) -> None:
        self.image, self.label = image, label

    def tree_flatten_with_keys(self) -> Any:
        key = jax.tree_util.GetAttrKey
        return ((key("label"), self.label), (key("image"), self.image)), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> ByHand:
        return cls(*reversed(children))


def classes() -> list[Any]:
    """Returns classes of batches, also of the libraries that are installed."""
    found: list[Any] = [Registered, ByHand]
    members = {"__annotations__": {"image": Any, "label": Any}}
    if importlib.util.find_spec("equinox"):
        module = importlib.import_module("equinox")
        found.append(type(module.Module)("Module", (module.Module,), dict(members)))
    if importlib.util.find_spec("flax"):
        module = importlib.import_module("flax.struct")
        found.append(module.dataclass(type("Struct", (), dict(members))))
    return found


@pytest.mark.parametrize("kind", classes())
def test_classes_that_jax_knows_are_trees(kind: Any) -> None:
    """One rule for loaders, `put`, `place_batches` and `check_replicas`."""
    whole, mesh = digits(8), mesh_of()
    specs = kind(P("data"), mf.Array("label", P("model")))
    with mf.Loader(mf.from_arrays(whole), mesh, specs, batch_size=8, epochs=2) as loader:
        loaded = next(iter(loader))
        loader.remesh(mesh_of())
        again = next(iter(loader))
    host, specs = kind(whole["image"], whole["label"]), kind(P("data"), P("model"))
    put = mf.put(host, mesh, specs)
    (placed,) = mf.place_batches([host], mesh, specs)
    for batch in (loaded, again, put, placed):
        assert type(batch) is kind
        assert_sharded(batch.image, whole["image"], NamedSharding(mesh, P("data")))
        assert_sharded(batch.label, whole["label"], NamedSharding(mesh, P("model")))
        assert mf.check_replicas(batch).arrays == 2


def test_members_of_a_class_that_are_none_stay_so() -> None:
    source = mf.from_arrays(digits(8))
    specs: Any = {"in": Registered(P("data"), None, "test")}
    options: Any = {"batch_size": 8, "remainder": "pad"}
    with mf.Loader(source, mesh_of(), specs, **options) as loader:
        batch = next(iter(loader))
    assert (batch["in"].label, batch["in"].split) == (None, "test")
    assert batch["valid"].all()
    with mf.Loader(
        source, specs=Registered(mf.Array("image"), mf.Array("label")), batch_size=8
    ) as loader:
        host = next(iter(loader))
    assert isinstance(host, Registered)
    np.testing.assert_array_equal(host.image, digits(8)["image"])


@dataclasses.dataclass
class Unknown:
    """A dataclass that is not registered."""

    image: Any


def test_a_dataclass_that_jax_does_not_know() -> None:
    register = "; register its class with JAX: jax.tree_util.register_dataclass(Unknown)"
    source, mesh, host = mf.from_arrays(digits(8)), mesh_of(), Unknown(np.zeros(8))
    calls: list[Any] = [
        lambda: mf.Loader(source, mesh, Unknown(P()), batch_size=8),
        lambda: mf.Loader(source, mesh, {"in": Unknown(P())}, batch_size=8),
        lambda: mf.put(host, mesh, P()),
        lambda: mf.put({"in": host}, mesh, {"in": Unknown(P())}),
        lambda: mf.place_batches([host], mesh, Unknown(P())),
        lambda: mf.check_replicas(host),
        lambda: mf.memory({"in": host}),
    ]
    for call in calls:
        with pytest.raises(mf.InvalidArgumentError) as caught:
            call()
        assert str(caught.value).endswith(register)


def test_a_class_that_cannot_be_flattened() -> None:
    class Broken:
        pass

    def flatten(_: Broken) -> Any:
        raise KeyError("x")

    jax.tree_util.register_pytree_node(Broken, flatten, lambda *_: Broken())
    with pytest.raises(mf.InvalidArgumentError, match=r"jax.tree.flatten failed: KeyError\('x'\)"):
        mf.Loader(mf.from_arrays(digits(8)), mesh_of(), Broken(), batch_size=8)  # type: ignore[call-overload]


def test_memory_kinds_are_kept() -> None:
    sharding = NamedSharding(mesh_of(), P("data"), memory_kind="pinned_host")
    for how in ("device", "reshard"):
        loader = mf.Loader(
            mf.from_arrays(digits(8)), specs={"label": sharding}, batch_size=8, loading=how
        )
        (batch,) = loader
        assert batch["label"].sharding.memory_kind == "pinned_host"
        np.testing.assert_array_equal(np.asarray(batch["label"]), digits(8)["label"])


def test_without_jax() -> None:
    for how in WAYS:
        loader = mf.Loader(mf.from_arrays(digits(8)), batch_size=8, loading=how)
        (batch,) = loader
        np.testing.assert_array_equal(batch["image"], digits(8)["image"])
        assert loader.reshard(batch) is batch


def test_blocks_of_a_layout() -> None:
    arrays = digits(16)
    ds = mf.from_arrays(arrays)
    counts: dict[Way, int] = {"process": 1, "global": 1, "device": 2, "reshard": 2}
    for how, blocks in counts.items():
        lay = mf.layout(
            {"data": 4, "model": 2}, mf.P("data"), ds, batch_size=16, processes=4, loading=how
        )
        (batch,) = mf.Loader(ds, layout=lay, process=2)
        assert len(batch["image"]) == blocks
        for index, block in batch["image"]:
            np.testing.assert_array_equal(block, arrays["image"][index])


WRONG = [
    (
        {"loading": "pipeline"},
        'mf.Loader: loading=\'pipeline\': expected "process", "global", "device" or "reshard"',
    ),
    (
        {"loading": "reshard", "batch_size": 12},
        'mf.Loader: with loading "reshard" the batch of 12 is split over all 8 devices, '
        "but 12 % 8 = 4; use a batch of 8 or 16, or another way of loading",
    ),
    (
        {"loading": "reshard", "mesh": mesh_of(types=(AUTO, EXPLICIT))},
        "mf.Loader: array 'label' cannot be resharded: in the entry ('data', 'model') of its spec "
        "an explicit axis comes after an automatic one; make all axes of the mesh of one type",
    ),
]


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_wrong_loading(options: dict[str, Any], text: str) -> None:
    specs = {"image": P("data"), "label": P(("data", "model"))}
    if options.get("batch_size") == 12:
        specs["label"] = P("data")
    arguments: dict[str, Any] = {"mesh": mesh_of(), "specs": specs, "batch_size": 16}
    with pytest.raises(mf.InvalidArgumentError) as e:
        mf.Loader(mf.from_arrays(digits(16)), **(arguments | options))
    assert str(e.value) == text


# ---- single arrays ----


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64", "float64"])
@pytest.mark.parametrize("spec", [P(), P("data"), P("model", "data"), P(None, ("data", "model"))])
def test_load_array(dtype: str, spec: PartitionSpec) -> None:
    whole = filled((12, 16), dtype)
    sharding = NamedSharding(mesh_of(order=[3, 7, 1, 0, 6, 2, 5, 4]), spec)
    array = mf.load_array(mf.from_arrays({"w": whole, "other": np.arange(12)}), "w", sharding)
    assert_sharded(array, whole.astype(jax.dtypes.canonicalize_dtype(whole.dtype)), sharding)


def test_load_one_record() -> None:
    whole = filled((3, 8, 12), "float32")
    ds = mf.from_arrays({"w": whole, "scale": np.arange(3, dtype=np.float32)})
    for spec in (P(), P("data", "model"), P(None, "data")):
        sharding = NamedSharding(mesh_of(), spec)
        assert_sharded(mf.load_array(ds, "w", sharding, record=2), whole[2], sharding)
    scalar = NamedSharding(mesh_of(), P())
    assert_sharded(mf.load_array(ds, "scale", scalar, record=1), np.array(1, np.float32), scalar)


def test_load_slice() -> None:
    whole = filled((10, 4), "float32")
    sharding = NamedSharding(mesh_of(), P("data"))
    with mf.from_arrays({"w": whole}) as ds, ds.slice(1, 9) as part:
        assert_sharded(mf.load_array(part, "w", sharding), whole[1:9], sharding)


def test_loaded_replicas_share_memory() -> None:
    """A block that several devices of a process hold is read once."""
    ds = mf.from_arrays({"w": filled((8, 64), "float32")})
    for spec, buffers in ((P("data"), 4), (P(), 1), (P("data", "model"), 8)):
        array = mf.load_array(ds, "w", NamedSharding(mesh_of(), spec))
        shards = array.addressable_shards
        assert len({shard.data.unsafe_buffer_pointer() for shard in shards}) == buffers


def test_loaded_array_outlives_the_dataset() -> None:
    whole = filled((8, 64), "float32")
    ds = mf.from_arrays({"w": whole})
    array = mf.load_array(ds, "w", NamedSharding(mesh_of(), P("data")))
    ds.close()
    np.testing.assert_array_equal(np.asarray(array), whole)


def test_fill() -> None:
    ds = mf.from_arrow(pa.table({"w": pa.array([1.0, None, 3.0, 4.0], pa.float32())}))
    sharding = NamedSharding(mesh_of(), P("data"))
    assert mf.load_array(ds, "w", sharding, fill=-1.0).tolist() == [1, -1, 3, 4]


TABLE = pa.table(
    {
        "w": pa.array([[1.0, 2.0]] * 6, pa.list_(pa.float32(), 2)),
        "wide": pa.array([2**40] * 6, pa.int64()),
        "null": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
        "text": pa.array(list("abcdef")),
    }
)

REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"field": "w", "sharding": P("data")},
        mf.InvalidArgumentError,
        'mf.load_array: dimension 0 of array "w" of shape (6, 2) is split 4 ways by axis "data" '
        "(size 4), but 6 % 4 = 2; the nearest sizes that divide: 4 or 8; or partition another "
        "dimension",
    ),
    (
        {"field": "w", "sharding": P(None, None, "data")},
        mf.InvalidArgumentError,
        "mf.load_array: spec P(None, None, 'data') of array \"w\" has 3 entries, but shape (6, 2) "
        "has rank 2; give at most one entry per dimension",
    ),
    (
        {"field": "w", "sharding": P("data"), "record": 0},
        mf.InvalidArgumentError,
        'mf.load_array: dimension 0 of array "w" of shape (2,) is split 4 ways by axis "data" '
        "(size 4), but 2 % 4 = 2; the nearest sizes that divide: 4; or partition another dimension",
    ),
    (
        {"field": "w", "sharding": P(), "record": 6},
        mf.InvalidArgumentError,
        "mf.load_array: record=6: expected an integer from 0 to 5",
    ),
    (
        {"field": "v", "sharding": P()},
        mf.NotFoundError,
        "mf.load_array: array 'v' takes field 'v', which the dataset does not have; "
        "there are 'w', 'wide', 'null'",
    ),
    (
        {"field": "text", "sharding": P()},
        mf.UnsupportedError,
        'mf.load_array: array "text" takes column "text" of type string, which cannot be an array: '
        "its rows are text of different lengths; store token ids, or give the bytes one length: "
        'ds.pad("text", length=…)',
    ),
    (
        {"field": ["w"], "sharding": P()},
        mf.InvalidArgumentError,
        "mf.load_array: field=['w']: expected the name of a field; "
        "give the dataset, the field's name and a NamedSharding",
    ),
    (
        {"field": "wide", "sharding": P()},
        mf.OutOfRangeError,
        'field "wide": record 0 holds 1099511627776',
    ),
    ({"field": "null", "sharding": P()}, mf.InvalidArgumentError, 'field "null" '),
    (
        {"field": "w", "sharding": P(), "fill": "zero"},
        mf.InvalidArgumentError,
        "mf.load_array: fill=",
    ),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), REFUSED)
def test_refused_arrays(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    arguments = arguments | {"sharding": NamedSharding(mesh_of(), arguments["sharding"])}
    with mf.from_arrow(TABLE) as ds, pytest.raises(kind) as e:
        mf.load_array(ds, **arguments)
    assert text in str(e.value)


def test_an_array_that_is_too_large() -> None:
    ds = mf.from_arrays({"w": np.broadcast_to(np.float32(0), (2**20, 2**20))})
    with pytest.raises(mf.ResourceExhaustedError) as e:
        mf.load_array(ds, "w", NamedSharding(mesh_of(), P("data")))
    assert str(e.value) == (
        "mf.load_array: array 'w' is the only batch of a loader, and one batch takes 4398054899968 "
        "bytes in process 0, but may take 68719476736; partition it over more processes, or load "
        "parts of it from source.slice"
    )


def test_refused_kinds() -> None:
    ds = mf.from_arrays({"w": np.zeros((0, 3), np.float32)})
    sharding = NamedSharding(mesh_of(), P())
    for source, how, text in (
        (ds, sharding, "mf.load_array: the dataset has no records, so there is no array"),
        (numbers(), P(), "mf.load_array: a PartitionSpec was given without a mesh; "),
        (np.zeros(3), sharding, "mf.load_array: source=array([0., 0., 0.]): expected a meshfeed."),
    ):
        with pytest.raises(mf.InvalidArgumentError) as e:
            mf.load_array(source, "w", how)  # type: ignore[arg-type]
        assert str(e.value).startswith(text)


def numbers() -> mf.Dataset:
    return mf.from_arrays({"w": np.arange(4, dtype=np.float32)})
