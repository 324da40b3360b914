"""How much a difference in each state variable counts when states are compared.

The paper advises to normalise states before clustering. Centroids stay in the task's own units; the
scaling only sets the weights of the squared distance, which is the same thing and easier to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Scaling(NamedTuple):
    init: Callable[[], Any]
    update: Callable[[Any, jax.Array], Any]
    weights: Callable[[Any], jax.Array]
    """[d]: weight of each squared difference"""


def fixed(low: Sequence[float], high: Sequence[float]) -> Scaling:
    """Each variable by its range in the task."""
    weights = 1.0 / jnp.square(jnp.asarray(high, jnp.float32) - jnp.asarray(low, jnp.float32))
    return Scaling(tuple, lambda state, obs: state, lambda state: weights)


def unscaled(size: int) -> Scaling:
    return Scaling(tuple, lambda state, obs: state, lambda state: jnp.ones(size))


class Moments(NamedTuple):
    """Running mean and sum of squared deviations (Welford)."""

    count: jax.Array
    mean: jax.Array
    squares: jax.Array


def running(size: int) -> Scaling:
    """Each variable by its standard deviation over the states seen so far."""

    def init() -> Moments:
        return Moments(jnp.float32(0), jnp.zeros(size), jnp.zeros(size))

    def update(state: Moments, obs: jax.Array) -> Moments:
        count = state.count + 1
        before = obs - state.mean
        mean = state.mean + before / count
        return Moments(count, mean, state.squares + before * (obs - mean))

    def weights(state: Moments) -> jax.Array:
        variance = state.squares / jnp.maximum(state.count - 1, 1)
        # Until two states have been seen nothing is known of the spread.
        return jnp.where(state.count < 2, 1.0, 1.0 / jnp.maximum(variance, 1e-12))

    return Scaling(init, update, weights)
