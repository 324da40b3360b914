"""The contexts by which measurements are told apart: the agent's own, or clusters of states where it has only one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.agent import Agent
from iqrl.parts.replay import unpack

CLUSTERS = 3
"""contexts of an agent that has none of its own: as many as the paper's"""


class Grouping(NamedTuple):
    count: int
    of_rows: Callable[[jax.Array], jax.Array]
    """stored transitions [n, W] -> the context of each one's state"""


def grouping(agent: Agent, low: Sequence[float], high: Sequence[float], states: np.ndarray) -> Grouping:
    """`states` [n, d] are clustered, in the task's ranges, if the agent does not divide them itself."""
    if agent.contexts.count > 1:
        return Grouping(agent.contexts.count, lambda rows: unpack(rows.T, agent.obs_size).context_tm1)
    from scipy.cluster.vq import kmeans2  # takes most of a second to load, and is not needed otherwise

    scale = 1.0 / np.subtract(high, low)
    centres, _ = kmeans2(states * scale, min(CLUSTERS, len(states)), minit="++", rng=np.random.default_rng(0))
    scale = jnp.float32(scale)[:, None]

    def of_rows(rows: jax.Array) -> jax.Array:
        states = rows.T[: agent.obs_size] * scale
        # The nearest by its largest c·s - ½c·c, all on long rows: the smallest of few, state by state, is slow.
        return jnp.argmax(nearness @ states - half_squares, axis=0)

    nearness = jnp.float32(centres)
    half_squares = 0.5 * jnp.sum(jnp.square(nearness), axis=1)[:, None]
    return Grouping(len(nearness), of_rows)


def mean_by_group(values: jax.Array, groups: jax.Array, weights: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """[count]: the weighted mean of the values in each group, 0 for an empty one; and which groups have any."""
    members = (groups == jnp.arange(count)[:, None]) * weights
    total = jnp.sum(members, axis=1)
    return members @ values / jnp.maximum(total, 1e-9), total > 0
