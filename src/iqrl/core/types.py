"""The records that travel: from the environment to the agent, from replay to the loss.

Names carry their time as in rlax: `obs_tm1` is s_{t-1}, `obs_t` is s_t, `r_t` the reward between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax

from iqrl.core.masks import Mask
from iqrl.core.networks import Output


class ContextInputs(NamedTuple):
    """What a context ω(s) may depend on, and which actions may be taken."""

    obs: jax.Array
    """s"""
    initial_obs: jax.Array
    """the observation with which the episode began"""
    score: jax.Array
    """the undiscounted sum of the episode's rewards so far"""
    embedding: Any = ()
    """the agent's embedding of s, computed once, where it uses one"""
    mask: Mask = ()
    """which actions are legal in s, where the environment says so; no context depends on it"""


class Choice(NamedTuple):
    """An action and why it was taken."""

    action: jax.Array
    context: jax.Array
    """ω(s)"""
    greedy: jax.Array
    """whether the action has the highest value of the legal ones"""


class Experience(NamedTuple):
    """One step of the environment, as the driver saw it."""

    before: ContextInputs
    choice: Any
    """what `Agent.act` returned; its `action` was taken"""
    reward: jax.Array
    discount: jax.Array
    """γ, or 0 where nothing follows; a time limit need not be such an end"""
    after: ContextInputs
    done: jax.Array
    """whether the episode ended here, for whatever reason"""


class Transition(NamedTuple):
    """{s_{t-1}, ω(s_{t-1}), a_{t-1}, r_t, s_t, ω(s_t)}: what the paper's buffer B holds."""

    obs_tm1: jax.Array
    a_tm1: jax.Array
    r_t: jax.Array
    discount_t: jax.Array
    obs_t: jax.Array
    context_tm1: jax.Array
    context_t: jax.Array
    done: jax.Array
    greedy: jax.Array
    """whether a_{t-1} was the greedy action"""
    mask_tm1: Mask = ()
    """which actions are legal in s_{t-1}, where the environment says so"""
    mask_t: Mask = ()


class Batch(NamedTuple):
    """What replay gives for one update. The batch is the last axis of every array."""

    transitions: Transition
    slots: jax.Array | None
    """[B]: where they are stored; None: every slot, in order"""
    weights: jax.Array | None
    """[B]: importance weights; None: all 1"""
    states: jax.Array | None = None
    """[2, B]: the numbers of s_{t-1} and s_t among the stored states; None: 2i and 2i + 1 for slot i"""


class LossInputs(NamedTuple):
    """A batch with what both networks compute on it. A loss for one sample takes the same record without batch axis."""

    transition: Transition
    online_tm1: Output
    """θ on s_{t-1}: the only part a gradient flows through"""
    online_t: Output
    """θ on s_t, gradient stopped (for double Q-learning)"""
    target_tm1: Output
    """θ⁻ on s_{t-1}, all heads (for distillation); its features may be missing"""
    target_t: Output
    """θ⁻ on s_t, all heads"""
    online: Callable[[jax.Array], Output] | None = None
    """θ on other states [d, B]; gradients flow"""
    target: Callable[[jax.Array], Output] | None = None
    """θ⁻ on other states [d, B]"""
    preprocessor: Any = ()
    """the state of the agent's preprocessor"""
    uniforms: jax.Array | None = None
    """as many random numbers as the regulariser declares"""


class Agent(Protocol):
    """What drivers, checkpoints and results know of an agent. Q-learning (`core/agent.py`) is one implementation.

    The state is a pytree of arrays. `step` is the number of the transition, counted from 0. `random` holds uniform
    numbers in the structure that `act_uniforms`, `observe_uniforms` and `learn_uniforms` declare
    (`core/randomness.py`).
    """

    @property
    def act_uniforms(self) -> Any:
        """How many uniform numbers `act` needs."""
        ...

    @property
    def observe_uniforms(self) -> Any: ...

    @property
    def learn_uniforms(self) -> Any: ...

    @property
    def syncs(self) -> bool:
        """Whether `sync` does anything."""
        ...

    @property
    def step_metrics(self) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of what `step_report` gives."""
        ...

    @property
    def update_metrics(self) -> tuple[str, ...]:
        """Names of the numbers that `learn` reports."""
        ...

    def init(self, key: jax.Array) -> Any: ...

    def encoder_of(self, state: Any) -> Any:
        """The part of the state that `embed` needs."""
        ...

    def embed(self, encoder: Any, inputs: ContextInputs) -> ContextInputs:
        """The inputs with their embedding, where the agent uses one."""
        ...

    def act(self, state: Any, inputs: ContextInputs, step: jax.Array, random: Any) -> Any:
        """A record with the field `action`."""
        ...

    def policy(self, state: Any, inputs: ContextInputs) -> jax.Array:
        """The action without exploration."""
        ...

    def observe(
        self, state: Any, experience: Experience, step: jax.Array, random: Any, warm_up: bool = False
    ) -> tuple[Any, Transition]:
        """Store a step, `warm_up` before learning starts; also the transition as it is learned from."""
        ...

    def start_learning(self, state: Any, key: jax.Array) -> Any:
        """Called once, after the steps before learning."""
        ...

    def learn(self, state: Any, step: jax.Array, random: Any) -> tuple[Any, dict[str, jax.Array]]: ...

    def sync(self, state: Any) -> Any:
        """Called every `target_period` steps."""
        ...

    def step_report(self, choice: Any) -> dict[str, jax.Array]:
        """What is averaged over the steps of a period."""
        ...

    def report(self, step: int) -> dict[str, float]:
        """What holds at the end of a period, after so many steps."""
        ...

    def parameters(self, state: Any) -> Any:
        """What must stay finite."""
        ...
