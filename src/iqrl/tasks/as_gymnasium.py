"""A task of the compiled program as a Gymnasium environment: for evaluation, and for other libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from iqrl.tasks.base import Task


class TaskEnvironment(gymnasium.Env):
    """The task itself, stepped one step at a time; its rewards are its own, not those learned from."""

    def __init__(self, task: Task):
        self.task = task
        self.action_space = Discrete(task.actions)
        self.observation_space = self._space()
        self._first = jax.jit(lambda uniforms: self._seen(task.reset(uniforms)))
        self._next = jax.jit(self._step)
        self._state, self._steps = None, 0

    def _space(self) -> gymnasium.Space:
        shape = jax.eval_shape(self.task.observe, jax.eval_shape(self.task.reset, jnp.zeros(self.task.reset_draws)))
        if self.task.image:
            return Box(0, int(self.task.image.highest), shape.shape, np.uint8)
        low, high = (np.asarray(bound, np.float32).reshape(shape.shape) for bound in (self.task.low, self.task.high))
        return Box(low, high, dtype=np.float32)

    def _seen(self, state: Any) -> tuple[Any, jax.Array]:
        return state, self.task.observe(state)

    def _step(self, state: Any, action: jax.Array, uniforms: jax.Array) -> tuple:
        state, reward, terminated = self.task.step(state, action, uniforms)
        return *self._seen(state), reward, terminated

    def _uniforms(self, count: int) -> np.ndarray:
        # Of float32 the largest below 1 is drawn at most: rounding up would leave [0, 1).
        return np.minimum(np.float32(self.np_random.random(count)), np.nextafter(np.float32(1), np.float32(0)))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._steps = 0
        self._state, obs = self._first(self._uniforms(self.task.reset_draws))
        return np.asarray(obs), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._steps += 1
        uniforms = self._uniforms(self.task.step_draws)
        self._state, obs, reward, terminated = self._next(self._state, np.int32(action), uniforms)
        truncated = self._steps >= self.task.time_limit and not terminated
        return np.asarray(obs), float(reward), bool(terminated), truncated, {}
