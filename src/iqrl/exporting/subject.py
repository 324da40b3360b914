"""What is exported: the agent of one seed, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Box

from iqrl import __version__
from iqrl.core.agent import QLearner, plain_form
from iqrl.envs.base import Task
from iqrl.envs.spaces import decode_action, encode_observation
from iqrl.errors import BadInput
from iqrl.training.results import Result, TrainedAgent

MARK = "exported by iqrl"
"""in every file, so that no other file is overwritten"""


@dataclass(frozen=True)
class Subject:
    agent: QLearner
    state: Any
    """what acting needs"""
    trained: TrainedAgent
    task: Task
    settings: dict[str, Any]
    steps: int
    """that it has learned from"""
    version: str = __version__

    @property
    def title(self) -> str:
        return f"The agent of seed {self.trained.seed} of {self.settings['method']} on {self.settings['task']}"

    @property
    def observation_space(self) -> Any:
        """None where observations are arrays that the environment's were made into."""
        stacked = self.task.image is not None and self.task.image.stack > 1
        return self.task.spaces[0] if self.task.spaces and not stacked else None

    @property
    def action_space(self) -> Any:
        return self.task.spaces[1] if self.task.spaces else None

    @property
    def sees_arrays(self) -> bool:
        """Whether the environment's observations are arrays; others are flattened first."""
        return self.observation_space is None or isinstance(self.observation_space, Box)

    def encoded(self, obs: Any) -> np.ndarray:
        """One observation of the environment in a row."""
        space = self.observation_space
        return np.asarray(obs if space is None else encode_observation(space, obs, self.task.image), np.float32).ravel()

    def decoded(self, number: int) -> Any:
        return number if self.action_space is None else decode_action(self.action_space, number)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Of an observation as an array: the environment's, or the flattened one."""
        space = self.observation_space
        return tuple(map(int, space.shape)) if isinstance(space, Box) else self.task.observation_shape


def subject_of(result: Result, seed: int | None = None) -> Subject:
    """The agent of a seed; of the first, if none is given."""
    agent = result.agent
    if not isinstance(agent, QLearner):
        raise BadInput(
            f"{type(agent).__name__} of {result.run.method} has no Q values; agents that learn them can be exported."
        )
    number = _place_of(result, seed)
    state = jax.tree.map(lambda leaf: leaf[number], result.agent_state)
    plain = plain_form(agent)
    acting = jax.tree.map(np.asarray, agent.acting_state(state))
    shape, actions = result.task.observation_shape, result.task.actions
    trained = TrainedAgent(plain, acting, result.run.seed + number, shape, actions)
    assert isinstance(plain, QLearner)
    steps = int(result.steps[-1]) if result.metrics.height else 0
    return Subject(plain, acting, trained, result.task, result.run.to_dict(), steps)


def _place_of(result: Result, seed: int | None) -> int:
    first, count = result.run.seed, result.run.seeds
    if seed is None:
        return 0
    if not first <= seed < first + count:
        has = f"the seed {first}" if count == 1 else f"the seeds {first} to {first + count - 1}"
        raise BadInput(f"there is no seed {seed}; the run has {has}.")
    return seed - first
