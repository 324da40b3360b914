"""Other ways to divide states into contexts: what IQ's online clustering is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.contexts import ContextDivision, Situation, nearest
from iqrl.parts.kmeans import kmeans


class Cells(NamedTuple):
    """A partition that never moves: each state belongs to the nearest of these centres."""

    centres: jax.Array


def random_cells(k: int, low: Sequence[float], high: Sequence[float], weights: jax.Array) -> ContextDivision:
    """No clustering: a random partition of the state space, drawn before learning.

    The cells of k centres drawn uniformly in [low, high].
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)

    def init(key: jax.Array) -> Cells:
        return Cells(jax.random.uniform(key, (k, lowest.size), minval=lowest, maxval=highest))

    def assign(state: Cells, situation: Situation) -> jax.Array:
        return nearest(situation.obs, state.centres, weights)

    return ContextDivision(k, init, assign, lambda state, situation: state)


def initial_states(
    k: int, first_states: Callable[[jax.Array], jax.Array], draws: tuple[int, int], weights: jax.Array
) -> ContextDivision:
    """K-means on the states that episodes begin with; an episode keeps the context of its first state.

    `first_states` makes them [n, d] from uniform numbers of shape `draws`.
    """

    def init(key: jax.Array) -> Cells:
        draw_key, seed_key = jax.random.split(key)
        states = first_states(jax.random.uniform(draw_key, draws))
        return Cells(kmeans(seed_key, states, k, weights)[0])

    def assign(state: Cells, situation: Situation) -> jax.Array:
        return nearest(situation.first, state.centres, weights)

    return ContextDivision(k, init, assign, lambda state, situation: state)


class Bins(NamedTuple):
    """Lowest and highest score: seen up to now, and as they were at the last sync, which assign."""

    low: jax.Array
    high: jax.Array
    target_low: jax.Array
    target_high: jax.Array


def score_bins(k: int, low: float | None, high: float | None) -> ContextDivision:
    """k bins of equal width of the running score, from `low` to `high`, or as far as scores have been seen."""

    def init(key: jax.Array) -> Bins:
        # An episode's score starts at 0: where nothing else is known, the bins begin with that.
        start = min(0.0, high or 0.0) if low is None else low
        end = max(start, 0.0) if high is None else high
        return Bins(*(jnp.float32(bound) for bound in (start, end, start, end)))

    def assign(state: Bins, situation: Situation) -> jax.Array:
        width = jnp.maximum(state.target_high - state.target_low, 1e-6) / k
        return jnp.clip(jnp.floor((situation.score - state.target_low) / width), 0, k - 1).astype(jnp.int32)

    def update(state: Bins, situation: Situation) -> Bins:
        lowest = jnp.minimum(state.low, situation.score) if low is None else state.low
        highest = jnp.maximum(state.high, situation.score) if high is None else state.high
        return state._replace(low=lowest, high=highest)

    def sync(state: Bins) -> Bins:
        return state._replace(target_low=state.low, target_high=state.high)

    return ContextDivision(k, init, assign, update, begin=lambda state, key: sync(state), sync=sync, lags=True)
