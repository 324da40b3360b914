"""The transitions that interference is measured on, kept apart from the replay buffer.

The most recent ones stand for the distribution under the current policy (the paper); a reservoir holds a
uniform sample of all there were (Liu et al. 2023).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def into_recent(rows: jax.Array, row: jax.Array, t: jax.Array) -> jax.Array:
    """The t-th transition, from 0, in place of the oldest."""
    return jax.lax.dynamic_update_index_in_dim(rows, row, t % rows.shape[0], axis=0)


def into_reservoir(rows: jax.Array, row: jax.Array, t: jax.Array, uniform: jax.Array) -> jax.Array:
    """Vitter's algorithm R: each of the t + 1 transitions so far is in it with the same probability."""
    capacity = rows.shape[0]
    drawn = jnp.where(t < capacity, t, (uniform * (t + 1)).astype(jnp.int32))
    slot = jnp.minimum(drawn, capacity - 1)
    old = jax.lax.dynamic_index_in_dim(rows, slot, keepdims=False)
    return jax.lax.dynamic_update_index_in_dim(rows, jnp.where(drawn < capacity, row, old), slot, axis=0)


def filled(rows: jax.Array, t: jax.Array) -> jax.Array:
    """How many rows are in use once the t-th transition is stored."""
    return jnp.minimum(t + 1, rows.shape[0])


def in_use(rows: jax.Array, t: jax.Array) -> jax.Array:
    """1 for the rows in use, 0 for the others."""
    return jnp.float32(jnp.arange(rows.shape[0]) < filled(rows, t))


def spread(rows: jax.Array, t: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """`count` rows, evenly spaced, and 1 for each that is in use, of which there is always one; where the spacing
    begins changes with t.

    One row of each of `count` groups is a slice, which is fast where looking up rows by their places is not.
    """
    stride = rows.shape[0] // count
    used = filled(rows, t)
    golden_ratio = 0.61803399  # its multiples fall evenly between 0 and 1
    start = ((t % 100_000) * golden_ratio % 1.0 * jnp.minimum(stride, used)).astype(jnp.int32)
    groups = rows[: stride * count].reshape(count, stride, -1)
    places = start + stride * jnp.arange(count)
    return jax.lax.dynamic_index_in_dim(groups, start, axis=1, keepdims=False), jnp.float32(places < used)
