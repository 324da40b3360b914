"""What the drivers hold and hand on: the state of a run, what a step was, what a period gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.agent import AgentState, Choice, Losses
from iqrl.parts.contexts import Situation
from iqrl.parts.networks import Params
from iqrl.parts.replay import Transition


class EnvState(NamedTuple):
    state: Any
    obs: jax.Array
    first: jax.Array
    """the observation the episode began with"""
    length: jax.Array
    episode_return: jax.Array
    code: Any = ()
    """of the observation, where contexts are told apart by codes"""

    @property
    def situation(self) -> Situation:
        return Situation(self.obs, self.first, self.episode_return, self.code)


class Statistics(NamedTuple):
    """Sums over a period."""

    returns: jax.Array
    episodes: jax.Array
    occupancy: jax.Array
    """[k]: steps spent in each context"""
    losses: Losses


class TrainState(NamedTuple):
    """Everything a run is; saving it is the checkpoint. The leading axis of every array but `step` is the seed."""

    step: jax.Array
    seeds: jax.Array
    env: EnvState
    agent: AgentState
    meter: Any
    """what the measurements need, if there are any"""


class Period(NamedTuple):
    """What the host sees of a period, per seed."""

    returns: jax.Array
    """mean over the episodes that ended (the paper's R_T); NaN if none did"""
    episodes: jax.Array
    occupancy: jax.Array
    losses: Losses
    finite: jax.Array
    """whether every parameter is a finite number"""
    measured: dict[str, jax.Array]
    """what the meter reports, by name"""


class Carry(NamedTuple):
    """What the loops hand on."""

    env: EnvState
    agent: AgentState
    meter: Any
    statistics: Statistics


class Event(NamedTuple):
    """What happened in a step."""

    choice: Choice
    after: EnvState
    learned: jax.Array
    """the reward that is learned from"""
    terminated: jax.Array
    over: jax.Array
    """terminated, or at a time limit"""


class Step(NamedTuple):
    """What the agent is told of a step."""

    transition: Transition
    before: Situation
    after: Situation


class Noise(NamedTuple):
    """The uniform numbers of one step, by purpose; or how many of them there are."""

    act: Any
    step: Any
    reset: Any
    learn: Any
    measure: Any


def summarise(carry: Carry, steps: jax.Array, updates: jax.Array, measured: dict[str, jax.Array]) -> Period:
    statistics = carry.statistics
    return Period(
        returns=jnp.where(statistics.episodes > 0, statistics.returns / jnp.maximum(statistics.episodes, 1), jnp.nan),
        episodes=statistics.episodes,
        occupancy=statistics.occupancy / steps,
        losses=jax.tree.map(lambda total: total / jnp.maximum(updates, 1), statistics.losses),
        finite=all_finite(carry.agent.params),
        measured=measured,
    )


def all_finite(params: Params) -> jax.Array:
    """[seed]: whether every parameter is a finite number."""
    leaves = jax.tree.leaves(params)
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim))) for leaf in leaves]), axis=0)
