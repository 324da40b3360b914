"""MountainCar: leave a valley with too little power, as in Gymnasium; plain, or shaped as in the paper's appendix."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp

from iqrl.envs.base import EnvInputs, Task, unshaped
from iqrl.settings import Settings, setting

POWER, GRAVITY, MAX_SPEED = 0.001, 0.0025, 0.07
LEFT, RIGHT, GOAL, GOAL_BONUS = -1.2, 0.6, 0.5, 100.0


def reset(inputs: EnvInputs) -> jax.Array:
    return jnp.stack([-0.6 + 0.2 * inputs.uniforms[0], jnp.float32(0.0)])


def step(state: jax.Array, action: jax.Array, _: EnvInputs) -> tuple[jax.Array, jax.Array, jax.Array]:
    position, speed = state
    speed = speed + (action - 1) * POWER + jnp.cos(3 * position) * -GRAVITY
    speed = jnp.clip(speed, -MAX_SPEED, MAX_SPEED)
    position = jnp.clip(position + speed, LEFT, RIGHT)
    speed = jnp.where((position == LEFT) & (speed < 0), 0.0, speed)
    return jnp.stack([position, speed]), jnp.float32(-1.0), (position >= GOAL) & (speed >= 0)


def potential_shaping(scale: float):
    """r + scale · (γ |v'| - |v|), and +100 at the goal."""

    def learned_reward(state: jax.Array, reward: jax.Array, next_state: jax.Array, terminated: jax.Array, gamma: float):
        gain = gamma * jnp.abs(next_state[1]) - jnp.abs(state[1])
        return reward + scale * gain + jnp.where(terminated, GOAL_BONUS, 0.0)

    return learned_reward


class MountainCarSettings(Settings):
    """MountainCar"""

    shaping_scale: float = setting(
        1.0, "scale of the potential |velocity| added to the learned reward", minimum=0, paper="not stated"
    )


def mountain_car(name: str, time_limit: int, shaping_scale: float | None) -> Task:
    shaped = shaping_scale is not None
    return Task(
        name=name,
        actions=3,
        low=(LEFT, -MAX_SPEED),
        high=(RIGHT, MAX_SPEED),
        time_limit=time_limit,
        reset=reset,
        step=step,
        observe=lambda state: state,
        num_reset_uniforms=1,
        learned_reward=potential_shaping(shaping_scale) if shaped else unshaped,
        gymnasium=lambda limit: gymnasium.make("MountainCar-v0", max_episode_steps=limit),
        summary=f"drive out of a valley; at most {time_limit} steps" + (", shaped reward" if shaped else ""),
        paper_steps=1_000_000,
        paper_period=20_000,
    )
