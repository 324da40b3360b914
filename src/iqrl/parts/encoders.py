"""The random encoder: images to short codes by convolutions that are drawn once and never trained (paper, IQ-RE).

Similar images have codes that lie near each other, which is all that context division needs of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.errors import BadInput
from iqrl.parts.networks import Params

CONVOLUTIONS = ((8, 4, 32), (4, 2, 64), (3, 1, 64))
"""(width, stride, channels) of each layer, as in Mnih et al. 2015"""


class Encoder(NamedTuple):
    init: Callable[[jax.Array], Params]
    apply: Callable[[Params, jax.Array], jax.Array]
    """images of bytes [..., H, W, C] -> codes [..., size]"""
    size: int


def random_encoder(
    shape: tuple[int, int, int] = (84, 84, 4), size: int = 50, padding: Literal["valid", "same"] = "valid"
) -> Encoder:
    """Three convolutions with ReLU and a linear layer; Glorot-uniform weights, zero biases, bytes divided by 255.

    `padding`: the paper's table has the maps of `valid`, the released code those of `same`.
    """
    if padding not in ("valid", "same"):
        raise BadInput(f"padding is {padding!r}; it must be valid or same.")
    *_, last = maps(shape, padding)
    if min(last) < 1:
        raise BadInput(f"images of {shape[0]} by {shape[1]} are too small for the convolutions.")

    def init(key: jax.Array) -> Params:
        channels = [shape[2], *(channels for _, _, channels in CONVOLUTIONS)]
        kernels = [(width, width, channels[i], channels[i + 1]) for i, (width, _, _) in enumerate(CONVOLUTIONS)]
        shapes = [*kernels, (math.prod(last), size)]
        draw = jax.nn.initializers.glorot_uniform()
        keys = jax.random.split(key, len(shapes))
        return [{"w": draw(key, shape), "b": jnp.zeros(shape[-1])} for key, shape in zip(keys, shapes, strict=True)]

    def apply(params: Params, images: jax.Array) -> jax.Array:
        batch = images.shape[:-3]
        features = images.reshape(-1, *shape).astype(jnp.float32) / 255
        *convolutions, linear = params
        for layer, (_, stride, _) in zip(convolutions, CONVOLUTIONS, strict=True):
            features = jax.nn.relu(_convolved(features, layer["w"], stride, padding) + layer["b"])
        codes = features.reshape(len(features), -1) @ linear["w"] + linear["b"]
        return codes.reshape(*batch, size)

    return Encoder(init, apply, size)


def maps(shape: tuple[int, int, int], padding: str) -> list[tuple[int, int, int]]:
    """Height, width and channels after each convolution."""
    found = []
    for width, stride, channels in CONVOLUTIONS:
        height, breadth, _ = shape
        side = lambda length, w=width, s=stride: -(-length // s) if padding == "same" else (length - w) // s + 1
        shape = (side(height), side(breadth), channels)
        found.append(shape)
    return found


def _convolved(images: jax.Array, kernel: jax.Array, stride: int, padding: str) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, (stride, stride), padding.upper(), dimension_numbers=layout)
