"""A task of your own: one small record, and a setting that becomes a flag.

    iqrl train own_task:corridor --steps 20000 --cells 10

run in this folder, trains on it. Walk left or right along a corridor; the right end pays 1 and ends the episode, each
step costs 0.05.
"""

import jax.numpy as jnp

from iqrl import Settings, Task, TaskEntry, setting


class CorridorSettings(Settings):
    """corridor"""

    cells: int = setting(10, "cells of the corridor", minimum=2)


def make_corridor(settings):
    last = settings.cells - 1.0

    def reset(inputs):
        """Anywhere in the left half, from one number drawn uniformly in [0, 1)."""
        return jnp.stack([jnp.floor(settings.cells / 2 * inputs.uniforms[0])])

    def step(state, action, inputs):
        """The next state, the reward, and whether the episode terminated. inputs.step is the global step."""
        state = jnp.clip(state + jnp.where(action == 1, 1.0, -1.0), 0.0, last)
        arrived = state[0] == last
        return state, jnp.where(arrived, 1.0, -0.05), arrived

    return Task(
        name="corridor",
        actions=2,
        low=(0.0,),
        high=(last,),
        time_limit=50,
        reset=reset,
        step=step,
        observe=lambda state: state,
        num_reset_uniforms=1,
    )


corridor = TaskEntry(make=make_corridor, settings=(CorridorSettings,))
