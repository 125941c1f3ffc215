"""Compares the numbers of core/plan/transformer with what XLA compiles.

core/plan/transformer/testdata/models.json has the numbers. The tests build each model out of the
arrays that it lists, so that a missing array or a wrong shape fails.

The bytes of activations are compared as the slope of XLA's temporary memory over the number of
layers. Its absolute value is not comparable, because it contains buffers that do not belong to
layers. The programs have a scan, because jax.checkpoint saves no memory without one on the CPU
backend. They use float32, because that backend computes bfloat16 in float32.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.python import ROOT
from tests.python.plan.compiled import memory

pytestmark = pytest.mark.plain

TABLE = ROOT / "core/plan/transformer/testdata/models.json"
MODELS: dict[str, dict[str, Any]] = {m["name"]: m for m in json.loads(TABLE.read_text())}

Arrays = dict[str, jax.Array]


def mesh_of(tensor: int) -> Mesh:
    return Mesh(np.array(jax.devices()[:tensor]), ("tensor",))


def arrays(model: dict[str, Any], mesh: Mesh, layers: int = 0) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns the arrays of a model. Those of layers have a first dimension, the layer.

    With `layers`, only the arrays of layers are returned, for that many layers.
    """
    tree = {}
    for part in model["parts"]:
        shape: list[int] = part["shape"]
        spec: list[str | None] = [None] * len(shape)
        if part["tensor"] >= 0:
            spec[part["tensor"]] = "tensor"
        if part["stage"] == "layer":
            shape, spec = [layers or part["copies"], *shape], [None, *spec]
        elif layers:
            continue
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        tree[part["name"]] = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)
    return tree


def affine(p: Arrays, name: str, x: jax.Array) -> jax.Array:
    y = x @ p[f"{name}/kernel"]
    return y + p[f"{name}/bias"] if f"{name}/bias" in p else y


def norm(p: Arrays, name: str, x: jax.Array) -> jax.Array:
    """Computes in float32, as models in bfloat16 do."""
    dtype, x = x.dtype, x.astype(jnp.float32)
    scale, bias = p[f"{name}/scale"].astype(jnp.float32), p.get(f"{name}/bias")
    if bias is None:
        y = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale
        return y.astype(dtype)
    centered = x - jnp.mean(x, -1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (centered * jax.lax.rsqrt(variance + 1e-6) * scale + bias).astype(dtype)


def attention(model: dict[str, Any], p: Arrays, x: jax.Array) -> jax.Array:
    heads, kv_heads, dim = model["heads"], model["kv_heads"], model["head_dim"]

    def split(name: str, count: int) -> jax.Array:
        y = affine(p, f"layers/attention/{name}", x).reshape(*x.shape[:2], count, dim)
        return jnp.repeat(y, heads // count, 2)

    query, key, value = split("query", heads), split("key", kv_heads), split("value", kv_heads)
    scores = jnp.einsum("bsad,btad->bast", query, key) * dim**-0.5
    weights = jax.nn.softmax(scores.astype(jnp.float32), -1).astype(x.dtype)
    y = jnp.einsum("bast,btad->bsad", weights, value)
    return affine(p, "layers/attention/output", y.reshape(*x.shape[:2], heads * dim))


def feed_forward(p: Arrays, name: str, x: jax.Array) -> jax.Array:
    y = affine(p, f"{name}/up", x)
    gated = f"{name}/gate/kernel" in p
    y = jax.nn.silu(affine(p, f"{name}/gate", x)) * y if gated else jax.nn.gelu(y)
    return affine(p, f"{name}/down", y)


def mixture(model: dict[str, Any], p: Arrays, x: jax.Array) -> jax.Array:
    """Computes all experts for all tokens, and weighs the active ones."""
    weights, chosen = jax.lax.top_k(jax.nn.softmax(affine(p, "layers/router", x)), model["active"])
    names = [name for name in p if name.startswith("layers/experts/")]
    outputs = jax.vmap(lambda q: feed_forward(q, "layers/experts", x))({n: p[n] for n in names})
    count = p["layers/router/kernel"].shape[-1]
    share = jnp.einsum("bsk,bske->bse", weights, jax.nn.one_hot(chosen, count))
    return jnp.einsum("bse,ebsh->bsh", share, outputs) + feed_forward(p, "layers/shared", x)


def layer(
    model: dict[str, Any],
    place: Callable[[jax.Array], jax.Array],
    p: Arrays,
    x: jax.Array,
    experts: bool = False,
) -> jax.Array:
    """Computes one layer. `place` constrains the sharding of the residual stream."""
    x = place(x + attention(model, p, norm(p, "layers/attention_norm", x)))
    y = norm(p, "layers/ffn_norm", x)
    return place(x + (mixture(model, p, y) if experts else feed_forward(p, "layers/ffn", y)))


def logits(model: dict[str, Any], p: Arrays, tokens: jax.Array) -> jax.Array:
    x = p["embedding/tokens"][tokens]
    if "embedding/positions" in p:
        x = x + p["embedding/positions"]
    every, used = model["every"], dict.fromkeys(p, 0)
    for number in range(model["layer_count"]):
        experts = every > 0 and (number + 1) % every == 0
        other = (
            ("layers/ffn/",) if experts else ("layers/router/", "layers/experts/", "layers/shared/")
        )
        own = [n for n in p if n.startswith("layers/") and not n.startswith(other)]
        x = layer(model, lambda x: x, {n: p[n][used[n]] for n in own}, x, experts)
        for name in own:
            used[name] += 1
    assert all(used[n] == p[n].shape[0] for n in p if n.startswith("layers/"))
    x = norm(p, "final_norm", x)
    return x @ (p["head"] if "head" in p else p["embedding/tokens"].T)


@pytest.mark.parametrize("name", MODELS)
def test_parameters(name: str) -> None:
    """The listed arrays make a model, it uses all of them, and they have the listed sizes.

    XLA leaves out an argument that a program does not use. So the bytes of arguments prove that
    the program uses all parameters, or with tensor parallelism all shards of a device.
    """
    model = MODELS[name]
    tree = arrays(model, mesh_of(1))
    assert sum(a.size for a in jax.tree.leaves(tree)) == model["parameters"]
    tokens = jax.ShapeDtypeStruct((model["batch"], model["sequence"]), jnp.int32)
    for shards in model["shards"]:
        tensor = shards["tensor"]
        if model["kv_heads"] % tensor:  # JAX splits a head that Megatron-LM replicates
            continue
        tree = arrays(model, mesh_of(tensor))
        lowered = jax.jit(lambda p, x: logits(model, p, x)).lower(tree, tokens)
        assert lowered.out_info.shape == (*tokens.shape, model["vocab"])
        assert memory(lowered).argument_size_in_bytes == 4 * shards["elements"] + 4 * tokens.size


# What jax.checkpoint keeps. "none" is a program without jax.checkpoint.
POLICIES: dict[str, Callable[..., Any]] = {
    "full": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}
# The bounds that these programs reach. With the policy for dots, only products with matrices keep
# their results. Without jax.checkpoint, every operation keeps its operands.
BOUND = {"full": "paper", "dots": "paper", "none": "high"}


def temporary(model: dict[str, Any], layers: int, case: dict[str, Any]) -> int:
    """Returns XLA's temporary bytes of a step through a scan over layers."""
    mesh = mesh_of(case["tensor"])
    sequence = "tensor" if case["sequence_parallel"] else None
    sharding = NamedSharding(mesh, PartitionSpec(None, sequence))

    def place(x: jax.Array) -> jax.Array:
        y: jax.Array = jax.lax.with_sharding_constraint(x, sharding)
        return y

    def body(x: jax.Array, p: Arrays) -> tuple[jax.Array, None]:
        return layer(model, place, p, x), None

    if case["recomputation"] in POLICIES:
        body = jax.checkpoint(body, policy=POLICIES[case["recomputation"]])

    def loss(p: Arrays, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(jax.lax.scan(body, x, p)[0]))

    shape = model["batch"], model["sequence"], model["hidden"]
    x = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)
    lowered = jax.jit(jax.value_and_grad(loss)).lower(arrays(model, mesh, layers), x)
    return int(memory(lowered).temp_size_in_bytes)


QUICK = {
    "gelu": {"full 1", "dots 1", "none 1"},
    "gpt": {"full 1", "none 1"},
    "llama": {"full 1", "dots 1", "none 1", "full 4 sequence", "dots 4 sequence"},
    "gemma": {"full 1"},
}


def cases() -> list[Any]:
    """Returns a parameter for each model and case. Those that are not in QUICK are deep."""
    found = []
    for name, model in MODELS.items():
        for case in model["layers"]:
            label = f"{case['recomputation']} {case['tensor']}"
            label += " sequence" * case["sequence_parallel"]
            if model["every"] or model["kv_heads"] % case["tensor"] or case["element_bytes"] == 2:
                # A scan needs equal layers. JAX splits a head that Megatron-LM replicates. The CPU
                # backend computes types of 2 bytes in float32.
                continue
            marks = [] if label in QUICK.get(name, ()) else [pytest.mark.deep]
            found.append(pytest.param(name, case, id=f"{name} {label}", marks=marks))
    return found


@pytest.mark.parametrize(("name", "case"), cases())
def test_temporary_memory(name: str, case: dict[str, Any]) -> None:
    """XLA's temporary memory grows by the bytes of a layer with each layer.

    The buffers outside of layers overlap in different ways for different numbers of layers. Over
    64 layers, that changes the slope by less than 0.2 %.
    """
    model, bound = MODELS[name], BOUND[case["recomputation"]]
    slope = (temporary(model, 72, case) - temporary(model, 8, case)) / 64
    assert slope == pytest.approx(case[bound], rel=0.002)
    if case["recomputation"] == "full" and not case["sequence_parallel"]:
        assert case["paper"] == 4 * model["batch"] * model["sequence"] * model["hidden"]


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name]["every"]])
def test_residuals(name: str) -> None:
    """JAX keeps exactly the bytes of a layer, also in bfloat16, before XLA compiles it."""
    model, dtypes = MODELS[name], {2: jnp.bfloat16, 4: jnp.float32}
    for case in model["layers"]:
        if case["tensor"] > 1:
            continue
        dtype = dtypes[case["element_bytes"]]
        listed = arrays(model, mesh_of(1), 1)
        tree = {name: jax.ShapeDtypeStruct(a.shape[1:], dtype) for name, a in listed.items()}
        x = jax.ShapeDtypeStruct((model["batch"], model["sequence"], model["hidden"]), dtype)

        def run(p: Arrays, x: jax.Array) -> jax.Array:
            return layer(model, lambda y: y, p, x)

        if case["recomputation"] in POLICIES:
            run = jax.checkpoint(run, policy=POLICIES[case["recomputation"]])
        kept = jax.tree.leaves(jax.eval_shape(lambda p, x, f=run: jax.vjp(f, p, x)[1], tree, x))
        # Parameters, which jax.vjp keeps too, have fewer dimensions than activations.
        found = sum(a.size * a.dtype.itemsize for a in kept if a.ndim > 2)
        assert found == case[BOUND[case["recomputation"]]], case
