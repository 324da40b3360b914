"""The transitions that are kept for measuring."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.diagnostics.interference.samples import add_recent, add_to_reservoir, mask_filled, take_spread


def test_recent_rows_replace_the_oldest():
    rows = jnp.zeros((3, 1))
    for t in range(5):
        rows = add_recent(rows, jnp.float32([t + 10]), jnp.int32(t))
    np.testing.assert_array_equal(rows[:, 0], [13, 14, 12])


def test_every_transition_stays_in_the_reservoir_with_the_same_probability():
    """4 of 20 places: each of the 20 is kept in a fifth of 5,000 reservoirs, within five deviations."""
    count, length, capacity = 5000, 20, 4

    def fill(uniforms):
        body = lambda t, rows: add_to_reservoir(rows, jnp.float32([t]), t, uniforms[t])
        return jax.lax.fori_loop(0, length, body, jnp.full((capacity, 1), -1.0))

    kept = np.asarray(jax.jit(jax.vmap(fill))(jax.random.uniform(jax.random.key(0), (count, length))))
    shares = np.bincount(kept.ravel().astype(int), minlength=length) / count
    deviation = np.sqrt(0.2 * 0.8 / count)
    assert np.abs(shares - 0.2).max() < 5 * deviation
    assert all(len(set(row)) == capacity for row in kept[:100, :, 0])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(1, 1), (7, 1), (100, 7), (100, 10), (100, 100)]), st.integers(0, 2**31 - 2))
def test_a_sample_is_spread_over_the_rows(sizes, t):
    capacity, count = sizes
    rows = jnp.arange(capacity, dtype=jnp.float32)[:, None]
    used = min(t + 1, capacity)
    taken, weights = (np.asarray(found) for found in take_spread(rows, jnp.int32(t), count))
    taken = taken[:, 0]
    assert taken.shape == weights.shape == (count,)
    np.testing.assert_array_equal(weights, taken < used)
    assert weights.any()
    assert np.asarray(mask_filled(rows, jnp.int32(t))).sum() == used
    np.testing.assert_array_equal(np.diff(taken), capacity // count)


def test_over_time_every_row_is_taken_about_as_often():
    rows = jnp.arange(100, dtype=jnp.float32)[:, None]
    taken, _ = jax.vmap(lambda t: take_spread(rows, t, 10))(jnp.arange(1000, 3000, 7))
    counts = np.bincount(np.asarray(taken).ravel().astype(int), minlength=100)
    assert counts.min() > 0.7 * counts.mean()
    assert counts.max() < 1.3 * counts.mean()
