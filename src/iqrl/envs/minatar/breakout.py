"""Breakout: a paddle keeps a ball in play that breaks bricks.

A brick that the ball meets right after another one is neither broken nor does it stop the ball. New bricks come when
the ball arrives at the bottom and all are broken.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.envs.base import Task
from iqrl.envs.minatar.game import CELLS, LAST, SIZE, Marks, as_task, drawn, with_map

LEFT, RIGHT = 1, 2
CHANNELS = 4
PADDLE, BALL, TRAIL, BRICK = range(CHANNELS)
BALL_START, PADDLE_START = 3, 4
"""the ball's first row and the paddle's first column"""
WALL_TOP, WALL_ROWS = 1, 3
BRICK_ROWS = CELLS[WALL_TOP : WALL_TOP + WALL_ROWS]


class Breakout(NamedTuple):
    paddle: jax.Array
    x: jax.Array
    y: jax.Array
    """where the ball is"""
    dx: jax.Array
    dy: jax.Array
    """where it flies: always along a diagonal"""
    last_x: jax.Array
    last_y: jax.Array
    """where it was"""
    bricks: jax.Array
    """[rows, 10]"""
    in_wall: jax.Array
    """whether it met a brick in the last step"""


def reset(uniforms: jax.Array) -> Breakout:
    """The ball starts at the left edge or at the right one and falls towards the middle."""
    from_right = uniforms[0] >= 0.5
    x, y = jnp.where(from_right, LAST, 0), jnp.int32(BALL_START)
    return Breakout(
        paddle=jnp.int32(PADDLE_START),
        x=x,
        y=y,
        dx=jnp.where(from_right, -1, 1),
        dy=jnp.int32(1),
        last_x=x,
        last_y=y,
        bricks=jnp.ones((WALL_ROWS, SIZE), bool),
        in_wall=jnp.bool_(False),
    )


def step(state: Breakout, action: jax.Array, _: jax.Array) -> tuple[Breakout, jax.Array, jax.Array]:
    paddle = jnp.clip(state.paddle + (action == RIGHT) - (action == LEFT), 0, LAST)
    x, y = state.x + state.dx, state.y + state.dy
    dx = jnp.where((x < 0) | (x > LAST), -state.dx, state.dx)
    x = jnp.clip(x, 0, LAST)

    met = state.bricks & (y == BRICK_ROWS)[:, None] & (x == CELLS)
    in_wall = jnp.any(met)
    broken = in_wall & ~state.in_wall
    at_bottom = y == LAST
    # The paddle is hit in its middle if it is below the ball, and at its side if it is where the ball goes.
    middle = at_bottom & (state.x == paddle)
    side = at_bottom & (x == paddle) & ~middle
    all_broken = at_bottom & ~jnp.any(state.bricks)

    stopped = broken | middle | side
    over = at_bottom & ~stopped
    state = Breakout(
        paddle=paddle,
        x=x,
        y=jnp.where(stopped, state.y, jnp.maximum(y, 0)),
        dx=jnp.where(side, -dx, dx),
        dy=jnp.where(stopped | (y < 0), -state.dy, state.dy),
        last_x=state.x,
        last_y=state.y,
        bricks=(state.bricks & ~(met & broken)) | all_broken,
        in_wall=in_wall,
    )
    return state, broken, over


def observe(state: Breakout) -> jax.Array:
    bricks = jnp.pad(state.bricks, ((WALL_TOP, SIZE - WALL_TOP - WALL_ROWS), (0, 0)))
    marks = drawn(
        CHANNELS,
        Marks(PADDLE, LAST, state.paddle),
        Marks(BALL, state.y, state.x),
        Marks(TRAIL, state.last_y, state.last_x),
    )
    return with_map(marks, BRICK, bricks)


def breakout(name: str, sticky: float = 0.1, ramping: bool = True) -> Task:
    """Its difficulty never rises: `ramping` changes nothing."""
    return as_task(
        name,
        3,
        CHANNELS,
        reset,
        step,
        observe,
        sticky,
        "keep a ball in play and break bricks; an image",
        num_reset_uniforms=1,
    )
