"""DSOM: DQN whose hidden units are gated by a self-organising map of the states (Lo & Ghiassian 2019).

The map is dynamic (Rougier & Boniface 2011): one vector w_i per hidden unit, on a square grid. It learns by
competition, from each new state; no gradient reaches it. Hidden unit i is multiplied by Γ_i = exp(-‖s - w_i‖ / κ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.agent import QLearner
from iqrl.core.preprocessors import Preprocessor
from iqrl.core.types import Transition
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.methods.base import BASELINES, Method, q_learner
from iqrl.settings import Run, Settings, setting


class MapSettings(Settings):
    """self-organising map"""

    dsom_rate: float = setting(0.25, "ε, the map's learning rate", minimum=0, maximum=1, paper="0.25")
    dsom_elasticity: float = setting(1.0, "η: larger spreads an update further", minimum=1e-6, paper="1.0")
    dsom_width: float = setting(0.5, "κ: distance over which a gate falls to 1/e", minimum=1e-6, paper="0.5")
    dsom_scaling: Literal["task", "none"] = setting(
        "task", "states brought to [0, 1] by the task's ranges, or as they are", paper="not stated"
    )
    dsom_target: Literal["synced", "live"] = setting(
        "synced", "the target network has the map of the last sync, or the map as it is", paper="not stated"
    )


class Map(NamedTuple):
    vectors: jax.Array
    """[d, units]: w, one per column; sums over a first axis are what a CPU does fast"""
    farthest: jax.Array
    """the largest squared distance between a state and a vector so far"""


def self_organising_gates(
    low: Sequence[float],
    high: Sequence[float],
    units: int,
    rate: float,
    elasticity: float,
    width: float,
    scaled: bool,
    shared: bool = False,
) -> Preprocessor:
    """States as they are, followed by the gates Γ.

    `scaled`: the map gets states brought to [0, 1]. `shared`: the target network has the map as it is now.
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    origin, unit = (lowest, highest - lowest) if scaled else (0.0, 1.0)
    size = lowest.size
    grid = grid_positions(units)

    def init(key: jax.Array) -> Map:
        positions = jax.random.uniform(key, (units, size), minval=lowest, maxval=highest)
        return Map(vectors=((positions - origin) / unit).T, farthest=jnp.float32(0))

    def update(state: Map, step: Transition) -> tuple[Map, Transition]:
        return move_map(state, (step.obs_tm1 - origin) / unit, grid, rate, elasticity), step

    def encode(state: Map, obs: jax.Array) -> jax.Array:
        distances = jnp.sqrt(squared_distances(state.vectors, (obs - origin) / unit))
        return jnp.concatenate([obs, jnp.exp(-distances / width)])

    return Preprocessor(inputs=size, init=init, update=update, encode=encode, gates=units, shared=shared)


def grid_positions(units: int) -> jax.Array:
    """[2, units]: positions on a square grid whose diagonal has length 1."""
    side = math.isqrt(units)
    return jnp.stack(jnp.divmod(jnp.arange(units), side)) / (max(side - 1, 1) * math.sqrt(2))


def squared_distances(vectors: jax.Array, state: jax.Array) -> jax.Array:
    return jnp.sum(jnp.square(vectors - state[:, None]), axis=0)


def move_map(state: Map, seen: jax.Array, grid: jax.Array, rate: float, elasticity: float) -> Map:
    """Δw_i = ε ‖s - w_i‖_Ω exp(-‖p_i - p_b‖² / (η² ‖s - w_b‖²_Ω)) (s - w_i), b being the nearest vector.

    ‖·‖_Ω is the distance as a share of the largest one so far, so that it lies in [0, 1].
    """
    squared = squared_distances(state.vectors, seen)
    farthest = jnp.maximum(state.farthest, jnp.max(squared))
    share = squared / jnp.maximum(farthest, jnp.finfo(jnp.float32).tiny)
    best = jnp.arange(share.shape[0]) == jnp.argmin(share)
    nearest = jnp.sum(jnp.where(best, share, 0.0))
    apart = squared_distances(grid, jnp.sum(jnp.where(best, grid, 0.0), axis=1))
    # A state that a vector already sits on moves nothing.
    spread = jnp.where(nearest > 0, jnp.exp(-apart / (elasticity**2 * jnp.where(nearest > 0, nearest, 1.0))), 0.0)
    vectors = state.vectors + rate * jnp.sqrt(share) * spread * (seen[:, None] - state.vectors)
    return Map(vectors, farthest)


def dsom(run: Run, task: Task) -> QLearner:
    units = run.hidden[-1]
    if math.isqrt(units) ** 2 != units:
        raise BadInput(f"the last of hidden is {units}; the map is a square grid, so it must be a square such as 64.")
    gates = self_organising_gates(
        task.low,
        task.high,
        units,
        run.dsom_rate,
        run.dsom_elasticity,
        run.dsom_width,
        scaled=run.dsom_scaling == "task",
        shared=run.dsom_target == "live",
    )
    return q_learner(run, task, preprocessor=gates)


METHODS = (
    Method(
        name="dsom",
        summary="DQN whose hidden units are gated by a self-organising map of the states",
        paper="Lo & Ghiassian 2019",
        build=dsom,
        settings=(MapSettings,),
        fixed={"network": ""},
        presets={"paper": BASELINES},
        observations="vectors",
    ),
)
