"""External environments: their seeds, their rewards and where their episodes end."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from iqrl.envs.episodes import Environments
from iqrl.envs.external import task_of_environment


class Dice(gymnasium.Env):
    """Shows a number drawn at the start of the episode; three steps, each of which pays 7."""

    observation_space, action_space = Box(0.0, 1.0, (1,), np.float32), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.drawn = 0, np.float32([self.np_random.random()])
        return self.drawn, {}

    def step(self, action):
        self.steps += 1
        return self.drawn, 7.0, self.steps == 3, False, {}


def dice(**changes):
    return Environments(task_of_environment("dice", Dice(), lambda seed: Dice())._replace(**changes), seed=0, seeds=2)


def test_episodes_and_seeds_draw_different_numbers():
    played = dice()
    starts = [played.begin(), *(played.step(np.zeros(2, int)).initial_obs for _ in range(6))]
    drawn = [starts[0], starts[3], starts[6]]
    assert len(np.unique(np.stack(drawn))) == 6, "three episodes of two seeds"
    again = dice()
    np.testing.assert_array_equal(again.begin(), starts[0])


def test_the_reward_that_is_learned_from_is_the_tasks_own():
    played = dice(external_reward=lambda rewards: np.clip(rewards, -1.0, 1.0))
    played.begin()
    outcome = played.step(np.zeros(2, int))
    np.testing.assert_array_equal(outcome.reward, [7.0, 7.0])
    np.testing.assert_array_equal(outcome.learned, [1.0, 1.0])


def test_an_episode_is_cut_at_the_tasks_limit():
    played = dice(time_limit=2)
    played.begin()
    ends = [played.step(np.zeros(2, int)) for _ in range(3)]
    assert [each.truncated.tolist() for each in ends] == [[False] * 2, [True] * 2, [False] * 2]
    assert not any(each.terminated.any() for each in ends)


class Bits(Dice):
    observation_space = Box(0, 1, (12, 12, 2), np.uint8)


def test_the_highest_value_of_a_picture_is_that_of_its_space():
    task = task_of_environment("bits", Bits(), lambda seed: Bits())
    assert task.image.highest == 1.0
    assert task.high == (1.0,) * 288
