"""Acrobot: swing a two-link pendulum above a line by a torque on its middle joint, as in Gymnasium ("book")."""

from __future__ import annotations

import math

import gymnasium
import jax
import jax.numpy as jnp

from iqrl.envs.base import EnvInputs, Task

DT, GRAVITY = 0.2, 9.8
MASS_1 = MASS_2 = LENGTH_1 = INERTIA = 1.0
CENTRE_1 = CENTRE_2 = 0.5
SPEED_LIMIT_1, SPEED_LIMIT_2 = 4 * math.pi, 9 * math.pi


def reset(inputs: EnvInputs) -> jax.Array:
    return 0.2 * inputs.uniforms - 0.1


def derivatives(state: jax.Array, torque: jax.Array) -> jax.Array:
    angle_1, angle_2, speed_1, speed_2 = state
    cosine, sine = jnp.cos(angle_2), jnp.sin(angle_2)
    d1 = MASS_1 * CENTRE_1**2 + MASS_2 * (LENGTH_1**2 + CENTRE_2**2 + 2 * LENGTH_1 * CENTRE_2 * cosine) + 2 * INERTIA
    d2 = MASS_2 * (CENTRE_2**2 + LENGTH_1 * CENTRE_2 * cosine) + INERTIA
    phi_2 = MASS_2 * CENTRE_2 * GRAVITY * jnp.cos(angle_1 + angle_2 - math.pi / 2)
    phi_1 = (
        -MASS_2 * LENGTH_1 * CENTRE_2 * speed_2**2 * sine
        - 2 * MASS_2 * LENGTH_1 * CENTRE_2 * speed_2 * speed_1 * sine
        + (MASS_1 * CENTRE_1 + MASS_2 * LENGTH_1) * GRAVITY * jnp.cos(angle_1 - math.pi / 2)
        + phi_2
    )
    acceleration_2 = (torque + d2 / d1 * phi_1 - MASS_2 * LENGTH_1 * CENTRE_2 * speed_1**2 * sine - phi_2) / (
        MASS_2 * CENTRE_2**2 + INERTIA - d2**2 / d1
    )
    acceleration_1 = -(d2 * acceleration_2 + phi_1) / d1
    return jnp.stack([speed_1, speed_2, acceleration_1, acceleration_2])


def runge_kutta(state: jax.Array, torque: jax.Array) -> jax.Array:
    k1 = derivatives(state, torque)
    k2 = derivatives(state + DT / 2 * k1, torque)
    k3 = derivatives(state + DT / 2 * k2, torque)
    k4 = derivatives(state + DT * k3, torque)
    return state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def wrap(angle: jax.Array) -> jax.Array:
    """Into [-π, π]."""
    return angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))


def step(state: jax.Array, action: jax.Array, _: EnvInputs) -> tuple[jax.Array, jax.Array, jax.Array]:
    angle_1, angle_2, speed_1, speed_2 = runge_kutta(state, action.astype(jnp.float32) - 1.0)
    angle_1, angle_2 = wrap(angle_1), wrap(angle_2)
    speed_1 = jnp.clip(speed_1, -SPEED_LIMIT_1, SPEED_LIMIT_1)
    speed_2 = jnp.clip(speed_2, -SPEED_LIMIT_2, SPEED_LIMIT_2)
    above = -jnp.cos(angle_1) - jnp.cos(angle_2 + angle_1) > 1.0
    return jnp.stack([angle_1, angle_2, speed_1, speed_2]), jnp.where(above, 0.0, -1.0), above


def observe(state: jax.Array) -> jax.Array:
    angle_1, angle_2, speed_1, speed_2 = state
    return jnp.stack([jnp.cos(angle_1), jnp.sin(angle_1), jnp.cos(angle_2), jnp.sin(angle_2), speed_1, speed_2])


def acrobot(name: str) -> Task:
    return Task(
        name=name,
        actions=3,
        low=(-1.0, -1.0, -1.0, -1.0, -SPEED_LIMIT_1, -SPEED_LIMIT_2),
        high=(1.0, 1.0, 1.0, 1.0, SPEED_LIMIT_1, SPEED_LIMIT_2),
        time_limit=500,
        reset=reset,
        step=step,
        observe=observe,
        num_reset_uniforms=4,
        gymnasium=lambda limit: gymnasium.make("Acrobot-v1", max_episode_steps=limit),
        summary="swing a two-link pendulum above a line; at most 500 steps",
        paper_steps=1_000_000,
        paper_period=20_000,
    )
