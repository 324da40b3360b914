"""What the drivers hold: the state of a run, the sums over a period, what a period gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.types import Agent, ContextInputs


class EnvState(NamedTuple):
    state: Any
    """of the environment"""
    inputs: ContextInputs
    """what the agent acts on"""
    length: jax.Array
    """steps of the episode so far"""


class Sums(NamedTuple):
    """Sums over a period, per seed."""

    returns: jax.Array
    """of the episodes that ended"""
    episodes: jax.Array
    steps: dict[str, jax.Array]
    """what the agent reports of steps"""
    updates: dict[str, jax.Array]
    """what it reports of updates"""


class TrainState(NamedTuple):
    """Everything a run is; saving it is the checkpoint. The leading axis of every array but `step` is the seed."""

    step: jax.Array
    seeds: jax.Array
    env: EnvState
    agent: Any
    meter: Any
    """of the measurements, if there are any"""


class Carry(NamedTuple):
    """What the loops of the driver pass on."""

    env: EnvState
    agent: Any
    meter: Any
    sums: Sums


class StepUniforms(NamedTuple):
    """The uniform numbers of one step, or how many there are of each."""

    act: Any
    step: Any
    reset: Any
    observe: Any
    learn: Any


class Period(NamedTuple):
    """What the host gets of a period, per seed."""

    returns: jax.Array
    """mean over the episodes that ended (the paper's R_T); NaN if none did"""
    episodes: jax.Array
    metrics: dict[str, jax.Array]
    """what the agent reports and what the meter measured, by name"""
    finite: jax.Array
    """whether every parameter is a finite number"""


def zero_sums(agent: Agent, seeds: int) -> Sums:
    return Sums(
        returns=jnp.zeros(seeds),
        episodes=jnp.zeros(seeds, jnp.int32),
        steps={name: jnp.zeros((seeds, *shape)) for name, shape in agent.step_metrics.items()},
        updates={name: jnp.zeros(seeds) for name in agent.update_metrics},
    )


def end_period(
    agent: Agent, carry: Carry, steps: jax.Array, updates: jax.Array, measured: dict[str, jax.Array]
) -> Period:
    """The means over a period of so many steps and updates."""
    sums = carry.sums
    per_update = {name: total / jnp.maximum(updates, 1) for name, total in sums.updates.items()}
    per_step = {name: total / steps for name, total in sums.steps.items()}
    return Period(
        returns=jnp.where(sums.episodes > 0, sums.returns / jnp.maximum(sums.episodes, 1), jnp.nan),
        episodes=sums.episodes,
        metrics=per_update | per_step | measured,
        finite=all_finite(agent.parameters(carry.agent)),
    )


def all_finite(params: Any) -> jax.Array:
    """[seed]: whether every parameter is a finite number."""
    leaves = jax.tree.leaves(params)
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim))) for leaf in leaves]), axis=0)
