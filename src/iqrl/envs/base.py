"""What a task is: a small record of pure functions.

Randomness comes in as uniform numbers drawn beforehand in large blocks; drawing inside the loop would cost more than
the physics. `reset` and `step` get the global step too, so an environment may change during training.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import Env

from iqrl.core.encoders import Image, Layers
from iqrl.core.masks import Mask
from iqrl.settings import Settings

State = Any


class EnvInputs(NamedTuple):
    """What `reset` and `step` of a compiled environment get beside state and action."""

    uniforms: jax.Array
    """uniform numbers in [0, 1), as many as the task declares"""
    step: jax.Array
    """the global step: steps made in all episodes of this environment so far"""
    previous: Any = None
    """`reset` only: the last state of the episode before, so that something can outlive an episode; None at first"""


def unshaped(state: State, reward: jax.Array, next_state: State, terminated: jax.Array, gamma: float) -> jax.Array:
    """The reward learned from is the task's own."""
    return reward


LearnedReward = Callable[[State, jax.Array, State, jax.Array, float], jax.Array]


def scaled(learned_reward: LearnedReward, factor: float) -> LearnedReward:
    return lambda *given: factor * learned_reward(*given)


class Task(NamedTuple):
    name: str
    actions: int
    """number of discrete actions"""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """the range in which each observed variable moves: used to scale states and to draw centroids"""
    time_limit: int
    """an episode is truncated after this many steps"""
    reset: Callable[[EnvInputs], State]
    """inputs with uniforms [num_reset_uniforms] -> first state of an episode"""
    step: Callable[[State, jax.Array, EnvInputs], tuple[State, jax.Array, jax.Array]]
    """(state, action, inputs with uniforms [num_step_uniforms]) -> (state, reward, terminated)"""
    observe: Callable[[State], jax.Array]
    num_reset_uniforms: int
    num_step_uniforms: int = 0
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
    action_mask: Callable[[State], jax.Array] | None = None
    """state -> [actions] of booleans: which actions are legal, of which there must be one; None: all are, always"""
    network: tuple[tuple[str, Any], ...] = ()
    """settings of the network that its images ask for, which go before those of a method"""
    image: Image | None = None
    """what an observation is made of, if it is an image; `observe` then gives bytes [height, width, channels], or where
    a vector comes with the image, floats in a row: the pixels, then the vector"""
    layers: Layers = ()
    """the convolutions that its network has"""
    external: Callable[[int], Env] | None = None
    """seed -> an environment that is stepped outside the compiled program, in place of `reset`, `step` and `observe`"""
    external_reward: Callable[[np.ndarray], np.ndarray] = lambda rewards: rewards
    """the rewards learned from, of such an environment"""
    external_mask: Callable[[Env, Any], np.ndarray] | None = None
    """(such an environment, the info it gave) -> [actions]: which are legal; None: it says nothing of it"""
    spaces: tuple[Any, Any] | None = None
    """of the observations and actions of such an environment, before they were brought to the form of this record"""

    @property
    def obs_size(self) -> int:
        """Numbers in an observation, an image's in a row."""
        return len(self.low)

    @property
    def obs_dtype(self) -> type[np.uint8] | type[np.float32]:
        """Bytes of images; a vector beside them, or alone, has floats."""
        return np.uint8 if self.image and not self.image.vector else np.float32

    @property
    def masked_actions(self) -> int:
        """How many actions a mask is about; 0: there are no masks."""
        return self.actions if self.action_mask or self.external_mask else 0

    def legal(self, state: State) -> Mask:
        return self.action_mask(state) if self.action_mask else ()

    def flat_obs(self, state: State) -> jax.Array:
        """[obs_size]: what the agent gets."""
        return self.observe(state).reshape(-1)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        if self.image is None:
            return (len(self.low),)
        frame: tuple[int, ...] = (self.image.height, self.image.width, self.image.channels)
        frame = (self.image.frame + self.image.vector,) if self.image.vector else frame
        return frame if self.image.stack == 1 else (self.image.stack, *frame)


class TaskEntry(NamedTuple):
    """How a task is made, and the settings that are its own; they become flags and keywords like all others."""

    make: Callable[[Any], Task | Env]
    """settings -> the task, or a Gymnasium environment"""
    settings: tuple[type[Settings], ...] = ()


def external_task(make: Callable[[int], Env], **described: Any) -> Task:
    """A task whose environments, `make(seed)`, are stepped outside the compiled program."""
    return Task(
        reset=_not_compiled,
        step=_not_compiled,
        observe=_not_compiled,
        num_reset_uniforms=0,
        external=make,
        gymnasium=lambda limit: make(0),
        **described,
    )


def _not_compiled(*given: Any) -> Any:
    """Stands where a task of the compiled program has a function."""
    raise TypeError("this task is stepped outside the compiled program")
