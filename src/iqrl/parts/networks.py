"""Q-networks: a shared trunk θ_S and k linear heads, one per context (θ_T for the head in use, θ_F for the others).

A network is written for one state; batches and seeds are `vmap` axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

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
    # Heads are stored [k, A, H] so that both the forward product and its gradient run along
    # contiguous rows: on a CPU this is much cheaper than [H, k * A].
    shapes = [*itertools.pairwise(sizes), (heads, actions, sizes[-1])]

    def init(key: jax.Array) -> Params:
        *layers, head_weights = glorot_uniform(key, shapes)
        trunk = tuple({"w": weights, "b": jnp.zeros(weights.shape[1])} for weights in layers)
        return {"trunk": trunk, "heads": {"w": head_weights, "b": jnp.zeros((heads, actions))}}

    def apply(params: Params, obs: jax.Array) -> Output:
        features = obs
        for layer in params["trunk"]:
            features = nonlinearity(features @ layer["w"] + layer["b"])
        return Output(params["heads"]["w"] @ features + params["heads"]["b"], features)

    return Network(init, apply)


def glorot_uniform(key: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    """Independent weights U(-b, b), b² = 6 / (inputs + outputs), the last two axes of a shape being the layer's.

    All come from one draw, since each draw costs a quarter of a second to compile.
    """
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    uniforms = jax.random.uniform(key, (ends[-1],), minval=-1.0, maxval=1.0)
    pieces = jnp.split(uniforms, ends[:-1])
    return [math.sqrt(6 / sum(shape[-2:])) * piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def on_batch(network: Network) -> Callable[[Params, jax.Array], Output]:
    """The network on a batch [d, B]: the batch is the last axis of what goes in and of what comes out."""
    forward = jax.vmap(network.apply, in_axes=(None, 0), out_axes=-1)
    # States enter the first product as rows, in the layout they are stored in; XLA cancels the transposes.
    return lambda params, obs: forward(params, obs.T)
