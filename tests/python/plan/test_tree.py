"""The arrays of an own model as the model of the planner."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed import strategy

P = PartitionSpec
LAYERS, HIDDEN, FFN, VOCAB, SEQUENCE, BATCH = 2, 64, 256, 512, 16, 16
LAYER = {"up": P("fsdp", "tensor"), "down": P("tensor", "fsdp"), "norm": P()}
SPECS: dict[str, Any] = {"embed": P("tensor", "fsdp"), "layers": [LAYER] * LAYERS}
INPUTS = {"tokens": ("int32", (SEQUENCE,))}
ONE = {"tokens": jax.ShapeDtypeStruct((1, SEQUENCE), jnp.int32)}
TRAINING = strategy.training(batch=BATCH)
H100 = strategy.cluster("h100-80", devices=8)


def init(key: jax.Array) -> dict[str, Any]:
    layers = [
        {"up": jnp.ones((HIDDEN, FFN)), "down": jnp.ones((FFN, HIDDEN)), "norm": jnp.ones(HIDDEN)}
        for _ in range(LAYERS)
    ]
    return {"embed": jax.random.normal(key, (VOCAB, HIDDEN)), "layers": layers}


def loss(params: Any, batch: Any, rows: NamedSharding | None = None) -> jax.Array:
    def split(x: jax.Array) -> jax.Array:
        return x if rows is None else jax.lax.with_sharding_constraint(x, rows)

    x = split(params["embed"][batch["tokens"]])
    for layer in params["layers"]:
        x = split(x + jnp.tanh(x * layer["norm"] @ layer["up"]) @ layer["down"])
    scalar: jax.Array = ((x @ params["embed"].T) ** 2).mean()
    return scalar


AUTO = jax.sharding.AxisType.Auto
SHAPES = jax.eval_shape(init, jax.random.key(0))


@pytest.mark.parametrize("axes", [{"fsdp": 8}, {"fsdp": 4, "tensor": 2}, {"data": 2, "tensor": 4}])
def test_the_plan_has_the_bytes_of_the_live_arrays(axes: dict[str, int]) -> None:
    """A model, its plan, the mesh, the arrays on it, and a step that runs."""
    one = mf.memory(SHAPES, batch=ONE, loss=loss)
    traced: Any = jax.jit(loss).lower(SHAPES, ONE).cost_analysis()
    model = strategy.tree(
        SHAPES,
        SPECS,
        activation_bytes_per_example=one.totals["activation_bytes"][1],
        flops_per_example=int(traced["flops"]),
        inputs=INPUTS,
    )
    whole = dict.fromkeys(("data", "fsdp", "tensor"), 1)
    search = {"axes": whole | axes, "zero": [0]}
    best = mf.advise(model, TRAINING, H100, search=search).best
    assert best is not None
    assert best.layout is not None
    assert best.mesh == axes
    mesh = best.make_mesh(("fsdp", "tensor"), axis_types=AUTO)
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS)
    params = jax.jit(init, out_shardings=shardings)(jax.random.key(0))
    dataset = mf.from_arrays({"tokens": np.zeros((32, SEQUENCE), np.int32)})
    with mf.Loader(dataset, mesh, layout=best.layout) as loader:
        used = mf.memory(params, optimizer="adamw", batch=loader.element_spec)
        totals = [used.totals[f"{part}_bytes"] for part in ("parameter", "gradient", "optimizer")]
        totals[2] -= 4  # the number of steps
        assert totals == [best.memory[part] for part in ("weights", "gradients", "optimizer")]
        grad = jax.jit(jax.grad(loss), out_shardings=shardings)
        step = grad.lower(params, loader.peek()).compile()
        found: Any = step.memory_analysis()
        assert found.argument_size_in_bytes == totals[0] + used.totals["batch_bytes"]
        assert found.output_size_in_bytes >= totals[1]
        assert all(np.isfinite(step(params, batch)["embed"]).all() for batch in loader)


def test_fsdp_splits_the_largest_dimension_without_specs() -> None:
    model = strategy.tree(SHAPES)
    best = mf.advise(model, TRAINING, H100, search={"axes": {"fsdp": 8}}).best
    assert best is not None
    rows = {"up": P(None, "fsdp"), "down": P("fsdp"), "norm": P("fsdp")}
    used = mf.memory(SHAPES, {"embed": P("fsdp"), "layers": [rows] * LAYERS}, mesh={"fsdp": 8})
    assert best.memory["weights"] == used.stored
    assert best.layout is None
    assert best.time is None


def test_a_step_with_split_activations_stays_below_the_peak() -> None:
    mesh = jax.make_mesh((8, 1), ("fsdp", "tensor"), axis_types=(AUTO,) * 2)
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS)
    rows = NamedSharding(mesh, P("fsdp"))
    batch = {"tokens": jax.ShapeDtypeStruct((256, SEQUENCE), jnp.int32, sharding=rows)}
    used = mf.memory(SHAPES, shardings, batch=batch, loss=loss)
    grad = jax.jit(jax.grad(partial(loss, rows=rows)), out_shardings=shardings)
    params = jax.tree.map(
        lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), SHAPES, shardings
    )
    found: Any = grad.lower(params, batch).compile().memory_analysis()
    assert used.peak is not None
    most = found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes
    assert used.peak[0] < most <= used.peak[1]


@pytest.mark.parametrize(
    ("shardings", "split"),
    [
        (None, "it splits the largest dimension of an array that its size divides"),
        (SPECS, "it splits arrays as their specs say"),
    ],
)
def test_the_report_says_what_fsdp_splits(shardings: Any, split: str) -> None:
    advice = mf.advise(strategy.tree(SHAPES, shardings), TRAINING, H100)
    texts = {a["code"]: a["text"] for a in advice.report["assumptions"]}
    assert split in texts["fsdp"]
    assert "Gathered weights do not count as memory" in texts["fsdp"]
    assert "layers of the model are not known" in texts["fsdp"]


def test_the_document_of_a_tree() -> None:
    mesh = jax.make_mesh((4, 2), ("fsdp", "tensor"))
    model = strategy.tree(
        {"a": {"w": jnp.zeros((8, 8), jnp.bfloat16)}, "b": np.zeros(3), "k": jax.random.key(0)},
        {"a": NamedSharding(mesh, P(("fsdp", "tensor"))), "b": None, "k": P()},
        flops_per_example=9,
        inputs=INPUTS,
    )
    assert repr(model) == "tree(<3 arrays>, flops_per_example=9, inputs=['tokens'])"
    assert model.document == {
        "tree": {
            "a/w": {"shape": [8, 8], "dtype": "bfloat16", "spec": [["fsdp", "tensor"]]},
            "b": {"shape": [3], "dtype": "float32"},
            "k": {"shape": [], "dtype": "key<fry>", "spec": []},
        },
        "flops_per_example": 9,
        "inputs": {"tokens": {"shape": ["B", SEQUENCE], "dtype": "int32"}},
    }
    advice = mf.advise(model, TRAINING, H100)
    assert json.loads(advice.to_json())["model"]["tree"].keys() == {"a/w", "b", "k"}


def test_the_inputs_of_a_dataset() -> None:
    rows = {"x": np.zeros((16, 4), np.float32), "y": np.zeros(16, np.int32)}
    given: Any = {"x": ("float32", (4,)), "y": ("int32", ())}
    with mf.from_arrays(rows) as dataset:
        model = strategy.tree(SHAPES, inputs=dataset)
        assert model.document == strategy.tree(SHAPES, inputs=given).document
        advice = mf.advise(model, TRAINING, H100)
        assert advice.best is not None
        assert advice.layout is not None
        (batch,) = mf.Loader(dataset, advice.best.make_mesh(), layout=advice.layout)
        assert batch.keys() == rows.keys()


def test_shardings_of_the_arrays_themselves_do_not_count() -> None:
    mesh = jax.make_mesh((8,), ("model",))
    w = jax.device_put(np.zeros((8, 8), np.float32), NamedSharding(mesh, P("model")))
    assert strategy.tree(w).document == {"tree": {"tree": {"shape": [8, 8], "dtype": "float32"}}}
    one = jax.device_put(w, jax.devices()[0])
    assert strategy.tree(w, one.sharding).document == strategy.tree(w).document


W = {"w": jax.ShapeDtypeStruct((8, 8), "float32")}
WRONG: list[tuple[Any, Any, str]] = [
    (
        W,
        P("model"),
        "tree['w']['spec'][0]='model': \"model\" is not an axis of the planner; "
        'use one of "fsdp", "expert", "tensor"',
    ),
    (
        W,
        P("data"),
        "tree['w']['spec'][0]='data': axis \"data\" splits the layers, the batch or the sequence, "
        'but no array of the model; use "fsdp", "expert" or "tensor"',
    ),
    (
        W,
        {"v": P()},
        "shardings have nothing for tree['w']; give one sharding, or a tree with the keys of tree",
    ),
    ({}, None, "tree: the tree has no array; name at least one array"),
    (
        {"w": "x"},
        None,
        "leaf 'w' of tree is 'x', which has no shape and dtype; "
        "give arrays or jax.ShapeDtypeStructs, and leave out functions and settings",
    ),
    (
        None,
        None,
        "tree=None: expected the parameters of a model; give arrays or jax.ShapeDtypeStructs",
    ),
]


@pytest.mark.parametrize(("tree", "shardings", "message"), WRONG)
def test_a_tree_that_is_no_model(tree: Any, shardings: Any, message: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        strategy.tree(tree, shardings)
    assert str(caught.value) == f"mf.strategy.tree: {message}"
