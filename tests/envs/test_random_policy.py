import jax
import jax.numpy as jnp
import numpy as np
from records import env_inputs

from iqrl.envs.base import Task
from iqrl.envs.classic.cartpole import ANGLE_LIMIT, TAU, X_LIMIT, cartpole
from iqrl.envs.classic.pendulum import pendulum
from iqrl.envs.random_policy import WALKS, random_states, walks

CARTPOLE = cartpole("CartPole-v0", 200, 0, 0)


def counter(limit, end=10**9, num_step_uniforms=0):
    """A state is (start, steps since, sum of actions, sum of the step's uniforms); it ends after `end` steps."""

    def step(state, action, inputs):
        state = state + jnp.stack([0.0, 1.0, action, jnp.sum(inputs.uniforms)])
        return state, jnp.float32(0), state[1] >= end

    return Task(
        name="counter",
        actions=3,
        low=(0.0,) * 4,
        high=(1.0,) * 4,
        time_limit=limit,
        reset=lambda inputs: jnp.zeros(4).at[0].set(inputs.uniforms[0]),
        step=step,
        observe=lambda state: state,
        num_reset_uniforms=1,
        num_step_uniforms=num_step_uniforms,
    )


def walked(task, steps, seed=0):
    return np.asarray(jax.jit(lambda key: walks(task, steps, WALKS, key).obs)(jax.random.key(seed)))


def test_shape_and_seed():
    states = random_states(CARTPOLE, 1234, seed=3)
    assert states.shape == (1234, 4)
    assert np.isfinite(states).all()
    assert len(np.unique(states, axis=0)) == 1234
    np.testing.assert_array_equal(states, random_states(CARTPOLE, 1234, seed=3))
    assert not np.isin(random_states(CARTPOLE, 1234, seed=4), states).any()


def test_more_states_than_one_episode_each():
    assert random_states(counter(2), 5 * WALKS + 1).shape == (5 * WALKS + 1, 4)


def test_a_small_sample_covers_whole_episodes():
    """Every step of an episode is as likely as any other."""
    steps = random_states(counter(100), 2000)[:, 1]
    assert steps.min() == 0
    assert steps.max() == 99
    assert abs(steps.mean() - 49.5) < 3


def test_no_state_is_one_in_which_the_episode_is_over():
    states = walked(CARTPOLE, 200)
    assert (np.abs(states[0]) <= 0.05).all()
    assert (np.abs(states[..., 0]) <= X_LIMIT).all()
    assert (np.abs(states[..., 2]) <= ANGLE_LIMIT).all()
    # A random policy falls after about 22 steps, so nearly every walk has begun anew, and from the start's range.
    anew = np.abs(states[1:, :, 2] - states[:-1, :, 2] - TAU * states[:-1, :, 3]) > 1e-5
    assert (np.abs(states[1:][anew]) <= 0.05).all()
    assert 15 < 200 / anew.sum(axis=0).mean() < 30


def test_begins_anew_at_the_end_and_at_the_time_limit():
    for task in (counter(limit=3), counter(limit=10, end=3)):
        states = walked(task, 7)
        np.testing.assert_array_equal(states[:, :, 1], np.tile([[0], [1], [2], [0], [1], [2], [0]], WALKS))
        starts = states[::3, :, 0]
        assert len(np.unique(starts)) == starts.size
        np.testing.assert_array_equal(states[0, :, 0], states[2, :, 0])


def test_actions_are_uniform_and_draws_are_apart():
    """Action, reset and step take different numbers, and all of their range."""
    states = walked(counter(10**6, num_step_uniforms=2), 101)
    actions, noise = np.diff(states[:, :, 2], axis=0), np.diff(states[:, :, 3], axis=0)
    assert set(np.unique(actions)) == {0, 1, 2}
    np.testing.assert_allclose([np.mean(actions == a) for a in range(3)], 1 / 3, atol=0.01)
    assert abs(noise.mean() - 1) < 0.01
    assert abs(np.corrcoef(actions.ravel(), noise.ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(actions[0], states[0, :, 0])[0, 1]) < 0.15


def test_states_follow_each_other_by_the_tasks_own_step():
    states = walked(CARTPOLE, 6)[:, :20]
    for before, after in zip(states[:-1].reshape(-1, 4), states[1:].reshape(-1, 4), strict=True):
        reached = [CARTPOLE.step(jnp.asarray(before), jnp.int32(a), env_inputs())[0] for a in range(2)]
        assert min(np.abs(after - np.asarray(state)).max() for state in reached) < 1e-6


def test_what_is_seen_is_the_observation():
    states = random_states(pendulum("Pendulum-v0", 5), 500)
    assert states.shape == (500, 3)
    np.testing.assert_allclose(states[:, 0] ** 2 + states[:, 1] ** 2, 1, atol=1e-5)
