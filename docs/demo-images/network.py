"""The demo's model: three convolutions, trained by Adam, and the augmentation in the step."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from pieces import NAMES

WIDTHS = (3, 16, 32, 48)
RATE = 4e-3

Tree = Any


def init() -> tuple[Tree, Tree]:
    """Returns weights, and the optimizer's first and second moments."""
    keys = jax.random.split(jax.random.key(0), len(WIDTHS))
    weights: Tree = {
        f"filter{i}": jax.random.normal(keys[i], (3, 3, a, b)) * (2 / (9 * a)) ** 0.5
        for i, (a, b) in enumerate(pairwise(WIDTHS))
    }
    weights |= {f"bias{i}": jnp.zeros(b) for i, b in enumerate(WIDTHS[1:])}
    weights["out"] = jax.random.normal(keys[-1], (WIDTHS[-1], len(NAMES))) * 0.1
    zeros = jax.tree.map(jnp.zeros_like, weights)
    return weights, (zeros, jax.tree.map(jnp.zeros_like, weights))


def logits(weights: Tree, images: jax.Array) -> jax.Array:
    """Computes logits of images with values from -1 to 1."""
    x = images
    for i in range(len(WIDTHS) - 1):
        order = ("NHWC", "HWIO", "NHWC")
        kernel = weights[f"filter{i}"]
        x = jax.lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=order)
        x = jax.nn.relu(x + weights[f"bias{i}"])
    return x.mean((1, 2)) @ weights["out"]


def normal(images: jax.Array) -> jax.Array:
    return images.astype(jnp.float32) / 127.5 - 1


def augmented(batch: Tree) -> jax.Array:
    """Changes brightness and contrast of each image, by its key."""
    keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(jax.random.wrap_key_data(batch["key"]))
    light, contrast = jax.vmap(lambda key: jax.random.uniform(key, (2,), minval=-0.2, maxval=0.2))(
        keys
    ).T[:, :, None, None, None]
    return normal(batch["image"]) * (1 + contrast) + light


def loss(weights: Tree, batch: Tree) -> jax.Array:
    log_p = jax.nn.log_softmax(logits(weights, augmented(batch)))
    return -jnp.mean(jnp.sum(log_p * jax.nn.one_hot(batch["label"], len(NAMES)), axis=-1))


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(
    weights: Tree, moments: Tree, step: jax.Array, batch: Tree
) -> tuple[Tree, Tree, jax.Array]:
    """Returns new weights and moments, and the loss."""
    value, slope = jax.value_and_grad(loss)(weights, batch)
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda v, g: 0.98 * v + 0.02 * jnp.square(g), second, slope)
    rate = RATE * jnp.sqrt(1 - 0.98**step) / (1 - 0.9**step)
    weights = jax.tree.map(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, first, second
    )
    return weights, (first, second), value


@jax.jit
def right(weights: Tree, batch: Tree) -> jax.Array:
    """Counts the real rows that were recognized."""
    found = jnp.argmax(logits(weights, normal(batch["image"])), axis=-1) == batch["label"]
    return jnp.sum(found & batch["valid"])
