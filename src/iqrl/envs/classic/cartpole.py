"""CartPole: balance a pole on a cart. Equations and constants as in Gymnasium, in float32."""

from __future__ import annotations

import math

import gymnasium
import jax
import jax.numpy as jnp

from iqrl.envs.base import EnvInputs, Task

GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TOTAL_MASS, POLE_MOMENT = CART_MASS + POLE_MASS, POLE_MASS * HALF_LENGTH
X_LIMIT, ANGLE_LIMIT = 2.4, 12 * 2 * math.pi / 360


def reset(inputs: EnvInputs) -> jax.Array:
    return 0.1 * inputs.uniforms - 0.05


def step(state: jax.Array, action: jax.Array, _: EnvInputs) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, x_dot, angle, angle_dot = state
    force = jnp.where(action == 1, FORCE, -FORCE)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    push = (force + POLE_MOMENT * angle_dot * angle_dot * sine) / TOTAL_MASS
    angle_acc = (GRAVITY * sine - cosine * push) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine * cosine / TOTAL_MASS)
    )
    x_acc = push - POLE_MOMENT * angle_acc * cosine / TOTAL_MASS
    x, angle = x + TAU * x_dot, angle + TAU * angle_dot
    state = jnp.stack([x, x_dot + TAU * x_acc, angle, angle_dot + TAU * angle_acc])
    fallen = (jnp.abs(x) > X_LIMIT) | (jnp.abs(angle) > ANGLE_LIMIT)
    return state, jnp.float32(1.0), fallen


def cartpole(name: str, time_limit: int, paper_steps: int, paper_period: int) -> Task:
    return Task(
        name=name,
        actions=2,
        low=(-X_LIMIT, -5.0, -math.pi / 12, -2 * math.pi),
        high=(X_LIMIT, 5.0, math.pi / 12, 2 * math.pi),
        time_limit=time_limit,
        reset=reset,
        step=step,
        observe=lambda state: state,
        num_reset_uniforms=4,
        gymnasium=lambda limit: gymnasium.make("CartPole-v1", max_episode_steps=limit),
        summary=f"balance a pole on a cart; at most {time_limit} steps",
        paper_steps=paper_steps,
        paper_period=paper_period,
    )
