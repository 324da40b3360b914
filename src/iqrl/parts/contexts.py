"""Context division: which head a state belongs to, ω(s) (paper section IV-A and algorithm SKM).

Two sets of centroids: the live ones C move with every state, the target ones Ĉ assign and are
replaced by C at every sync, as the target network is by the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.encoders import Encoder
from iqrl.parts.kmeans import kmeans, squared_distances
from iqrl.parts.scaling import Scaling


class Situation(NamedTuple):
    """What a context may depend on."""

    obs: jax.Array
    """s"""
    first: jax.Array
    """the state in which the episode began"""
    score: jax.Array
    """the undiscounted sum of the episode's rewards so far"""
    code: Any = ()
    """s as the division's encoder has it, where it has one"""


class ContextDivision(NamedTuple):
    count: int
    """k, the number of contexts"""
    init: Callable[[jax.Array], Any]
    assign: Callable[[Any, Situation], jax.Array]
    """ω(s), by the target centroids"""
    update: Callable[[Any, Situation], Any]
    """C <- SKM(s, C)"""
    gather: Callable[[Any, Situation, jax.Array], Any] = lambda state, situation, t: state
    """keep the t-th state seen before learning starts"""
    begin: Callable[[Any, jax.Array], Any] = lambda state, key: state
    """called once, when learning starts"""
    sync: Callable[[Any], Any] = lambda state: state
    """Ĉ <- C"""
    of_state: Callable[[Any, jax.Array], jax.Array] | None = None
    """ω(s) from s, or its code, alone, where that is enough: labels given before learning starts are then given anew"""
    lags: bool = False
    """whether `sync` does anything"""
    centres: Callable[[Any], jax.Array] | None = None
    """[k, d]: the live centroids, in the units of the distance, where there are any that move"""
    encode: Callable[[Any, Any, jax.Array], Any] | None = None
    """(state, θ, s) -> the code of s, by which it is told apart, where that is not s itself"""


def single() -> ContextDivision:
    """One context: plain DQN."""
    return ContextDivision(
        count=1,
        init=lambda key: (),
        assign=lambda state, situation: jnp.int32(0),
        update=lambda state, situation: state,
    )


class Centroids(NamedTuple):
    """The division's state; positions are in the task's units, weights are those of the distance."""

    live: jax.Array
    counts: jax.Array
    target: jax.Array
    target_weights: jax.Array
    scale: Any
    early: jax.Array
    """the states before learning starts, when K-means waits for them"""


def nearest(obs: jax.Array, centroids: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.argmin(squared_distances(obs, centroids, weights), axis=-1).astype(jnp.int32)


def sequential_kmeans(
    k: int,
    low: Sequence[float],
    high: Sequence[float],
    scaling: Scaling,
    warm_start: int = 0,
    first: jax.Array | None = None,
) -> ContextDivision:
    """Sequential K-means from centroids drawn uniformly in [low, high], or from the `first` ones given.

    With `warm_start` > 0, K-means on that many first states replaces them when learning starts, and
    the cluster sizes become the counts.
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    size = lowest.size

    def init(key: jax.Array) -> Centroids:
        drawn = jax.random.uniform(key, (k, size), minval=lowest, maxval=highest)
        live = drawn if first is None else first
        # A centroid that was given counts as one state, so that the first state it meets does not replace it.
        counts = jnp.zeros(k) if first is None else jnp.ones(k)
        scale = scaling.init()
        return Centroids(live, counts, live, scaling.weights(scale), scale, jnp.zeros((warm_start, size)))

    def of_state(state: Centroids, obs: jax.Array) -> jax.Array:
        return nearest(obs, state.target, state.target_weights)

    def update(state: Centroids, situation: Situation) -> Centroids:
        obs = situation.obs
        scale = scaling.update(state.scale, obs)
        chosen = nearest(obs, state.live, scaling.weights(scale)) == jnp.arange(k)
        counts = state.counts + chosen
        # n_i <- n_i + 1; c_i <- c_i + (s - c_i) / n_i, for the nearest i only
        rate = jnp.where(chosen, 1.0 / jnp.maximum(counts, 1), 0.0)
        live = state.live + rate[:, None] * (obs - state.live)
        return state._replace(live=live, counts=counts, scale=scale)

    def gather(state: Centroids, situation: Situation, t: jax.Array) -> Centroids:
        if warm_start == 0:
            return state
        seen = situation.obs[None].astype(jnp.float32)
        return state._replace(early=jax.lax.dynamic_update_slice(state.early, seen, (t, 0)))

    def begin(state: Centroids, key: jax.Array) -> Centroids:
        if warm_start == 0:
            return sync(state)
        live, counts = kmeans(key, state.early, k, scaling.weights(state.scale))
        return sync(state._replace(live=live, counts=counts))

    def sync(state: Centroids) -> Centroids:
        return state._replace(target=state.live, target_weights=scaling.weights(state.scale))

    def centres(state: Centroids) -> jax.Array:
        return state.live * jnp.sqrt(scaling.weights(state.scale))

    assign = lambda state, situation: of_state(state, situation.obs)
    return ContextDivision(k, init, assign, update, gather, begin, sync, of_state, True, centres)


class Coded(NamedTuple):
    encoder: Any
    """the encoder's parameters, where it has its own"""
    division: Any


def of_codes(inner: ContextDivision, encoder: Encoder) -> ContextDivision:
    """IQ-RE: the division `inner`, of codes instead of states, by an encoder drawn once and never trained."""
    return _coded(inner, encoder.init, lambda state, params, obs: encoder.apply(state.encoder, obs))


def of_features(inner: ContextDivision, features: Callable[[Any, jax.Array], jax.Array]) -> ContextDivision:
    """IQ-TE: the same of what the network's own trunk makes of a state, as it is at the time."""
    return _coded(inner, lambda key: (), lambda state, params, obs: features(params, obs))


def _coded(inner: ContextDivision, init_encoder: Callable, encode: Callable) -> ContextDivision:
    def init(key: jax.Array) -> Coded:
        encoder_key, division_key = jax.random.split(key)
        return Coded(init_encoder(encoder_key), inner.init(division_key))

    of_code = lambda situation: situation._replace(obs=situation.code)
    within = lambda change: lambda state, *given: state._replace(division=change(state.division, *given))
    of_state, centres = inner.of_state, inner.centres
    return ContextDivision(
        count=inner.count,
        init=init,
        assign=lambda state, situation: inner.assign(state.division, of_code(situation)),
        update=lambda state, situation: within(inner.update)(state, of_code(situation)),
        gather=lambda state, situation, t: within(inner.gather)(state, of_code(situation), t),
        begin=within(inner.begin),
        sync=within(inner.sync),
        of_state=None if of_state is None else lambda state, code: of_state(state.division, code),
        lags=inner.lags,
        centres=None if centres is None else lambda state: centres(state.division),
        encode=encode,
    )
