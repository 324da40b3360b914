"""Probe tasks: tiny, with known values; an agent that gets them wrong has a definite fault.

Named after what a learner must do right to solve them. They are registered for tests and for anyone
who writes a new method; their values hold for γ = 0.9.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.envs.base import EnvInputs, State, Task

GAMMA = 0.9


def probe(name: str, summary: str, actions: int, time_limit: int, step, low=(-1.0, 0.0), high=(1.0, 1.0)) -> Task:
    """The state is (sign, position); the sign is drawn at reset, the position starts at 0."""

    def reset(inputs: EnvInputs) -> jax.Array:
        return jnp.stack([jnp.where(inputs.uniforms[0] < 0.5, -1.0, 1.0), jnp.float32(0.0)])

    return Task(
        name=name,
        actions=actions,
        low=low,
        high=high,
        time_limit=time_limit,
        reset=reset,
        step=step,
        observe=lambda state: state,
        num_reset_uniforms=1,
        summary=summary,
    )


def _constant(state: State, action: jax.Array, _: EnvInputs):
    return state, jnp.float32(1.0), jnp.bool_(True)


def _sign(state: State, action: jax.Array, _: EnvInputs):
    return state, state[0], jnp.bool_(True)


def _delayed(state: State, action: jax.Array, _: EnvInputs):
    last = state[1] > 0.5
    return state.at[1].set(1.0), jnp.where(last, 1.0, 0.0), last


def _choice(state: State, action: jax.Array, _: EnvInputs):
    return state, jnp.where(action == 1, 1.0, -1.0), jnp.bool_(True)


def _matching(state: State, action: jax.Array, _: EnvInputs):
    return state, jnp.where((action == 1) == (state[0] > 0), 1.0, -1.0), jnp.bool_(True)


def _endless(state: State, action: jax.Array, _: EnvInputs):
    return state, jnp.float32(1.0), jnp.bool_(False)


PROBES: dict[str, Task] = {
    task.name: task
    for task in (
        probe("probe-constant", "one step, reward 1: the value is 1", 1, 10, _constant),
        probe("probe-sign", "one step, reward the observed sign: the value depends on the observation", 1, 10, _sign),
        probe("probe-delayed", "reward 1 at the second step: the first value is γ", 1, 10, _delayed),
        probe(
            "probe-choice", "one step, action 1 pays 1, the other -1: the value depends on the action", 2, 10, _choice
        ),
        probe("probe-matching", "one step, the action must match the sign: both at once", 2, 10, _matching),
        probe("probe-endless", "reward 1 for ever, cut by a time limit of 5: the value is 1 / (1 - γ)", 1, 5, _endless),
    )
}
