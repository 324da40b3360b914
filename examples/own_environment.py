"""An environment of your own, written for Gymnasium: no JAX in it, and pictures to learn from.

    iqrl train own_environment:Catch --method iq-re --frame-stack 2

run in this folder, trains on it for some minutes. A ball falls down a grey picture, straight or sideways; the paddle
below it moves left, stays or moves right, and has to be under it at the end.
"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

SIDE = 12


class Catch(gymnasium.Env):
    """1 for a caught ball, -1 for a lost one; two pictures together show where it is going."""

    observation_space = Box(0, 255, (SIDE, SIDE), np.uint8)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ball, self.height, self.slope = self.np_random.integers(SIDE), 0, self.np_random.integers(-1, 2)
        self.paddle = SIDE // 2
        return self.picture(), {}

    def step(self, action):
        self.paddle = np.clip(self.paddle + action - 1, 1, SIDE - 2)
        self.ball = np.clip(self.ball + self.slope, 0, SIDE - 1)
        self.height += 1
        over = self.height == SIDE - 1
        caught = abs(self.ball - self.paddle) <= 1
        reward = (1.0 if caught else -1.0) if over else 0.0
        return self.picture(), reward, over, False, {}

    def picture(self):
        picture = np.zeros((SIDE, SIDE), np.uint8)
        picture[-1, self.paddle - 1 : self.paddle + 2] = 128
        picture[self.height, self.ball] = 255
        return picture


def rewarded_catch():
    """A function that makes the environment is named in the same way: own_environment:rewarded_catch."""
    return gymnasium.wrappers.TransformReward(Catch(), lambda reward: 10 * reward)
