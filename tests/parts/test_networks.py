import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.parts.networks import multi_head_network


@pytest.mark.parametrize("hidden", [(64,), (16, 8)])
@pytest.mark.parametrize("heads", [1, 3])
def test_parameter_count_is_the_formula(hidden, heads):
    inputs, actions = 4, 2
    params = multi_head_network(inputs, hidden, "tanh", heads, actions).init(jax.random.key(0))
    sizes = (inputs, *hidden)
    trunk = sum((a + 1) * b for a, b in itertools.pairwise(sizes))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == trunk + heads * (hidden[-1] + 1) * actions


def test_heads_differ_at_the_start():
    params = multi_head_network(4, (64,), "tanh", 4, 2).init(jax.random.key(0))
    weights = np.asarray(params["heads"]["w"])
    for i in range(4):
        for j in range(i):
            assert not np.isclose(weights[i], weights[j]).any()


def test_forward_by_hand():
    """Two inputs, one hidden unit, two heads of one action."""
    network = multi_head_network(2, (1,), "tanh", 2, 1)
    params = {
        "trunk": ({"w": jnp.array([[0.5], [-1.0]]), "b": jnp.array([0.25])},),
        "heads": {"w": jnp.array([[[2.0]], [[-3.0]]]), "b": jnp.array([[0.1], [0.2]])},
    }
    out = network.apply(params, jnp.array([1.0, 0.5]))
    hidden = np.tanh(0.5 * 1.0 - 1.0 * 0.5 + 0.25)
    np.testing.assert_allclose(out.features, [hidden], rtol=1e-6)
    np.testing.assert_allclose(out.q, [[2 * hidden + 0.1], [-3 * hidden + 0.2]], rtol=1e-6)


def test_glorot_ranges():
    params = multi_head_network(4, (64,), "tanh", 3, 2).init(jax.random.key(1))
    bounds = (np.sqrt(6 / (4 + 64)), np.sqrt(6 / (64 + 2)))
    for weights, bound in zip((params["trunk"][0]["w"], params["heads"]["w"]), bounds, strict=True):
        largest = float(jnp.abs(weights).max())
        assert 0.9 * bound < largest <= bound


def test_binary_inputs_are_a_list_of_ones():
    dense, sparse = (multi_head_network(6, (8,), "tanh", 2, 3, binary=binary) for binary in (False, True))
    params = dense.init(jax.random.key(0))
    ones = jnp.array([4, 1])
    np.testing.assert_allclose(
        sparse.apply(params, ones).q, dense.apply(params, jnp.eye(6)[ones].sum(axis=0)).q, rtol=1e-5
    )
