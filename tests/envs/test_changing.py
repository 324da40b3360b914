"""An environment that changes while the agent lives in it, everywhere an environment is stepped."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import env_inputs

import iqrl
from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.base import Task
from iqrl.envs.check import check_task
from iqrl.envs.random_policy import random_inputs, walks
from iqrl.envs.registry import make_task
from iqrl.training.loop import driver_of

LENGTH = 5


class Season(NamedTuple):
    episodes: jax.Array
    """before this one: what outlives an episode"""
    began: jax.Array
    """the global step at which this one began"""


def reset(inputs):
    episodes = jnp.int32(0) if inputs.previous is None else inputs.previous.episodes + 1
    return Season(episodes=episodes, began=inputs.step)


def step(state, action, inputs):
    """Pays the number of steps made so far."""
    return state, inputs.step.astype(jnp.float32), jnp.bool_(False)


seasons = Task(
    name="seasons",
    actions=2,
    low=(0.0, 0.0),
    high=(10.0, 50.0),
    time_limit=LENGTH,
    reset=reset,
    step=step,
    observe=lambda state: jnp.stack([state.episodes, state.began]).astype(jnp.float32),
    num_reset_uniforms=0,
)
NAME = f"{__name__}:seasons"
SETTINGS = {"steps": 40, "period": 20, "seeds": 2, "learning_starts": 10, "buffer_size": 40, "epsilon_decay": 4}


def test_the_compiled_driver_counts_steps_and_hands_states_on(small_run, final_state):
    """Episodes of five steps: rewards are 0, 1, 2, …, and observations say which episode it is and when it began."""
    run = iqrl.resolve(NAME, "dqn", **SETTINGS)
    state, period = final_state(run, [20, 40])
    np.testing.assert_array_equal(period.episodes, 4)
    np.testing.assert_allclose(period.returns, sum(range(20, 40)) / 4)
    # The ninth episode has just begun.
    np.testing.assert_array_equal(state.env.inputs.obs, [[8, 40]] * 2)
    stored = jax.tree.map(lambda leaf: leaf[0], state.agent.replay)
    batch = driver_of(run).agent.replay.states.get(stored, jnp.arange(80))
    before, after = np.asarray(batch)[0::2], np.asarray(batch)[1::2]
    np.testing.assert_array_equal(before[:, 0], np.arange(40) // LENGTH)
    np.testing.assert_array_equal(before[:, 1], np.arange(40) // LENGTH * LENGTH)
    np.testing.assert_array_equal(before, after)  # the last state of an episode is still one of it
    rewards = np.asarray(state.agent.replay.rows)[0, :, 2 * 2 + 1]
    np.testing.assert_array_equal(rewards, np.arange(40))


def test_stopping_does_not_set_it_back(tmp_path):
    whole = iqrl.train(NAME, "dqn", **SETTINGS)
    iqrl.train(NAME, "dqn", **SETTINGS | {"steps": 20}, out=tmp_path / "run")
    resumed = iqrl.resume(tmp_path / "run", steps=40)
    np.testing.assert_array_equal(whole.returns, resumed.returns)
    np.testing.assert_allclose(whole.returns, [[sum(range(20)) / 4, sum(range(20, 40)) / 4]] * 2)


def test_a_random_policy_walks_through_the_seasons():
    found = jax.jit(lambda key: walks(seasons, 12, 3, key))(jax.random.key(0))
    times = np.arange(12)
    expected = np.stack([times // LENGTH, times // LENGTH * LENGTH], 1)
    np.testing.assert_array_equal(found.obs, expected[:, None].repeat(3, 1))
    np.testing.assert_array_equal(found.initial_obs, found.obs)
    scores = [sum(range(t // LENGTH * LENGTH, t)) for t in times]
    np.testing.assert_array_equal(found.score, np.repeat(scores, 3).reshape(12, 3))
    assert np.asarray(random_inputs(seasons, 50).obs).shape == (50, 2)


def play(env, steps):
    """Observations and rewards, one episode after another."""
    seen, rewards = [env.reset()[0].tolist()], []
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(0)
        rewards.append(reward)
        if terminated or truncated:
            seen.append(env.reset()[0].tolist())
    return seen, rewards


def test_as_an_environment_it_counts_on():
    seen, rewards = play(TaskEnvironment(seasons), 11)
    assert seen == [[0, 0], [1, 5], [2, 10]]
    assert rewards == list(range(11))
    seen, rewards = play(TaskEnvironment(seasons, global_step=100), 6)
    assert seen == [[0, 100], [1, 105]]
    assert rewards == list(range(100, 106))


def test_as_a_frozen_environment_it_stays_as_it_is():
    seen, rewards = play(TaskEnvironment(seasons, global_step=100, frozen=True), 11)
    assert seen == [[0, 100]] * 3
    assert rewards == [100] * 11


def test_an_agent_is_evaluated_in_the_season_in_which_its_training_ended():
    result = iqrl.train(NAME, "dqn", **SETTINGS)
    np.testing.assert_array_equal(iqrl.evaluate(result, episodes=3), np.full((2, 3), 40 * LENGTH))


def test_a_task_without_seasons_is_stepped_as_before():
    """Neither the step nor the state before changes anything for CartPole."""
    task = make_task(iqrl.resolve("CartPole-v0", "dqn"))
    uniforms = [0.1, 0.4, 0.6, 0.9]
    first, later = task.reset(env_inputs(uniforms)), task.reset(env_inputs(uniforms, 999, previous=jnp.ones(4)))
    np.testing.assert_array_equal(first, later)


def test_a_reset_that_gives_another_state_after_an_episode_is_refused():
    other = lambda inputs: reset(inputs) if inputs.previous is None else inputs.previous.episodes
    assert check_task("seasons", seasons) is seasons
    with pytest.raises(iqrl.BadInput, match="reset returns another shape or type after an episode"):
        check_task("seasons", seasons._replace(reset=other))
