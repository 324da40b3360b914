"""TCNN: DQN on tile-coded states (Ghiassian et al. 2020, in the form of Pan et al. 2021).

The code is binary, with few ones; it is given as the list of those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from iqrl.core.agent import QLearner
from iqrl.core.preprocessors import Preprocessor, identity
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.methods.base import BASELINES, Method, q_learner
from iqrl.settings import Run, Settings, setting


class TileSettings(Settings):
    """tile coding"""

    tile_bins: int = setting(20, "bins per variable", minimum=1, paper="20")
    tile_range: Literal["task", "unit"] = setting(
        "task",
        "bins cover the task's ranges, or [-1, 1] for every variable; edge bins take the rest",
        paper="not stated",
    )
    tilings: int = setting(1, "1: each variable by itself; more: joint tilings of the space", minimum=1, paper="1")
    tile_inputs: int = setting(512, "most inputs that joint tilings make; more tiles are hashed to these", minimum=1)


PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393, 1597334677, 3812015801, 2747636419)


def tile_coding(low: Sequence[float], high: Sequence[float], bins: int, tilings: int, most: int) -> Preprocessor:
    """One tiling: each variable by itself. More: tilings of the whole space, each a little further than the last."""
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    # A value outside its range falls into the bin at that edge.
    share = lambda obs: jnp.clip((obs - lowest) / (highest - lowest), 0.0, 1.0)
    if tilings == 1:
        inputs, encode = len(low) * bins, lambda obs: bin_each(share(obs), bins)
    else:
        tiles = max(min(bins ** len(low), most // tilings), 1)
        inputs, encode = tiles * tilings, lambda obs: bin_jointly(share(obs), bins, tilings, tiles)
    plain = identity(inputs)
    return plain._replace(encode=lambda state, obs: encode(obs), binary=True)


def bin_each(share: jax.Array, bins: int) -> jax.Array:
    """[d]: for each variable, given as its share of its range, the input that its bin has, of `bins` each."""
    index = jnp.minimum((share * bins).astype(jnp.int32), bins - 1)
    return index + bins * jnp.arange(share.shape[0])


def bin_jointly(share: jax.Array, bins: int, tilings: int, tiles: int) -> jax.Array:
    """[tilings]: for each tiling, the input of the tile that holds the state, of `tiles` each."""
    size = share.shape[0]
    steps = jnp.arange(tilings)[:, None] * jnp.asarray(_strides(size, tilings)) % tilings
    coordinates = jnp.minimum((share * bins + steps / tilings).astype(jnp.int32), bins - 1)
    if bins**size <= tiles:
        index = coordinates @ bins ** jnp.arange(size)
    else:
        index = (_hash(coordinates) % jnp.uint32(tiles)).astype(jnp.int32)
    return index + tiles * jnp.arange(tilings)


def _strides(size: int, tilings: int) -> list[int]:
    """By how many tilings-ths of a tile each variable moves from tiling to tiling: 1, 3, 5, …, as is usual, but for
    those that share a factor with the number of tilings and would not reach every position."""
    odd = (stride for stride in itertools.count(1, 2) if math.gcd(stride, tilings) == 1)
    return list(itertools.islice(odd, size))


def _hash(coordinates: jax.Array) -> jax.Array:
    """[tilings]: a number that nearby coordinates do not share, and that differs from tiling to tiling."""
    tilings, size = coordinates.shape
    primes = jnp.asarray([PRIMES[i % len(PRIMES)] for i in range(size)], jnp.uint32)
    mixed = jnp.sum(coordinates.astype(jnp.uint32) * primes, axis=1, dtype=jnp.uint32)
    mixed = (mixed + jnp.arange(tilings, dtype=jnp.uint32)) * jnp.uint32(PRIMES[0])
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(PRIMES[1])
    return mixed ^ (mixed >> 13)


def tcnn(run: Run, task: Task) -> QLearner:
    if 1 < run.tilings > run.tile_inputs:
        raise BadInput(f"tile_inputs is {run.tile_inputs}; each of the {run.tilings} tilings needs one at least.")
    unit = ((-1.0,) * task.obs_size, (1.0,) * task.obs_size)
    low, high = {"task": (task.low, task.high), "unit": unit}[run.tile_range]
    return q_learner(run, task, preprocessor=tile_coding(low, high, run.tile_bins, run.tilings, run.tile_inputs))


METHODS = (
    Method(
        name="tcnn",
        summary="DQN on tile-coded states",
        paper="Ghiassian et al. 2020",
        build=tcnn,
        settings=(TileSettings,),
        fixed={"network": ""},
        presets={"paper": BASELINES},
        observations="vectors",
    ),
)
