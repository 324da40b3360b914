"""Pendulum: swing up and hold, with the torque chosen among evenly spaced values. Physics as in Gymnasium."""

from __future__ import annotations

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from iqrl.envs.base import EnvInputs, Task
from iqrl.settings import Settings, setting

DT, GRAVITY, MASS, LENGTH, MAX_SPEED, MAX_TORQUE = 0.05, 10.0, 1.0, 1.0, 8.0, 2.0


def reset(inputs: EnvInputs) -> jax.Array:
    return (2 * inputs.uniforms - 1) * jnp.array([math.pi, 1.0])


def wrap(angle: jax.Array) -> jax.Array:
    """Into [-π, π)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def observe(state: jax.Array) -> jax.Array:
    angle, speed = state
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])


class PendulumSettings(Settings):
    """Pendulum-v0"""

    torques: int = setting(5, "number of evenly spaced torques on [-2, 2]", minimum=2, paper="not stated")


def pendulum(name: str, torques: int) -> Task:
    def torque_of(action: jax.Array) -> jax.Array:
        return -MAX_TORQUE + action * (2 * MAX_TORQUE / (torques - 1))

    def step(state: jax.Array, action: jax.Array, _: EnvInputs) -> tuple[jax.Array, jax.Array, jax.Array]:
        angle, speed = state
        torque = torque_of(action)
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        acceleration = 3 * GRAVITY / (2 * LENGTH) * jnp.sin(angle) + 3.0 / (MASS * LENGTH**2) * torque
        speed = jnp.clip(speed + acceleration * DT, -MAX_SPEED, MAX_SPEED)
        return jnp.stack([wrap(angle + speed * DT), speed]), -cost, jnp.bool_(False)

    def in_gymnasium(limit: int) -> gymnasium.Env:
        env = gymnasium.make("Pendulum-v1", max_episode_steps=limit)
        values = np.linspace(-MAX_TORQUE, MAX_TORQUE, torques, dtype=np.float32)
        return gymnasium.wrappers.TransformAction(
            env, lambda action: values[[action]], gymnasium.spaces.Discrete(torques)
        )

    return Task(
        name=name,
        actions=torques,
        low=(-1.0, -1.0, -MAX_SPEED),
        high=(1.0, 1.0, MAX_SPEED),
        time_limit=200,
        reset=reset,
        step=step,
        observe=observe,
        num_reset_uniforms=2,
        gymnasium=in_gymnasium,
        summary=f"swing a pendulum up and hold it, {torques} torques; 200 steps",
        paper_steps=400_000,
        paper_period=10_000,
        # With these, as in a much-copied tutorial, the paper's values come out; see docs/differences.md.
        paper=(("torques", 11), ("reward_scale", 0.1)),
    )
