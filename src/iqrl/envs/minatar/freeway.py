"""Freeway: cross a road of eight lanes as often as possible in 2501 steps.

A car of speed n drives one cell every n + 1 steps.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.envs.base import Task
from iqrl.envs.minatar.game import LAST, SIZE, Marks, as_task, drawn, heading, whole

UP, DOWN = 1, 2
CHANNELS, CHICKEN, CAR = 7, 0, 1
COLUMN = 4
"""in which the chicken walks"""
ROWS = np.arange(1, SIZE - 1)
"""one car drives in each"""
SPEEDS = np.arange(1, 6)
MOVE_INTERVAL, FRAMES = 3, 2500


class Freeway(NamedTuple):
    y: jax.Array
    """where the chicken is"""
    car_x: jax.Array
    speed: jax.Array
    right: jax.Array
    car_timer: jax.Array
    """[8], of the car in each row"""
    move_timer: jax.Array
    """steps until the chicken can walk again"""
    frames_left: jax.Array


def traffic(uniforms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Speed and direction of every car."""
    speeds, directions = jnp.split(uniforms, 2)
    return 1 + whole(speeds, len(SPEEDS)), directions >= 0.5


def reset(uniforms: jax.Array) -> Freeway:
    speed, right = traffic(uniforms)
    return Freeway(
        y=jnp.int32(LAST),
        car_x=jnp.zeros(len(ROWS), jnp.int32),
        speed=speed,
        right=right,
        car_timer=speed,
        move_timer=jnp.int32(MOVE_INTERVAL),
        frames_left=jnp.int32(FRAMES),
    )


def step(state: Freeway, action: jax.Array, uniforms: jax.Array) -> tuple[Freeway, jax.Array, jax.Array]:
    walks = (state.move_timer == 0) & ((action == UP) | (action == DOWN))
    y = jnp.where(walks, jnp.clip(state.y + (action == DOWN) - (action == UP), 0, LAST), state.y)
    move_timer = jnp.where(walks, MOVE_INTERVAL, state.move_timer)

    # On the other side the chicken starts over, and the cars drive differently from where they are.
    across = y == 0
    y = jnp.where(across, LAST, y)
    new_speed, new_right = traffic(uniforms)
    speed, right = jnp.where(across, new_speed, state.speed), jnp.where(across, new_right, state.right)
    timer = jnp.where(across, new_speed, state.car_timer)

    due = timer == 0
    car_x = jnp.where(due, (state.car_x + heading(right)) % SIZE, state.car_x)
    hit = jnp.any((y == ROWS) & ((state.car_x == COLUMN) | (car_x == COLUMN)))
    state = Freeway(
        y=jnp.where(hit, LAST, y),
        car_x=car_x,
        speed=speed,
        right=right,
        car_timer=jnp.where(due, speed, timer - 1),
        move_timer=jnp.maximum(move_timer - 1, 0),
        frames_left=state.frames_left - 1,
    )
    return state, across, state.frames_left < 0


def observe(state: Freeway) -> jax.Array:
    """A car is followed by a trail, which tells where it goes; each speed has a channel of trails."""
    return drawn(
        CHANNELS,
        Marks(CHICKEN, state.y, COLUMN),
        Marks(CAR, ROWS, state.car_x),
        Marks(CAR + state.speed, ROWS, (state.car_x - heading(state.right)) % SIZE),
    )


def freeway(name: str, sticky: float = 0.1, ramping: bool = True) -> Task:
    """Its difficulty never rises: `ramping` changes nothing."""
    draws = 2 * len(ROWS)
    return as_task(
        name, 3, CHANNELS, reset, step, observe, sticky, "cross a road as often as possible in 2501 steps; an image",
        num_reset_uniforms=draws, num_step_uniforms=draws,
    )  # fmt: skip
