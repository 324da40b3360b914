"""Noisy heads: exploration by noise in the weights (Fortunato et al. 2018).

A weight is μ + σ ε with ε the product of one number per input and one per unit; σ is learned beside μ. Without
noise a weight is μ.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from iqrl.core.networks import Network, Params

NOISY = ("own", "heads")
"""the layers of the heads, whose weights are [k, units, inputs]"""
FIRST_SIGMA = 0.5


def noisy_heads(network: Network) -> Network:
    """The network with noise in its heads; `perturb` draws it."""
    like = jax.eval_shape(network.init, jax.random.key(0))
    layers = [layer for name in NOISY for layer in _layers(like, name)]
    draws = sum(_draws(layer["w"].shape) for layer in layers)

    def init(key: jax.Array) -> Params:
        params = network.init(key)
        return params | {"sigma": {name: _sigmas(params, name) for name in NOISY if name in params}}

    def perturb(params: Params, uniforms: jax.Array) -> Params:
        # Strictly inside (0, 1), where the normal distribution has a place for them.
        normals = jax.scipy.special.ndtri(jnp.clip(uniforms, 1e-6, 1 - 1e-6))
        scaled = jnp.sign(normals) * jnp.sqrt(jnp.abs(normals))
        moved, used = dict(params), 0
        for name, sigma in params["sigma"].items():
            done = []
            for layer, spread in zip(_layers(params, name), _listed(sigma), strict=True):
                size = _draws(layer["w"].shape)
                done.append(_moved(layer, spread, scaled[used : used + size]))
                used += size
            moved[name] = done[0] if isinstance(params[name], dict) else tuple(done)
        return moved

    return network._replace(init=init, perturb=perturb, num_uniforms=draws)


def _layers(params: Params, name: str) -> list:
    return _listed(params[name]) if name in params else []


def _listed(layers: dict | tuple) -> list:
    return [layers] if isinstance(layers, dict) else list(layers)


def _sigmas(params: Params, name: str) -> dict | tuple:
    first = lambda layer: jax.tree.map(
        lambda leaf: jnp.full(leaf.shape, FIRST_SIGMA / math.sqrt(layer["w"].shape[-1]), jnp.float32), layer
    )
    return first(params[name]) if isinstance(params[name], dict) else tuple(map(first, params[name]))


def _draws(shape: tuple[int, ...]) -> int:
    """One per unit and one per input of each head."""
    heads, units, inputs = shape
    return heads * (units + inputs)


def _moved(layer: dict, sigma: dict, noise: jax.Array) -> dict:
    heads, units, inputs = layer["w"].shape
    of_units, of_inputs = noise[: heads * units].reshape(heads, units), noise[heads * units :].reshape(heads, inputs)
    product = of_units[:, :, None] * of_inputs[:, None, :]
    return {"w": layer["w"] + sigma["w"] * product, "b": layer["b"] + sigma["b"] * of_units}
