"""Regularisers: terms added to the value loss. The paper's is distillation, L_D (eq. 9 and 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.losses import Sample, huber, pick, pick_mask
from iqrl.parts.schedules import Schedule


class Regulariser(NamedTuple):
    """weight(t) · mean over the batch of loss(sample)."""

    name: str
    weight: Schedule
    loss: Callable[[Sample], jax.Array]


def distillation(weight: Schedule, actions: str, heads: str) -> Regulariser:
    """L_D: every head but the one in use stays where the target network has it.

    `actions`: the taken action only (the paper), or the mean over all of them.
    `heads`: the sum over the other heads (the paper), or their mean.
    """

    def on_taken_action(error: jax.Array, a_tm1: jax.Array) -> jax.Array:
        return huber(pick(jnp.swapaxes(error, 0, 1), a_tm1))

    def on_all_actions(error: jax.Array, a_tm1: jax.Array) -> jax.Array:
        return jnp.mean(huber(error), axis=1)

    per_head = {"taken": on_taken_action, "all": on_all_actions}[actions]

    def loss(sample: Sample) -> jax.Array:
        error = sample.online_tm1.q - jax.lax.stop_gradient(sample.target_q_tm1)
        losses = per_head(error, sample.transition.a_tm1)
        heads_in_use = pick_mask(losses, sample.transition.context_tm1)
        total = jnp.sum(jnp.where(heads_in_use, 0.0, losses), axis=0)
        count = max(losses.shape[0] - 1, 1)
        return total / {"sum": 1, "mean": count}[heads]

    return Regulariser("distillation", weight, loss)
