"""Q-networks: a shared trunk θ_S and k heads, one per context (θ_T for the head in use, θ_F for the others).

A network is written for one state; batches and seeds are `vmap` axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.encoders import Encoder

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
    """[H], or [k * H] where each head has its own: the last hidden layer"""


class Network(NamedTuple):
    init: Callable[[jax.Array], Params]
    apply: Callable[[Params, jax.Array], Output]
    q_of: Callable[[jax.Array], jax.Array]
    """values -> q; a batch may follow as the last axis"""
    width: int
    """numbers that a head's values are"""
    trunk: Callable[[Params, jax.Array], jax.Array] | None = None
    """what all heads share: (θ, state) -> features [F]"""
    trunk_size: int = 0
    """F"""
    only: Callable[[Params, jax.Array], Params] | None = None
    """(θ, ω) -> θ with that head alone, where the others are worth leaving out when one state is asked about"""
    perturb: Callable[[Params, jax.Array], Params] = lambda params, uniforms: params
    """θ with noise in it, where there is any"""
    draws: int = 0
    """uniform numbers that the noise is made of"""


def multi_head_network(
    inputs: int,
    hidden: tuple[int, ...],
    activation: str,
    heads: int,
    actions: int,
    *,
    encoder: Encoder | None = None,
    own_layers: int = 0,
    layer_norm: bool = False,
    dueling: bool = False,
    support: jax.Array | None = None,
    gates: int = 0,
    binary: bool = False,
    initialiser: Initialiser | None = None,
) -> Network:
    """Fully connected trunk and linear heads; Glorot-uniform weights, zero biases.

    `encoder`: convolutions before the first layer. `own_layers`: that many of the hidden layers, the last ones, each
    head has for itself. `layer_norm`: before each activation, without parameters of its own. `dueling`: a value and
    advantages instead of Q values. `support`: a distribution over these values for each action.
    `gates`: that many more inputs follow, and multiply the last hidden layer. `binary`: what is given is
    the list of inputs that are 1, the others being 0.
    """
    sizes = (encoder.size if encoder else inputs, *hidden)
    shared = len(hidden) - own_layers
    nonlinearity = ACTIVATIONS[activation]
    per_action = 1 if support is None else support.size
    outputs = (actions + dueling) * per_action
    # Heads are stored [k, outputs, H] so that both the forward product and its gradient run along
    # contiguous rows: on a CPU this is much cheaper than [H, k * outputs].
    layers = list(itertools.pairwise(sizes))
    own = [(heads, units, given) for given, units in layers[shared:]]
    shapes = [*layers[:shared], *own, (heads, outputs, sizes[-1])]

    def init(key: jax.Array) -> Params:
        *weights, head_weights = (initialiser or glorot_uniform)(key, shapes)
        biases = [jnp.zeros(w.shape[:2] if w.ndim == 3 else w.shape[1]) for w in weights]
        filled = tuple({"w": w, "b": b} for w, b in zip(weights, biases, strict=True))
        params = {"trunk": filled[:shared], "heads": {"w": head_weights, "b": jnp.zeros((heads, outputs))}}
        if own_layers:
            params["own"] = filled[shared:]
        if encoder:
            params["encoder"] = encoder.init(jax.random.fold_in(key, 1))
        return params

    def activated(sums: jax.Array) -> jax.Array:
        return nonlinearity(normalised(sums) if layer_norm else sums)

    def trunk(params: Params, seen: jax.Array) -> jax.Array:
        features = encoder.apply(params["encoder"], seen) if encoder else seen[:inputs]
        for number, layer in enumerate(params["trunk"]):
            sparse = binary and number == 0
            sums = rows_summed(layer["w"], features) if sparse else features @ layer["w"]
            features = activated(sums + layer["b"])
        return features * seen[inputs:] if gates else features

    def apply(params: Params, seen: jax.Array) -> Output:
        features = trunk(params, seen)
        if own_layers:
            return with_own_layers(params, features)
        values = params["heads"]["w"] @ features + params["heads"]["b"]
        return output(values, features)

    def with_own_layers(params: Params, shared: jax.Array) -> Output:
        first, *others = params["own"]
        # What the heads share is one product for all of them.
        sums = (first["w"].reshape(-1, shared.size) @ shared).reshape(first["b"].shape)
        features = activated(sums + first["b"])
        for layer in others:
            features = activated(jnp.einsum("koh,kh->ko", layer["w"], features) + layer["b"])
        values = jnp.einsum("koh,kh->ko", params["heads"]["w"], features) + params["heads"]["b"]
        return output(values, features.reshape(-1))

    def only(params: Params, context: jax.Array) -> Params:
        of_head = lambda leaf: jax.lax.dynamic_index_in_dim(leaf, context)
        return params | {name: jax.tree.map(of_head, params[name]) for name in ("own", "heads")}

    def output(values: jax.Array, features: jax.Array) -> Output:
        if support is not None:
            values = values.reshape(values.shape[0], -1, support.size)
        values = combined(values) if dueling else values
        return Output(q_of(values), values, features)

    def q_of(values: jax.Array) -> jax.Array:
        return values if support is None else expectation(values, support)

    return Network(
        init, apply, q_of, actions * per_action, trunk, sizes[shared], only if own_layers and heads > 1 else None
    )


def rows_summed(weights: jax.Array, ones: jax.Array) -> jax.Array:
    """The product with a vector of zeros that is 1 at `ones`."""
    return jnp.sum(weights.at[ones].get(mode="promise_in_bounds"), axis=0)


def normalised(sums: jax.Array) -> jax.Array:
    """Mean 0 and variance 1 over the units of a layer, the last axis."""
    centred = sums - jnp.mean(sums, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + 1e-5)


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
        layers = zip(_pieces(2 * uniforms[0] - 1, shapes), _pieces(uniforms[1], shapes), shapes, strict=True)
        # Of layers that all share the inputs come first, of a head's own they come last.
        return [_sparse(weights, order, 0 if len(shape) == 2 else -1, sparsity) for weights, order, shape in layers]

    return draw


def sparse_rows(key: jax.Array, units: int, inputs: int, sparsity: float) -> jax.Array:
    """The same for one layer [units, inputs]."""
    uniforms = jax.random.uniform(key, (2, units, inputs))
    return _sparse(2 * uniforms[0] - 1, uniforms[1], -1, sparsity)


def _sparse(weights: jax.Array, order: jax.Array, axis: int, sparsity: float) -> jax.Array:
    """`axis` is that of the inputs; those that come first in a random order are set to 0."""
    inputs = weights.shape[axis]
    zeros = min(math.ceil(sparsity * inputs), inputs - 1)
    order = jnp.moveaxis(order, axis, -1)
    first = order < jnp.sort(order, axis=-1)[..., zeros : zeros + 1]
    return jnp.where(jnp.moveaxis(first, -1, axis), 0.0, weights / math.sqrt(inputs))


def _total(shapes: Sequence[tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def _pieces(numbers: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    return [piece.reshape(shape) for piece, shape in zip(jnp.split(numbers, ends[:-1]), shapes, strict=True)]
