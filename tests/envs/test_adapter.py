"""Compiled tasks as environments of Gymnasium."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pictures import picture_of_a_walk

import iqrl
from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.registry import make_task


@pytest.mark.parametrize("name", ["CartPole-v0", "MinAtar/Breakout-v1", "probe-matching"])
def test_it_keeps_to_gymnasiums_rules(name):
    task = make_task(iqrl.resolve(name, "dqn", max_episode_steps=30))
    # Beyond the range in which states move there may be the last one of an episode.
    wide = task._replace(low=(-9.0,) * task.obs_size, high=(9.0,) * task.obs_size)
    check_env(TaskEnvironment(wide), skip_render_check=True)


def test_it_is_the_task_with_its_own_reward_and_limit():
    task = make_task(iqrl.resolve("MountainCar", "dqn", max_episode_steps=3))
    env = TaskEnvironment(task)
    assert (env.action_space.n, env.observation_space.shape) == (3, (2,))
    first, _ = env.reset(seed=1)
    outcomes = [env.step(2)[1:4] for _ in range(3)]
    assert outcomes == [(-1.0, False, False), (-1.0, False, False), (-1.0, False, True)], "without the shaping"
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)
    assert not np.array_equal(env.reset()[0], first)


def test_images_are_bytes_of_their_shape():
    env = TaskEnvironment(picture_of_a_walk(None))
    obs, _ = env.reset(seed=0)
    assert obs.dtype == np.uint8
    assert obs.shape == env.observation_space.shape == (5, 5, 2)
    assert env.observation_space.high.max() == 1
