"""States and rewards brought to a common scale as they come (as streaming agents need: Elsayed et al. 2024)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.perception import Perception
from iqrl.parts.replay import Transition
from iqrl.parts.scaling import Moments, running


class Normaliser(NamedTuple):
    states: Moments
    trace: jax.Array
    """discounted sum of the rewards of this episode up to now"""
    traces: Moments
    """of all such sums"""


def normalised(size: int, gamma: float) -> Perception:
    """States by their running mean and deviation; rewards by the deviation of their discounted running sum."""
    states, returns = running(size), running(1)

    def init(key: jax.Array) -> Normaliser:
        return Normaliser(states.init(), jnp.zeros(1), returns.init())

    def take(state: Normaliser, step: Transition) -> tuple[Normaliser, Transition]:
        trace = gamma * state.trace + step.r_t
        traces = returns.update(state.traces, trace)
        scale = one_over_deviation(traces)[0]
        after = Normaliser(states.update(state.states, step.obs_tm1), jnp.where(step.over, 0.0, trace), traces)
        return after, step._replace(r_t=step.r_t * scale)

    def encode(state: Normaliser, obs: jax.Array) -> jax.Array:
        return (obs - state.states.mean) * one_over_deviation(state.states)

    return Perception(size, init, take, encode)


def one_over_deviation(moments: Moments) -> jax.Array:
    """1 where nothing has varied yet: dividing by almost nothing would make noise of it."""
    variance = moments.squares / jnp.maximum(moments.count - 1, 1)
    return jnp.where(variance > 1e-8, jax.lax.rsqrt(jnp.maximum(variance, 1e-8)), 1.0)
