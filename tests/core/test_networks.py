"""The Q-network and all that it can be made of, by hand."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.core.layers import sparse_uniform
from iqrl.core.networks import multi_head_network, select_action, select_head

KEY = jax.random.key(0)
ONE_UNIT = [([[1]], [0])]
"""a hidden layer of one unit that passes on what is positive"""


def params(trunk, heads):
    """From (weights, biases) of each layer and of the heads."""
    layer = lambda given: dict(zip("wb", (jnp.array(x, jnp.float32) for x in given), strict=True))
    return {"trunk": tuple(map(layer, trunk)), "heads": layer(heads)}


@pytest.mark.parametrize("hidden", [(64,), (16, 8)])
@pytest.mark.parametrize("heads", [1, 3])
def test_parameter_count_is_the_formula(hidden, heads):
    inputs, actions = 4, 2
    made = multi_head_network(inputs, hidden, "tanh", heads, actions).init(jax.random.key(0))
    sizes = (inputs, *hidden)
    trunk = sum((a + 1) * b for a, b in itertools.pairwise(sizes))
    assert sum(leaf.size for leaf in jax.tree.leaves(made)) == trunk + heads * (hidden[-1] + 1) * actions


def test_heads_differ_at_the_start():
    weights = np.asarray(multi_head_network(4, (64,), "tanh", 4, 2).init(KEY)["heads"]["w"])
    for i in range(4):
        for j in range(i):
            assert not np.isclose(weights[i], weights[j]).any()


def test_forward_by_hand():
    """Two inputs, one hidden unit, two heads of one action."""
    network = multi_head_network(2, (1,), "tanh", 2, 1)
    weights = params([([[0.5], [-1.0]], [0.25])], ([[[2.0]], [[-3.0]]], [[0.1], [0.2]]))
    out = network.apply(weights, jnp.array([1.0, 0.5]))
    hidden = np.tanh(0.5 * 1.0 - 1.0 * 0.5 + 0.25)
    np.testing.assert_allclose(out.features, [hidden], rtol=1e-6)
    np.testing.assert_allclose(out.q, [[2 * hidden + 0.1], [-3 * hidden + 0.2]], rtol=1e-6)


def test_glorot_ranges():
    made = multi_head_network(4, (64,), "tanh", 3, 2).init(jax.random.key(1))
    bounds = (np.sqrt(6 / (4 + 64)), np.sqrt(6 / (64 + 2)))
    for weights, bound in zip((made["trunk"][0]["w"], made["heads"]["w"]), bounds, strict=True):
        largest = float(jnp.abs(weights).max())
        assert 0.9 * bound < largest <= bound


def test_binary_inputs_are_a_list_of_ones():
    dense, sparse = (multi_head_network(6, (8,), "tanh", 2, 3, binary=binary) for binary in (False, True))
    made, ones = dense.init(KEY), jnp.array([4, 1])
    np.testing.assert_allclose(sparse.apply(made, ones).q, dense.apply(made, jnp.eye(6)[ones].sum(axis=0)).q, rtol=1e-5)


def test_selecting_is_indexing():
    rows = jnp.arange(12.0).reshape(4, 3)
    for i in range(4):
        np.testing.assert_array_equal(select_head(rows, jnp.int32(i)), rows[i])
        np.testing.assert_array_equal(select_action(rows, jnp.int32(i)), rows[i])
    batch = jnp.arange(24.0).reshape(4, 3, 2)
    np.testing.assert_array_equal(select_head(batch, jnp.array([3, 1])), np.stack([batch[3, :, 0], batch[1, :, 1]], 1))


@pytest.mark.parametrize(
    ("activation", "by_hand"),
    [
        ("tanh", np.tanh),
        ("relu", lambda x: np.maximum(x, 0)),
        ("leaky-relu", lambda x: np.where(x > 0, x, 0.01 * x)),
    ],
)
def test_layer_norm_is_before_each_activation(activation, by_hand):
    # sums 0, 2, 4 (mean 2, variance 8/3), whatever is added to or multiplied with them all
    normed = np.array([-2, 0, 2]) / np.sqrt(8 / 3)
    network = multi_head_network(1, (3,), activation, 1, 1, normalise=True)
    for shift, scale in ((0, 1), (7, 1), (0, 50)):
        biases = scale * np.array([0, 1, 2]) + shift
        out = network.apply(params([([[0, scale, 2 * scale]], biases)], ([[[1, 1, 1]]], [[0]])), jnp.ones(1))
        np.testing.assert_allclose(out.features, by_hand(normed), rtol=1e-4, atol=1e-5)
    deep = multi_head_network(1, (3, 2), activation, 1, 1, normalise=True)
    two_layers = [([[0, 1, 2]], [0, 1, 2]), ([[0, 0], [0, 0], [1, 3]], [0, 0])]
    out = deep.apply(params(two_layers, ([[[1, 1]]], [[0]])), jnp.ones(1))
    np.testing.assert_allclose(out.features, by_hand(np.array([-1, 1])), rtol=1e-3)


def test_layer_norm_has_no_parameters():
    count = lambda **options: len(jax.tree.leaves(multi_head_network(4, (8, 8), "relu", 1, 2, **options).init(KEY)))
    assert count(normalise=True) == count()


def test_dueling_by_hand():
    """Two heads; V is the first output of each: V + A - mean A."""
    network = multi_head_network(1, (1,), "relu", 2, 3, dueling=True)
    heads = ([[[10], [1], [2], [6]], [[0], [1], [1], [1]]], [[0, 0, 0, 0], [5, 0, 3, 0]])
    # head 0: V = 10, A = 1, 2, 6, mean 3; head 1: V = 5, A = 1, 4, 1, mean 2
    out = network.apply(params(ONE_UNIT, heads), jnp.ones(1))
    np.testing.assert_allclose(out.q, [[8, 9, 13], [4, 7, 4]], rtol=1e-6)
    np.testing.assert_array_equal(out.values, out.q)
    # the same added to all advantages changes nothing, added to V everything
    for added, change in (([0, 4, 4, 4], 0), ([4, 0, 0, 0], 4)):
        moved = network.apply(params(ONE_UNIT, (heads[0], np.add(heads[1], added))), jnp.ones(1))
        np.testing.assert_allclose(moved.q, out.q + change, rtol=1e-6)
    assert network.width == 3


def test_distribution_by_hand():
    """One head, two actions, three atoms: logits in rows of atoms, their mean is q."""
    network = multi_head_network(1, (1,), "relu", 1, 2, support=jnp.array([-1.0, 0.0, 1.0]))
    biases = np.log([0.5, 0.25, 0.25, 0.1, 0.1, 0.8])
    out = network.apply(params(ONE_UNIT, (np.zeros((1, 6, 1)), [biases])), jnp.ones(1))
    np.testing.assert_allclose(out.values, biases.reshape(1, 2, 3), rtol=1e-6)
    np.testing.assert_allclose(out.q, [[-0.25, 0.7]], rtol=1e-5)
    np.testing.assert_allclose(network.q_of(out.values), out.q)
    assert network.width == 6


def test_dueling_distribution_by_hand():
    # V (1, 0) for each of two atoms; A (2, 0) and (0, 4), mean (1, 2): logits (2, -2) and (0, 2)
    network = multi_head_network(1, (1,), "relu", 1, 2, dueling=True, support=jnp.array([0.0, 1.0]))
    out = network.apply(params(ONE_UNIT, (np.zeros((1, 6, 1)), [[1, 0, 2, 0, 0, 4]])), jnp.ones(1))
    np.testing.assert_allclose(out.values, [[[2, -2], [0, 2]]], atol=1e-6)
    np.testing.assert_allclose(out.q, [[1 / (1 + np.exp(4)), 1 / (1 + np.exp(-2))]], rtol=1e-5)


def test_gates_multiply_the_last_hidden_layer():
    network = multi_head_network(1, (1, 2), "relu", 1, 1, gates=2)
    # input 3; first hidden unit 3; second layer 3 and 6, times 0.5 and 2: 1.5 and 12
    weights = params([*ONE_UNIT, ([[1, 2]], [0, 0])], ([[[10, 1]]], [[1]]))
    out = network.apply(weights, jnp.array([3.0, 0.5, 2.0]))
    np.testing.assert_allclose(out.features, [1.5, 12])
    np.testing.assert_allclose(out.q, [[28]])
    batch = jax.vmap(network.apply, (None, 1), -1)(weights, jnp.array([[3.0, 3.0], [0.5, 0.0], [2.0, 1.0]]))
    np.testing.assert_allclose(batch.q[0, 0], [28, 7])


def test_a_sparse_network_is_alive_and_has_no_biases_at_the_start():
    network = multi_head_network(4, (32, 32), "leaky-relu", 2, 3, initialiser=sparse_uniform(0.9))
    start = network.init(KEY)
    first, second = start["trunk"]
    np.testing.assert_array_equal((first["w"] != 0).sum(axis=0), 1)
    np.testing.assert_array_equal((second["w"] != 0).sum(axis=0), 3)
    np.testing.assert_array_equal((start["heads"]["w"] != 0).sum(axis=-1), 3)
    assert all((layer["b"] == 0).all() for layer in (first, second, start["heads"]))
    apart = network.apply(start, jnp.ones(4)).q - network.apply(start, -jnp.ones(4)).q
    assert (apart != 0).any()


@pytest.mark.parametrize("options", [{}, {"dueling": True}, {"support": jnp.linspace(-1.0, 1.0, 5), "normalise": True}])
def test_one_head_alone_computes_what_it_does_among_the_others(options):
    network = multi_head_network(6, (8, 7), "tanh", 3, 4, own_layers=1, **options)
    made, state = network.init(KEY), jax.random.normal(jax.random.key(1), (6,))
    whole = network.apply(made, state)
    for context in range(3):
        alone = network.q_of_head(made, state, jnp.int32(context))
        np.testing.assert_allclose(alone, whole.q[context], rtol=1e-5, atol=1e-6)
    assert multi_head_network(6, (8,), "tanh", 3, 4).only is None, "linear heads are read as fast together"
