"""Q-networks: a shared trunk θ_S and k linear heads, one per context (θ_T for the head in use, θ_F for the others).

A network is written for one state; batches and seeds are `vmap` axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.nn.initializers import glorot_uniform

Params = Any

ACTIVATIONS: dict[str, Callable] = {"tanh": jnp.tanh, "relu": jax.nn.relu}


class Output(NamedTuple):
    """What the network says of one state."""

    q: jax.Array
    """[k, A]: Q(s, a, ω_i) for every head i and action a"""
    features: jax.Array
    """[H]: the last hidden layer"""


class Network(NamedTuple):
    init: Callable[[jax.Array], Params]
    apply: Callable[[Params, jax.Array], Output]


def multi_head_mlp(inputs: int, hidden: tuple[int, ...], activation: str, heads: int, actions: int) -> Network:
    """Fully connected trunk and `heads` linear heads of `actions` outputs; Glorot-uniform weights, zero biases."""
    sizes = (inputs, *hidden)
    nonlinearity = ACTIVATIONS[activation]
    weights = glorot_uniform()
    # Heads are stored [k, A, H] so that both the forward product and its gradient run along
    # contiguous rows: on a CPU this halves the cost of an update against [H, k * A].
    head_weights = glorot_uniform(in_axis=-1, out_axis=-2)

    def init(key: jax.Array) -> Params:
        trunk_key, head_key = jax.random.split(key)
        layer_keys = jax.random.split(trunk_key, len(hidden))
        trunk = tuple(
            {"w": weights(layer_key, shape), "b": jnp.zeros(shape[1])}
            for layer_key, shape in zip(layer_keys, zip(sizes[:-1], sizes[1:], strict=True), strict=True)
        )
        # One key per head: heads that start equal and see equal gradients would stay equal for ever.
        independent = jax.vmap(lambda k: head_weights(k, (actions, sizes[-1])))(jax.random.split(head_key, heads))
        return {"trunk": trunk, "heads": {"w": independent, "b": jnp.zeros((heads, actions))}}

    def apply(params: Params, obs: jax.Array) -> Output:
        features = obs
        for layer in params["trunk"]:
            features = nonlinearity(features @ layer["w"] + layer["b"])
        return Output(params["heads"]["w"] @ features + params["heads"]["b"], features)

    return Network(init, apply)


def on_batch(network: Network) -> Callable[[Params, jax.Array], Output]:
    """The network on a batch [d, B]: the batch is the last axis of what goes in and of what comes out."""
    return jax.vmap(network.apply, in_axes=(None, -1), out_axes=-1)
