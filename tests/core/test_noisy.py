import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.core.networks import multi_head_network
from iqrl.core.noisy import FIRST_SIGMA, noisy_heads


def network_of(**options):
    network = noisy_heads(multi_head_network(3, (8,), "relu", 2, 4, **options))
    return network, network.init(jax.random.key(0))


@pytest.mark.parametrize(("own", "draws"), [(0, 2 * (4 + 8)), (1, 2 * (8 + 3) + 2 * (4 + 8))])
def test_one_number_per_unit_and_per_input(own, draws):
    network, params = network_of(own_layers=own)
    assert network.num_uniforms == draws
    for layer in params["sigma"]["heads"].values():
        np.testing.assert_allclose(layer, FIRST_SIGMA / np.sqrt(8), rtol=1e-6)


def test_half_of_every_range_is_no_noise():
    network, params = network_of(own_layers=1)
    still = network.perturb(params, jnp.full(network.num_uniforms, 0.5))
    state = jnp.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(network.apply(still, state).q, network.apply(params, state).q, atol=1e-5)


def test_weights_by_hand():
    """ε = f(unit) f(input), f(x) = sign(x) √|x|; a bias has that of its unit."""
    network, params = network_of()
    quantile = 0.975002  # of the normal distribution at 1.96
    uniforms = jnp.full(network.num_uniforms, 0.5).at[0].set(quantile).at[8].set(1 - quantile)
    moved = network.perturb(params, uniforms)
    root = np.sqrt(1.96)
    change = np.asarray(moved["heads"]["w"] - params["heads"]["w"])
    expected = np.zeros((2, 4, 8))
    expected[0, 0, 0] = -root * root * FIRST_SIGMA / np.sqrt(8)
    np.testing.assert_allclose(change, expected, atol=1e-4)
    biases = np.asarray(moved["heads"]["b"] - params["heads"]["b"])
    np.testing.assert_allclose(biases[0], [root * FIRST_SIGMA / np.sqrt(8), 0, 0, 0], atol=1e-4)


def test_the_spread_is_learned():
    network, params = network_of()
    uniforms = jax.random.uniform(jax.random.key(1), (network.num_uniforms,))
    total = lambda params: jnp.sum(network.apply(network.perturb(params, uniforms), jnp.ones(3)).q)
    gradient = jax.grad(total)(params)
    assert np.abs(gradient["sigma"]["heads"]["b"]).max() > 0.1
    assert np.abs(gradient["sigma"]["heads"]["w"]).max() > 0.01


def test_noise_of_own_layers_is_not_that_of_the_heads():
    """Each number is used once."""
    network, params = network_of(own_layers=1)
    for number, name, unmoved in ((0, "own", "heads"), (2 * (8 + 3), "heads", "own")):
        moved = network.perturb(params, jnp.full(network.num_uniforms, 0.5).at[number].set(0.9))
        pairs = lambda part, moved=moved: zip(jax.tree.leaves(moved[part]), jax.tree.leaves(params[part]), strict=True)
        change = lambda part, pairs=pairs: max(float(np.abs(a - b).max()) for a, b in pairs(part))
        assert change(name) > 0.05
        assert change(unmoved) < 1e-3
