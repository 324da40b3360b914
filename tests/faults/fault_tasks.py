"""An environment outside the compiled program, with images large enough that a checkpoint compresses them."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

SIDE = 30


class Pictures(gymnasium.Env):
    """A bright column walks left and right; its right end pays."""

    observation_space, action_space = Box(0, 255, (SIDE, SIDE, 1), np.uint8), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(SIDE)), 0
        return self.picture(), {}

    def step(self, action):
        self.place, self.steps = (self.place + 2 * int(action) - 1) % SIDE, self.steps + 1
        return self.picture(), float(self.place == SIDE - 1), False, self.steps >= 20, {}

    def picture(self):
        shown = np.zeros((SIDE, SIDE, 1), np.uint8)
        shown[:, self.place] = 200 + self.steps
        return shown
