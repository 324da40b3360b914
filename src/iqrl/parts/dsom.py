"""A dynamic self-organising map that gates the hidden layer (DSOM: Lo & Ghiassian 2019; Rougier & Boniface 2011).

One vector w_i of the map per hidden unit, on a square grid. The map learns by competition, from each
new state; no gradient reaches it. Hidden unit i is multiplied by Γ_i = exp(-‖s - w_i‖ / κ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.perception import Perception
from iqrl.parts.replay import Transition


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
) -> Perception:
    """States as they are, followed by the gates Γ.

    `scaled`: the map sees states brought to [0, 1]. `shared`: the target has the map as it is now.
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    origin, unit = (lowest, highest - lowest) if scaled else (0.0, 1.0)
    size = lowest.size
    grid = grid_positions(units)

    def init(key: jax.Array) -> Map:
        positions = jax.random.uniform(key, (units, size), minval=lowest, maxval=highest)
        return Map(((positions - origin) / unit).T, jnp.float32(0))

    def take(state: Map, step: Transition) -> tuple[Map, Transition]:
        return moved(state, (step.obs_tm1 - origin) / unit, grid, rate, elasticity), step

    def encode(state: Map, obs: jax.Array) -> jax.Array:
        distances = jnp.sqrt(squared_distances(state.vectors, (obs - origin) / unit))
        return jnp.concatenate([obs, jnp.exp(-distances / width)])

    return Perception(size, init, take, encode, gates=units, shared=shared)


def grid_positions(units: int) -> jax.Array:
    """[2, units]: positions on a square grid whose diagonal has length 1."""
    side = math.isqrt(units)
    return jnp.stack(jnp.divmod(jnp.arange(units), side)) / (max(side - 1, 1) * math.sqrt(2))


def squared_distances(vectors: jax.Array, state: jax.Array) -> jax.Array:
    return jnp.sum(jnp.square(vectors - state[:, None]), axis=0)


def moved(state: Map, seen: jax.Array, grid: jax.Array, rate: float, elasticity: float) -> Map:
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
