"""What a task is: a small record of pure functions.

Randomness comes in as uniform numbers drawn beforehand in large blocks; drawing inside the loop
would cost more than the physics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import Env

from iqrl.parts.encoders import Image, Layers

State = Any


def unshaped(state: State, reward: jax.Array, next_state: State, terminated: jax.Array, gamma: float) -> jax.Array:
    """The reward learned from is the task's own."""
    return reward


LearnedReward = Callable[[State, jax.Array, State, jax.Array, float], jax.Array]


def scaled(learned_reward: LearnedReward, factor: float) -> LearnedReward:
    return lambda *moment: factor * learned_reward(*moment)


class Task(NamedTuple):
    name: str
    actions: int
    """number of discrete actions"""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """the range in which each observed variable moves: used to scale states and to draw centroids"""
    time_limit: int
    """an episode is truncated after this many steps"""
    reset: Callable[[jax.Array], State]
    """uniform numbers [reset_draws] in [0, 1) -> first state"""
    step: Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array, jax.Array]]
    """(state, action, uniform numbers [step_draws]) -> (state, reward, terminated)"""
    observe: Callable[[State], jax.Array]
    reset_draws: int
    step_draws: int = 0
    learned_reward: LearnedReward = unshaped
    """(state, reward, next state, terminated, γ) -> the reward learned from; returns always add up the task's own"""
    gymnasium: Callable[[int], Env] | None = None
    """time limit -> the same task in Gymnasium, for evaluation"""
    summary: str = ""
    paper_steps: int = 0
    """length of the paper's runs"""
    paper_period: int = 0
    """steps per point of the paper's curves"""
    paper: tuple[tuple[str, Any], ...] = ()
    """settings that the preset `paper` has for this task alone, and their values"""
    defaults: tuple[tuple[str, Any], ...] = ()
    """settings that have other defaults for this task"""
    network: tuple[tuple[str, Any], ...] = ()
    """settings of the network that its images ask for, which go before those of a method"""
    image: Image | None = None
    """what an observation is made of, if it is an image; `observe` then gives bytes [height, width, channels]"""
    layers: Layers = ()
    """the convolutions that its network has"""
    host: Callable[[int], Env] | None = None
    """seed -> an environment that is stepped outside the compiled program, in place of `reset`, `step` and `observe`"""
    host_reward: Callable[[np.ndarray], np.ndarray] = lambda rewards: rewards
    """the rewards learned from, of such an environment"""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        if self.image is None:
            return (len(self.low),)
        frame = (self.image.height, self.image.width, self.image.channels)
        return frame if self.image.stack == 1 else (self.image.stack, *frame)


def outside_task(make: Callable[[int], Env], **described: Any) -> Task:
    """A task whose environments, `make(seed)`, are stepped outside the compiled program."""
    return Task(
        reset=_outside,
        step=_outside,
        observe=_outside,
        reset_draws=0,
        host=make,
        gymnasium=lambda limit: make(0),
        **described,
    )


def _outside(*given: Any) -> Any:
    """Stands where a task of the compiled program has a function."""
    raise TypeError("this task is stepped outside the compiled program")
