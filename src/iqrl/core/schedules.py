"""Quantities that move with the step count, computed inside the compiled program."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Schedule = Callable[[jax.Array], jax.Array]


def linear(start: float, final: float, decay_steps: int, begin: int = 0) -> Schedule:
    """From `start` at step `begin` to `final` `decay_steps` later, constant before and afterwards."""

    def value(t: jax.Array) -> jax.Array:
        since = t - begin if begin else t
        fraction = jnp.clip(since / max(decay_steps, 1), 0.0, 1.0)
        return jnp.float32(start) + fraction * jnp.float32(final - start)

    return value


def one_minus(schedule: Schedule, weight: float) -> Schedule:
    """The paper's λ = 1 - ε, times `weight`."""
    return lambda t: jnp.float32(weight) * (1.0 - schedule(t))


def constant(weight: float) -> Schedule:
    return lambda t: jnp.float32(weight)
