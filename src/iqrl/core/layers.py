"""What layers of all networks share: activations, layer normalisation, first weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

ACTIVATIONS: dict[str, Callable] = {"tanh": jnp.tanh, "relu": jax.nn.relu, "leaky-relu": jax.nn.leaky_relu}

Initialiser = Callable[[jax.Array, Sequence[tuple[int, ...]]], list[jax.Array]]
"""(key, shapes of dense layers) -> their first weights"""
KernelInitialiser = Callable[[jax.Array, int, int, int], jax.Array]
"""(key, outputs, width, inputs) -> first weights [outputs, width² · inputs] of a convolution"""


def layer_norm(sums: jax.Array, axis: int | None = -1) -> jax.Array:
    """Mean 0 and variance 1 over the units of a layer: the last axis, or all axes (None) of a convolution."""
    centred = sums - jnp.mean(sums, axis=axis, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=axis, keepdims=True) + 1e-5)


def glorot_uniform(key: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    """Independent weights U(-b, b), b² = 6 / (inputs + outputs); the last two axes of a shape are the layer's.

    All come from one draw, since each draw costs a quarter of a second to compile.
    """
    pieces = _cut(jax.random.uniform(key, (_total(shapes),), minval=-1.0, maxval=1.0), shapes)
    return [math.sqrt(6 / sum(shape[-2:])) * piece for piece, shape in zip(pieces, shapes, strict=True)]


def glorot_kernel(key: jax.Array, outputs: int, width: int, inputs: int) -> jax.Array:
    """The same for a convolution."""
    bound = math.sqrt(6 / (width**2 * (inputs + outputs)))
    return jax.random.uniform(key, (outputs, width**2 * inputs), minval=-bound, maxval=bound)


def sparse_uniform(sparsity: float) -> Initialiser:
    """Weights U(-b, b), b² = 1 / inputs. Each unit has that share of them, rounded up, set to 0 (Elsayed et al. 2024).

    One weight of each unit always stays: with few inputs the share rounds up to all of them.
    """

    def draw(key: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
        uniforms = jax.random.uniform(key, (2, _total(shapes)))
        layers = zip(_cut(2 * uniforms[0] - 1, shapes), _cut(uniforms[1], shapes), shapes, strict=True)
        # The inputs are the first axis of a shared layer and the last axis of a head's own.
        return [_sparse(weights, order, 0 if len(shape) == 2 else -1, sparsity) for weights, order, shape in layers]

    return draw


def sparse_kernel(sparsity: float) -> KernelInitialiser:
    """The same for a convolution."""

    def draw(key: jax.Array, outputs: int, width: int, inputs: int) -> jax.Array:
        uniforms = jax.random.uniform(key, (2, outputs, width**2 * inputs))
        return _sparse(2 * uniforms[0] - 1, uniforms[1], -1, sparsity)

    return draw


def _sparse(weights: jax.Array, order: jax.Array, axis: int, sparsity: float) -> jax.Array:
    """`axis` is that of the inputs; those that come first in a random order are set to 0."""
    inputs = weights.shape[axis]
    zeros = min(math.ceil(sparsity * inputs), inputs - 1)
    order = jnp.moveaxis(order, axis, -1)
    first = order < jnp.sort(order, axis=-1)[..., zeros : zeros + 1]
    return jnp.where(jnp.moveaxis(first, -1, axis), 0.0, weights / math.sqrt(inputs))


def _total(shapes: Sequence[tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def _cut(numbers: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    return [piece.reshape(shape) for piece, shape in zip(jnp.split(numbers, ends[:-1]), shapes, strict=True)]
