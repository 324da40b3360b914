import jax.numpy as jnp
import numpy as np

from iqrl.core import scaling


def test_running_scale_is_the_sample_variance():
    part = scaling.running(2)
    state = part.init()
    np.testing.assert_array_equal(part.weights(state), [1, 1])
    data = np.random.default_rng(0).normal(size=(50, 2)) * [1, 30] + [5, -7]
    for s in data:
        state = part.update(state, jnp.asarray(s, jnp.float32))
    np.testing.assert_allclose(part.weights(state), 1 / data.var(axis=0, ddof=1), rtol=1e-4)


def test_fixed_weights_are_one_over_the_squared_ranges():
    np.testing.assert_allclose(scaling.fixed((-1.0, 0.0), (1.0, 10.0)).weights(()), [1 / 4, 1 / 100])
    np.testing.assert_array_equal(scaling.unscaled(3).weights(()), [1, 1, 1])
