import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import step

from iqrl.core.replay.ring import ring_replay
from iqrl.core.replay.sampling import one_copy, uniform, whole


def step_number(t):
    """A step that is recognised by its state."""
    return step((t,), (t + 1,), r_t=t, discount_t=0.5, context_t=1)


def filled(capacity, count, sampling, **options):
    replay = ring_replay(capacity, 1, sampling, **options)
    stored = replay.init()
    for t in range(count):
        stored = replay.add(stored, step_number(t), jnp.int32(t))
    return replay, stored


def drawn(replay, stored, t, uniforms):
    return np.asarray(replay.sample(stored, jnp.int32(t), jnp.asarray(uniforms)).transitions.obs_tm1)[0]


@settings(deadline=None, max_examples=25)
@given(capacity=st.sampled_from([1, 2, 9]), count=st.integers(1, 25))
def test_holds_exactly_the_last_transitions(capacity, count):
    _, stored = filled(capacity, count, uniform(32))
    held = sorted(np.asarray(stored.rows)[: min(count, capacity), 0].tolist())
    assert held == [float(t) for t in range(max(0, count - capacity), count)]


@settings(deadline=None, max_examples=25)
@given(capacity=st.sampled_from([2, 7, 40]), count=st.integers(1, 60), seed=st.integers(0, 99))
def test_samples_only_what_is_stored(capacity, count, seed):
    replay, stored = filled(capacity, count, uniform(32))
    batch = drawn(replay, stored, count - 1, jax.random.uniform(jax.random.key(seed), (32,)))
    assert batch.shape == (32,)
    assert set(batch) <= {float(t) for t in range(max(0, count - capacity), count)}


def test_a_buffer_of_one_is_the_last_transition():
    """Once, where copies of it are not wanted."""
    replay, stored = filled(1, 7, uniform(32))
    np.testing.assert_array_equal(drawn(replay, stored, 6, np.linspace(0, 0.99, 32)), [6.0] * 32)
    replay, stored = filled(1, 7, one_copy(uniform(32)))
    assert replay.num_uniforms == 1
    np.testing.assert_array_equal(drawn(replay, stored, 6, np.zeros(1)), [6.0])


def test_the_whole_buffer_is_a_batch():
    replay, stored = filled(3, 5, whole)
    assert sorted(drawn(replay, stored, 4, np.zeros(1))) == [2.0, 3.0, 4.0]


def test_edges_of_the_uniform_numbers_are_in_range():
    replay, stored = filled(10, 4, uniform(32))
    below_one = np.nextafter(np.float32(1), np.float32(0))
    assert set(drawn(replay, stored, 3, [0.0, below_one] * 16)) == {0.0, 3.0}


def test_draws_are_uniform_with_replacement():
    replay, stored = filled(4, 4, uniform(20_000))
    batch = drawn(replay, stored, 3, jax.random.uniform(jax.random.key(0), (20_000,)))
    counts = np.bincount(batch.astype(int), minlength=4)
    assert np.abs(counts / 20_000 - 0.25).max() < 0.015


@pytest.mark.parametrize("n", [1, 3])
def test_the_last_steps_wait_for_their_returns(n):
    """With n steps ahead known: step 5 - (n - 1) is the newest that can be drawn, and brings r_1 + γ r_2 + …"""
    replay, stored = filled(10, 6, uniform(64), n_step=n)
    steps = replay.sample(stored, jnp.int32(5), jnp.linspace(0.0, 0.999, 64)).transitions
    starts, rewards = np.asarray(steps.obs_tm1)[0], np.asarray(steps.r_t)
    assert set(starts) == set(range(6 - (n - 1)))
    np.testing.assert_allclose(rewards, sum(0.5**i * (starts + i) for i in range(n)))
    np.testing.assert_allclose(np.asarray(steps.discount_t), 0.5**n)
    np.testing.assert_allclose(np.asarray(steps.obs_t)[0], starts + n)


@pytest.mark.parametrize("every", [1, 3])
def test_states_are_known_by_their_numbers(every):
    """Those of a batch, those since the last update, and all of them."""
    replay, stored = filled(4, 9, uniform(8), update_every=every)
    states = lambda numbers: np.asarray(replay.states.get(stored, jnp.asarray(numbers)))[..., 0]
    batch = replay.sample(stored, jnp.int32(8), jnp.linspace(0.0, 0.999, 8))
    assert batch.states is None, "they follow from the slots"
    np.testing.assert_array_equal(states(2 * batch.slots), np.asarray(batch.transitions.obs_tm1)[0])
    np.testing.assert_array_equal(states(2 * batch.slots + 1), np.asarray(batch.transitions.obs_t)[0])
    newest = states(replay.states.newest(stored, jnp.int32(8)).ravel())
    assert set(newest) == {state for t in range(9 - every, 9) for state in (t, t + 1)}
    assert set(states(np.arange(replay.states.count))) == set(range(5, 10))


def test_labels_are_given_anew_in_the_window_too():
    replay, stored = filled(4, 3, uniform(8), n_step=2)
    stored = replay.relabel(stored, lambda obs: (obs[0] > 1).astype(jnp.int32))
    stored = replay.add(stored, step_number(3), jnp.int32(3))
    steps = replay.sample(stored, jnp.int32(3), jnp.linspace(0.0, 0.999, 8)).transitions
    before, after = np.asarray(steps.obs_tm1)[0], np.asarray(steps.obs_t)[0]
    assert set(before) == {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(steps.context_tm1, before > 1)
    # The newest step came after; its labels are those it was given.
    np.testing.assert_array_equal(np.asarray(steps.context_t)[before < 2], (after > 1)[before < 2])


def test_n_step_returns_of_environments_that_take_turns():
    """Steps 0, 2, 4, … are of one environment, 1, 3, 5, … of the other; each return is of one of them."""
    replay, stored = filled(4, 8, whole, n_step=2, n_envs=2)
    batch = replay.sample(stored, jnp.int32(7), jnp.zeros(1)).transitions
    order = np.argsort(batch.obs_tm1[0])
    np.testing.assert_array_equal(batch.obs_tm1[0, order], [2, 3, 4, 5])
    np.testing.assert_array_equal(batch.obs_t[0, order], [5, 6, 7, 8], "each goes on two steps later")
    np.testing.assert_array_equal(batch.r_t[order], [2 + 0.5 * 4, 3 + 0.5 * 5, 4 + 0.5 * 6, 5 + 0.5 * 7])
