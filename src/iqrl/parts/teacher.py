"""The target network's word on stored transitions: Q(s, ·; θ⁻) and Q(s', ·; θ⁻), every head and action.

θ⁻ stands still for C steps, so what it says of a stored transition can be remembered beside it and
renewed at each sync. That costs 2N/C evaluations per step where asking it anew for every batch costs
twice the batch size: for small buffers nearly half the work of an update disappears. For large ones,
asking anew is cheaper. Both are here and answer the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.networks import Network, Params, on_batch


class Teacher(NamedTuple):
    width: int
    """columns kept beside each transition"""
    note: Callable[[Params, jax.Array], jax.Array]
    """(θ⁻, [s, s']) -> columns of a new row"""
    renew: Callable[[Params, jax.Array], jax.Array]
    """(θ⁻, rows) -> rows, after θ⁻ moved"""
    recall: Callable[[Params, jax.Array], tuple[jax.Array, jax.Array]]
    """(θ⁻, sampled batch [W, B]) -> Q(s), Q(s'), each [k, A, B]"""


def recomputed(network: Network, obs_size: int) -> Teacher:
    """Ask θ⁻ anew for every sampled batch."""
    forward = on_batch(network)

    def recall(target: Params, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        return forward(target, batch[:obs_size]).q, forward(target, batch[obs_size : 2 * obs_size]).q

    return Teacher(0, lambda target, pair: jnp.zeros(0), lambda target, rows: rows, recall)


def remembered(network: Network, obs_size: int, heads: int, actions: int) -> Teacher:
    """Keep what θ⁻ said in the last columns of each row."""
    size = heads * actions

    def note(target: Params, pair: jax.Array) -> jax.Array:
        return jax.vmap(network.apply, in_axes=(None, 0))(target, pair).q.reshape(2 * size)

    def renew(target: Params, rows: jax.Array) -> jax.Array:
        pairs = rows[:, : 2 * obs_size].reshape(-1, obs_size)
        q = jax.vmap(network.apply, in_axes=(None, 0))(target, pairs).q
        return rows.at[:, -2 * size :].set(q.reshape(-1, 2 * size))

    def recall(target: Params, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        columns = batch[-2 * size :].reshape(2, heads, actions, -1)
        return columns[0], columns[1]

    return Teacher(2 * size, note, renew, recall)


def cheaper(
    network: Network, obs_size: int, heads: int, actions: int, capacity: int, batch: int, period: int
) -> Teacher:
    """Whichever of the two is cheaper per step: renewing a row costs about three times what a row of a batch does."""
    if 3 * capacity / period + 1 < batch:
        return remembered(network, obs_size, heads, actions)
    return recomputed(network, obs_size)
