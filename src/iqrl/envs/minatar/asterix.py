"""Asterix: collect gold and avoid enemies, which cross the board in rows of their own, ever faster."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.envs.base import Task
from iqrl.envs.minatar.game import LAST, SIZE, Marks, as_task, drawn, heading, on_board, whole

LEFT, UP, RIGHT, DOWN = 1, 2, 3, 4
CHANNELS = 4
PLAYER, ENEMY, TRAIL, GOLD = range(CHANNELS)
TOP, BOTTOM = 1, SIZE - 2
ROWS = np.arange(TOP, BOTTOM + 1)
"""there is at most one thing in each row"""
PLAYER_START, SPAWN_INTERVAL, MOVE_INTERVAL, RAMP_INTERVAL = 5, 10, 5, 100
GOLD_CHANCE = 1 / 3


class Asterix(NamedTuple):
    x: jax.Array
    y: jax.Array
    """where the player is"""
    thing_x: jax.Array
    present: jax.Array
    right: jax.Array
    gold: jax.Array
    """[8], of the thing in each row: its column, whether there is one, where it goes, whether it is gold or an enemy"""
    spawn_timer: jax.Array
    spawn_interval: jax.Array
    move_timer: jax.Array
    move_interval: jax.Array
    ramp_timer: jax.Array
    ramps: jax.Array
    """how often the difficulty rose"""


def reset(_: jax.Array) -> Asterix:
    number, nowhere = jnp.int32, jnp.zeros(len(ROWS), bool)
    return Asterix(
        x=number(PLAYER_START),
        y=number(PLAYER_START),
        thing_x=jnp.zeros(len(ROWS), jnp.int32),
        present=nowhere,
        right=nowhere,
        gold=nowhere,
        spawn_timer=number(SPAWN_INTERVAL),
        spawn_interval=number(SPAWN_INTERVAL),
        move_timer=number(MOVE_INTERVAL),
        move_interval=number(MOVE_INTERVAL),
        ramp_timer=number(RAMP_INTERVAL),
        ramps=number(0),
    )


def spawned(state: Asterix, uniforms: jax.Array) -> Asterix:
    """When it is time, something new at the left or right edge of a free row, if there is one."""
    due = state.spawn_timer == 0
    right, gold = uniforms[0] < 0.5, uniforms[1] < GOLD_CHANCE
    free = ~state.present
    free_above = jnp.sum(free & (ROWS[:, None] > ROWS), axis=1)
    chosen = due & free & (free_above == whole(uniforms[2], jnp.sum(free)))
    return state._replace(
        thing_x=jnp.where(chosen, jnp.where(right, 0, LAST), state.thing_x),
        present=state.present | chosen,
        right=jnp.where(chosen, right, state.right),
        gold=jnp.where(chosen, gold, state.gold),
        spawn_timer=jnp.where(due, state.spawn_interval, state.spawn_timer),
    )


def player_moved(state: Asterix, action: jax.Array) -> Asterix:
    x = state.x + (action == RIGHT) - (action == LEFT)
    y = state.y + (action == DOWN) - (action == UP)
    return state._replace(x=jnp.clip(x, 0, LAST), y=jnp.clip(y, TOP, BOTTOM))


def things_moved(state: Asterix) -> Asterix:
    due = state.move_timer == 0
    x = state.thing_x + jnp.where(due, heading(state.right), 0)
    return state._replace(
        thing_x=x,
        present=state.present & on_board(x),
        move_timer=jnp.where(due, state.move_interval, state.move_timer),
    )


def touched(state: Asterix) -> tuple[Asterix, jax.Array, jax.Array]:
    """Gold where the player is was collected; an enemy there ends the game."""
    here = state.present & (state.thing_x == state.x) & (state.y == ROWS)
    collected = here & state.gold
    return state._replace(present=state.present & ~collected), jnp.any(collected), jnp.any(here & ~state.gold)


def ramped(state: Asterix) -> Asterix:
    """Every 102 steps things come more often; every other time they move faster too."""
    can_rise = (state.spawn_interval > 1) | (state.move_interval > 1)
    due = can_rise & (state.ramp_timer < 0)
    return state._replace(
        move_interval=state.move_interval - (due & (state.move_interval > 1) & (state.ramps % 2 == 1)),
        spawn_interval=state.spawn_interval - (due & (state.spawn_interval > 1)),
        ramp_timer=jnp.where(due, RAMP_INTERVAL, state.ramp_timer - can_rise),
        ramps=state.ramps + due,
    )


def step(ramping: bool, state: Asterix, action: jax.Array, uniforms: jax.Array) -> tuple[Asterix, jax.Array, jax.Array]:
    state = player_moved(spawned(state, uniforms), action)
    state, walked_into_gold, walked_into_enemy = touched(state)
    state, reached_by_gold, reached_by_enemy = touched(things_moved(state))
    state = state._replace(spawn_timer=state.spawn_timer - 1, move_timer=state.move_timer - 1)
    reward = walked_into_gold.astype(jnp.int32) + reached_by_gold
    return ramped(state) if ramping else state, reward, walked_into_enemy | reached_by_enemy


def observe(state: Asterix) -> jax.Array:
    """A thing is followed by a trail, which tells where it goes."""
    return drawn(
        CHANNELS,
        Marks(PLAYER, state.y, state.x),
        Marks(jnp.where(state.gold, GOLD, ENEMY), ROWS, state.thing_x, state.present),
        Marks(TRAIL, ROWS, state.thing_x - heading(state.right), state.present),
    )


def asterix(name: str, sticky: float = 0.1, ramping: bool = True) -> Task:
    return as_task(
        name, 5, CHANNELS, reset, partial(step, ramping), observe, sticky, "collect gold and avoid enemies; an image",
        num_step_uniforms=3,
    )  # fmt: skip
