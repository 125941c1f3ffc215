"""Compares the planner with what XLA compiles for TPUs. The tests need no TPU.

The CPU backend computes bfloat16 in float32, and adds up whole gradients before it cuts them. XLA
for TPUs does neither, so these numbers are compared here:

    memory       what XLA leaves to a program
    activations  the slope of temporary bytes over the number of layers, in bfloat16
    fsdp         two all-gathers of the weights of a layer, and one sum of its gradients
    expert       four all-to-alls of tokens per layer
    context      one all-gather of keys and values, and one sum of their gradients
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.python.plan import hlo, test_transformer, tpu
from tests.python.plan.test_collectives import commanded

pytestmark = [pytest.mark.plain, pytest.mark.deep]

P = PartitionSpec
Arrays = dict[str, jax.Array]
MODEL = test_transformer.MODELS["tiles"]
SIZES = {"layers": 4, "hidden": 256, "heads": 4, "head_dim": 128, "ffn": 1024, "vocab": 512}
evaluate = partial(tpu.evaluate, "test_tpu")


def advised(training: dict[str, Any], search: dict[str, Any], **sizes: Any) -> dict[str, Any]:
    """Returns the planner's report on the model with 8 devices."""
    document = {
        "meshfeed": 1,
        "model": {"transformer": SIZES | {"sequence": MODEL["sequence"]} | sizes},
        "training": training,
        "cluster": {"device": "tpu-v5e", "devices": 8},
        "search": {"axes": search, "zero": [0]},
    }
    report: dict[str, Any] = json.loads(
        commanded("advise", "-", "--json", text=json.dumps(document))
    )
    return report


def planned(report: dict[str, Any], what: str) -> int:
    """Returns the bytes of all calls that send `what`."""
    calls = [c for c in report["collectives"] if c["what"] == what]
    assert calls, report["collectives"]
    return sum(c["count"] * c["bytes"] for c in calls)


def measured(step: Callable[..., Any], *arguments: Any) -> dict[str, int]:
    """Returns the bytes of matrices that a compiled step communicates.

    Norms and the loss send fewer bytes, and do not count.
    """
    text = str(jax.jit(step).lower(*arguments).compile().as_text())
    sums: dict[str, int] = {}
    for c in hlo.collectives(text, 8):
        if c.bytes > 1 << 14:
            sums[c.op] = sums.get(c.op, 0) + c.bytes
    return sums


def mesh() -> Mesh:
    return Mesh(np.array(tpu.devices(), dtype=object), ("x",))


def struct(on: Mesh, shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(on, P(*spec)))


def squares(x: Any) -> Any:
    return jnp.sum(jnp.square(x.astype(jnp.float32)))


# For each kind: libtpu's name of a host, the chips of that host in each dimension, and how many
# devices of libtpu a device of the planner is. Programs of v4 use both halves of a chip as one
# device.
KINDS: dict[str, tuple[str, tuple[int, int, int], int]] = {
    "tpu-v4": ("v4:2x2x1", (2, 2, 1), 2),
    "tpu-v5e": ("v5e:2x4", (2, 4, 1), 1),
    "tpu-v5p": ("v5p:2x2x1", (2, 2, 1), 1),
    "tpu-v6e": ("v6e:2x4", (2, 4, 1), 1),
    "tpu-v7": ("tpu7x:2x2x1", (2, 2, 1), 1),
}


def available(kind: str) -> float:
    """Returns the bytes that XLA leaves to a program, as the text of an error says them."""
    name, bounds, parts = KINDS[kind]
    on = Mesh(np.array(tpu.devices(name, bounds)[:1], dtype=object), ("x",))
    with pytest.raises(Exception, match="Ran out of memory") as raised:
        jax.jit(lambda x: x + 1).lower(struct(on, (1 << 20, 1 << 20))).compile()
    found = re.search(r"exceeds available HBM \(([\d.]+)G\)", str(raised.value))
    assert found is not None, raised.value
    return float(found[1]) * 2**30 * parts


@pytest.mark.parametrize("kind", KINDS)
def test_memory(kind: str) -> None:
    """The planner's margin, a tenth of the memory, covers what XLA keeps for itself."""
    left = evaluate(f"available({kind!r})")
    text = commanded("advise", "gpt2", "--device", kind, "--devices", "1", "--json", text="")
    capacity = json.loads(text)["candidates"][0]["memory"]["capacity"]
    assert 0.95 * capacity < left < 1.06 * capacity


def temporary(recomputation: str, layers: int) -> int:
    """Returns the temporary bytes of a step through a scan over layers."""
    on = mesh()

    def body(x: jax.Array, p: Arrays) -> tuple[jax.Array, None]:
        return test_transformer.layer(MODEL, lambda y: y, p, x), None

    if recomputation in test_transformer.POLICIES:
        body = jax.checkpoint(body, policy=test_transformer.POLICIES[recomputation])

    def loss(p: Arrays, x: jax.Array) -> Any:
        return squares(jax.lax.scan(body, x, p)[0])

    one = Mesh(on.devices[:1], ("x",))
    p = {n: struct(one, (layers, *shape)) for n, shape in matrices().items()}
    x = struct(one, (MODEL["batch"], MODEL["sequence"], MODEL["hidden"]))
    found = jax.jit(jax.value_and_grad(loss)).lower(p, x).compile().memory_analysis()
    assert found is not None
    return int(found.temp_size_in_bytes)


def matrices() -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the arrays of one layer."""
    return {p["name"]: tuple(p["shape"]) for p in MODEL["parts"] if p["stage"] == "layer"}


@pytest.mark.parametrize("recomputation", test_transformer.BOUND)
def test_activations(recomputation: str) -> None:
    """Temporary memory grows with each layer by the bound that the policy of JAX has.

    Below 72 layers, other buffers share memory with activations, which changes the slope.
    """
    [case] = [
        c
        for c in MODEL["layers"]
        if c["recomputation"] == recomputation and c["element_bytes"] == 2
    ]
    few, many = evaluate(f"[temporary({recomputation!r}, n) for n in (72, 136)]")
    bound = case[test_transformer.BOUND[recomputation]]
    assert (many - few) / 64 == pytest.approx(bound, rel=0.003)


def fsdp(scan: bool) -> dict[str, int]:
    """Compiles a step that updates weights. Each is split along its largest dimension."""
    on = mesh()
    count = SIZES["layers"]
    spec = {}
    for name, shape in matrices().items():
        axes: list[str | None] = [None] * len(shape)
        axes[int(np.argmax(shape))] = "x"
        spec[name] = axes
    if scan:
        tree: Any = {n: struct(on, (count, *s), None, *spec[n]) for n, s in matrices().items()}
    else:
        tree = [{n: struct(on, s, *spec[n]) for n, s in matrices().items()} for _ in range(count)]
    rows = NamedSharding(on, P("x"))

    @jax.checkpoint
    def body(x: jax.Array, p: Arrays) -> tuple[jax.Array, None]:
        place = partial(jax.lax.with_sharding_constraint, shardings=rows)
        return test_transformer.layer(MODEL, place, p, x), None

    def loss(p: Any, x: jax.Array) -> Any:
        if scan:
            return squares(jax.lax.scan(body, x, p)[0])
        for layer in p:
            x, _ = body(x, layer)
        return squares(x)

    def step(p: Any, x: jax.Array) -> Any:
        gradients = jax.grad(loss)(p, x)
        return jax.tree.map(
            lambda a, g, s: jax.lax.with_sharding_constraint(a - g, s.sharding), p, gradients, tree
        )

    return measured(step, tree, struct(on, (16, MODEL["sequence"], MODEL["hidden"]), "x"))


@pytest.mark.parametrize("scan", [True, False])
def test_fsdp(scan: bool) -> None:
    """The text of a program has the body of a loop once."""
    sums = evaluate(f"fsdp({scan})")
    assert sums.keys() == {"all-gather", "reduce-scatter", "all-reduce"}
    # XLA scatters most sums of gradients. Each device takes its part of the others.
    added = sums["reduce-scatter"] + sums["all-reduce"]
    times = SIZES["layers"] if scan else 1
    report = advised({"batch": 16, "micro_batch": 2, "recomputation": "full"}, {"fsdp": [8]})
    norms = SIZES["layers"] * 2 * 2 * SIZES["hidden"]
    assert times * sums["all-gather"] == planned(report, "weights of a layer") - 2 * norms
    assert times * added == planned(report, "gradients of a layer") - norms


def experts() -> dict[str, int]:
    """Compiles two layers that send each token to two of eight experts, one per device."""
    on = mesh()
    count, active, ffn, hidden, tokens = 8, 2, 512, SIZES["hidden"], MODEL["sequence"]
    by_rows, by_experts = NamedSharding(on, P("x")), NamedSharding(on, P(None, "x"))
    place: Callable[..., Any] = jax.lax.with_sharding_constraint
    # Tokens are spread evenly, so each expert gets as many rows of an example.
    rows = jnp.arange(tokens * active).reshape(count, -1) // active

    def layer(x: Any, p: Any) -> Any:
        y = place(place(x[:, rows], by_rows), by_experts)
        y = jax.nn.gelu(jnp.einsum("bech,ehf->becf", y, p["up"]))
        y = jnp.einsum("becf,efh->bech", y, p["down"])
        y = place(place(y, by_experts), by_rows)
        y = jnp.zeros_like(x).at[:, rows.ravel()].add(y.reshape(len(x), -1, hidden))
        return x + place(y, by_rows)

    def loss(layers: list[Arrays], x: jax.Array) -> Any:
        for p in layers:
            x = layer(x, p)
        return squares(x)

    p = {
        "up": struct(on, (count, hidden, ffn), "x"),
        "down": struct(on, (count, ffn, hidden), "x"),
    }
    x = struct(on, (8, tokens, hidden), "x")
    return measured(jax.grad(loss, argnums=(0, 1)), [p, p], x)


def test_experts() -> None:
    experts = {"count": 8, "active": 2, "ffn": 512}
    training = {"batch": 8, "micro_batch": 1, "recomputation": "none"}
    report = advised(training, {"expert": [8]}, layers=2, experts=experts)
    want = planned(report, "tokens to experts and back")
    assert evaluate("experts()") == {"all-to-all": want}


def context() -> dict[str, int]:
    """Compiles two layers of attention with a split sequence.

    The program has no ring, so XLA gathers keys and values.
    """
    on = mesh()
    heads, dim, tokens = SIZES["heads"], SIZES["head_dim"], MODEL["sequence"]
    by_tokens = NamedSharding(on, P(None, "x"))
    place: Callable[..., Any] = partial(jax.lax.with_sharding_constraint, shardings=by_tokens)

    def layer(x: Any, keys: Any, values: Any) -> Any:
        query = x.reshape(*x.shape[:2], heads, dim)
        scores = jnp.einsum("bqad,bkad->baqk", query, place(keys)).astype(jnp.float32)
        y = jnp.einsum("baqk,bkad->bqad", jax.nn.softmax(scores).astype(x.dtype), place(values))
        return place(x + place(y.reshape(x.shape)))

    def loss(x: jax.Array, pairs: list[tuple[jax.Array, jax.Array]]) -> Any:
        for keys, values in pairs:
            x = layer(x, keys, values)
        return squares(x)

    pair = [struct(on, (1, tokens, heads, dim), None, "x")] * 2
    x = struct(on, (1, tokens, heads * dim), None, "x")
    return measured(jax.grad(loss, argnums=(0, 1)), x, [tuple(pair)] * 2)


def test_context() -> None:
    """XLA keeps the gathered keys and values for the backward pass.

    The planner counts a ring. It keeps the keys and values of one device, and sends them again
    with their gradients.
    """
    sums = evaluate("context()")
    training = {"batch": 1, "micro_batch": 1, "recomputation": "none"}
    report = advised(training, {"context": [8]}, layers=2)
    forward = planned(report, "keys and values")
    assert {op: n * 7 // 8 for op, n in sums.items()} == {
        "all-gather": forward,
        "reduce-scatter": forward,
    }
    assert planned(report, "keys, values and their gradients") == 2 * forward
