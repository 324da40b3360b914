"""SRNN's regulariser by hand (Liu et al. 2019): β is 0.1 throughout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import loss_inputs

from iqrl.core.networks import Output
from iqrl.methods.srnn import set_kl, sparsity, surrogate

BETA = 0.1


@pytest.mark.parametrize(
    ("mean", "value", "gradient"),
    [
        (0.5, 0.809438, 1.6),  # ln 5 + 0.2 - 1; (0.5 - 0.1) / 0.25
        (0.2, 0.193147, 2.5),  # ln 2 + 0.5 - 1; (0.2 - 0.1) / 0.04
        (0.1, 0.0, 0.0),
        (0.05, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (-0.3, 0.0, 0.0),
    ],
)
def test_set_kl_and_its_gradient_by_hand(mean, value, gradient):
    found = jax.value_and_grad(set_kl)(jnp.float32(mean), BETA)
    np.testing.assert_allclose(found, [value, gradient], atol=1e-5)


def test_set_kl_is_the_kl_of_two_exponentials():
    """∫ p ln (p / q) with p of mean β and q of mean 0.3, by the trapezoidal rule."""
    x, mean = np.linspace(0, 4, 400_001), 0.3
    p = np.exp(-x / BETA) / BETA
    log_ratio = np.log(mean / BETA) - x / BETA + x / mean
    assert float(set_kl(jnp.float32(mean), BETA)) == pytest.approx(np.trapezoid(p * log_ratio, x), abs=1e-5)


def released(b):
    """1[b > β] b (1 / (b + 1e-4) - β / (b² + 1e-4)): SRNN_dqn_agent.py of the IQ paper's code."""
    return (b > BETA) * b * (1 / (b + 1e-4) - BETA / (b**2 + 1e-4))


@pytest.mark.parametrize(("mean", "about"), [(0.5, 0.8), (0.2, 0.5), (0.1, 0.0), (0.05, 0.0), (-0.3, 0.0)])
def test_surrogate_by_hand(mean, about):
    found = float(surrogate(jnp.float32(mean), BETA))
    assert found == pytest.approx(released(np.float32(mean)), abs=1e-6)
    assert found == pytest.approx(about, abs=2e-3)  # 1 - β / b


@pytest.mark.parametrize(
    ("mean", "gradient", "of_set_kl"),
    [
        (0.5, 0.4, 1.6),  # β / b², not (b - β) / b²
        (0.101, 9.8, 0.1),  # and it jumps to about 1 / β just above β
    ],
)
def test_surrogate_does_not_have_the_gradient_of_set_kl(mean, gradient, of_set_kl):
    assert float(jax.grad(surrogate)(jnp.float32(mean), BETA)) == pytest.approx(gradient, rel=0.03)
    assert float(jax.grad(set_kl)(jnp.float32(mean), BETA)) == pytest.approx(of_set_kl, rel=0.03)


def term(form, features):
    online = Output(q=None, values=None, features=jnp.asarray(features, jnp.float32))
    return sparsity(0.25, BETA, form).loss(loss_inputs(online_tm1=online))


FEATURES = [[0.1, 0.3], [0.0, 0.1], [0.9, 0.1]]  # three units, two samples


def test_units_are_averaged_over_the_batch_and_summed():
    # means of the units 0.2, 0.05 and 0.5
    assert float(term("units", FEATURES)) == pytest.approx(0.193147 + 0 + 0.809438, abs=1e-5)


def test_samples_are_averaged_over_the_units():
    # means of the samples 1 / 3 and 1 / 6: about 1 - 0.3 and 1 - 0.6
    found = term("samples", FEATURES)
    np.testing.assert_allclose(found, [released(1 / 3), released(1 / 6)], rtol=1e-5)
    np.testing.assert_allclose(found, [0.7, 0.4], atol=3e-3)


@pytest.mark.parametrize("form", ["units", "samples"])
def test_negative_features_cost_nothing(form):
    negative = -jnp.asarray(FEATURES) - 0.01
    value, gradient = jax.value_and_grad(lambda f: jnp.sum(term(form, f)))(negative)
    assert float(value) == pytest.approx(0, abs=1e-6)
    assert (gradient == 0).all()


def test_weight_is_constant():
    assert [float(sparsity(0.25, BETA, "units").weight(t)) for t in (0, 10**6)] == [0.25, 0.25]
