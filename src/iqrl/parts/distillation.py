"""Distillation: what was learned in other contexts is kept, L_D (paper eq. 9 and 10)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.parts.losses import huber, pick, pick_mask
from iqrl.parts.regularisers import Moment, Regulariser
from iqrl.parts.schedules import Schedule


def distillation(weight: Schedule, actions: str, heads: str, own_head: bool = False) -> Regulariser:
    """L_D: every head but the one in use stays where the target network has it.

    `actions`: the taken action only (the paper), or the mean over all of them.
    `heads`: the sum over the other heads (the paper), or their mean.
    `own_head`: the head in use is held too (the paper's ablation with a single head).
    """

    def on_taken_action(error: jax.Array, a_tm1: jax.Array) -> jax.Array:
        return huber(pick(jnp.swapaxes(error, 0, 1), a_tm1))

    def on_all_actions(error: jax.Array, a_tm1: jax.Array) -> jax.Array:
        return jnp.mean(huber(error), axis=1)

    per_head = {"taken": on_taken_action, "all": on_all_actions}[actions]

    def loss(moment: Moment) -> jax.Array:
        sample = moment.samples
        error = sample.online_tm1.q - jax.lax.stop_gradient(sample.target_tm1.q)
        losses = per_head(error, sample.transition.a_tm1)
        if not own_head:
            in_use = pick_mask(losses, sample.transition.context_tm1)
            losses = jnp.where(in_use, 0.0, losses)
        count = max(losses.shape[0] - (not own_head), 1)
        return jnp.sum(losses, axis=0) / {"sum": 1, "mean": count}[heads]

    return Regulariser("distillation", weight, loss)
