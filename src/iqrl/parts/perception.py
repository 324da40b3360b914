"""Perception: what becomes of a state on its way to the network, and of a reward on its way to the learner.

It may have a state of its own, which follows what is seen and is never touched by a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.replay import Transition


class Perception(NamedTuple):
    inputs: int
    """numbers the network's first layer receives"""
    init: Callable[[jax.Array], Any]
    take: Callable[[Any, Transition], tuple[Any, Transition]]
    """follow a step just made; the step as the learner shall see it"""
    encode: Callable[[Any, jax.Array], jax.Array]
    """a state as the network sees it: its inputs, then its gates"""
    gates: int = 0
    """numbers, one per unit of the last hidden layer, that multiply that layer"""
    shared: bool = False
    """whether the target sees by it as it is now, not as it was at the last sync"""
    binary: bool = False
    """whether inputs are 0 or 1, and given as the list of those that are 1"""


def plain(size: int) -> Perception:
    """States as they are."""
    return Perception(size, lambda key: (), lambda state, step: (state, step), lambda state, obs: obs)


class Box(NamedTuple):
    """The smallest box around all states seen."""

    low: jax.Array
    high: jax.Array


def with_box(size: int) -> Perception:
    """States as they are, and the box around those seen so far."""

    def init(key: jax.Array) -> Box:
        return Box(jnp.full(size, jnp.inf, jnp.float32), jnp.full(size, -jnp.inf, jnp.float32))

    def take(box: Box, step: Transition) -> tuple[Box, Transition]:
        low = jnp.minimum(box.low, jnp.minimum(step.obs_tm1, step.obs_t))
        high = jnp.maximum(box.high, jnp.maximum(step.obs_tm1, step.obs_t))
        return Box(low, high), step

    return Perception(size, init, take, lambda box, obs: obs)
