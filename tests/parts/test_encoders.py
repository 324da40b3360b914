import functools
import math

import jax
import numpy as np
import pytest

from iqrl.errors import BadInput
from iqrl.measure.neighbours import nearest_neighbours
from iqrl.parts.encoders import maps, random_encoder


@functools.cache
def drawn(padding="valid"):
    encoder = random_encoder(padding=padding)
    return encoder.init(jax.random.key(0)), jax.jit(encoder.apply)


def test_maps_are_those_of_the_paper_and_of_its_code():
    assert maps((84, 84, 4), "valid") == [(20, 20, 32), (9, 9, 64), (7, 7, 64)]
    assert maps((84, 84, 4), "same") == [(21, 21, 32), (11, 11, 64), (11, 11, 64)]


@pytest.mark.parametrize(("padding", "flat"), [("valid", 3136), ("same", 7744)])
def test_shapes_and_numbers_of_parameters(padding, flat):
    params, encode = drawn(padding)
    counted = (8 * 8 * 4 + 1) * 32 + (4 * 4 * 32 + 1) * 64 + (3 * 3 * 64 + 1) * 64 + (flat + 1) * 50
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == counted
    assert encode(params, np.zeros((2, 3, 84, 84, 4), np.uint8)).shape == (2, 3, 50)
    assert encode(params, np.zeros((84, 84, 4), np.uint8)).shape == (50,)


def test_weights_are_glorot_uniform_and_biases_zero():
    params, _ = drawn()
    fans = [64 * (4 + 32), 16 * (32 + 64), 9 * (64 + 64), 3136 + 50]
    for layer, fan in zip(params, fans, strict=True):
        assert not layer["b"].any()
        assert 0.99 < np.abs(layer["w"]).max() / math.sqrt(6 / fan) <= 1


def test_a_code_by_hand():
    """One convolution after another at the only place of the last map."""
    encoder = random_encoder((36, 36, 1), size=3)
    params = encoder.init(jax.random.key(1))
    image = np.random.default_rng(0).integers(0, 256, (36, 36, 1), np.uint8)
    features = image / 255
    for layer, (width, stride) in zip(params, ((8, 4), (4, 2), (3, 1)), strict=False):
        side = (len(features) - width) // stride + 1
        at = lambda i, s=stride, w=width: slice(i * s, i * s + w)
        windows = [[features[at(i), at(j)] for j in range(side)] for i in range(side)]
        features = np.maximum(np.einsum("ijabc,abco->ijo", windows, layer["w"]), 0)
    assert features.shape == (1, 1, 64)
    np.testing.assert_allclose(encoder.apply(params, image), features.ravel() @ params[-1]["w"], rtol=1e-4, atol=1e-6)


def test_neighbours_of_a_moving_square_are_where_the_square_is_near():
    """It goes back and forth, so that neighbours are also found at other times."""
    places = np.abs((np.arange(120) + 30) % 60 - 30) * 2
    images = np.zeros((120, 84, 84, 4), np.uint8)
    for image, place in zip(images, places, strict=True):
        image[36:48, place : place + 12] = 255
    params, encode = drawn()
    found = nearest_neighbours(np.asarray(encode(params, images)), [10, 40, 75], 6, apart=5)
    away = np.abs(places[found.indices] - places[found.queries][:, None])
    assert away.max() <= 8
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(BadInput, match="valid or same"):
        random_encoder(padding="full")
    with pytest.raises(BadInput, match="20 by 84 are too small"):
        random_encoder((20, 84, 4))
