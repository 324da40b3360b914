import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.parts.replay import Transition, pack, ring, row_width, unpack, whole


def filled(capacity, count, batch=32):
    replay = ring(capacity, 1, batch)
    rows = replay.init()
    for t in range(count):
        rows = replay.add(rows, jnp.array([float(t)]), jnp.int32(t))
    return replay, rows


@settings(deadline=None, max_examples=25)
@given(capacity=st.integers(1, 9), count=st.integers(1, 25))
def test_holds_exactly_the_last_transitions(capacity, count):
    _, rows = filled(capacity, count)
    stored = min(count, capacity)
    expected = range(count - stored, count)
    held = sorted(np.asarray(rows)[:, 0].tolist()[:stored] if count < capacity else np.asarray(rows)[:, 0].tolist())
    assert held == [float(t) for t in expected]


@settings(deadline=None, max_examples=25)
@given(capacity=st.integers(2, 40), count=st.integers(1, 60), seed=st.integers(0, 99))
def test_samples_only_what_is_stored(capacity, count, seed):
    replay, rows = filled(capacity, count)
    batch = replay.sample(rows, jnp.int32(count - 1), jax.random.uniform(jax.random.key(seed), (32,)))
    assert batch.shape == (1, 32)
    assert set(np.asarray(batch)[0]) <= {float(t) for t in range(max(0, count - capacity), count)}


def test_a_buffer_of_one_is_the_last_transition():
    replay, rows = filled(1, 7, batch=32)
    assert replay.draws == 1
    np.testing.assert_array_equal(replay.sample(rows, jnp.int32(6), jnp.zeros(1)), [[6.0]])


def test_the_whole_buffer_is_a_batch():
    replay = whole(3, 1)
    rows = replay.init()
    for t in range(5):
        rows = replay.add(rows, jnp.array([float(t)]), jnp.int32(t))
    assert sorted(np.asarray(replay.sample(rows, jnp.int32(4), jnp.zeros(1)))[0]) == [2.0, 3.0, 4.0]


def test_edges_of_the_uniform_numbers_are_in_range():
    replay, rows = filled(10, 4)
    below_one = np.nextafter(np.float32(1), np.float32(0))
    batch = replay.sample(rows, jnp.int32(3), jnp.array([0.0, below_one] * 16))
    assert set(np.asarray(batch)[0]) == {0.0, 3.0}


def test_draws_are_uniform_with_replacement():
    replay, rows = filled(4, 4, batch=20_000)
    batch = replay.sample(rows, jnp.int32(3), jax.random.uniform(jax.random.key(0), (20_000,)))
    counts = np.bincount(np.asarray(batch)[0].astype(int), minlength=4)
    assert np.abs(counts / 20_000 - 0.25).max() < 0.015


def test_pack_and_unpack_are_inverse():
    step = Transition(
        obs_tm1=jnp.array([1.0, 2.0]), a_tm1=jnp.int32(3), r_t=jnp.float32(-0.5), discount_t=jnp.float32(0.99),
        obs_t=jnp.array([4.0, 5.0]), context_tm1=jnp.int32(2), context_t=jnp.int32(1), over=jnp.bool_(True),
        greedy=jnp.bool_(False),
    )  # fmt: skip
    row = pack(step)
    assert row.shape == (row_width(2),)
    for given_, back in zip(step, unpack(row, 2), strict=True):
        np.testing.assert_array_equal(given_, back)
        assert given_.dtype == back.dtype
