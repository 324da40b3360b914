"""The transitions that interference is measured on, kept apart from the replay buffer.

The most recent ones are a sample of the current policy's distribution (the paper). A reservoir is a uniform sample of
all transitions so far (Liu et al. 2023). Both are rows [capacity, W]; transitions are counted by t, from 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

GOLDEN_RATIO = 0.61803399
"""its multiples, modulo 1, are spread evenly between 0 and 1"""


def add_recent(rows: jax.Array, row: jax.Array, t: jax.Array) -> jax.Array:
    """Put the t-th transition in place of the oldest."""
    return jax.lax.dynamic_update_index_in_dim(rows, row, t % rows.shape[0], axis=0)


def add_to_reservoir(rows: jax.Array, row: jax.Array, t: jax.Array, uniform: jax.Array) -> jax.Array:
    """Vitter's algorithm R: each of the t + 1 transitions so far is in it with the same probability."""
    capacity = rows.shape[0]
    drawn = jnp.where(t < capacity, t, (uniform * (t + 1)).astype(jnp.int32))
    slot = jnp.minimum(drawn, capacity - 1)
    old = jax.lax.dynamic_index_in_dim(rows, slot, keepdims=False)
    return jax.lax.dynamic_update_index_in_dim(rows, jnp.where(drawn < capacity, row, old), slot, axis=0)


def count_filled(rows: jax.Array, t: jax.Array) -> jax.Array:
    """How many rows are in use once the t-th transition is stored."""
    return jnp.minimum(t + 1, rows.shape[0])


def mask_filled(rows: jax.Array, t: jax.Array) -> jax.Array:
    """[capacity]: 1 for the rows in use, 0 for the others."""
    return jnp.float32(jnp.arange(rows.shape[0]) < count_filled(rows, t))


def take_spread(rows: jax.Array, t: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """`count` evenly spaced rows, and 1 for each that is in use; at least one is. The first row changes with t.

    The rows are seen as `count` groups of neighbours, and one row is taken from each. That is a slice, which is fast
    where looking up rows by their places is not.
    """
    stride = rows.shape[0] // count
    filled = count_filled(rows, t)
    start = ((t % 100_000) * GOLDEN_RATIO % 1.0 * jnp.minimum(stride, filled)).astype(jnp.int32)
    groups = rows[: stride * count].reshape(count, stride, -1)
    places = start + stride * jnp.arange(count)
    return jax.lax.dynamic_index_in_dim(groups, start, axis=1, keepdims=False), jnp.float32(places < filled)
