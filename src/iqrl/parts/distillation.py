"""Distillation: what was learned in other contexts is kept, L_D (paper eq. 9 and 10).

Between values it is Huber's loss, between distributions of the return the cross-entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.losses import huber, pick, pick_mask
from iqrl.parts.networks import Output
from iqrl.parts.regularisers import Moment, Regulariser
from iqrl.parts.schedules import Schedule


class Distance(NamedTuple):
    """How far a head is from the teacher's."""

    of: Callable[[Output], jax.Array]
    between: Callable[[jax.Array, jax.Array, int], jax.Array]
    """(network's, teacher's, the axis of the distribution) -> one number for each"""


def cross_entropy(logits: jax.Array, teacher: jax.Array, axis: int) -> jax.Array:
    """Of the teacher's probabilities, not of its logits."""
    return -jnp.sum(jax.nn.softmax(teacher, axis=axis) * jax.nn.log_softmax(logits, axis=axis), axis=axis)


BETWEEN_VALUES = Distance(lambda output: output.q, lambda online, teacher, axis: huber(online - teacher))
BETWEEN_DISTRIBUTIONS = Distance(lambda output: output.values, cross_entropy)


def distillation(
    weight: Schedule, actions: str, heads: str, own_head: bool = False, distance: Distance = BETWEEN_VALUES
) -> Regulariser:
    """L_D: every head but the one in use stays where the target network has it.

    `actions`: the taken action only (the paper), or the mean over all of them.
    `heads`: the sum over the other heads (the paper), or their mean.
    `own_head`: the head in use is held too (the paper's ablation with a single head).
    """

    def on_taken_action(online: jax.Array, teacher: jax.Array, a_tm1: jax.Array) -> jax.Array:
        taken = lambda each: pick(jnp.swapaxes(each, 0, 1), a_tm1)
        return distance.between(taken(online), taken(teacher), 1)

    def on_all_actions(online: jax.Array, teacher: jax.Array, a_tm1: jax.Array) -> jax.Array:
        return jnp.mean(distance.between(online, teacher, 2), axis=1)

    per_head = {"taken": on_taken_action, "all": on_all_actions}[actions]

    def loss(moment: Moment) -> jax.Array:
        sample = moment.samples
        teacher = jax.lax.stop_gradient(distance.of(sample.target_tm1))
        losses = per_head(distance.of(sample.online_tm1), teacher, sample.transition.a_tm1)
        if not own_head:
            in_use = pick_mask(losses, sample.transition.context_tm1)
            losses = jnp.where(in_use, 0.0, losses)
        count = max(losses.shape[0] - (not own_head), 1)
        return jnp.sum(losses, axis=0) / {"sum": 1, "mean": count}[heads]

    return Regulariser("distillation", weight, loss)
