"""C51: the distribution of the return on a fixed support (Bellemare, Dabney & Munos 2017)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.core.losses import ValueLoss
from iqrl.core.masks import legal_values
from iqrl.core.networks import select_action, select_head
from iqrl.core.types import LossInputs


def even_support(low: float, high: float, atoms: int) -> jax.Array:
    return jnp.linspace(low, high, atoms)


def project(points: jax.Array, probabilities: jax.Array, support: jax.Array) -> jax.Array:
    """Probabilities at `points` [Z, …] moved to the nearest two of the evenly spaced `support` [Z]."""
    width = support[1] - support[0]
    points = jnp.clip(points, support[0], support[-1])
    distance = jnp.abs(points[None] - support.reshape(-1, *[1] * points.ndim)) / width
    # A product, not a sum over products: XLA would compute the probabilities anew for every pair.
    return jnp.einsum("ij...,j...->i...", jnp.clip(1.0 - distance, 0.0, 1.0), probabilities)


def categorical(support: jax.Array, double: bool) -> ValueLoss:
    """Cross-entropy between the projected distribution of r + γ Z(s', a') and that of Z(s, a)."""

    def loss(inputs: LossInputs) -> jax.Array:
        step = inputs.transition
        chooser = inputs.online_t if double else inputs.target_t
        action = jnp.argmax(legal_values(select_head(chooser.q, step.context_t), step.mask_t), axis=0)
        next_logits = select_action(select_head(inputs.target_t.values, step.context_t), action)
        points = step.r_t + step.discount_t * support.reshape(-1, *[1] * step.r_t.ndim)
        target = jax.lax.stop_gradient(project(points, jax.nn.softmax(next_logits, axis=0), support))
        logits = select_action(select_head(inputs.online_tm1.values, step.context_tm1), step.a_tm1)
        return -jnp.sum(target * jax.nn.log_softmax(logits, axis=0), axis=0)

    return loss
