import functools
import math

import jax
import numpy as np
import pytest

from iqrl.core import encoders
from iqrl.core.encoders import NATURE, Image, convolutional, convolve, maps, pad, picture, random_encoder
from iqrl.diagnostics.analysis.neighbours import nearest_neighbours
from iqrl.errors import BadInput

ATARI = Image(84, 84, 1, stack=4)


@functools.cache
def drawn(padding="valid"):
    encoder = random_encoder(convolutional(ATARI, NATURE, padding))
    return encoder.init(jax.random.key(0)), jax.jit(jax.vmap(encoder.apply, in_axes=(None, 0)))


def test_maps_are_those_of_the_paper_and_of_its_code():
    assert maps(ATARI, NATURE, "valid") == [(20, 20, 32), (9, 9, 64), (7, 7, 64)]
    assert maps(ATARI, NATURE, "same") == [(21, 21, 32), (11, 11, 64), (11, 11, 64)]


def test_a_picture_has_the_frames_one_behind_the_other():
    """Two frames of two by three pixels with two channels: the channels of the older frame come first."""
    image = Image(2, 3, 2, stack=2, highest=10.0)
    frames = np.arange(24, dtype=np.uint8).reshape(2, 2, 3, 2)
    seen = np.asarray(picture(frames.ravel(), image))
    assert seen.shape == (2, 3, 4)
    np.testing.assert_allclose(seen[1, 2], np.float32([10, 11, 22, 23]) / 10)


@pytest.mark.parametrize(("padding", "flat"), [("valid", 3136), ("same", 7744)])
def test_shapes_and_numbers_of_parameters(padding, flat):
    params, encode = drawn(padding)
    counted = (8 * 8 * 4 + 1) * 32 + (4 * 4 * 32 + 1) * 64 + (3 * 3 * 64 + 1) * 64 + (flat + 1) * 50
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == counted
    assert encode(params, np.zeros((3, 84 * 84 * 4), np.uint8)).shape == (3, 50)


def test_weights_are_glorot_uniform_and_biases_zero():
    params, _ = drawn()
    fans = [64 * (4 + 32), 16 * (32 + 64), 9 * (64 + 64), 3136 + 50]
    for layer, fan in zip([*params["encoder"], params["linear"]], fans, strict=True):
        assert not layer["b"].any()
        assert 0.99 < np.abs(layer["w"]).max() / math.sqrt(6 / fan) <= 1


def kernel_of(weights, width, stride):
    """[width, width, inputs, outputs] from weights [outputs, blocks row by row · pixels row by row · inputs]."""
    blocks, outputs = width // stride, len(weights)
    apart = np.asarray(weights).reshape(outputs, blocks, blocks, stride, stride, -1)
    return apart.transpose(1, 3, 2, 4, 5, 0).reshape(width, width, -1, outputs)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("size", "layer"), [((84, 84), (8, 4, 5)), ((21, 20), (4, 2, 6)), ((10, 11), (3, 1, 4))])
def test_a_convolution_and_its_gradients_are_those_of_xla(size, layer, padding):
    width, stride, outputs = layer
    keys = jax.random.split(jax.random.key(0), 3)
    picture = jax.random.normal(keys[0], (*size, 3))
    weights = jax.random.normal(keys[1], (outputs, width**2 * 3))

    def ours(picture, weights):
        return convolve(pad(picture, width, stride) if padding == "same" else picture, weights, width, stride)

    def theirs(picture, weights):
        layout, kernel = ("NHWC", "HWIO", "NHWC"), weights.reshape(outputs, *[width // stride] * 2, stride, stride, 3)
        kernel = kernel.transpose(1, 3, 2, 4, 5, 0).reshape(width, width, 3, outputs)
        return jax.lax.conv_general_dilated(
            picture[None], kernel, (stride, stride), padding.upper(), dimension_numbers=layout
        )[0]

    pull = jax.random.normal(keys[2], jax.eval_shape(ours, picture, weights).shape)

    @jax.jit
    def both(picture, weights):
        made = [jax.vjp(function, picture, weights) for function in (ours, theirs)]
        return [(convolved, *gradients(pull)) for convolved, gradients in made]

    for a, b in zip(*both(picture, weights), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_batch_of_large_images_is_a_loop_with_the_same_gradients(monkeypatch):
    """Of two seeds, each with a batch and weights of its own; the plain form is one product for the whole batch."""
    keys = jax.random.split(jax.random.key(0), 2)
    pictures = jax.random.normal(keys[0], (2, 3, 84, 84, 4))
    weights = jax.random.normal(keys[1], (2, 6, 8 * 8 * 4))

    def of_seed(pictures, weights):
        sums = jax.vmap(lambda picture: convolve(picture, weights, 8, 4))(pictures)
        return jax.numpy.mean(sums**2), sums

    def computed():
        gradients = jax.jit(jax.vmap(jax.grad(of_seed, argnums=(0, 1), has_aux=True))).trace(pictures, weights)
        return "while" in gradients.lower().as_text(), gradients.lower().compile()(pictures, weights)

    in_a_loop, ours = computed()
    monkeypatch.setattr(encoders, "MANY", math.inf)
    plainly, theirs = computed()
    assert (in_a_loop, plainly) == (True, False)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_code_by_hand():
    """One convolution after another at the only place of the last map."""
    encoder = random_encoder(convolutional(Image(36, 36, 1), NATURE), size=3)
    params = encoder.init(jax.random.key(1))
    image = np.random.default_rng(0).integers(0, 256, (36, 36, 1), np.uint8)
    features = image / 255
    for layer, (width, stride, channels) in zip(params["encoder"], NATURE, strict=True):
        kernel = kernel_of(layer["w"], width, stride)
        assert kernel.shape == (width, width, features.shape[-1], channels)
        side = (len(features) - width) // stride + 1
        at = lambda i, s=stride, w=width: slice(i * s, i * s + w)
        windows = [[features[at(i), at(j)] for j in range(side)] for i in range(side)]
        features = np.maximum(np.einsum("ijabc,abco->ijo", windows, kernel), 0)
    assert features.shape == (1, 1, 64)
    code = features.ravel() @ params["linear"]["w"]
    np.testing.assert_allclose(jax.jit(encoder.apply)(params, image.ravel()), code, rtol=1e-4, atol=1e-6)


def test_neighbours_of_a_moving_square_are_where_the_square_is_near():
    """It goes back and forth, so that neighbours are also found at other times."""
    places = np.abs((np.arange(120) + 30) % 60 - 30) * 2
    images = np.zeros((120, 4, 84, 84), np.uint8)
    for image, place in zip(images, places, strict=True):
        image[:, 36:48, place : place + 12] = 255
    params, encode = drawn()
    codes = np.asarray(encode(params, images.reshape(120, -1)))
    found = nearest_neighbours(codes, [10, 40, 75], 6, apart=5)
    away = np.abs(places[found.indices] - places[found.queries][:, None])
    assert away.max() <= 8
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(BadInput, match="valid or same"):
        convolutional(ATARI, NATURE, padding="full")
    with pytest.raises(BadInput, match="20 by 84 are too small"):
        convolutional(Image(20, 84, 4), NATURE)
