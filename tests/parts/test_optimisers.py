import jax.numpy as jnp
import numpy as np

from iqrl.composition import gradient_steps
from iqrl.settings import resolve


def test_centred_rmsprop_is_that_of_tensorflow():
    """ms starts at 1, the mean at 0; step = lr g / √(ms - mean² + ε)."""
    run = resolve("CartPole-v0", "dqn", optimiser="rmsprop", learning_rate=0.1, rmsprop_decay=0.9, rmsprop_epsilon=0.01)
    optimiser = gradient_steps(run)
    params = jnp.zeros(2)
    state = optimiser.init(params)
    ms, mean = np.ones(2), np.zeros(2)
    for gradient in (np.array([1.0, -0.5]), np.array([0.2, 3.0]), np.array([-1.0, 0.0])):
        updates, state = optimiser.update(jnp.asarray(gradient), state, params)
        ms, mean = 0.9 * ms + 0.1 * gradient**2, 0.9 * mean + 0.1 * gradient
        np.testing.assert_allclose(updates, -0.1 * gradient / np.sqrt(ms - mean**2 + 0.01), rtol=1e-5)
