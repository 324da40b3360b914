"""A task of the compiled program as a Gymnasium environment: for evaluation, and for other libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete

from iqrl.core.masks import Mask
from iqrl.envs.base import EnvInputs, Task


class TaskEnvironment(gymnasium.Env):
    """The task itself, stepped one step at a time; its rewards are its own, not those learned from.

    `global_step`: where a task that changes over time begins. It counts on with every step, unless `frozen`: then the
    task stays as it is at that step, and every episode begins as the first one does.
    """

    def __init__(self, task: Task, global_step: int = 0, frozen: bool = False):
        self.task, self.global_step, self.frozen = task, global_step, frozen
        self.action_space = Discrete(task.actions)
        self.observation_space = self._space()
        self._first = jax.jit(lambda inputs: self._observed(task.reset(inputs)))
        self._next = jax.jit(self._step)
        self._state, self._steps = None, 0

    def _space(self) -> gymnasium.Space:
        shape = self.task.observation_shape
        if self.task.image and not self.task.image.vector:
            return Box(0, int(self.task.image.highest), shape, np.uint8)
        low, high = (np.asarray(bound, np.float32) for bound in (self.task.low, self.task.high))
        return Box(low, high, dtype=np.float32)

    def _observed(self, state: Any) -> tuple[Any, jax.Array, Mask]:
        return state, self.task.observe(state), self.task.legal(state)

    def _info(self, mask: Mask) -> dict[str, np.ndarray]:
        return {"action_mask": np.asarray(mask)} if self.task.masked_actions else {}

    def _step(self, state: Any, action: jax.Array, inputs: EnvInputs) -> tuple:
        state, reward, terminated = self.task.step(state, action, inputs)
        return *self._observed(state), reward, terminated

    def _inputs(self, count: int, previous: Any = None) -> EnvInputs:
        # Of float32 the largest below 1 is drawn at most: rounding up would leave [0, 1).
        below_one = np.nextafter(np.float32(1), np.float32(0))
        uniforms: Any = np.minimum(np.float32(self.np_random.random(count)), below_one)
        step: Any = np.int32(self.global_step)
        return EnvInputs(uniforms=uniforms, step=step, previous=previous)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._steps = 0
        previous = None if self.frozen else self._state
        self._state, obs, mask = self._first(self._inputs(self.task.num_reset_uniforms, previous))
        return np.asarray(obs), self._info(mask)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._steps += 1
        inputs = self._inputs(self.task.num_step_uniforms)
        self.global_step += not self.frozen
        self._state, obs, mask, reward, terminated = self._next(self._state, np.int32(action), inputs)
        truncated = self._steps >= self.task.time_limit and not terminated
        return np.asarray(obs), float(reward), bool(terminated), truncated, self._info(mask)
