"""An environment whose episodes are written down, with an end of every kind among them."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

EPISODES = (
    ((1.0, False, False), (2.0, True, False)),
    ((3.0, False, True),),
    ((4.0, False, False), (5.0, True, True)),
    ((6.0, False, False), (7.0, False, False), (8.0, True, False)),
)
"""(reward, terminated, truncated) of each step of each episode: terminated, truncated, both, terminated; then again"""
GAMMA = 0.5


class Scripted(gymnasium.Env):
    """Shows [number of the episode, step in it]. Actions are not looked at, nor is the seed."""

    observation_space, action_space = Box(0.0, 100.0, (2,), np.float32), Discrete(2)

    def __init__(self, begin=-1):
        self.episode = begin

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return self.seen(), {}

    def seen(self):
        return np.float32([self.episode, self.steps])

    def step(self, action):
        reward, terminated, truncated = EPISODES[self.episode % len(EPISODES)][self.steps]
        self.steps += 1
        return self.seen(), reward, terminated, truncated, {}


TRANSITIONS = (
    # s, r, discount, s', done
    ((0, 0), 1.0, 0.5, (0, 1), False),
    ((0, 1), 2.0, 0.0, (0, 2), True),  # terminated: nothing follows
    ((1, 0), 3.0, 0.5, (1, 1), True),  # truncated: the last state is bootstrapped from, not the next episode's first
    ((2, 0), 4.0, 0.5, (2, 1), False),  # the first reward of an episode is that of its first action
    ((2, 1), 5.0, 0.0, (2, 2), True),  # both: terminated
    ((3, 0), 6.0, 0.5, (3, 1), False),
    ((3, 1), 7.0, 0.5, (3, 2), False),
    ((3, 2), 8.0, 0.0, (3, 3), True),
    ((4, 0), 1.0, 0.5, (4, 1), False),
    ((4, 1), 2.0, 0.0, (4, 2), True),
)
"""worked out by hand: what an agent must observe of its first ten steps, with γ = 0.5"""
