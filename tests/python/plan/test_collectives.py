"""Compares the bytes that compiled training steps communicate with closed forms.

XLA partitions a step over 8 CPU devices. In a deep run it also compiles for 8 TPUs, without a TPU.
Its collectives must have exactly the bytes of these formulas:

    data parallel     4 N                gradients of N float32 parameters
                      + 4                the loss
    tensor parallel   (4 L + 2) 4 b S h  per layer two all-reduces in each pass, and one each for
                                         the embedding and the head
                      + 16 b S           the cross-entropy over a partitioned vocabulary

with L layers, a batch of b examples per group, S tokens each, and width h. The first line of each
is what `meshfeed advise` reports; the planner leaves out the second, which is small.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.python.plan import hlo, tpu
from tests.python.plan.compiled import compiled

pytestmark = pytest.mark.plain
Tree = Any
Axis = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Model:
    """A decoder in float32 without biases; its matrices are partitioned over an axis."""

    layers: int = 4
    hidden: int = 32
    heads: int = 8
    ffn: int = 64
    vocab: int = 128
    tokens: int = 16
    batch: int = 16
    gated: bool = False
    fused: bool = True  # queries, keys and values are one matrix, and gate and up too
    recomputed: bool = False  # the backward pass computes each layer again

    def parameters(self, axis: Axis, own: Tree = None) -> tuple[Tree, Tree]:
        """Returns the shapes of all parameters, and their specs. `own` is for a layer."""
        h, a, d, f = self.hidden, self.heads, self.hidden // self.heads, self.ffn
        layer: dict[str, tuple[tuple[int, ...], P]] = {
            "norm1": ((h,), P()),
            "out": ((a, d, h), P(axis)),
            "norm2": ((h,), P()),
            "down": ((f, h), P(axis)),
        }
        if self.fused:
            layer["qkv"] = ((h, 3, a, d), P(None, None, axis))
            layer["up"] = ((h, 1 + self.gated, f), P(None, None, axis))
        else:
            layer |= {name: ((h, a, d), P(None, axis)) for name in "qkv"}
            layer |= {name: ((h, f), P(None, axis)) for name in ["up", "gate"][: 1 + self.gated]}
        tree = {
            "embedding": ((self.vocab, h), P(axis)),
            "layers": [own or layer for _ in range(self.layers)],
            "norm": ((h,), P()),
            "head": ((h, self.vocab), P(None, axis)),
        }
        leaf: Callable[[Any], bool] = lambda x: isinstance(x, tuple)  # noqa: E731
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x[0], jnp.float32), tree, is_leaf=leaf)
        return shapes, jax.tree.map(lambda x: x[1], tree, is_leaf=leaf)

    def block(self, x: Any, p: Tree, stream: NamedSharding) -> Any:
        y = norm(x, p["norm1"])
        if self.fused:
            q, k, v = jnp.unstack(jnp.einsum("bsh,hcad->cbsad", y, p["qkv"]))
        else:
            q, k, v = (jnp.einsum("bsh,had->bsad", y, p[name]) for name in "qkv")
        w = jax.nn.softmax(jnp.einsum("bqad,bkad->baqk", q, k), -1)
        y = jnp.einsum("baqk,bkad,adh->bqh", w, v, p["out"])
        x = x + jax.lax.with_sharding_constraint(y, stream)
        y = self.ffn_of(norm(x, p["norm2"]), p) @ p["down"]
        return x + jax.lax.with_sharding_constraint(y, stream)

    def ffn_of(self, y: Any, p: Tree) -> Any:
        if self.fused:
            ways: Sequence[Any] = jnp.unstack(jnp.einsum("bsh,hcf->cbsf", y, p["up"]))
        else:
            ways = [y @ p[name] for name in ["up", "gate"][: 1 + self.gated]]
        return jax.nn.silu(ways[1]) * ways[0] if self.gated else jax.nn.gelu(ways[0])

    def loss(
        self, p: Tree, tokens: Any, labels: Any, stream: NamedSharding, block: Any = None
    ) -> Any:
        block = block or self.block
        block = jax.checkpoint(block, static_argnums=2) if self.recomputed else block
        x = jax.lax.with_sharding_constraint(p["embedding"][tokens], stream)
        for layer in p["layers"]:
            x = block(x, layer, stream)
        likely = jax.nn.log_softmax(norm(x, p["norm"]) @ p["head"])
        return -jnp.mean(jnp.take_along_axis(likely, labels[..., None], -1))

    def planned(self, data: int, tensor: int) -> dict[str, int]:
        """Returns the bytes of all-reduces per axis that the planner reports."""
        sums: dict[str, int] = {}
        for c in self.report({"data": data, "tensor": tensor}):
            assert c["op"] == "all-reduce"
            sums[c["axis"]] = sums.get(c["axis"], 0) + c["count"] * c["bytes"]
        return sums

    def report(self, mesh: dict[str, int], recomputation: str = "none", **more: Any) -> list[Any]:
        """Returns the collectives that the planner reports. `more` are members of the model."""
        names = ("layers", "hidden", "heads", "ffn", "vocab", "gated")
        rows = math.prod(n for axis, n in mesh.items() if axis != "tensor")
        number = dict.fromkeys(("compute", "weights", "gradients", "moments"), "float32")
        document = {
            "meshfeed": 1,
            "model": {
                "transformer": {n: getattr(self, n) for n in names}
                | {"sequence": self.tokens}
                | more
            },
            "training": {
                "batch": self.batch,
                "micro_batch": self.batch // rows,
                "precision": number | {"master": None},
                "recomputation": recomputation,
                "sequence_parallel": False,
            },
            "cluster": {"device": "h100-80", "devices": math.prod(mesh.values())},
            "search": {"axes": {axis: [n] for axis, n in mesh.items()}, "zero": [0]},
        }
        report = json.loads(commanded("advise", "-", "--json", text=json.dumps(document)))
        return list(report["collectives"])

    def tensor_bytes(self, batch: int, per_layer: int) -> int:
        """Returns the closed form: all-reduces of the stream, and the cross-entropy."""
        stream = 4 * batch * self.tokens * self.hidden
        return (per_layer * self.layers + 2) * stream + 16 * batch * self.tokens


def commanded(*arguments: str, text: str) -> str:
    """Runs the command, and returns its output."""
    run = [sys.executable, "-m", "meshfeed", *arguments]
    return subprocess.run(
        run, input=text, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def norm(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def step_of(model: Model, mesh: Mesh, data: str | None, axis: str | None) -> str:
    """Returns the HLO of a step of a model."""
    return stepped(model.loss, model, mesh, *model.parameters(axis), P(data))


def stepped(
    loss_of: Callable[..., Any], model: Model, mesh: Mesh, shapes: Tree, specs: Tree, batch: P
) -> str:
    """Returns the HLO of a step that updates the parameters and returns the loss."""
    held = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    rows, whole = NamedSharding(mesh, batch), NamedSharding(mesh, P())

    def step(p: Tree, tokens: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(p, tokens, labels, rows)
        return loss, jax.tree.map(lambda a, g: a - 0.1 * g, p, gradients)

    jitted = jax.jit(step, in_shardings=(held, rows, rows), out_shardings=(whole, held))
    tokens = jax.ShapeDtypeStruct((model.batch, model.tokens), jnp.int32)
    lowered = jitted.lower(shapes, tokens, tokens)
    return str(compiled(lowered, mesh.devices.flat[0].platform).as_text())


def by_axis(text: str, axes: dict[str, int]) -> dict[tuple[str, Axis], int]:
    """Adds up the bytes of each operation over each axis, and over all axes."""
    sums: dict[tuple[str, Axis], int] = {}
    named: dict[Any, Axis] = {hlo.over(list(axes.items()), list(axes)): tuple(axes)}
    named |= {hlo.over(list(axes.items()), [name]): name for name in axes}
    for c in hlo.collectives(text, int(np.prod(list(axes.values())))):
        key = (c.op, named[c.groups])
        sums[key] = sums.get(key, 0) + c.bytes
    return sums


def mesh_of(axes: dict[str, int], devices: Sequence[jax.Device] | None = None) -> Mesh:
    table = np.array(devices or jax.devices(), dtype=object)
    return Mesh(table.reshape(list(axes.values())), tuple(axes))


WIDE = Model(layers=4, hidden=64, heads=16, ffn=256, vocab=512, tokens=8, batch=8)
SMALL = Model()
GATED = replace(SMALL, gated=True)


CASES = [
    pytest.param(SMALL, 8, 1, id="data"),
    pytest.param(WIDE, 8, 1, id="data of a wide model"),
    pytest.param(SMALL, 1, 8, id="tensor"),
    pytest.param(WIDE, 1, 8, id="tensor of a wide model"),
    pytest.param(GATED, 4, 2, id="data 4, tensor 2, gated"),
    pytest.param(SMALL, 2, 4, id="data 2, tensor 4"),
]


def expected(model: Model, data: int, tensor: int) -> dict[tuple[str, Axis], int]:
    """Returns the bytes that the planner reports, and what it leaves out."""
    planned = model.planned(data, tensor)
    want: dict[tuple[str, Axis], int] = {}
    if data > 1:
        want["all-reduce", "data"] = planned["data"] + 4
    if tensor > 1:
        cross_entropy = 16 * (model.batch // data) * model.tokens
        want["all-reduce", "model"] = planned["tensor"] + cross_entropy
    return want


def measured(
    model: Model, data: int, tensor: int, devices: Sequence[jax.Device]
) -> dict[tuple[str, Axis], int]:
    """Compiles a step for devices, and returns the bytes that it communicates."""
    axes = {name: n for name, n in (("data", data), ("model", tensor)) if n > 1}
    names = [name if name in axes else None for name in ("data", "model")]
    return by_axis(step_of(model, mesh_of(axes, devices), *names), axes)


@pytest.mark.parametrize(("model", "data", "tensor"), CASES)
def test_planned_bytes(model: Model, data: int, tensor: int) -> None:
    assert measured(model, data, tensor, jax.devices()) == expected(model, data, tensor)


@pytest.mark.deep
@pytest.mark.parametrize(("data", "tensor"), [(8, 1), (1, 8), (4, 2), (2, 4)])
def test_planned_bytes_of_tpus(data: int, tensor: int) -> None:
    each = f"[list(measured(m, {data}, {tensor}, tpu.devices()).items()) for m in (SMALL, WIDE)]"
    found = tpu.evaluate("test_collectives", each)
    assert [dict(f) for f in found] == [expected(m, data, tensor) for m in (SMALL, WIDE)]


def test_recomputation_adds_one_all_reduce_per_layer() -> None:
    """XLA does not repeat the last all-reduce of a layer, because the next layer has its result."""
    axes = {"model": 8}
    found = by_axis(step_of(replace(SMALL, recomputed=True), mesh_of(axes), None, "model"), axes)
    assert found == {("all-reduce", "model"): SMALL.tensor_bytes(SMALL.batch, 5)}


@pytest.mark.parametrize(("gated", "per_layer"), [(False, 6), (True, 7)])
def test_separate_matrices_add_all_reduces(gated: bool, per_layer: int) -> None:
    """Queries, keys and values may have separate matrices, and so may gate and up.

    XLA then reduces the gradients of the stream over the devices before it adds them up.
    """
    axes = {"model": 8}
    separate = replace(SMALL, fused=False, gated=gated)
    found = by_axis(step_of(separate, mesh_of(axes), None, "model"), axes)
    assert found == {("all-reduce", "model"): SMALL.tensor_bytes(SMALL.batch, per_layer)}


def test_layers_of_two_matrices() -> None:
    """A stack of MLPs has one all-reduce per layer and pass.

    The backward pass of the first layer has none, because its input needs no gradient.
    """
    layers, batch, h, f = 4, 16, 32, 64
    axes = {"model": 8}
    mesh = mesh_of(axes)
    sharding = [NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("model"))] * layers
    whole = NamedSharding(mesh, P())

    def loss(p: list[Any], x: Any) -> Any:
        for up, down in zip(p[::2], p[1::2], strict=True):
            x = jax.lax.with_sharding_constraint(jax.nn.relu(x @ up) @ down, whole)
        return jnp.mean(x * x)

    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in [(h, f), (f, h)] * layers]
    step = jax.jit(jax.value_and_grad(loss), in_shardings=(sharding, whole))
    program = step.lower(shapes, jax.ShapeDtypeStruct((batch, h), jnp.float32))
    assert by_axis(str(compiled(program).as_text()), axes) == {
        ("all-reduce", "model"): (2 * layers - 1) * 4 * batch * h
    }


@pytest.mark.parametrize("kv", [2, pytest.param(4, marks=pytest.mark.deep)])
def test_heads_on_several_devices(kv: int) -> None:
    """With fewer key and value heads than devices, several devices hold the same head.

    They add up its gradients. In JAX that is a repetition of the weights over a second axis.
    """
    mesh, both, copies = mesh_of({"heads": kv, "copies": 8 // kv}), ("heads", "copies"), 8 // kv
    m = replace(SMALL, heads=16, layers=2)
    h, d, f = m.hidden, m.hidden // m.heads, m.ffn
    layer = {
        "norm1": ((h,), P()),
        "query": ((h, 8, m.heads // 8, d), P(None, both)),
        "pair": ((h, kv, 2, d), P(None, "heads")),
        "out": ((8, m.heads // 8, d, h), P(both)),
        "norm2": ((h,), P()),
        "up": ((h, 1, f), P(None, None, both)),
        "down": ((f, h), P(both)),
    }

    def block(x: Any, p: Tree, stream: NamedSharding) -> Any:
        repeated = jnp.repeat(p["pair"], copies, 1)
        repeated = jax.lax.with_sharding_constraint(repeated, NamedSharding(mesh, P(None, both)))
        matrix = jnp.concatenate([p["query"], repeated], 2)
        y = jnp.einsum("bsh,htcd->bstcd", norm(x, p["norm1"]), matrix)
        q, k, v = y[..., :-2, :], y[..., -2, :], y[..., -1, :]
        w = jax.nn.softmax(jnp.einsum("bqtad,bktd->btaqk", q, k), -1)
        y = jnp.einsum("btaqk,bktd,tadh->bqh", w, v, p["out"])
        x = x + jax.lax.with_sharding_constraint(y, stream)
        y = m.ffn_of(norm(x, p["norm2"]), p) @ p["down"]
        return x + jax.lax.with_sharding_constraint(y, stream)

    shapes, specs = m.parameters(both, layer)
    text = stepped(partial(m.loss, block=block), m, mesh, shapes, specs, P())
    found = by_axis(text, {"heads": kv, "copies": copies})
    planned = {c["what"]: c["count"] * c["bytes"] for c in m.report({"tensor": 8}, kv_heads=kv)}
    cross_entropy = 16 * m.batch * m.tokens
    assert found == {
        ("all-reduce", both): planned["activations and their gradients"] + cross_entropy,
        ("all-reduce", "copies"): planned["gradients of shared heads"],
    }


@pytest.mark.parametrize(
    ("tied", "positions"),
    [
        (False, "learned"),
        pytest.param(True, "rotary", marks=pytest.mark.deep),
        pytest.param(False, "rotary", marks=pytest.mark.deep),
        pytest.param(True, "learned", marks=pytest.mark.deep),
    ],
)
def test_gathers_of_fsdp(tied: bool, positions: str) -> None:
    """Both passes gather the weights. The backward pass of a lookup needs no embedding.

    So XLA gathers an embedding once, and twice if the head uses it too.
    """
    mesh = mesh_of({"fsdp": 8})
    m = replace(SMALL, layers=1)
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    shapes, _ = m.parameters(None)
    if tied:
        del shapes["head"]
    if positions == "learned":
        shapes["positions"] = jax.ShapeDtypeStruct((m.tokens, m.hidden), jnp.float32)
    largest = jax.tree.map(lambda x: P(*[None] * int(np.argmax(x.shape)), "fsdp"), shapes)

    def gather(p: Tree) -> Tree:
        return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, whole), p)

    @jax.checkpoint
    def embed(p: Tree, tokens: Any) -> Any:
        x = jax.lax.with_sharding_constraint(gather(p["embedding"])[tokens], rows)
        return x + gather(p["positions"]) if "positions" in p else x

    @jax.checkpoint
    def block(x: Any, p: Tree) -> Any:
        return m.block(x, gather(p), rows)

    @jax.checkpoint
    def end(p: Tree, x: Any, labels: Any) -> Any:
        matrix = gather(p["embedding"]).T if tied else gather(p["head"])
        logits = jax.lax.with_sharding_constraint(norm(x, gather(p["norm"])) @ matrix, rows)
        likely = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(likely, labels[..., None], -1))

    def loss(p: Tree, tokens: Any, labels: Any, _: NamedSharding) -> Any:
        x = embed(p, tokens)
        for layer in p["layers"]:
            x = block(x, layer)
        return end(p, x, labels)

    found = by_axis(stepped(loss, m, mesh, shapes, largest, P("fsdp")), {"fsdp": 8})
    report = m.report({"fsdp": 8}, recomputation="full", tied=tied, positions=positions)
    planned = sum(c["count"] * c["bytes"] for c in report if c["op"] == "all-gather")
    assert found["all-gather", "fsdp"] == planned


LINES = {
    "%a = f32[4,8]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,2},{1,3}}, to": (
        hlo.Collective("all-reduce", 128, frozenset({frozenset({0, 2}), frozenset({1, 3})}))
    ),
    "%a = bf16[6]{0} all-gather(%x), replica_groups=[2,2]<=[4], dimensions={0}": (
        hlo.Collective("all-gather", 12, frozenset({frozenset({0, 1}), frozenset({2, 3})}))
    ),
    "%a = s32[] all-reduce(%x), replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true": (
        hlo.Collective("all-reduce", 4, frozenset({frozenset({0, 2}), frozenset({1, 3})}))
    ),
    "%a = (f32[], f32[2,2]{1,0}, pred[3]) all-reduce(%x, %y), replica_groups="
    "mesh['axis_0'=2,'axis_1'=2] {'axis_1'}, to_apply=%add": (
        hlo.Collective("all-reduce", 23, frozenset({frozenset({0, 1}), frozenset({2, 3})}))
    ),
    "%s = f32[8]{0} all-reduce-start(%x), replica_groups={}, to_apply=%add": (
        hlo.Collective("all-reduce", 32, frozenset({frozenset({0, 1, 2, 3})}))
    ),
    "%s = (f32[2,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%x), replica_groups=[1,4]<=[4]": (
        hlo.Collective("all-gather", 256, frozenset({frozenset({0, 1, 2, 3})}))
    ),
    "%s = ((f32[2], u8[2]), (f32[8]{0}, u8[8])) all-gather-start(%x, %y), replica_groups={}": (
        hlo.Collective("all-gather", 40, frozenset({frozenset({0, 1, 2, 3})}))
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_reading_collectives(line: str) -> None:
    assert hlo.collectives(line, 4) == [LINES[line]]


# For TPUs, the name of a function says that it scatters a sum, and the text repeats the
# operations of a channel.
OF_TPUS = """
%all-reduce-scatter.3 (input.2: bf16[8,4]) -> bf16[2,4] {
  %all-reduce.1 = bf16[8,4]{1,0:T(8,128)(2,1)} all-reduce(%input.2), channel_id=1, replica_groups={}
}
%fused (param.1: bf16[2,4]) -> bf16[8,4] {
  %all-gather.1 = bf16[8,4]{1,0} all-gather(%param.1), channel_id=2, replica_groups={}
}
%fused.1 (param.2: bf16[2,4]) -> bf16[8,4] {
  %all-gather.2 = bf16[8,4]{1,0} all-gather(%param.2), channel_id=2, replica_groups={}
}
"""


def test_reading_programs_of_tpus() -> None:
    found = [(c.op, c.bytes) for c in hlo.collectives(OF_TPUS, 4)]
    assert found == [("reduce-scatter", 64), ("all-gather", 64)]


def test_ends_of_asynchronous_pairs_do_not_count() -> None:
    assert hlo.collectives("%d = f32[8]{0} all-reduce-done(f32[8]{0} %s)", 4) == []
