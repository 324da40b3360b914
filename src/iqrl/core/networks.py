"""Q-networks: a shared trunk θ_S and k heads, one per context (θ_T for the head in use, θ_F for the others).

A network is written for one state; batches and seeds are `vmap` axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.encoders import Encoder
from iqrl.core.features import Features
from iqrl.core.layers import ACTIVATIONS, Initialiser, glorot_uniform, layer_norm

Params = Any


class Output(NamedTuple):
    """What the network computes for one state."""

    q: jax.Array
    """[k, A]: Q(s, a, ω_i) for every head i and action a"""
    values: jax.Array
    """q itself, or logits [k, A, Z] over the support whose expectation is q"""
    features: jax.Array
    """[H], or [k * H] where each head has its own: the last hidden layer"""


class Network(NamedTuple):
    init: Callable[[jax.Array], Params]
    apply: Callable[[Params, jax.Array], Output]
    q_of: Callable[[jax.Array], jax.Array]
    """values -> q; a batch may follow as the last axis"""
    values_shape: tuple[int, ...]
    """of a head's values: (A,), or (A, Z) for distributions"""
    trunk: Callable[[Params, jax.Array], jax.Array] | None = None
    """what all heads share: (θ, state) -> features [F]"""
    trunk_size: int = 0
    """F"""
    project: Callable[[Params, jax.Array], jax.Array] | None = None
    """(θ, state) -> [units]: the places among the bins, where the last hidden layer has local features"""
    only: Callable[[Params, jax.Array], Params] | None = None
    """(θ, ω) -> θ with that head alone, where reading the other heads' weights would take longest"""
    perturb: Callable[[Params, jax.Array], Params] = lambda params, uniforms: params
    """θ with noise in it, where there is any"""
    num_uniforms: int = 0
    """uniform numbers that the noise is made of"""
    own: bool = False
    """whether it is, or stands on, what the user gave by the setting `network`"""

    @property
    def width(self) -> int:
        """Numbers in a head's values."""
        return math.prod(self.values_shape)

    def q_of_head(self, params: Params, obs: jax.Array, context: jax.Array) -> jax.Array:
        """[A]: Q(s, ·, ω) of one state."""
        if self.only is None:
            return select_head(self.apply(params, obs).q, context)
        return self.apply(self.only(params, context), obs).q[0]


def select_head(rows: jax.Array, context: jax.Array) -> jax.Array:
    """rows[ω] of [k, …], as a masked sum: on a CPU the gradient of an indexed read is a slow scatter, this is not."""
    return jnp.sum(jnp.where(head_mask(rows, context), rows, 0.0), axis=0)


def select_action(rows: jax.Array, action: jax.Array) -> jax.Array:
    """rows[a] of [A, …], in the same way."""
    return select_head(rows, action)


def head_mask(rows: jax.Array, context: jax.Array) -> jax.Array:
    """True where the first axis of `rows` is ω."""
    return jnp.arange(rows.shape[0]).reshape(-1, *[1] * (rows.ndim - 1)) == context


def multi_head_network(
    inputs: int,
    hidden: tuple[int, ...],
    activation: str,
    heads: int,
    actions: int,
    *,
    encoder: Encoder | None = None,
    own_layers: int = 0,
    normalise: bool = False,
    dueling: bool = False,
    support: jax.Array | None = None,
    gates: int = 0,
    binary: bool = False,
    initialiser: Initialiser | None = None,
    features: Features | None = None,
) -> Network:
    """Fully connected trunk and linear heads; Glorot-uniform weights, zero biases.

    `encoder`: convolutions before the first layer. `own_layers`: so many of the hidden layers, the last ones, each
    head has for itself. `normalise`: layer normalisation before each activation, without parameters of its own.
    `dueling`: a value and advantages instead of Q values. `support`: a distribution over these values for each action.
    `gates`: so many more inputs follow, and multiply the last hidden layer. `binary`: the input is the list of inputs
    that are 1, the others being 0. `features`: what the last hidden layer has in place of an activation; the heads
    start at 0 then.
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
    width = sizes[-1] * (features.per_unit if features else 1)
    shapes = [*layers[:shared], *own, (heads, outputs, width)]

    def init(key: jax.Array) -> Params:
        if features:
            return with_local_features(key)
        *weights, head_weights = (initialiser or glorot_uniform)(key, shapes)
        biases = [jnp.zeros(w.shape[:2] if w.ndim == 3 else w.shape[1]) for w in weights]
        filled = tuple({"w": w, "b": b} for w, b in zip(weights, biases, strict=True))
        params = {"trunk": filled[:shared], "heads": {"w": head_weights, "b": jnp.zeros((heads, outputs))}}
        if own_layers:
            params["own"] = filled[shared:]
        if encoder:
            params["encoder"] = encoder.init(jax.random.fold_in(key, 1))
        return params

    def with_local_features(key: jax.Array) -> Params:
        assert features is not None
        weights = (initialiser or glorot_uniform)(key, shapes[:-1])
        trunk = [{"w": w, "b": jnp.zeros(w.shape[1])} for w in weights]
        if initialiser is None:
            trunk[-1] = features.init(jax.random.fold_in(key, 2), *layers[-1])
        heads_at_zero = {"w": jnp.zeros(shapes[-1])}
        if not features.sum_to_one:
            heads_at_zero["b"] = jnp.zeros(shapes[-1][:2])
        convolutions = {"encoder": encoder.init(jax.random.fold_in(key, 1))} if encoder else {}
        return {"trunk": tuple(trunk), "heads": heads_at_zero} | convolutions

    def activate(sums: jax.Array) -> jax.Array:
        return nonlinearity(layer_norm(sums) if normalise else sums)

    def dense_layers(params: Params, seen: jax.Array, count: int) -> jax.Array:
        below = encoder.apply(params["encoder"], seen) if encoder else seen[:inputs]
        for number, layer in enumerate(params["trunk"][:count]):
            sparse = binary and number == 0
            below = activate(sums_of(layer, below, sparse) + layer["b"])
        return below

    def sums_of(layer: Params, below: jax.Array, sparse: bool) -> jax.Array:
        return sum_rows(layer["w"], below) if sparse else below @ layer["w"]

    def trunk(params: Params, seen: jax.Array) -> jax.Array:
        if features:
            return features.expand(project(params, seen))
        last_layer = dense_layers(params, seen, shared)
        return last_layer * seen[inputs:] if gates else last_layer

    def project(params: Params, seen: jax.Array) -> jax.Array:
        assert features is not None
        below, layer = dense_layers(params, seen, shared - 1), params["trunk"][-1]
        sums = sums_of(layer, below, binary and shared == 1)
        if normalise:
            return features.project({"b": 0.0}, layer_norm(sums + layer["b"]))
        return features.project(layer, sums)

    def apply(params: Params, seen: jax.Array) -> Output:
        last_layer = trunk(params, seen)
        if own_layers:
            return with_own_layers(params, last_layer)
        if features and features.weigh:
            values = features.weigh(params["heads"]["w"], project(params, seen))
        else:
            values = params["heads"]["w"] @ last_layer
        return output(values + params["heads"]["b"] if "b" in params["heads"] else values, last_layer)

    def with_own_layers(params: Params, shared: jax.Array) -> Output:
        first, *others = params["own"]
        # What the heads share is one product for all of them.
        sums = (first["w"].reshape(-1, shared.size) @ shared).reshape(first["b"].shape)
        features = activate(sums + first["b"])
        for layer in others:
            features = activate(jnp.einsum("koh,kh->ko", layer["w"], features) + layer["b"])
        values = jnp.einsum("koh,kh->ko", params["heads"]["w"], features) + params["heads"]["b"]
        return output(values, features.reshape(-1))

    def only(params: Params, context: jax.Array) -> Params:
        of_head = lambda leaf: jax.lax.dynamic_index_in_dim(leaf, context)
        return params | {name: jax.tree.map(of_head, params[name]) for name in ("own", "heads")}

    def output(values: jax.Array, features: jax.Array) -> Output:
        if support is not None:
            values = values.reshape(values.shape[0], -1, support.size)
        values = combine_dueling(values) if dueling else values
        return Output(q_of(values), values, features)

    def q_of(values: jax.Array) -> jax.Array:
        return values if support is None else expectation(values, support)

    return Network(
        init=init,
        apply=apply,
        q_of=q_of,
        values_shape=(actions,) if support is None else (actions, support.size),
        trunk=trunk,
        trunk_size=width if features else sizes[shared],
        project=project if features else None,
        only=only if own_layers and heads > 1 else None,
    )


def sum_rows(weights: jax.Array, ones: jax.Array) -> jax.Array:
    """The product with a vector of zeros that is 1 at `ones`."""
    return jnp.sum(weights.at[ones].get(mode="promise_in_bounds"), axis=0)


def combine_dueling(values: jax.Array) -> jax.Array:
    """V + A - mean A (Wang et al. 2016), from [k, 1 + A, …] with V first."""
    value, advantages = values[:, :1], values[:, 1:]
    return value + advantages - jnp.mean(advantages, axis=1, keepdims=True)


def expectation(logits: jax.Array, support: jax.Array) -> jax.Array:
    """[k, A, Z, …] -> [k, A, …]."""
    points = support.reshape(-1, *[1] * (logits.ndim - 3))
    return jnp.sum(jax.nn.softmax(logits, axis=2) * points, axis=2)
