"""Local features by hand, and what holds for all of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.core.features import hats, make_features, neighbours, spread_projection

BINNED = ("hats", "rbf", "fta")


def test_hats_by_hand():
    # Two units, three bins: places 0.25 and 2.
    np.testing.assert_allclose(hats(3)(jnp.array([0.25, 2.0])), [0.75, 0.25, 0, 0, 0, 1])


def test_places_by_hand():
    # ½ (3 - 1)(tanh(½ z + b) + 1): z = 0, b = 0 lies in the middle; tanh(½ · 2 + 0.5) = 0.905148
    project = make_features("hats", 3).project
    np.testing.assert_allclose(project({"b": jnp.array([0.0, 0.5])}, jnp.array([0.0, 2.0])), [1.0, 1.905148], rtol=1e-6)


@functools.cache
def compiled_hats(bins):
    return jax.jit(hats(bins))


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([2, 3, 9, 40]), st.lists(st.floats(0, 1, width=32), min_size=1, max_size=5))
def test_hats_sum_to_one_and_have_two_neighbours_at_most(bins, shares):
    places = np.zeros(5, np.float32)  # as many for all, or each number of them would be compiled for
    places[: len(shares)] = shares
    found = np.asarray(compiled_hats(bins)(places * np.float32(bins - 1))).reshape(5, bins)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert (found >= -1e-6).all()
    for each in found:
        active = np.flatnonzero(each > 1e-6)
        assert len(active) <= 2
        assert active[-1] - active[0] <= 1


@pytest.mark.parametrize("bins", [2, 5])
def test_reading_the_active_hats_is_the_product_with_all_of_them(bins):
    """Values and gradients, at both ends of the range too."""
    places = (bins - 1) * jnp.array([0.0, 0.3, 0.5, 1.0])
    weights = jax.random.normal(jax.random.key(0), (2, 3, 4 * bins))
    product = lambda weights, places: weights @ make_features("hats", bins).expand(places)
    weigh = make_features("hats", bins, one_sample=True).weigh
    np.testing.assert_allclose(weigh(weights, places), product(weights, places), rtol=1e-5)
    slopes = lambda of: jax.grad(lambda *given: jnp.sum(jnp.sin(of(*given))), (0, 1))(weights, places)
    for one, other in zip(slopes(weigh), slopes(product), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_hat_rises_and_falls_with_slope_one():
    slopes = jax.jit(jax.jacobian(hats(4)))(jnp.array([1.3]))[:, 0]
    np.testing.assert_allclose(slopes, [0, -1, 1, 0])


def test_the_last_place_belongs_to_the_last_bin():
    lower, above = neighbours(jnp.array([0.0, 3.0]), 4)
    assert lower.tolist() == [0, 2]
    assert above.tolist() == [0, 1]


def test_one_bin_says_nothing_of_the_state():
    np.testing.assert_array_equal(hats(1)(jnp.array([0.0, 0.0])), [1, 1])


def test_gaussians_by_hand():
    # Deviation 0.5 bins, place 0: exp(-½ (0, 2², 4²)), divided by the sum
    weights = np.exp([0.0, -2.0, -8.0])
    np.testing.assert_allclose(make_features("rbf", 3).expand(jnp.array([0.0])), weights / weights.sum(), rtol=1e-5)


def test_fuzzy_tiles_by_hand():
    # Tiles half a bin to each side, slopes one bin wide: 1.2 lies 0.7, 0 and 0.3 outside of the tiles of 0, 1 and 2.
    np.testing.assert_allclose(make_features("fta", 3).expand(jnp.array([1.2])), [0.3, 1.0, 0.7], atol=1e-6)
    np.testing.assert_allclose(make_features("fta", 3, 0.5).expand(jnp.array([1.2])), [0, 1.0, 0.7], atol=1e-6)


def test_elephant_by_hand():
    # 1 / (1 + (x / 0.2)⁴)
    np.testing.assert_allclose(make_features("elephant", 9).expand(jnp.array([0.0, 0.2, 0.4])), [1, 0.5, 1 / 17])


def test_first_weights_of_elephant_units():
    """Uniform in ±1/√d, of variance 1/(3 d)."""
    layer = spread_projection(jax.random.key(0), 4, 2000)
    assert float(jnp.abs(layer["w"]).max()) == pytest.approx(0.5, abs=0.001)
    assert float(jnp.var(layer["w"])) == pytest.approx(1 / 12, rel=0.05)


@pytest.mark.parametrize("name", [*BINNED, "elephant"])
def test_gradients_stay_finite_far_outside(name):
    features = make_features(name, 8)
    layer = features.init(jax.random.key(0), 3, 4)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(features.expand(features.project(layer, x @ layer["w"])))))
    for x in ([0.0, 0.0, 0.0], [1e6, -1e6, 0.0]):
        assert np.isfinite(gradient(jnp.array(x))).all()
