"""Compares the bytes that experts exchange with the bytes of a compiled JAX program.

Each expert has slots for tokens. The program sends tokens to slots by products with one-hot arrays,
as GShard does [Lepikhin et al., arXiv 2006.16668, section 2.2]. XLA turns each change from rows to
experts, and back, into an all-to-all: two in each pass of a layer. They send all slots, also empty
ones.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.python.plan.compiled import compiled
from tests.python.plan.test_collectives import Model, by_axis, mesh_of

pytestmark = pytest.mark.plain
DEVICES = 8
MESH = mesh_of({"expert": DEVICES})


def place(x: Any, *spec: str | None) -> Any:
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def layer(x: Any, w: Any, active: int, slots: int) -> Any:
    """Returns the output of a layer of experts. The first tokens of a row get the slots."""
    rows, tokens, _ = x.shape
    gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ w["router"]), active)
    expert = jax.nn.one_hot(chosen, w["router"].shape[1])
    flat = expert.reshape(rows, tokens * active, -1)
    before = (jnp.cumsum(flat, 1) - flat).reshape(expert.shape)
    slot = jax.nn.one_hot(jnp.sum(before * expert, -1).astype(int), slots)
    send = jax.lax.stop_gradient(jnp.einsum("bske,bskc->bsec", expert, slot))
    weigh = jnp.einsum("bsk,bske,bskc->bsec", gates, expert, slot)
    y = place(place(jnp.einsum("bsec,bsh->ebch", send, x), None, "expert"), "expert")
    y = jax.nn.gelu(jnp.einsum("ebch,ehf->ebcf", y, w["up"]))
    y = place(place(jnp.einsum("ebcf,efh->ebch", y, w["down"]), "expert"), None, "expert")
    return x + place(jnp.einsum("bsec,ebch->bsh", weigh, y), "expert")


@pytest.mark.parametrize(
    ("experts", "active", "capacity"),
    [
        (8, 2, 1.5),
        pytest.param(8, 2, 1.0, marks=pytest.mark.deep),
        pytest.param(16, 2, 2.0, marks=pytest.mark.deep),
        pytest.param(8, 1, 1.5, marks=pytest.mark.deep),
    ],
)
def test_exchanged_bytes(experts: int, active: int, capacity: float) -> None:
    m = Model(layers=2)
    slots = int(capacity * m.tokens * active / experts)
    shapes = {
        "router": (m.hidden, experts),
        "up": (experts, m.hidden, m.ffn),
        "down": (experts, m.ffn, m.hidden),
    }
    weights = [
        {
            name: jax.ShapeDtypeStruct(
                shape,
                jnp.float32,
                sharding=NamedSharding(MESH, P() if name == "router" else P("expert")),
            )
            for name, shape in shapes.items()
        }
    ] * m.layers
    stream = jax.ShapeDtypeStruct(
        (m.batch, m.tokens, m.hidden), jnp.float32, sharding=NamedSharding(MESH, P("expert"))
    )

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = layer(x, w, active, slots)
        return jnp.mean(x * x)

    lowered = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(weights, stream)
    found = by_axis(str(compiled(lowered).as_text()), {"expert": DEVICES})
    sizes = {"count": experts, "active": active, "capacity": capacity}
    report = m.report({"expert": DEVICES}, experts=sizes)
    planned = sum(c["count"] * c["bytes"] for c in report if c["op"] == "all-to-all")
    assert found["all-to-all", "expert"] == planned
