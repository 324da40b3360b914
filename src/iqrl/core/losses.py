"""Losses: the base method's L_ori (paper eq. 7 and 8), and what a regulariser is. L_D is in `methods/iq.py`.

A loss is written for one sample, with Q values [k, A]: one row per head. It reduces over the first axes only, so the
same lines take a batch whose axis comes last, [k, A, B], and return [B]. That layout keeps every operation on
contiguous numbers, which `vmap` would not. A regulariser may also reduce the batch to one number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.masks import legal_values
from iqrl.core.networks import select_action, select_head
from iqrl.core.schedules import Schedule
from iqrl.core.types import LossInputs

ValueLoss = Callable[[LossInputs], jax.Array]
NextValue = Callable[[LossInputs], jax.Array]


def huber(error: jax.Array) -> jax.Array:
    """L(δ): quadratic inside [-1, 1], linear outside."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * size * size, size - 0.5)


def squared(error: jax.Array) -> jax.Array:
    return 0.5 * jnp.square(error)


def max_value(inputs: LossInputs) -> jax.Array:
    """max_a Q(s', a, ω(s'); θ⁻) over the legal actions."""
    step = inputs.transition
    return jnp.max(legal_values(select_head(inputs.target_t.q, step.context_t), step.mask_t), axis=0)


def double_value(inputs: LossInputs) -> jax.Array:
    """Q(s', a', ω(s'); θ⁻) of the legal action a' that has the highest value under θ (van Hasselt et al. 2016)."""
    context = inputs.transition.context_t
    action = jnp.argmax(legal_values(select_head(inputs.online_t.q, context), inputs.transition.mask_t), axis=0)
    return select_action(select_head(inputs.target_t.q, context), action)


def prediction(inputs: LossInputs) -> jax.Array:
    """Q(s, a, ω(s); θ)."""
    step = inputs.transition
    return select_action(select_head(inputs.online_tm1.q, step.context_tm1), step.a_tm1)


def td_error(inputs: LossInputs, next_value: NextValue = max_value) -> jax.Array:
    """Q(s, a, ω(s); θ) - (r + γ next value); only the prediction has a gradient."""
    step = inputs.transition
    target = step.r_t + step.discount_t * next_value(inputs)
    return prediction(inputs) - jax.lax.stop_gradient(target)


def q_learning(next_value: NextValue = max_value, error: Callable = huber) -> ValueLoss:
    """L(δ), δ = Q(s, a, ω(s); θ) - (r + γ max_a Q(s', a, ω(s'); θ⁻)); L is symmetric, so the sign does not matter."""
    return lambda inputs: error(td_error(inputs, next_value))


class HeldHeads(NamedTuple):
    """A regulariser's loss where it is Σ_i Huber(Q(s, a, ω_i; θ) - Q(s, a, ω_i; θ⁻)) of the taken action a."""

    own_head: bool
    """whether i runs over ω(s), too"""
    share: float
    """a factor"""


class Regulariser(NamedTuple):
    """Adds weight(step) · mean of loss(inputs) to what is minimised."""

    name: str
    weight: Schedule
    loss: Callable[[LossInputs], jax.Array]
    """one number per sample [B], or one for the batch"""
    num_uniforms: int = 0
    """uniform numbers it needs per update, in `LossInputs.uniforms`"""
    form: HeldHeads | None = None
    """what it is, where a faster class may compute it (`core/fused_update.py`)"""
