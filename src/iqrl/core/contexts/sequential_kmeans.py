"""Sequential K-means (the paper's algorithm SKM): contexts by online clustering.

There are two sets of centroids. The live ones C move with every state. The target ones Ĉ assign contexts and are
replaced by C at every sync, as the target network is by the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.contexts.base import ContextDivision
from iqrl.core.contexts.kmeans import kmeans, squared_distances
from iqrl.core.scaling import Scaling
from iqrl.core.types import ContextInputs


class Centroids(NamedTuple):
    """The division's state; positions are in the task's units, weights are those of the distance."""

    live: jax.Array
    counts: jax.Array
    target: jax.Array
    target_weights: jax.Array
    scale: Any
    early: jax.Array
    """the states from before learning starts, for the warm start by K-means"""


def nearest(obs: jax.Array, centroids: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.argmin(squared_distances(obs, centroids, weights), axis=-1).astype(jnp.int32)


def sequential_kmeans(
    k: int,
    low: Sequence[float],
    high: Sequence[float],
    scaling: Scaling,
    warm_start: int = 0,
    given: jax.Array | None = None,
    live: bool = False,
) -> ContextDivision:
    """Sequential K-means from centroids drawn uniformly in [low, high], or from those `given`.

    With `warm_start` > 0, K-means on that many first states replaces them when learning starts, and
    the cluster sizes become the counts. With `live`, the live centroids assign contexts, without Ĉ.
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    size = lowest.size

    def init(key: jax.Array) -> Centroids:
        drawn = jax.random.uniform(key, (k, size), minval=lowest, maxval=highest)
        first = drawn if given is None else given
        # A given centroid counts as one state, so that the first state assigned to it does not replace it.
        counts = jnp.zeros(k) if given is None else jnp.ones(k)
        scale = scaling.init()
        return Centroids(
            live=first,
            counts=counts,
            target=first,
            target_weights=scaling.weights(scale),
            scale=scale,
            early=jnp.zeros((warm_start, size)),
        )

    def of_state(state: Centroids, obs: jax.Array) -> jax.Array:
        if live:
            return nearest(obs, state.live, scaling.weights(state.scale))
        return nearest(obs, state.target, state.target_weights)

    def update(state: Centroids, inputs: ContextInputs) -> Centroids:
        obs = inputs.obs
        scale = scaling.update(state.scale, obs)
        chosen = nearest(obs, state.live, scaling.weights(scale)) == jnp.arange(k)
        counts = state.counts + chosen
        # n_i <- n_i + 1; c_i <- c_i + (s - c_i) / n_i, for the nearest i only
        rate = jnp.where(chosen, 1.0 / jnp.maximum(counts, 1), 0.0)
        moved = state.live + rate[:, None] * (obs - state.live)
        return state._replace(live=moved, counts=counts, scale=scale)

    def collect(state: Centroids, inputs: ContextInputs, step: jax.Array) -> Centroids:
        if warm_start == 0:
            return state
        obs = inputs.obs[None].astype(jnp.float32)
        return state._replace(early=jax.lax.dynamic_update_slice(state.early, obs, (step, 0)))

    def start(state: Centroids, key: jax.Array) -> Centroids:
        if warm_start == 0:
            return sync(state)
        found, counts = kmeans(key, state.early, k, scaling.weights(state.scale))
        return sync(state._replace(live=found, counts=counts))

    def sync(state: Centroids) -> Centroids:
        return state._replace(target=state.live, target_weights=scaling.weights(state.scale))

    def centres(state: Centroids) -> jax.Array:
        return state.live * jnp.sqrt(scaling.weights(state.scale))

    assign = lambda state, inputs: of_state(state, inputs.obs)
    return ContextDivision(
        count=k,
        init=init,
        assign=assign,
        update=update,
        collect=collect,
        start=start,
        sync=sync,
        of_state=of_state,
        has_target=not live,
        centres=centres,
    )
