"""The target network's word on transitions: Q(s, ·; θ⁻) and Q(s', ·; θ⁻), every head and action.

θ⁻ stands still for C steps, so what it says of a stored transition can be remembered beside it and
renewed at each sync. That costs 2N/C evaluations per step where asking it anew for every batch costs
twice the batch size: for small buffers nearly half the work of an update disappears. For large ones,
and where the same state may look different later, asking anew is cheaper. Both are here and answer
the same. A third is for agents whose target is the network itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.networks import Network, Output, Params, on_batch

Pair = tuple[jax.Array, jax.Array]
"""s and s' of a batch as the network sees them, each [d, B]"""


class Teacher(NamedTuple):
    width: int
    """columns kept beside each transition"""
    note: Callable[[Params, jax.Array], jax.Array]
    """(θ⁻, [s, s'] as the network sees them) -> columns of a new row"""
    renew: Callable[[Params, jax.Array], jax.Array]
    """(θ⁻, rows) -> rows, after θ⁻ moved"""
    recall: Callable[[Params, Params, Pair, jax.Array], tuple[Output, Output]]
    """(θ, θ⁻, states, sampled batch [W, B]) -> what is said of s and of s'"""
    lags: bool = True
    """whether there is a θ⁻ beside θ"""


def recomputed(network: Network) -> Teacher:
    """Ask θ⁻ anew for every sampled batch."""
    forward = on_batch(network)

    def recall(params: Params, target: Params, seen: Pair, batch: jax.Array) -> tuple[Output, Output]:
        return forward(target, seen[0]), forward(target, seen[1])

    return Teacher(0, lambda target, pair: jnp.zeros(0), lambda target, rows: rows, recall)


def the_network_itself(network: Network) -> Teacher:
    """No target network: θ answers for itself. The same as one that follows after every update."""
    forward = on_batch(network)

    def recall(params: Params, target: Params, seen: Pair, batch: jax.Array) -> tuple[Output, Output]:
        now = jax.lax.stop_gradient(params)
        return forward(now, seen[0]), forward(now, seen[1])

    return recomputed(network)._replace(recall=recall, lags=False)


def remembered(
    network: Network, encode: Callable[[jax.Array], jax.Array], obs_size: int, heads: int, actions: int
) -> Teacher:
    """Keep what θ⁻ said in the last columns of each row; `encode` is how the network sees a state."""
    size = heads * network.width
    answers = jax.vmap(network.apply, in_axes=(None, 0))

    def note(target: Params, pair: jax.Array) -> jax.Array:
        return answers(target, pair).values.reshape(2 * size)

    def renew(target: Params, rows: jax.Array) -> jax.Array:
        pairs = rows[:, : 2 * obs_size].reshape(-1, obs_size)
        values = answers(target, jax.vmap(encode)(pairs)).values
        return rows.at[:, -2 * size :].set(values.reshape(-1, 2 * size))

    def recall(params: Params, target: Params, seen: Pair, batch: jax.Array) -> tuple[Output, Output]:
        per_action = () if network.width == actions else (network.width // actions,)
        values = batch[-2 * size :].reshape(2, heads, actions, *per_action, batch.shape[-1])
        # What the hidden layer was is not kept.
        nothing = jnp.zeros((0, batch.shape[-1]))
        of_s, of_next = (Output(network.q_of(value), value, nothing) for value in values)
        return of_s, of_next

    return Teacher(2 * size, note, renew, recall)


def renewing_is_cheaper(capacity: int, batch: int, period: int) -> bool:
    """Renewing a row costs about three times what a row of a batch does."""
    return 3 * capacity / period + 1 < batch
