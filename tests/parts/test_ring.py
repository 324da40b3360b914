import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.parts.replay import Transition
from iqrl.parts.ring import ring
from iqrl.parts.sampling import uniform, whole


def step_number(t):
    """A step that can be told by its state."""
    return Transition(
        jnp.float32([t]), jnp.int32(0), jnp.float32(t), jnp.float32(0.5), jnp.float32([t + 1]), jnp.int32(0),
        jnp.int32(1), over=jnp.bool_(False), greedy=jnp.bool_(True),
    )  # fmt: skip


def nothing(states):
    return jnp.zeros((len(states), 0))


def filled(capacity, count, sampler, **options):
    replay = ring(capacity, 1, sampler, **options)
    stored = replay.init()
    for t in range(count):
        stored = replay.add(stored, step_number(t), nothing, jnp.int32(t))
    return replay, stored


def drawn(replay, stored, t, uniforms):
    return np.asarray(replay.sample(stored, jnp.int32(t), jnp.asarray(uniforms)).steps.obs_tm1)[0]


@settings(deadline=None, max_examples=25)
@given(capacity=st.integers(1, 9), count=st.integers(1, 25))
def test_holds_exactly_the_last_transitions(capacity, count):
    _, stored = filled(capacity, count, uniform(32))
    held = sorted(np.asarray(stored.rows)[: min(count, capacity), 0].tolist())
    assert held == [float(t) for t in range(max(0, count - capacity), count)]


@settings(deadline=None, max_examples=25)
@given(capacity=st.integers(2, 40), count=st.integers(1, 60), seed=st.integers(0, 99))
def test_samples_only_what_is_stored(capacity, count, seed):
    replay, stored = filled(capacity, count, uniform(32))
    batch = drawn(replay, stored, count - 1, jax.random.uniform(jax.random.key(seed), (32,)))
    assert batch.shape == (32,)
    assert set(batch) <= {float(t) for t in range(max(0, count - capacity), count)}


def test_a_buffer_of_one_is_the_last_transition():
    replay, stored = filled(1, 7, uniform(32))
    assert replay.draws == 1
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
    steps = replay.sample(stored, jnp.int32(5), jnp.linspace(0.0, 0.999, 64)).steps
    starts, rewards = np.asarray(steps.obs_tm1)[0], np.asarray(steps.r_t)
    assert set(starts) == set(range(6 - (n - 1)))
    np.testing.assert_allclose(rewards, sum(0.5**i * (starts + i) for i in range(n)))
    np.testing.assert_allclose(np.asarray(steps.discount_t), 0.5**n)
    np.testing.assert_allclose(np.asarray(steps.obs_t)[0], starts + n)


def test_what_is_noted_of_both_states_comes_back_with_them():
    replay = ring(4, 1, uniform(8), notes=2)
    stored = replay.init()
    note = lambda factor: lambda states: factor * jnp.concatenate([states, states + 100], axis=1)
    for t in range(6):
        stored = replay.add(stored, step_number(t), note(1), jnp.int32(t))

    def check(stored, factor):
        batch = replay.sample(stored, jnp.int32(5), jnp.linspace(0.0, 0.999, 8))
        of_s, of_next = np.asarray(batch.notes)
        s, following = np.asarray(batch.steps.obs_tm1)[0], np.asarray(batch.steps.obs_t)[0]
        np.testing.assert_array_equal(of_s, factor * np.stack([s, s + 100]))
        np.testing.assert_array_equal(of_next, factor * np.stack([following, following + 100]))

    check(stored, 1)
    check(replay.renew(stored, note(7)), 7)


def test_labels_are_given_anew_in_the_window_too():
    replay, stored = filled(4, 3, uniform(8), n_step=2)
    stored = replay.relabel(stored, lambda obs: (obs[0] > 1).astype(jnp.int32))
    stored = replay.add(stored, step_number(3), nothing, jnp.int32(3))
    steps = replay.sample(stored, jnp.int32(3), jnp.linspace(0.0, 0.999, 8)).steps
    before, after = np.asarray(steps.obs_tm1)[0], np.asarray(steps.obs_t)[0]
    assert set(before) == {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(steps.context_tm1, before > 1)
    # The newest step came after; its labels are those it was given.
    np.testing.assert_array_equal(np.asarray(steps.context_t)[before < 2], (after > 1)[before < 2])
