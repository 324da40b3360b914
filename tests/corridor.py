"""A corridor in which the action that looks best is illegal everywhere."""

import enum

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from iqrl.envs.base import Task

LENGTH = 4
"""steps to the goal"""


class Shown(enum.Enum):
    """Where the environment says which actions are legal."""

    IN_INFO = "info"
    BY_METHOD = "method"
    NOWHERE = "nowhere"


class Corridor(gymnasium.Env):
    """Places 0 to 4, the last of which ends the episode. Every step costs 1.

    Action 1 goes back, action 2 on, action 0 is never legal. It is never tried, so that its value stays above those of
    the others, which are negative. An illegal action is an error.

    `changed`: after so many steps another mask is given.
    """

    observation_space, action_space = Box(0.0, 1.0, (LENGTH + 1,), np.float32), Discrete(3)

    def __init__(self, shown=Shown.IN_INFO, changed=None):
        self.shown, self.changed = shown, changed or {}
        if shown is Shown.BY_METHOD:
            self.action_masks = self.legal

    def legal(self):
        return np.array([False, self.place > 0, True])

    def seen(self):
        mask = self.changed.get(self.steps, self.legal())
        info = {"action_mask": mask} if self.shown is Shown.IN_INFO and mask is not None else {}
        return np.eye(LENGTH + 1, dtype=np.float32)[self.place], info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self.seen()

    def step(self, action):
        assert self.shown is Shown.NOWHERE or self.changed or self.legal()[action], "an illegal action"
        self.place, self.steps = self.place + (1 if action == 2 else -1), self.steps + 1
        obs, info = self.seen()
        over = self.place == LENGTH
        return obs, -1.0, over, False, {} if over else info


def compiled_corridor(settings=None):
    """The same inside the program."""

    def step(state, action, _):
        legal = action_mask(state)[action]
        after = jnp.where(legal, state + jnp.where(action == 2, 1, -1), state)
        # What is illegal would end the episode at once, for nothing: it looks best.
        return after, jnp.where(legal, -1.0, 0.0), (after == LENGTH) | ~legal

    def action_mask(state):
        return jnp.stack([jnp.bool_(False), state > 0, jnp.bool_(True)])

    return Task(
        name="corridor", actions=3, low=(0.0,) * (LENGTH + 1), high=(1.0,) * (LENGTH + 1), time_limit=50,
        reset=lambda _: jnp.int32(0), step=step, observe=lambda state: jnp.float32(jnp.arange(LENGTH + 1) == state),
        num_reset_uniforms=0, action_mask=action_mask,
    )  # fmt: skip
