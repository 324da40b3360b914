"""Value losses: the base method's L_ori (paper eq. 7 and 8).

Each is written for one sample, with q values [k, A]: one row per head. Nothing in them looks at the
last axes, so the same lines take a batch whose axis comes last, [k, A, B] and [B], and return [B].
That layout keeps every operation on contiguous numbers, which `vmap` would not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.networks import Output
from iqrl.parts.replay import Transition


class Sample(NamedTuple):
    """One replayed transition with what both networks say of it."""

    transition: Transition
    online_tm1: Output
    """θ on s_{t-1}: the only part a gradient flows through"""
    online_t: Output
    """θ on s_t, gradient stopped (used by double Q-learning)"""
    target_tm1: Output
    """θ⁻ on s_{t-1}, all heads: the teacher of the distillation; its features are not always kept (`Moment.teacher`)"""
    target_t: Output
    """θ⁻ on s_t, all heads"""


ValueLoss = Callable[[Sample], jax.Array]
NextValue = Callable[[Sample], jax.Array]


def huber(error: jax.Array) -> jax.Array:
    """L(δ): quadratic inside [-1, 1], linear outside."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * size * size, size - 0.5)


def squared(error: jax.Array) -> jax.Array:
    return 0.5 * jnp.square(error)


def pick(rows: jax.Array, index: jax.Array) -> jax.Array:
    """rows[index] as a masked sum: on a CPU the gradient of an indexed read is a slow scatter, this one is not."""
    return jnp.sum(jnp.where(pick_mask(rows, index), rows, 0.0), axis=0)


def pick_mask(rows: jax.Array, index: jax.Array) -> jax.Array:
    """True where the first axis of `rows` is `index`."""
    return jnp.arange(rows.shape[0]).reshape(-1, *[1] * (rows.ndim - 1)) == index


def highest_value(sample: Sample) -> jax.Array:
    """max_a Q(s', a, ω(s'); θ⁻)."""
    return jnp.max(pick(sample.target_t.q, sample.transition.context_t), axis=0)


def double_value(sample: Sample) -> jax.Array:
    """Q(s', a', ω(s'); θ⁻) of the action a' that θ prefers (van Hasselt et al. 2016)."""
    context = sample.transition.context_t
    action = jnp.argmax(pick(sample.online_t.q, context), axis=0)
    return pick(pick(sample.target_t.q, context), action)


def prediction(sample: Sample) -> jax.Array:
    """Q(s, a, ω(s); θ)."""
    step = sample.transition
    return pick(pick(sample.online_tm1.q, step.context_tm1), step.a_tm1)


def td_error(sample: Sample, next_value: NextValue = highest_value) -> jax.Array:
    """Q(s, a, ω(s); θ) - (r + γ next value); only the prediction has a gradient."""
    step = sample.transition
    target = step.r_t + step.discount_t * next_value(sample)
    return prediction(sample) - jax.lax.stop_gradient(target)


def q_learning(next_value: NextValue = highest_value, error: Callable = huber) -> ValueLoss:
    """L(δ), δ = r + γ max_a Q(s', a, ω(s'); θ⁻) - Q(s, a, ω(s); θ)."""
    return lambda sample: error(td_error(sample, next_value))
