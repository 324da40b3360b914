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
Initialiser = Callable[[jax.Array, Sequence[tuple[int, ...]]], list[jax.Array]]

ACTIVATIONS: dict[str, Callable] = {"tanh": jnp.tanh, "relu": jax.nn.relu, "leaky-relu": jax.nn.leaky_relu}


class Output(NamedTuple):
    """What the network says of one state."""

    q: jax.Array
    """[k, A]: Q(s, a, ω_i) for every head i and action a"""
    values: jax.Array
    """what q is the mean of: q itself, or the logits [k, A, Z] of its distribution"""
    features: jax.Array
    """[H]: the last hidden layer"""


class Network(NamedTuple):
    init: Callable[[jax.Array], Params]
    apply: Callable[[Params, jax.Array], Output]
    q_of: Callable[[jax.Array], jax.Array]
    """values -> q; a batch may follow as the last axis"""
    width: int
    """numbers that a head's values are"""


def multi_head_mlp(
    inputs: int,
    hidden: tuple[int, ...],
    activation: str,
    heads: int,
    actions: int,
    *,
    layer_norm: bool = False,
    dueling: bool = False,
    support: jax.Array | None = None,
    gates: int = 0,
    binary: bool = False,
    initialiser: Initialiser | None = None,
) -> Network:
    """Fully connected trunk and linear heads; Glorot-uniform weights, zero biases.

    `layer_norm`: before each activation, without parameters of its own. `dueling`: a value and
    advantages instead of Q values. `support`: a distribution over these values for each action.
    `gates`: that many more inputs follow, and multiply the last hidden layer. `binary`: what is given is
    the list of inputs that are 1, the others being 0.
    """
    sizes = (inputs, *hidden)
    nonlinearity = ACTIVATIONS[activation]
    per_action = 1 if support is None else support.size
    outputs = (actions + dueling) * per_action
    # Heads are stored [k, outputs, H] so that both the forward product and its gradient run along
    # contiguous rows: on a CPU this is much cheaper than [H, k * outputs].
    shapes = [*itertools.pairwise(sizes), (heads, outputs, sizes[-1])]

    def init(key: jax.Array) -> Params:
        *layers, head_weights = (initialiser or glorot_uniform)(key, shapes)
        trunk = tuple({"w": weights, "b": jnp.zeros(weights.shape[1])} for weights in layers)
        return {"trunk": trunk, "heads": {"w": head_weights, "b": jnp.zeros((heads, outputs))}}

    def apply(params: Params, seen: jax.Array) -> Output:
        features = seen[:inputs]
        for number, layer in enumerate(params["trunk"]):
            sparse = binary and number == 0
            sums = (rows_summed(layer["w"], features) if sparse else features @ layer["w"]) + layer["b"]
            features = nonlinearity(normalised(sums) if layer_norm else sums)
        if gates:
            features = features * seen[inputs:]
        values = params["heads"]["w"] @ features + params["heads"]["b"]
        if support is not None:
            values = values.reshape(heads, -1, support.size)
        values = combined(values) if dueling else values
        return Output(q_of(values), values, features)

    def q_of(values: jax.Array) -> jax.Array:
        return values if support is None else expectation(values, support)

    return Network(init, apply, q_of, actions * per_action)


def rows_summed(weights: jax.Array, ones: jax.Array) -> jax.Array:
    """The product with a vector of zeros that is 1 at `ones`."""
    return jnp.sum(weights.at[ones].get(mode="promise_in_bounds"), axis=0)


def normalised(sums: jax.Array) -> jax.Array:
    """Mean 0 and variance 1 over the units of a layer."""
    centred = sums - jnp.mean(sums)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred)) + 1e-5)


def combined(values: jax.Array) -> jax.Array:
    """V + A - mean A (Wang et al. 2016), from [k, 1 + A, …] with V first."""
    value, advantages = values[:, :1], values[:, 1:]
    return value + advantages - jnp.mean(advantages, axis=1, keepdims=True)


def expectation(logits: jax.Array, support: jax.Array) -> jax.Array:
    """[k, A, Z, …] -> [k, A, …]."""
    points = support.reshape(-1, *[1] * (logits.ndim - 3))
    return jnp.sum(jax.nn.softmax(logits, axis=2) * points, axis=2)


def glorot_uniform(key: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    """Independent weights U(-b, b), b² = 6 / (inputs + outputs), the last two axes of a shape being the layer's.

    All come from one draw, since each draw costs a quarter of a second to compile.
    """
    pieces = _pieces(jax.random.uniform(key, (_total(shapes),), minval=-1.0, maxval=1.0), shapes)
    return [math.sqrt(6 / sum(shape[-2:])) * piece for piece, shape in zip(pieces, shapes, strict=True)]


def sparse_uniform(sparsity: float) -> Initialiser:
    """Weights U(-b, b), b² = 1 / inputs, of which each unit has that share, rounded up, set to 0 (Elsayed et al. 2024).

    One weight of each unit always stays: with few inputs the share rounds up to all of them.
    """

    def draw(key: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
        uniforms = jax.random.uniform(key, (2, _total(shapes)))
        *layers, heads = zip(_pieces(2 * uniforms[0] - 1, shapes), _pieces(uniforms[1], shapes), strict=True)
        return [*[_sparse(*layer, 0, sparsity) for layer in layers], _sparse(*heads, -1, sparsity)]

    return draw


def _sparse(weights: jax.Array, order: jax.Array, axis: int, sparsity: float) -> jax.Array:
    """`axis` is that of the inputs; those that come first in a random order are set to 0."""
    inputs = weights.shape[axis]
    zeros = min(math.ceil(sparsity * inputs), inputs - 1)
    order = jnp.moveaxis(order, axis, -1)
    rank = jnp.sum(order[..., None, :] < order[..., :, None], axis=-1)
    return jnp.where(jnp.moveaxis(rank, -1, axis) < zeros, 0.0, weights / math.sqrt(inputs))


def _total(shapes: Sequence[tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def _pieces(numbers: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    return [piece.reshape(shape) for piece, shape in zip(jnp.split(numbers, ends[:-1]), shapes, strict=True)]
