"""First weights and layer normalisation."""

import math

import jax
import numpy as np
import pytest

from iqrl.core.layers import layer_norm, sparse_kernel, sparse_uniform

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("fan_in", "zeros"),
    [(2, 1), (4, 3), (10, 9), (32, 29)],  # ceil(0.9 n), but one weight always stays
)
def test_sparse_weights(fan_in, zeros):
    assert zeros == min(math.ceil(0.9 * fan_in), fan_in - 1)
    hidden, heads = map(np.asarray, sparse_uniform(0.9)(KEY, [(fan_in, 40), (3, 50, fan_in)]))
    assert hidden.shape == (fan_in, 40)
    assert heads.shape == (3, 50, fan_in)
    np.testing.assert_array_equal((hidden == 0).sum(axis=0), zeros)
    np.testing.assert_array_equal((heads == 0).sum(axis=-1), zeros)
    for weights in (hidden, heads):
        left = weights[weights != 0] * math.sqrt(fan_in)
        assert 0.9 < np.abs(left).max() <= 1
        assert abs(left.mean()) < 4 / math.sqrt(3 * left.size)  # four standard errors of U(-1, 1)
        assert np.abs(left).mean() == pytest.approx(0.5, abs=4 / math.sqrt(12 * left.size))
    # which weights stay differs from unit to unit
    assert len(np.unique(hidden != 0, axis=1).T) > 1
    assert len(np.unique(heads[0] != 0, axis=0)) > 1


def test_sparsity_of_none_keeps_every_weight():
    hidden, heads = sparse_uniform(0.0)(KEY, [(6, 7), (1, 5, 7)])
    assert (hidden != 0).all()
    assert (heads != 0).all()


def test_a_sparse_kernel_has_as_many_zeros_per_output():
    """A convolution of width 2 over 3 channels has 12 inputs: 11 of them start at 0."""
    weights = np.asarray(sparse_kernel(0.9)(KEY, 5, 2, 3))
    assert weights.shape == (5, 12)
    np.testing.assert_array_equal((weights != 0).sum(axis=1), 1)


def test_layer_norm_by_hand():
    """Over the last axis: 0, 2, 4 have mean 2 and variance 8/3. Over all axes: 0 to 3 have mean 1.5, variance 1.25."""
    np.testing.assert_allclose(layer_norm(np.float32([[0, 2, 4]])), [np.array([-2, 0, 2]) / np.sqrt(8 / 3)], rtol=1e-4)
    whole = layer_norm(np.float32([[0, 1], [2, 3]]), axis=None)
    np.testing.assert_allclose(whole, np.array([[-1.5, -0.5], [0.5, 1.5]]) / np.sqrt(1.25), rtol=1e-4)
