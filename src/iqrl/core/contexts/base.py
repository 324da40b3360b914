"""Context division: which head a state belongs to, ω(s) (paper section IV-A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.encoders import Encoder
from iqrl.core.types import ContextInputs


class ContextDivision(NamedTuple):
    count: int
    """k, the number of contexts"""
    init: Callable[[jax.Array], Any]
    assign: Callable[[Any, ContextInputs], jax.Array]
    """ω(s), by the target centroids Ĉ"""
    update: Callable[[Any, ContextInputs], Any]
    """C <- SKM(s, C)"""
    collect: Callable[[Any, ContextInputs, jax.Array], Any] = lambda state, inputs, step: state
    """keep a state from before learning starts, for the warm start"""
    start: Callable[[Any, jax.Array], Any] = lambda state, key: state
    """the warm start, when learning starts"""
    sync: Callable[[Any], Any] = lambda state: state
    """Ĉ <- C"""
    of_state: Callable[[Any, jax.Array], jax.Array] | None = None
    """ω(s) from s, or from its embedding, where that is enough: then stored states can be labelled anew"""
    has_target: bool = False
    """whether `sync` does anything"""
    centres: Callable[[Any], jax.Array] | None = None
    """[k, d]: the live centroids, in the units of the distance, where there are any that move"""
    encode: Callable[[Any, Any, jax.Array], jax.Array] | None = None
    """(state, θ, s) -> the embedding of s that is clustered, where that is not s itself"""

    def embedding(self, state: Any, params: Any, obs: jax.Array) -> jax.Array:
        """What is clustered: an embedding of s, or s itself."""
        return obs if self.encode is None else self.encode(state, params, obs)

    def embed(self, state: Any, params: Any, inputs: ContextInputs) -> ContextInputs:
        """The inputs with the embedding of their state, unless they have one or need none."""
        if self.encode is None or jax.tree.leaves(inputs.embedding):
            return inputs
        return inputs._replace(embedding=self.encode(state, params, inputs.obs))


def single() -> ContextDivision:
    """One context: plain DQN."""
    return ContextDivision(
        count=1,
        init=lambda key: (),
        assign=lambda state, inputs: jnp.int32(0),
        update=lambda state, inputs: state,
    )


class EncodedState(NamedTuple):
    encoder: Any
    """the encoder's parameters, where it has its own"""
    division: Any


def by_random_encoder(inner: ContextDivision, encoder: Encoder) -> ContextDivision:
    """IQ-RE: the division `inner` of embeddings, by an encoder drawn once and never trained."""
    return _by_embedding(inner, encoder.init, lambda state, params, obs: encoder.apply(state.encoder, obs))


def by_trained_encoder(inner: ContextDivision, features: Callable[[Any, jax.Array], jax.Array]) -> ContextDivision:
    """IQ-TE: the same of the features that the network's own convolutions give at the time."""
    return _by_embedding(inner, lambda key: (), lambda state, params, obs: features(params, obs))


def _by_embedding(inner: ContextDivision, init_encoder: Callable, encode: Callable) -> ContextDivision:
    def init(key: jax.Array) -> EncodedState:
        encoder_key, division_key = jax.random.split(key)
        return EncodedState(encoder=init_encoder(encoder_key), division=inner.init(division_key))

    embedded = lambda inputs: inputs._replace(obs=inputs.embedding)
    within = lambda change: lambda state, *given: state._replace(division=change(state.division, *given))
    of_state, centres = inner.of_state, inner.centres
    return ContextDivision(
        count=inner.count,
        init=init,
        assign=lambda state, inputs: inner.assign(state.division, embedded(inputs)),
        update=lambda state, inputs: within(inner.update)(state, embedded(inputs)),
        collect=lambda state, inputs, step: within(inner.collect)(state, embedded(inputs), step),
        start=within(inner.start),
        sync=within(inner.sync),
        of_state=None if of_state is None else lambda state, embedding: of_state(state.division, embedding),
        has_target=inner.has_target,
        centres=None if centres is None else lambda state: centres(state.division),
        encode=encode,
    )
