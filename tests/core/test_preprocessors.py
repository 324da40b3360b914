"""Preprocessors: normalisation of a stream against numpy (Elsayed et al. 2024)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import step as transition

from iqrl.core.preprocessors import identity, normalise

GAMMA = 0.9


def step(obs, reward, done=False, after=(0.0, 0.0)):
    return transition(obs, after, r_t=reward, discount_t=GAMMA, done=done)


def follow(steps):
    """The states of the preprocessor after each step, and the rewards that are learned from."""
    part = normalise(2, GAMMA)
    update, state, states, rewards = jax.jit(part.update), part.init(jax.random.key(0)), [], []
    for given in steps:
        state, seen = update(state, given)
        states.append(state)
        rewards.append(float(seen.r_t))
        np.testing.assert_array_equal(seen.obs_tm1, given.obs_tm1)
    return part, states, rewards


def test_states_by_hand():
    part, states, _ = follow([step(obs, 0.0, after=(99.0, 99.0)) for obs in ([1.0, 10.0], [3.0, 10.0], [5.0, 10.0])])
    # first variable: mean 3, variance (4 + 0 + 4) / 2 = 4; the second has not varied, and is only centred
    np.testing.assert_allclose(part.encode(states[-1], jnp.array([8.0, 13.0])), [2.5, 3.0], rtol=1e-5)
    # after one state nothing has varied; after none nothing is known
    np.testing.assert_allclose(part.encode(states[0], jnp.array([8.0, 13.0])), [7.0, 3.0])
    np.testing.assert_allclose(part.encode(part.init(jax.random.key(0)), jnp.array([8.0, 13.0])), [8.0, 13.0])


def test_states_and_rewards_over_a_stream_are_those_of_numpy():
    random = np.random.default_rng(0)
    obs, rewards = random.normal(size=(60, 2)) * [1, 30] + [5, -7], random.normal(size=60) + 1
    over = random.uniform(size=60) < 0.15
    assert over.sum() > 4
    part, states, seen = follow([step(*each) for each in zip(obs, rewards, over, strict=True)])
    sums, running = [], 0.0
    for t in range(60):
        running = GAMMA * running + rewards[t]
        sums.append(running)
        running = 0.0 if over[t] else running
        scale = np.std(sums, ddof=1) if t > 0 else 1.0
        assert seen[t] == pytest.approx(rewards[t] / scale, rel=1e-3)
        if t > 0:
            expected = (obs[0] - obs[: t + 1].mean(axis=0)) / obs[: t + 1].std(axis=0, ddof=1)
            np.testing.assert_allclose(part.encode(states[t], jnp.asarray(obs[0], jnp.float32)), expected, atol=1e-3)


def test_rewards_by_hand():
    # sums 1; 0.9 + 1 = 1.9, over; 1 again: the deviations of (1, 1.9) and (1, 1.9, 1) are 0.9 / √2 and 0.9 / √3
    _, _, seen = follow([step([0.0, 0.0], 1.0), step([0.0, 0.0], 1.0, done=True), step([0.0, 0.0], 1.0)])
    np.testing.assert_allclose(seen, [1, np.sqrt(2) / 0.9, np.sqrt(3) / 0.9], rtol=1e-5)


@pytest.mark.parametrize("reward", [0.0, -1.0, 1e-6])
def test_scale_is_one_while_nothing_has_varied(reward):
    _, _, seen = follow([step([2.0, 2.0], reward, done=True)] * 4)
    np.testing.assert_allclose(seen, [reward] * 4, rtol=1e-6)


def test_environments_that_take_turns_have_returns_of_their_own():
    """γ = 0.5: rewards 1, 2, 4 of one and 10, 20, 40 of the other, whose episode ends with the second."""
    part = normalise(2, 0.5, n_envs=2)
    update, state, traces = jax.jit(part.update), part.init(jax.random.key(0)), []
    for reward, done in ((1.0, False), (10.0, False), (2.0, False), (20.0, True), (4.0, False), (40.0, False)):
        state, _ = update(state, step([0.0, 0.0], reward, done=done))
        traces.append(state.trace.tolist())
    assert traces == [[0.0, 1.0], [1.0, 10.0], [10.0, 2.5], [2.5, 0.0], [0.0, 5.25], [5.25, 40.0]]


def test_identity_changes_nothing():
    part, given = identity(2), step([1.0, 2.0], 3.0)
    state = part.init(jax.random.key(0))
    assert part.update(state, given)[1] is given
    np.testing.assert_array_equal(part.encode(state, given.obs_tm1), [1.0, 2.0])
    assert (part.inputs, part.gates, part.shared, part.binary) == (2, 0, False, False)
