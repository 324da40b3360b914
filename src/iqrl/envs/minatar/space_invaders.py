"""Space Invaders: shoot aliens that come down in a formation and shoot back.

The fewer aliens are left, the faster they move; each new formation is faster than the one before. The game is over
when an alien or its bullet is where the cannon is, or when one in the lowest row would have to step down.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.envs.base import Task
from iqrl.envs.minatar.game import CELLS, LAST, SIZE, as_task

LEFT, RIGHT, FIRE = 1, 2, 3
START, SHOT_INTERVAL, ALIEN_SHOT_INTERVAL = 5, 5, 10
MOVE_INTERVAL, FASTEST_MOVE_INTERVAL = 12, 6
FORMATION = (CELLS < 4)[:, None] & (CELLS >= 2) & (CELLS < 8)
AT_BOTTOM = (CELLS == LAST)[:, None]


class SpaceInvaders(NamedTuple):
    x: jax.Array
    """where the cannon is"""
    bullets: jax.Array
    alien_bullets: jax.Array
    aliens: jax.Array
    """[10, 10]"""
    right: jax.Array
    """where the aliens go"""
    move_interval: jax.Array
    move_timer: jax.Array
    shot_timer: jax.Array
    alien_shot_timer: jax.Array


def reset(_: jax.Array) -> SpaceInvaders:
    none = jnp.zeros((SIZE, SIZE), bool)
    return SpaceInvaders(
        x=jnp.int32(START),
        bullets=none,
        alien_bullets=none,
        aliens=jnp.asarray(FORMATION),
        right=jnp.bool_(False),
        move_interval=jnp.int32(MOVE_INTERVAL),
        move_timer=jnp.int32(MOVE_INTERVAL),
        shot_timer=jnp.int32(0),
        alien_shot_timer=jnp.int32(ALIEN_SHOT_INTERVAL),
    )


def bullets_moved(state: SpaceInvaders, action: jax.Array) -> SpaceInvaders:
    """The cannon shoots or moves, and all bullets fly on."""
    fires = (action == FIRE) & (state.shot_timer == 0)
    x = jnp.clip(state.x + (action == RIGHT) - (action == LEFT), 0, LAST)
    bullets = state.bullets | (AT_BOTTOM & (x == CELLS) & fires)
    return state._replace(
        x=x,
        bullets=jnp.pad(bullets[1:], ((0, 1), (0, 0))),
        alien_bullets=jnp.pad(state.alien_bullets[:-1], ((1, 0), (0, 0))),
        shot_timer=jnp.where(fires, SHOT_INTERVAL, state.shot_timer),
    )


def aliens_moved(state: SpaceInvaders) -> tuple[SpaceInvaders, jax.Array]:
    """Sideways, or at an edge down and then back; and whether one stepped off the board."""
    due = state.move_timer == 0
    columns = jnp.any(state.aliens, axis=0)
    turns = due & jnp.where(state.right, columns[LAST], columns[0])
    sideways = due & ~turns
    aliens = jnp.where(sideways & state.right, jnp.roll(state.aliens, 1, axis=1), state.aliens)
    aliens = jnp.where(sideways & ~state.right, jnp.roll(state.aliens, -1, axis=1), aliens)
    aliens = jnp.where(turns, jnp.roll(state.aliens, 1, axis=0), aliens)
    quickest = jnp.minimum(jnp.sum(state.aliens), state.move_interval)
    moved = state._replace(
        aliens=aliens, right=state.right ^ turns, move_timer=jnp.where(due, quickest, state.move_timer)
    )
    return moved, turns & jnp.any(state.aliens[LAST])


def aliens_shot(state: SpaceInvaders) -> SpaceInvaders:
    """The lowest alien shoots in the column nearest to the cannon, of two the left one."""
    due = state.alien_shot_timer == 0
    distance = jnp.where(jnp.any(state.aliens, axis=0), jnp.abs(CELLS - state.x), SIZE)
    lowest = jnp.max(jnp.where(state.aliens, CELLS[:, None], -1), axis=0)
    bullet = (CELLS[:, None] == lowest) & (jnp.argmin(distance) == CELLS)
    return state._replace(
        alien_bullets=state.alien_bullets | (bullet & due),
        alien_shot_timer=jnp.where(due, ALIEN_SHOT_INTERVAL, state.alien_shot_timer),
    )


def next_formation(ramping: bool, state: SpaceInvaders) -> SpaceInvaders:
    """When all are shot; it keeps the last one's direction and the time of its next move."""
    won = ~jnp.any(state.aliens)
    faster = ramping & won & (state.move_interval > FASTEST_MOVE_INTERVAL)
    return state._replace(aliens=state.aliens | (FORMATION & won), move_interval=state.move_interval - faster)


def step(
    ramping: bool, state: SpaceInvaders, action: jax.Array, _: jax.Array
) -> tuple[SpaceInvaders, jax.Array, jax.Array]:
    state = bullets_moved(state, action)
    at_cannon = AT_BOTTOM & (state.x == CELLS)
    over = jnp.any(at_cannon & (state.alien_bullets | state.aliens))
    state, landed = aliens_moved(state)
    over |= landed | jnp.any(at_cannon & state.aliens)
    state = aliens_shot(state)
    hit = state.aliens & state.bullets
    state = state._replace(
        aliens=state.aliens & ~hit,
        bullets=state.bullets & ~hit,
        move_timer=state.move_timer - 1,
        shot_timer=jnp.maximum(state.shot_timer - 1, 0),
        alien_shot_timer=state.alien_shot_timer - 1,
    )
    return next_formation(ramping, state), jnp.sum(hit), over


def observe(state: SpaceInvaders) -> jax.Array:
    maps = (
        AT_BOTTOM & (state.x == CELLS),
        state.aliens,
        state.aliens & ~state.right,
        state.aliens & state.right,
        state.bullets,
        state.alien_bullets,
    )
    return jnp.stack(maps, axis=-1).astype(jnp.uint8)


def space_invaders(name: str, sticky: float = 0.1, ramping: bool = True) -> Task:
    return as_task(name, 4, 6, reset, partial(step, ramping), observe, sticky, "shoot aliens that come down; an image")
