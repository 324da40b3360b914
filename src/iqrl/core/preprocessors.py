"""Preprocessors: what happens to a state before the network and to a reward before the learner.

A preprocessor may have a state of its own. It follows the observations and never gets a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.scaling import Moments, running
from iqrl.core.types import Transition


class Preprocessor(NamedTuple):
    inputs: int
    """how many inputs the network has"""
    init: Callable[[jax.Array], Any]
    update: Callable[[Any, Transition], tuple[Any, Transition]]
    """follow a step just made; also the step as it is learned from"""
    encode: Callable[[Any, jax.Array], jax.Array]
    """state -> what the network gets: its inputs, then its gates"""
    gates: int = 0
    """numbers, one per unit of the last hidden layer, that multiply that layer"""
    shared: bool = False
    """whether the target network uses it as it is now, not as it was at the last sync"""
    binary: bool = False
    """whether inputs are 0 or 1, and given as the list of those that are 1"""


def identity(size: int) -> Preprocessor:
    """States as they are."""
    return Preprocessor(
        inputs=size,
        init=lambda key: (),
        update=lambda state, step: (state, step),
        encode=lambda state, obs: obs,
    )


class Normaliser(NamedTuple):
    states: Moments
    trace: jax.Array
    """[n_envs]: discounted sum of the rewards of the present episode of each environment, whose turn is next first"""
    traces: Moments
    """of all such sums"""


def normalise(
    size: int, gamma: float, clip: float | None = None, shared: bool = False, n_envs: int = 1
) -> Preprocessor:
    """States by their running mean and deviation; rewards by the deviation of their discounted running sum.

    Streaming agents need this (Elsayed et al. 2024). `clip`: states are cut off at so many deviations. `shared`: the
    target network normalises by the moments of now. `n_envs`: environments that take turns, each with a sum of its own.
    """
    states, returns = running(size), running(1)

    def init(key: jax.Array) -> Normaliser:
        return Normaliser(states=states.init(), trace=jnp.zeros(n_envs), traces=returns.init())

    def update(state: Normaliser, step: Transition) -> tuple[Normaliser, Transition]:
        trace = gamma * state.trace[:1] + step.r_t
        traces = returns.update(state.traces, trace)
        scale = one_over_deviation(traces)[0]
        kept = jnp.where(step.done, 0.0, trace)
        after = Normaliser(
            states=states.update(state.states, step.obs_tm1),
            trace=jnp.concatenate([state.trace[1:], kept]),
            traces=traces,
        )
        return after, step._replace(r_t=step.r_t * scale)

    def encode(state: Normaliser, obs: jax.Array) -> jax.Array:
        scaled = (obs - state.states.mean) * one_over_deviation(state.states)
        return scaled if clip is None else jnp.clip(scaled, -clip, clip)

    return Preprocessor(inputs=size, init=init, update=update, encode=encode, shared=shared)


def one_over_deviation(moments: Moments) -> jax.Array:
    """1 where nothing has varied yet: dividing by almost nothing would amplify noise."""
    variance = moments.squares / jnp.maximum(moments.count - 1, 1)
    return jnp.where(variance > 1e-8, jax.lax.rsqrt(jnp.maximum(variance, 1e-8)), 1.0)
