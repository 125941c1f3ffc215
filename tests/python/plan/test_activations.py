"""The activations of `mf.memory`: an interval that holds the temporary memory of XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.plan.compiled import memory

Struct = jax.ShapeDtypeStruct
HIDDEN = 32
LAYERS = 4
HEADS = 4
WORDS = 64


def mesh_of(**axes: int) -> jax.sharding.Mesh:
    kinds = (AxisType.Auto,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=kinds)


def perceptron(activation: Callable[[Any], Any], w: Any, x: Any) -> Any:
    """Returns the output of a layer."""
    return x + activation(x @ w["up"]) @ w["down"]


def attention(w: Any, x: Any) -> Any:
    """Returns the output of a layer of a transformer."""
    rows, length, _ = x.shape
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * w["scale"]
    q, k, v = ((normed @ w[name]).reshape(rows, length, HEADS, -1) for name in "qkv")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / 4.0
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    x = x + mixed.reshape(rows, length, HIDDEN) @ w["o"]
    return perceptron(jax.nn.gelu, w, x)


def through(layer: Callable[..., Any], layers: Any, x: Any, *, scan: bool) -> Any:
    """Runs all layers, in a loop of XLA or unrolled."""
    if scan:
        return jax.lax.scan(lambda x, w: (layer(w, x), None), x, layers)[0]
    for i in range(LAYERS):
        x = layer(jax.tree.map(lambda w, i=i: w[i], layers), x)
    return x


def regression(layer: Callable[..., Any], *, scan: bool) -> Callable[..., Any]:
    def loss(params: Any, batch: Any) -> Any:
        return jnp.mean((through(layer, params, batch["x"], scan=scan) - batch["y"]) ** 2)

    return loss


def language(layer: Callable[..., Any], *, scan: bool) -> Callable[..., Any]:
    def loss(params: Any, batch: Any) -> Any:
        x = through(layer, params["layers"], params["embed"][batch], scan=scan)
        logits = x @ params["embed"].T
        right = jnp.take_along_axis(logits, batch[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - right), {"logits": logits}

    return loss


MLP = {"up": (LAYERS, HIDDEN, 4 * HIDDEN), "down": (LAYERS, 4 * HIDDEN, HIDDEN)}
LAYER = MLP | dict.fromkeys("qkvo", (LAYERS, HIDDEN, HIDDEN)) | {"scale": (LAYERS, HIDDEN)}


def structs(shapes: Any) -> Any:
    return jax.tree.map(
        lambda s: Struct(s, jnp.float32), shapes, is_leaf=lambda x: type(x) is tuple
    )


PERCEPTRON = (
    structs(MLP),
    {"x": Struct((128, HIDDEN), jnp.float32), "y": Struct((128, HIDDEN), jnp.float32)},
)
TRANSFORMER = structs({"embed": (WORDS, HIDDEN), "layers": LAYER}), Struct((16, 32), jnp.int32)

MESHES: dict[str, tuple[jax.sharding.Mesh, Callable[[Any], P]]] = {
    "one device": (mesh_of(data=1), lambda _: P()),
    "data parallel": (mesh_of(data=8), lambda _: P()),
    "fsdp": (mesh_of(data=8), lambda x: P(None, "data") if len(x.shape) == 3 else P()),
    "tensor parallel": (
        mesh_of(data=4, model=2),
        lambda x: (
            P()
            if len(x.shape) < 3
            else (P(None, "model") if x.shape[1] > x.shape[2] else P(None, None, "model"))
        ),
    ),
}


def check(kind: str, loss: Callable[..., Any], params: Any, batch: Any) -> None:
    """Compares the interval with the temporary memory of a compiled step."""
    mesh, spec = MESHES[kind]

    def on(x: Any, spec: Any) -> Any:
        return Struct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))

    params = jax.tree.map(lambda x: on(x, spec(x)), params)
    batch = jax.tree.map(lambda x: on(x, P("data")), batch)
    used = mf.memory(params, batch=batch, loss=loss)
    aux = isinstance(jax.eval_shape(loss, params, batch), tuple)
    gradient = jax.grad(loss, has_aux=aux)

    def step(params: Any, batch: Any) -> Any:
        return gradient(params, batch)[0] if aux else gradient(params, batch)

    low, high = used.totals["activation_bytes"]
    temp = memory(jax.jit(step).lower(params, batch)).temp_size_in_bytes
    assert low <= temp <= high, (low, temp, high)
    assert used.peak is not None
    assert used.stored is not None
    assert used.peak == (used.stored + low, used.stored + used.totals["gradient_bytes"] + high)


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("scan", [False, True])
def test_perceptrons(kind: str, scan: bool) -> None:
    check(kind, regression(partial(perceptron, jnp.tanh), scan=scan), *PERCEPTRON)


@pytest.mark.parametrize(
    ("kind", "recompute"), [("data parallel", True), ("fsdp", False), ("tensor parallel", True)]
)
def test_transformers(kind: str, recompute: bool) -> None:
    layer = jax.checkpoint(attention) if recompute else attention
    check(kind, language(layer, scan=True), *TRANSFORMER)


@pytest.mark.deep
@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("activation", [jax.nn.relu, jax.nn.gelu, jax.nn.silu, jnp.sin])
@pytest.mark.parametrize(("scan", "recompute"), [(False, False), (True, False), (True, True)])
def test_more_models(
    kind: str, activation: Callable[[Any], Any], scan: bool, recompute: bool
) -> None:
    # XLA's CPU backend ignores jax.checkpoint outside of loops.
    layer: Callable[..., Any] = partial(perceptron, activation)
    layer = jax.checkpoint(layer) if recompute else layer
    check(kind, regression(layer, scan=scan), *PERCEPTRON)
    if activation is jax.nn.relu:
        layer = jax.checkpoint(attention) if recompute else attention
        check(kind, language(layer, scan=scan), *TRANSFORMER)


def interval(loss: Callable[..., Any], params: Any, *batch: Any) -> list[int]:
    given = {"batch": batch[0]} if batch else {}
    found: list[int] = mf.memory(params, loss=loss, **given).totals["activation_bytes"]
    return found


def test_closed_forms() -> None:
    params, batch = PERCEPTRON
    state = 4 * 128 * HIDDEN  # bytes of x
    plain = partial(perceptron, jnp.tanh)
    low, high = interval(regression(plain, scan=False), params, batch)
    assert low == LAYERS * (4 + 1) * state  # the results of both products
    assert high >= LAYERS * (4 + 4 + 1) * state  # and the results of tanh
    low, _ = interval(regression(jax.checkpoint(plain), scan=False), params, batch)
    weights = sum(4 * x.size for x in jax.tree.leaves(params))
    assert low == LAYERS * state + weights  # the inputs of the layers: x, and slices of the weights


def test_rows_of_a_device() -> None:
    mesh = mesh_of(data=8)
    by_rows = NamedSharding(mesh, P("data"))
    params, batch = PERCEPTRON
    split = jax.tree.map(lambda x: Struct(x.shape, x.dtype, sharding=by_rows), batch)
    part = jax.tree.map(lambda x: Struct((16, *x.shape[1:]), x.dtype), batch)
    loss = regression(partial(perceptron, jnp.tanh), scan=True)
    gradients = sum(4 * x.size for x in jax.tree.leaves(params))
    low, high = interval(loss, params, split)
    assert low == interval(loss, params, batch)[0] // 8
    assert high == interval(loss, params, part)[1] + gradients

    def fixed(params: Any, batch: Any) -> Any:
        return loss(params, jax.tree.map(lambda x: x.reshape(128, HIDDEN), batch))

    assert interval(fixed, params, split) == [low, interval(loss, params, batch)[1] + gradients]


def test_a_loss_without_a_batch() -> None:
    low, high = interval(lambda w: jnp.sum(w @ w), Struct((8, 8), jnp.float32))
    assert (low, high) == (0, 3 * 256)


def wrong(_: Any) -> Any:
    message = "no such layer"
    raise TypeError(message)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            lambda w: w,
            "loss returned shape (8,); return a scalar, or a tuple that begins with one",
        ),
        (lambda w: None, "loss returned None; return a scalar, or a tuple that begins with one"),
        (
            wrong,
            "loss failed for these shapes: TypeError: no such layer; "
            "it is called as loss(tree), or as loss(tree, batch)",
        ),
        (3, "loss=3: expected a function of the tree and the batch"),
    ],
)
def test_mistakes(loss: Any, message: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.memory(Struct((8,), jnp.float32), loss=loss)
    assert str(caught.value) == f"mf.memory: {message}"
