"""The demo's model: a small transformer with attention inside documents, trained by Adam."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from corpus import LENGTH, VOCABULARY

WIDTH, HEADS, LAYERS, SOURCES = 64, 2, 2, 2
RATE = 1e-2

Tree = Any


def init() -> tuple[Tree, Tree]:
    """Returns weights, and the optimizer's first and second moments."""
    scales = {
        "token": ((VOCABULARY, WIDTH), 0.5),
        "position": ((LENGTH, WIDTH), 0.02),
        "qkv": ((LAYERS, WIDTH, 3 * WIDTH), 0.06),
        "out": ((LAYERS, WIDTH, WIDTH), 0.06),
        "up": ((LAYERS, WIDTH, 4 * WIDTH), 0.06),
        "down": ((LAYERS, 4 * WIDTH, WIDTH), 0.03),
        "head": ((WIDTH, VOCABULARY), 0.02),
    }
    keys = dict(zip(scales, jax.random.split(jax.random.key(0), len(scales)), strict=True))
    weights = {n: s * jax.random.normal(keys[n], shape) for n, (shape, s) in scales.items()}
    return weights, (jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights))


def normed(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)


def logits(weights: Tree, batch: Tree) -> jax.Array:
    """Computes logits. No token sees tokens of other documents: the mask compares segments."""
    segments = batch["segment_ids"]
    inside = segments[:, None, :, None] == segments[:, None, None, :]
    x = weights["token"][batch["tokens"]] + weights["position"][batch["positions"]]
    for layer in range(LAYERS):
        heads = (*x.shape[:2], HEADS, WIDTH // HEADS)
        q, k, v = (
            part.reshape(heads) for part in jnp.split(normed(x) @ weights["qkv"][layer], 3, -1)
        )
        mixed = jax.nn.dot_product_attention(q, k, v, mask=inside, is_causal=True)
        x += mixed.reshape(x.shape) @ weights["out"][layer]
        x += jax.nn.gelu(normed(x) @ weights["up"][layer]) @ weights["down"][layer]
    return normed(x) @ weights["head"]


def loss(weights: Tree, batch: Tree) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Computes the mean over all labels, and each source's sum of losses and number of labels."""
    counts = batch["labels"] >= 0  # other labels are padding, and the ends of documents
    labels = jnp.where(counts, batch["labels"], 0)[..., None]
    log_p = jax.nn.log_softmax(logits(weights, batch))
    each = jnp.where(counts, -jnp.take_along_axis(log_p, labels, -1)[..., 0], 0)
    rows = jax.nn.one_hot(batch["source"], SOURCES)
    sums, numbers = each.sum(1) @ rows, counts.sum(1) @ rows
    return sums.sum() / numbers.sum(), (sums, numbers)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(
    weights: Tree, moments: Tree, step: jax.Array, batch: Tree
) -> tuple[Tree, Tree, jax.Array]:
    """Returns new weights and moments, and each source's sum of losses and number of labels."""
    (_, parts), slope = jax.value_and_grad(loss, has_aux=True)(weights, batch)
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda m, g: 0.95 * m + 0.05 * jnp.square(g), second, slope)
    correct = (1 - 0.9**step), (1 - 0.95**step)
    weights = jax.tree.map(
        lambda w, m, v: w - RATE * (m / correct[0]) / (jnp.sqrt(v / correct[1]) + 1e-8),
        weights,
        first,
        second,
    )
    return weights, (first, second), jnp.stack(parts)
