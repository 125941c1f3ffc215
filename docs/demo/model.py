"""The demo's model: two dense layers, the first contracted over sharded columns.

The images arrive with their columns over the mesh axis "model", and so does the first weight. Each
device multiplies its own columns, and JAX adds the partial sums. The rest is plain JAX on arrays
with their sharding in their type (Explicit axes, the default of jax.make_mesh).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

HIDDEN = 128
LEARNING_RATE = 0.05
MOMENTUM = 0.9

Tree = dict[str, jax.Array]
SPECS = {"w1": P(None, "model"), "b1": P(), "w2": P(), "b2": P()}


def init(mesh: Mesh) -> tuple[Tree, Tree]:
    """Return parameters and momenta on the mesh."""
    first, second = jax.random.split(jax.random.key(0))
    params = {
        "w1": jax.random.normal(first, (8, 8, HIDDEN)) * 0.15,
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(second, (HIDDEN, 10)) * 0.1,
        "b2": jnp.zeros(10),
    }
    return place(params, mesh), place(jax.tree.map(jnp.zeros_like, params), mesh)


def place(tree: Any, mesh: Mesh) -> Tree:
    """Move parameters to a mesh, which may differ from their present one."""
    return {k: jax.device_put(v, NamedSharding(mesh, SPECS[k])) for k, v in tree.items()}


def logits(params: Tree, image: jax.Array) -> jax.Array:
    hidden = jnp.einsum("brc,rck->bk", image, params["w1"], out_sharding=P("data"))
    return jax.nn.relu(hidden + params["b1"]) @ params["w2"] + params["b2"]


def loss(params: Tree, batch: Tree) -> jax.Array:
    log_p = jax.nn.log_softmax(logits(params, batch["image"]))
    return -jnp.mean(jnp.sum(log_p * jax.nn.one_hot(batch["label"], 10), axis=-1))


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params: Tree, momenta: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(params, batch)
    momenta = jax.tree.map(lambda m, g: MOMENTUM * m + g, momenta, gradient)
    params = jax.tree.map(lambda p, m: p - LEARNING_RATE * m, params, momenta)
    return params, momenta, value


@jax.jit
def count_correct(params: Tree, batch: Tree) -> tuple[jax.Array, jax.Array]:
    """Count the real rows that were recognized, and the real rows."""
    right = jnp.argmax(logits(params, batch["image"]), axis=-1) == batch["label"]
    return jnp.sum(right & batch["valid"]), jnp.sum(batch["valid"])
