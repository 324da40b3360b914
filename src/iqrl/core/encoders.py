"""Encoders of images: convolutions, trained as the network's first layers, or drawn once and never trained (IQ-RE).

Similar images have codes that lie near each other even where nothing was trained, which is all that context
division needs of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.layers import KernelInitialiser, glorot_kernel, layer_norm
from iqrl.errors import BadInput

Layers = tuple[tuple[int, int, int], ...]
"""(width, stride, channels) of each convolution"""
Padding = Literal["valid", "same"]

NATURE: Layers = ((8, 4, 32), (4, 2, 64), (3, 1, 64))
"""of Mnih et al. 2015"""
MINATAR: Layers = ((3, 1, 16),)
"""of Young & Tian 2019"""


class Image(NamedTuple):
    """What an observation is made of: frames [height, width, channels], the oldest first."""

    height: int
    width: int
    channels: int
    stack: int = 1
    highest: float = 255.0
    """the value that becomes 1"""
    vector: int = 0
    """numbers that are no pixels, such as the speed of a robot beside its camera; they follow each frame"""

    @property
    def frame(self) -> int:
        """Pixels of a frame."""
        return self.height * self.width * self.channels

    @property
    def is_pixel(self) -> np.ndarray:
        """[numbers in an observation] of booleans."""
        return np.tile(np.arange(self.frame + self.vector) < self.frame, self.stack)


class Encoder(NamedTuple):
    init: Callable[[jax.Array], Any]
    apply: Callable[[Any, jax.Array], jax.Array]
    """an observation, its numbers in a row -> features [size]"""
    size: int


def convolutional(
    image: Image,
    layers: Layers,
    padding: Padding = "valid",
    activation: Callable[[jax.Array], jax.Array] = jax.nn.relu,
    normalise: bool = False,
    first_weights: KernelInitialiser = glorot_kernel,
) -> Encoder:
    """Convolutions; biases start at zero.

    `padding`: the paper's table has the maps of `valid`, the released code those of `same`. `normalise`: each layer is
    normalised as a whole before its activation.
    """
    if padding not in ("valid", "same"):
        raise BadInput(f"padding is {padding!r}; it must be valid or same.")
    last = maps(image, layers, padding)[-1]
    if min(last) < 1:
        raise BadInput(f"images of {image.height} by {image.width} are too small for the convolutions.")
    channels = [image.channels * image.stack, *(count for _, _, count in layers)]

    def init(key: jax.Array) -> Any:
        keys = jax.random.split(key, len(layers))
        sizes = zip(keys, layers, channels[:-1], strict=True)
        return tuple(
            {"w": first_weights(key, outputs, width, inputs), "b": jnp.zeros(outputs)}
            for key, (width, _, outputs), inputs in sizes
        )

    def apply(params: Any, obs: jax.Array) -> jax.Array:
        features = picture(obs, image)
        for layer, (width, stride, _) in zip(params, layers, strict=True):
            features = pad(features, width, stride) if padding == "same" else features
            sums = convolve(features, layer["w"], width, stride) + layer["b"]
            features = activation(layer_norm(sums, axis=None) if normalise else sums)
        return features.reshape(-1)

    return beside_vector(Encoder(init, apply, math.prod(last)), image)


def beside_vector(features: Encoder, image: Image) -> Encoder:
    """The features of the image, then the vector that comes with it, if one does."""
    if not image.vector:
        return features

    def apply(params: Any, obs: jax.Array) -> jax.Array:
        vector = obs.reshape(image.stack, -1)[:, image.frame :]
        return jnp.concatenate([features.apply(params, obs), vector.reshape(-1)])

    return Encoder(features.init, apply, features.size + image.stack * image.vector)


def random_encoder(features: Encoder, size: int = 50) -> Encoder:
    """The encoder with a linear layer after it, to codes of `size` numbers."""

    def init(key: jax.Array) -> Any:
        below, above = jax.random.split(key)
        weights = jax.nn.initializers.glorot_uniform()(above, (features.size, size))
        return {"encoder": features.init(below), "linear": {"w": weights, "b": jnp.zeros(size)}}

    def apply(params: Any, obs: jax.Array) -> jax.Array:
        return features.apply(params["encoder"], obs) @ params["linear"]["w"] + params["linear"]["b"]

    return Encoder(init, apply, size)


def picture(obs: jax.Array, image: Image) -> jax.Array:
    """[height, width, channels of all frames], in [0, 1]."""
    pixels = obs.reshape(image.stack, -1)[:, : image.frame] if image.vector else obs
    frames = pixels.reshape(image.stack, image.height, image.width, image.channels)
    together = jnp.moveaxis(frames, 0, 2).reshape(image.height, image.width, -1)
    return together.astype(jnp.float32) / image.highest


def maps(image: Image, layers: Layers, padding: str) -> list[tuple[int, int, int]]:
    """Height, width and channels after each convolution."""
    found, height, width = [], image.height, image.width
    for size, stride, channels in layers:
        side = lambda length, w=size, s=stride: -(-length // s) if padding == "same" else (length - w) // s + 1
        height, width = side(height), side(width)
        found.append((height, width, channels))
    return found


def convolve(image: jax.Array, weights: jax.Array, width: int, stride: int) -> jax.Array:
    """A convolution as one matrix product: [height, width, channels] with weights [outputs, width² · channels].

    On a CPU this is several times faster than XLA's own convolution and its gradients. The image is cut into blocks of
    stride by stride, whose numbers become channels; then a window is a few blocks, and the next one a step away. So the
    weights of an output are in the order: blocks row by row, in each the pixels row by row, of each the channels.
    """
    blocks = width // stride
    if blocks * stride != width:
        raise ValueError(f"a convolution {width} wide cannot have stride {stride}")
    rows, columns = ((size - width) // stride + 1 for size in image.shape[:2])
    cut = _in_blocks(image, rows + blocks - 1, columns + blocks - 1, stride)
    large = rows * columns * weights.shape[1] >= MANY
    return (_image_by_image if large else _at_once)(cut, weights, blocks)


MANY = 2**16
"""numbers in the windows of an image from which on the images that are learned from are convolved one after the other:
the windows of one stay in the cache of a core, those of 32 do not, and to write and read them takes longer than the
product"""


def _at_once(cut: jax.Array, weights: jax.Array, blocks: int) -> jax.Array:
    return _windows(cut, blocks) @ weights.T


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _image_by_image(cut: jax.Array, weights: jax.Array, blocks: int) -> jax.Array:
    """The same. Differentiated, a batch is a loop, and so is its gradient, which makes the windows again."""
    return _at_once(cut, weights, blocks)


def _remember(cut: jax.Array, weights: jax.Array, blocks: int) -> tuple[jax.Array, tuple]:
    return jax.custom_batching.sequential_vmap(partial(_at_once, blocks=blocks))(cut, weights), (cut, weights)


def _gradients(blocks: int, given: tuple, pull: jax.Array) -> tuple[jax.Array, ...]:
    """Those of the image are computed only where they are used: not those of what was observed."""
    cut, weights = given
    of_weights = lambda cut, pull: jnp.einsum("ijo,ijn->on", pull, _windows(cut, blocks))
    (of_cut,) = jax.vjp(lambda cut: _at_once(cut, weights, blocks), cut)[1](pull)
    return of_cut, jax.custom_batching.sequential_vmap(of_weights)(cut, pull)


_image_by_image.defvjp(_remember, _gradients)


def _windows(cut: jax.Array, blocks: int) -> jax.Array:
    """[rows, columns, width² · channels]: what each place of the map sees."""
    rows, columns = (size - blocks + 1 for size in cut.shape[:2])
    shifted = [cut[i : i + rows, j : j + columns] for i in range(blocks) for j in range(blocks)]
    return jnp.concatenate(shifted, axis=-1)


def _in_blocks(image: jax.Array, rows: int, columns: int, side: int) -> jax.Array:
    """[rows, columns, side² · channels]; what does not fill a block at the edge is not seen by any window."""
    channels = image.shape[-1]
    image = image[: rows * side, : columns * side].reshape(rows, side, columns, side, channels)
    return jnp.swapaxes(image, 1, 2).reshape(rows, columns, -1)


def pad(image: jax.Array, width: int, stride: int) -> jax.Array:
    """Zeros around, so that the map is as large as the image over the stride; the odd one at the end."""
    around = []
    for size in image.shape[:2]:
        missing = max((-(-size // stride) - 1) * stride + width - size, 0)
        around.append((missing // 2, missing - missing // 2))
    return jnp.pad(image, (*around, (0, 0)))
