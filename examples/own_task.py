"""A task of your own: one small record.

    iqrl train own_task:corridor --steps 20000 --buffer-size 1000 --target-period 100

run in this folder, trains on it. Walk left or right along a corridor of ten cells; the right end pays 1 and ends the
episode, each step costs 0.05.
"""

import jax.numpy as jnp

from iqrl import Task


def reset(uniforms):
    """Anywhere in the left half, from one number drawn uniformly in [0, 1)."""
    return jnp.stack([jnp.floor(5 * uniforms[0])])


def step(state, action, uniforms):
    """The next state, the reward, and whether the episode is over."""
    state = jnp.clip(state + jnp.where(action == 1, 1.0, -1.0), 0.0, 9.0)
    arrived = state[0] == 9.0
    return state, jnp.where(arrived, 1.0, -0.05), arrived


corridor = Task(
    name="corridor",
    actions=2,
    low=(0.0,),
    high=(9.0,),
    time_limit=50,
    reset=reset,
    step=step,
    observe=lambda state: state,
    reset_draws=1,
)
