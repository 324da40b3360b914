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
    target_q_tm1: jax.Array
    """θ⁻ on s_{t-1}, all heads: the teacher of the distillation"""
    target_q_t: jax.Array
    """θ⁻ on s_t, all heads"""


ValueLoss = Callable[[Sample], jax.Array]


def huber(error: jax.Array) -> jax.Array:
    """L(δ): quadratic inside [-1, 1], linear outside."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * size * size, size - 0.5)


def pick(rows: jax.Array, index: jax.Array) -> jax.Array:
    """rows[index] as a masked sum: on a CPU the gradient of an indexed read is a slow scatter, this one is not."""
    return jnp.sum(jnp.where(pick_mask(rows, index), rows, 0.0), axis=0)


def pick_mask(rows: jax.Array, index: jax.Array) -> jax.Array:
    """True where the first axis of `rows` is `index`."""
    return jnp.arange(rows.shape[0]).reshape(-1, *[1] * (rows.ndim - 1)) == index


def q_learning(sample: Sample) -> jax.Array:
    """δ = r + γ max_a Q(s', a, ω(s'); θ⁻) - Q(s, a, ω(s); θ)."""
    next_q = pick(sample.target_q_t, sample.transition.context_t)
    return _huber_td(sample, jnp.max(next_q, axis=0))


def double_q_learning(sample: Sample) -> jax.Array:
    """As `q_learning`, with the next action chosen by θ and valued by θ⁻."""
    context = sample.transition.context_t
    action = jnp.argmax(pick(sample.online_t.q, context), axis=0)
    return _huber_td(sample, pick(pick(sample.target_q_t, context), action))


def _huber_td(sample: Sample, next_value: jax.Array) -> jax.Array:
    step = sample.transition
    target = step.r_t + step.discount_t * next_value
    q = pick(pick(sample.online_tm1.q, step.context_tm1), step.a_tm1)
    return huber(q - jax.lax.stop_gradient(target))
