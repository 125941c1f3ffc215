"""`mf.memory` agrees with what XLA allocates for the arguments of compiled functions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.plan.compiled import memory

Struct = jax.ShapeDtypeStruct


def mesh_of(**axes: int) -> jax.sharding.Mesh:
    kinds = (AxisType.Auto,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=kinds)


MESHES = {
    "1-D": mesh_of(fsdp=8),
    "2-D": mesh_of(data=4, model=2),
    "3-D": mesh_of(data=2, fsdp=2, model=2),
    "explicit": jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2),
}


def allocated(*arguments: Any) -> int:
    """Returns the bytes of a device for the arguments of a compiled function."""
    lowered = jax.jit(lambda *_: 0, keep_unused=True).lower(*arguments)
    return int(memory(lowered).argument_size_in_bytes)


def placed(mesh: jax.sharding.Mesh, tree: Any, specs: Any) -> Any:
    """Returns a tree with shardings."""

    def place(leaf: Any, spec: Any) -> Any:
        return Struct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    return jax.tree.map(place, tree, specs)


def transformer(dtype: Any) -> Any:
    """Returns the parameters of a small transformer with layers in a list."""

    def layer() -> dict[str, Any]:
        return {
            "attention": {name: Struct((16, 32), dtype) for name in "qkv"},
            "mlp": (Struct((16, 64), dtype), Struct((64, 16), dtype)),
            "scale": Struct((16,), jnp.float32),
        }

    return {
        "embed": Struct((48, 16), dtype),
        "layers": [layer(), layer()],
        "step": Struct((), jnp.int32),
    }


def last(axis: Any) -> Callable[[Any], P]:
    """Partitions the last dimension of all arrays except scalars."""
    return lambda x: P(*[None] * (len(x.shape) - 1), axis) if x.shape else P()


def first(axis: Any) -> Callable[[Any], P]:
    """Partitions the first dimension of all arrays except scalars."""
    return lambda x: P(axis) if x.shape else P()


def both(a: Any, b: Any) -> Callable[[Any], P]:
    """Partitions the dimensions of matrices, and leaves other arrays whole."""
    return lambda x: P(a, b) if len(x.shape) == 2 else P()


WAYS: list[tuple[str, Callable[[Any], P]]] = [
    ("1-D", lambda _: P()),
    ("1-D", first("fsdp")),
    ("1-D", last("fsdp")),
    ("2-D", lambda _: P()),
    ("2-D", first("data")),
    ("2-D", last("model")),
    ("2-D", both("data", "model")),
    ("2-D", first(("data", "model"))),
    ("3-D", both("fsdp", "model")),
    ("3-D", last(("data", "fsdp"))),
    ("3-D", both(("fsdp", "data"), "model")),
    ("explicit", both("data", "model")),
]
TYPES = ("float32", "bfloat16", "int8", "int4", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("dtype", TYPES)
def test_models_over_shardings(dtype: str) -> None:
    tree = transformer(dtype)
    for name, way in WAYS:
        params = placed(MESHES[name], tree, jax.tree.map(way, tree))
        used = mf.memory(params)
        assert used.problems == []
        assert used.stored == allocated(params), (name, jax.tree.map(way, tree)["embed"])


def test_all_element_types() -> None:
    names = [
        *("bool", "int1", "int2", "int4", "int8", "int16", "int32"),
        *("uint1", "uint2", "uint4", "uint8", "uint16", "uint32"),
        *("float16", "bfloat16", "float32", "complex64", "float4_e2m1fn"),
        *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
        *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    ]
    shapes = [(), (3,), (5, 8), (0, 8)]
    for name in names:
        tree = [Struct(shape, name) for shape in shapes]
        params = placed(
            MESHES["2-D"], tree, [P(), P(), P(None, "data"), P(None, ("model", "data"))]
        )
        assert mf.memory(params).stored == allocated(params), name


def test_wide_types() -> None:
    with jax.enable_x64(True):
        tree = [Struct((8, 3), name) for name in ("int64", "uint64", "float64", "complex128")]
        params = placed(MESHES["2-D"], tree, [P("data")] * 4)
        assert mf.memory(params).stored == allocated(params) == 3 * 2 * (8 + 8 + 8 + 16)
    narrow = mf.memory(tree, NamedSharding(MESHES["2-D"], P("data")))
    assert narrow.stored == 3 * 2 * (4 + 4 + 4 + 8)


def test_keys() -> None:
    sharding = NamedSharding(MESHES["2-D"], P("data"))
    for implementation in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = jax.random.key(0, impl=implementation)
        keys = jax.device_put(jax.random.split(key, 8), sharding)
        assert mf.memory({"keys": keys}).stored == allocated(keys)
        assert mf.memory(key).stored == allocated(key)


class Moments(NamedTuple):
    """The states of `Adam`, as optax has them."""

    count: Any
    mu: Any
    nu: Any


class Adam:
    """An optimizer with the interface of optax."""

    def init(self, params: Any) -> tuple[Moments, tuple[()]]:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return Moments(jnp.zeros((), jnp.int32), zeros, zeros), ()


class Factored(NamedTuple):
    """The states of `Adafactor`, as optax has them."""

    count: Any
    v_row: Any
    v_col: Any
    v: Any


class Adafactor:
    """Keeps sums as optax does: over the largest dimension and over the second largest."""

    def init(self, params: Any) -> Factored:
        def of(x: Any) -> tuple[Any, Any, Any]:
            order = np.argsort(x.shape, kind="stable")
            if x.ndim < 2 or x.shape[order[-2]] < 128:
                return (jnp.zeros(1, x.dtype), jnp.zeros(1, x.dtype), jnp.zeros_like(x))
            rows, columns = np.delete(x.shape, order[-1]), np.delete(x.shape, order[-2])
            return jnp.zeros(rows, x.dtype), jnp.zeros(columns, x.dtype), jnp.zeros(1, x.dtype)

        states = jax.tree.map(of, params)
        each = [
            jax.tree.map(lambda s, i=i: s[i], states, is_leaf=lambda x: type(x) is tuple)
            for i in range(3)
        ]
        return Factored(jnp.zeros((), jnp.int32), *each)


def test_precision() -> None:
    tree = {"w": Struct((64, 64), jnp.bfloat16)}
    types = {"moments": jnp.float32, "master": "float32", "gradients": None}
    used = mf.memory(tree, P("data"), mesh={"data": 4}, optimizer="adamw", precision=types)
    each = 64 * 64 // 4
    assert used.arrays["w"].optimizer_bytes == (4 + 4 + 4) * each
    assert used.totals["gradient_bytes"] == 2 * each
    assert used.stored == 14 * each + 4


def partitioned_like(used: mf.Memory, mesh: Any, states: Any) -> Any:
    """Returns states with the shardings that `mf.memory` names for them."""
    rows = iter(used.optimizer.values())

    def place(leaf: Any) -> Any:
        spec = P(*(tuple(e) if isinstance(e, list) else e for e in next(rows).spec or ()))
        return Struct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    return jax.tree.map(place, states)


@pytest.mark.parametrize(("optimizer", "name"), [(Adam(), "adamw"), (Adafactor(), "adafactor")])
def test_optimizers(optimizer: Any, name: str) -> None:
    tree = {"w": Struct((256, 512), jnp.bfloat16), "eq": Struct((4, 256, 256), jnp.float32),
            "b": Struct((8,), jnp.float32)}  # fmt: skip
    states = jax.eval_shape(optimizer.init, tree)
    for mesh, spec in (("2-D", P("data", "model")), ("3-D", P(None, "fsdp")), ("1-D", P())):
        specs = {"w": spec, "eq": P(None, *spec), "b": P()}
        params = placed(MESHES[mesh], tree, specs)
        used = mf.memory(params, optimizer=optimizer)
        placed_states = partitioned_like(used, MESHES[mesh], states)
        assert used.stored == allocated(params, placed_states)
        assert used.stored == mf.memory(params, optimizer=name).stored
        assert mf.memory(params, optimizer=placed_states).stored == used.stored
        w = next(row for key, row in used.optimizer.items() if key.endswith(("mu/w", "v_row/w")))
        assert [e for e in w.spec or () if e] == [e for e in spec[: len(w.shape)] if e]


def test_sums_of_a_parameter_whose_name_contains_row() -> None:
    tree = {"arrow": Struct((256, 256), jnp.float32)}
    used = mf.memory(tree, P("data"), mesh=MESHES["2-D"], optimizer=Adafactor())
    specs = {key.split("/")[0]: row.spec for key, row in used.optimizer.items()}
    assert specs == {"count": [], "v_row": ["data"], "v_col": [], "v": []}


def test_shardings_as_a_prefix() -> None:
    tree = {"a": {"x": np.zeros((8, 8), np.float32), "y": np.zeros(8)}, "b": 1.5, "none": None}
    by_data = NamedSharding(MESHES["2-D"], P("data"))
    assert mf.memory(tree, {"a": by_data, "b": P(), "none": None}).stored == 64 + 8 + 4
    assert (
        mf.memory(tree["a"], by_data).stored
        == mf.memory(tree["a"], P("data"), mesh=MESHES["2-D"]).stored
        == 72
    )
    assert mf.memory(tree["a"], mf.P("data"), mesh={"data": 4, "model": 2}).stored == 72
    with jax.set_mesh(MESHES["explicit"]):
        assert mf.memory(tree["a"], P("data")).stored == 72
    assert mf.memory(tree).stored == 256 + 32 + 4


def test_live_arrays() -> None:
    x = jax.device_put(
        np.zeros((8, 8), np.float32), NamedSharding(MESHES["2-D"], P("data", "model"))
    )
    free = jnp.zeros(8)  # not committed: a compiled function puts it where the others are
    used = mf.memory({"x": x, "free": free})
    assert used.stored == 32 + 32
    assert used.arrays["free"].copies == 8
    assert mf.memory(free).devices == 1
    assert mf.memory({"x": x, "traced": jax.typeof(free)}).stored == 64


def test_states_without_the_names_of_parameters() -> None:
    tree = {"w": Struct((8, 16), jnp.float32), "b": Struct((16,), jnp.float32)}
    flat = Flat()
    used = mf.memory(tree, {"w": P("data"), "b": P("model")}, mesh=MESHES["2-D"], optimizer=flat)
    assert [row.spec for row in used.optimizer.values()] == [["model"], ["data"], []]


def test_the_batch_of_a_loader() -> None:
    records = mf.from_arrays({"x": np.zeros((64, 6), np.float32), "y": np.zeros(64, np.int32)})
    specs = {"x": P("data", "model"), "y": P("data")}
    with mf.Loader(records, MESHES["2-D"], specs, batch_size=32) as loader:
        used = mf.memory({"w": np.zeros((6, 2), np.float32)}, batch=loader.element_spec)
        batch = next(iter(loader))
        assert used.stored == allocated({"w": np.zeros((6, 2), np.float32)}, batch)
        assert used.totals["batch_bytes"] == 4 * 8 * 3 + 4 * 8
    assert mf.memory(batch).stored == used.totals["batch_bytes"]


def test_an_abstract_mesh() -> None:
    mesh = AbstractMesh((4096, 16), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    used = mf.memory(
        Struct((1 << 20, 1 << 12), jnp.bfloat16), NamedSharding(mesh, P("data", "model"))
    )
    assert (used.stored, used.devices) == (2 * (1 << 32) // (1 << 16), 1 << 16)


def test_arrays_of_two_meshes_over_the_same_devices() -> None:
    a = Struct((8, 8), jnp.float32, sharding=NamedSharding(MESHES["2-D"], P("data", "model")))
    b = Struct((8, 8), jnp.float32, sharding=NamedSharding(MESHES["1-D"], P("fsdp")))
    c = Struct((8,), jnp.float32, sharding=NamedSharding(MESHES["1-D"], P()))
    used = mf.memory({"a": a, "b": b, "c": c})
    assert used.stored == allocated(a, b, c) == 32 + 32 + 32
    assert (used.arrays["b"].spec, used.arrays["b"].shard_shape) == (None, [1, 8])
    assert "parts (1, 8)" in str(used)


def test_names() -> None:
    tree = {"a/b": np.zeros(1), "a": {"b": np.zeros(2)}}
    assert list(mf.memory(tree).arrays) == ["['a']['b']", "['a/b']"]
    assert list(mf.memory({"a": (np.zeros(1), Moments(1, 2, 3))}).arrays) == [
        "a/0", "a/1/count", "a/1/mu", "a/1/nu",
    ]  # fmt: skip
    assert list(mf.memory(np.zeros(1)).arrays) == ["tree"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Net:
    """A model that is a pytree, as in equinox and flax.nnx."""

    w: Any
    b: Any
    name: str = dataclasses.field(default="net", metadata={"static": True})

    @staticmethod
    def create(key: Any) -> Net:
        return Net(jax.random.normal(key, (8, 16)), jnp.zeros(16))


@pytest.mark.parametrize("mesh", [MESHES["2-D"], MESHES["explicit"]], ids=["auto", "explicit"])
def test_the_mesh_of_set_mesh(mesh: Any) -> None:
    net = jax.eval_shape(Net.create, jax.random.key(0))
    specs = Net(P("data", "model"), P())
    whole = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    made = jax.jit(Net.create, out_shardings=whole)(jax.random.key(0))
    wanted = mf.memory(made, optimizer="adamw")
    assert (wanted.arrays["w"].bytes, wanted.arrays["b"].bytes) == (64, 64)
    with jax.set_mesh(mesh):
        structs = jax.tree.map(lambda x, spec: Struct(x.shape, x.dtype, sharding=spec), net, specs)
        shapes = jax.eval_shape(jax.jit(Net.create, out_shardings=whole), jax.random.key(0))
        pairs: list[tuple[Any, Any]] = [(net, specs), (structs, None), (shapes, None)]
        for tree, shardings in [*pairs, (net, whole), (made, None)]:
            used = mf.memory(tree, shardings, optimizer="adamw", batch=Struct((8,), "int32"))
            assert used.stored == (wanted.stored or 0) + 32
            assert str(used.arrays) == str(wanted.arrays)
        assert "Mesh('data': 4, 'model': 2)" in str(mf.draw(structs))


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host"])
@pytest.mark.parametrize(
    "mesh", [MESHES["2-D"], MESHES["2-D"].abstract_mesh], ids=["devices", "abstract"]
)
def test_arrays_on_the_host(mesh: Any, kind: str) -> None:
    sharding = NamedSharding(mesh, P("data"), memory_kind=kind)
    used = mf.memory({"w": Struct((8, 8), jnp.float32, sharding=sharding)}, optimizer="adamw")
    assert used.arrays["w"].memory_kind == kind
    assert (used.stored, used.totals["host_bytes"]) == (4, 3 * 64)


def test_the_default_memory_of_a_device() -> None:
    default = jax.devices()[0].default_memory().kind  # in old JAX, unpinned_host on CPU
    sharding = NamedSharding(MESHES["2-D"], P("data"), memory_kind=default)
    used = mf.memory(Struct((8, 8), jnp.float32, sharding=sharding))
    assert (used.stored, used.totals["host_bytes"]) == (64, 0)


class Flat:
    """An optimizer with a list of states, with one of another shape."""

    def init(self, params: Any) -> list[Any]:
        return [*map(jnp.zeros_like, jax.tree.leaves(params)), jnp.zeros(3)]


class Broken:
    """An optimizer with an `init` that fails for parameters without "b"."""

    def init(self, params: Any) -> Any:
        return params["b"]


def test_a_loss_without_a_batch() -> None:
    tree = {"w": Struct((8, 16), jnp.float32)}
    used = mf.memory(tree, P("data"), mesh=MESHES["2-D"], loss=lambda t: (t["w"] ** 2).sum())
    assert used.peak is not None
    assert used.peak[0] <= used.peak[1]


CYCLE: dict[str, Any] = {"w": np.zeros(8)}
CYCLE["self"] = [CYCLE, CYCLE]

WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: mf.memory(CYCLE),
        "the argument tree contains itself, or is deeper than 100 levels; "
        "give arrays in nested dicts, lists and tuples",
    ),
    (
        lambda: mf.memory(np.zeros(8), [CYCLE]),
        "the argument shardings contains itself, or is deeper than 100 levels; "
        "give arrays in nested dicts, lists and tuples",
    ),
    (
        lambda: mf.memory({"names": np.array(["a"])}),
        "leaf 'names' of tree has the dtype <U1, which JAX does not have; give arrays of numbers",
    ),
    (
        lambda: mf.memory({"f": jnp.sin}),
        "leaf 'f' of tree is <PjitFunction of <function sin at 0x…>>, "
        "which has no shape and dtype; "
        "give arrays or jax.ShapeDtypeStructs, and leave out functions and settings",
    ),
    (
        lambda: mf.memory({"a": np.zeros(8)}, {"b": P()}, mesh=MESHES["1-D"]),
        "shardings have nothing for tree['a']; give one sharding, or a tree with the keys of tree",
    ),
    (
        lambda: mf.memory({"a": np.zeros(8)}, {"a": P(), "b": P()}, mesh=MESHES["1-D"]),
        "shardings have ['b'], which tree does not have; "
        "give one sharding, or a tree with the keys of tree",
    ),
    (
        lambda: mf.memory([np.zeros(8)], (P(),), mesh=MESHES["1-D"]),
        "shardings have the type tuple for tree, which has the type list; "
        "give one sharding, or a tree with the keys of tree",
    ),
    (
        lambda: mf.memory(np.zeros(8), "data"),
        "shardings have the leaf 'data'; a spec is written PartitionSpec('data')",
    ),
    (
        lambda: mf.memory(np.zeros(8), [3]),
        "shardings have the leaf 3; a leaf is a NamedSharding, another sharding or a spec",
    ),
    (
        lambda: mf.memory(np.zeros(8), P("data")),
        "a PartitionSpec was given without a mesh; "
        "pass mesh=, or use NamedSharding(mesh, spec) or jax.set_mesh",
    ),
    (
        lambda: mf.memory(
            [
                Struct((8,), "int32", sharding=NamedSharding(MESHES["2-D"], P("data"))),
                jax.device_put(np.zeros(8), jax.devices()[1]),
            ]
        ),
        "array '1' is on one device, but the others are on Mesh('data': 4, 'model': 2); "
        "move it with jax.device_put(x, NamedSharding(mesh, P()))",
    ),
    (
        lambda: mf.memory(
            [
                jax.device_put(np.zeros(8), jax.devices()[0]),
                jax.device_put(np.zeros(8), jax.devices()[1]),
            ]
        ),
        "array '1' is on one device, but the others are on 1 devices; "
        "move it with jax.device_put(x, NamedSharding(mesh, P()))",
    ),
    (
        lambda: mf.memory(np.zeros(8), P("data"), mesh=8),  # type: ignore[arg-type]
        'mesh=8: expected the size of every axis, or a JAX mesh; such as {"data": 4, "model": 2}',
    ),
    (
        lambda: mf.memory(np.zeros(8), precision="float32"),  # type: ignore[arg-type]
        "precision='float32': expected a dict of names and element types; "
        'such as {"moments": "float32"}',
    ),
    (
        lambda: mf.memory(np.zeros(8), precision={"moment": "float32"}),
        "precision['moment']='float32': \"moment\" is not a key; "
        'did you mean "moments"? The keys here are gradients, master, moments',
    ),
    (
        lambda: mf.memory({"w": np.zeros(8)}, optimizer=Broken()),
        "optimizer.init failed for these parameters: KeyError: 'b'; "
        "give an optimizer such as optax.adamw(1e-3)",
    ),
    (
        lambda: mf.memory(np.zeros(8), optimizer="adam"),
        "optimizer='adam': "
        '"adam" is not an optimizer with known states; '
        'did you mean "adamw"? The names are '
        '"adamw", "adafactor", "lion", "sgd", "momentum", "muon"',
    ),
    (
        lambda: mf.memory(np.zeros(8), optimizer=jnp.sin),
        "optimizer=<PjitFunction of <function sin at 0x…>>: "
        "expected a name, an object with a method init, or the tree of the states; "
        "give arrays or jax.ShapeDtypeStructs",
    ),
    (
        lambda: mf.memory(np.zeros(8), batch=8),
        "batch=8: expected the arrays of a batch, such as loader.element_spec; "
        "give arrays or jax.ShapeDtypeStructs",
    ),
    (
        lambda: mf.memory(
            np.zeros(8), batch=mf.Loader(mf.from_arrays({"x": np.zeros(4)}), batch_size=2)
        ),
        "batch=Loader(['x'], batch_size=2, epoch=0, step=0 of 2): "
        "expected the arrays of a batch, such as loader.element_spec; give its element_spec",
    ),
    (
        lambda: mf.memory(None),
        "tree=None: expected the parameters of a model; give arrays or jax.ShapeDtypeStructs",
    ),
    (
        lambda: mf.memory(np.zeros(8), optimizer=3),
        "optimizer=3: expected a name, an object with a method init, or the tree of the states; "
        "give arrays or jax.ShapeDtypeStructs",
    ),
    (
        lambda: mf.memory(np.zeros(8), capacity=8e10),  # type: ignore[arg-type]
        "capacity=80000000000.0: expected an integer from 1 to 2^53; write 80 * 10**9",
    ),
    (
        lambda: mf.memory(np.zeros(8), capacity=0),
        "capacity=0: expected an integer from 1 to 2^53",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        call()
    text = re.sub(r"0x[0-9a-f]+", "0x…", str(caught.value))
    assert text == f"mf.memory: {message}"
    # If JAX had seen a tree that contains itself, it would fail for all later trees.
    assert jax.tree.leaves([1, [2]]) == [1, 2]


def test_a_dimension_that_the_compiler_partitions() -> None:
    for given in (P(P.UNCONSTRAINED), NamedSharding(MESHES["2-D"], P(P.UNCONSTRAINED))):
        with pytest.raises(mf.UnsupportedError) as caught:
            mf.memory({"w": np.zeros(8)}, given, mesh=MESHES["2-D"])
        assert str(caught.value) == (
            "mf.memory: array 'w': P(UNCONSTRAINED,) leaves a dimension unconstrained, "
            "so the compiler chooses the sharding; name the axes, or use None"
        )


def test_a_spec_that_does_not_fit_is_a_problem() -> None:
    used = mf.memory({"w": np.zeros((30, 8))}, P("data"), mesh=MESHES["2-D"])
    assert used.stored is None
    assert [(p.code, p.path) for p in used.problems] == [("indivisible", "/arrays/w/shape/0")]
    assert "30 % 4 = 2" in " ".join(str(used).split())


def test_replicated_by_mistake() -> None:
    tree = {"in": Struct((1024, 4096), jnp.float32), "out": Struct((4096, 1024), jnp.float32)}
    used = mf.memory(tree, {"in": P(None, "model"), "out": P()}, mesh=MESHES["2-D"])
    (problem,) = used.problems
    assert (problem.code, problem.path) == ("replicated", "/arrays/out/spec")
    assert problem.facts == {"bytes": 8 << 20, "devices": 2}
    assert problem.hint.startswith("write P('model',) to save 8 MiB of every device")
    better = mf.memory(tree, {"in": P(None, "model"), "out": P("model")}, mesh=MESHES["2-D"])
    assert better.problems == []
    assert used.stored is not None
    assert better.stored == used.stored - problem.facts["bytes"]


def test_what_a_notebook_shows() -> None:
    used = mf.memory({"<w>": np.zeros(8)}, capacity=1 << 30)
    assert "&lt;w&gt;" in used._repr_html_()
    assert max(map(len, str(used).splitlines())) <= 100
    assert repr(used) == "Memory(arrays=1, devices=1, stored=32)"
    assert (used.fits, used.peak) == (None, None)
