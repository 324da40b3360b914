"""Replay: a ring of the last N transitions, for every N >= 1.

A transition is one packed row of float32, so that storing is one write and sampling one gather.
Rows are drawn with replacement; the position in the ring follows from the step count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """{s_{t-1}, ω(s_{t-1}), a_{t-1}, r_t, s_t, ω(s_t)}: what the paper's buffer B holds.

    `discount_t` is γ, or 0 when nothing follows; a time limit need not be such an end.
    """

    obs_tm1: jax.Array
    a_tm1: jax.Array
    r_t: jax.Array
    discount_t: jax.Array
    obs_t: jax.Array
    context_tm1: jax.Array
    context_t: jax.Array
    over: jax.Array
    """whether the episode ended here, for whatever reason"""
    greedy: jax.Array
    """whether a_{t-1} was the greedy action"""


class Replay(NamedTuple):
    init: Callable[[], jax.Array]
    add: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    sample: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    draws: int
    """uniform numbers a sample consumes"""


def ring(capacity: int, width: int, batch_size: int) -> Replay:
    """`add(rows, row, t)` stores the t-th transition (from 0); `sample(rows, t, uniforms)` draws a batch [W, B]."""
    # A batch drawn from a ring of one is `batch_size` copies of one row, and the mean gradient over
    # copies is the gradient of one: the copies need not be computed.
    if capacity == 1:
        return whole(capacity, width)

    def sample(rows: jax.Array, t: jax.Array, uniforms: jax.Array) -> jax.Array:
        stored = jnp.minimum(t + 1, capacity)
        index = jnp.minimum((uniforms * stored).astype(jnp.int32), stored - 1)
        # The batch goes last: every variable of it is then contiguous, which is what makes the losses fast.
        return rows.at[index].get(mode="promise_in_bounds").T

    return whole(capacity, width)._replace(sample=sample, draws=batch_size)


def whole(capacity: int, width: int) -> Replay:
    """The same ring, of which every sample is all that is stored; to be used once it is full."""

    def init() -> jax.Array:
        return jnp.zeros((capacity, width), jnp.float32)

    def add(rows: jax.Array, row: jax.Array, t: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(rows, row[None], (t % capacity, 0))

    # One number is drawn and not used: an array of none would need care everywhere.
    return Replay(init, add, lambda rows, t, uniforms: rows.T, draws=1)


def row_width(obs_size: int) -> int:
    return 2 * obs_size + 7


def pack(step: Transition) -> jax.Array:
    """One transition as a row; small integers are exact in float32."""
    scalars = (step.a_tm1, step.r_t, step.discount_t, step.context_tm1, step.context_t, step.over, step.greedy)
    return jnp.concatenate([step.obs_tm1, step.obs_t, jnp.stack([jnp.float32(x) for x in scalars])])


def unpack(rows: jax.Array, obs_size: int) -> Transition:
    """The inverse of `pack`, for one row [W] or a batch [W, B]."""
    scalars = rows[2 * obs_size :]
    return Transition(
        obs_tm1=rows[:obs_size],
        obs_t=rows[obs_size : 2 * obs_size],
        a_tm1=scalars[0].astype(jnp.int32),
        r_t=scalars[1],
        discount_t=scalars[2],
        context_tm1=scalars[3].astype(jnp.int32),
        context_t=scalars[4].astype(jnp.int32),
        over=scalars[5] > 0,
        greedy=scalars[6] > 0,
    )
