"""Seaquest: a submarine shoots enemies, picks up divers and brings them to the surface before its air is used up.

Surfacing without a diver ends the game; with some it costs one, and with six it pays for the air that is left. After
six were paid for the number aboard is -1, not 0: the next surfacing is allowed without a diver, and so is every further
one until a diver brings the number to 0.

Things that come one after another are kept in arrays of fixed length, the latest last: when one is added, the first of
the array has left the board long ago. How many can be under way follows from how often they come and how long they
take, and is said at each array's length.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.envs.base import Task
from iqrl.envs.minatar.game import CELLS, LAST, SIZE, Marks, as_task, drawn, heading, on_board, whole

LEFT, UP, RIGHT, DOWN, FIRE = 1, 2, 3, 4, 5
CHANNELS = 10
FRONT, BACK, BULLET, TRAIL, ENEMY_BULLET, FISH, ENEMY_SUBMARINE, AIR_GAUGE, CREW_GAUGE, DIVER = range(CHANNELS)
START, TOP, BOTTOM = 5, 1, SIZE - 2
"""the submarine's first column; the first and last row under water"""
AIR, CREW = 200, 6
SPAWN_INTERVAL, MOVE_INTERVAL, FASTEST_MOVE_INTERVAL = 20, 5, 2
DIVER_SPAWN_INTERVAL, DIVER_MOVE_INTERVAL = 30, 5
SHOT_INTERVAL, ENEMY_SHOT_INTERVAL = 5, 10
SUBMARINE_CHANCE = 1 / 3

BULLETS = 2
"""one every 5 steps, and each is gone after at most 10"""
DIVERS = 2
"""one every 30 steps, and each is gone after at most 60"""
ENEMIES = 30
"""at the most difficult one every step, and each is gone after 30"""


class Bullets(NamedTuple):
    x: jax.Array
    y: jax.Array
    right: jax.Array
    flying: jax.Array


class Divers(NamedTuple):
    x: jax.Array
    y: jax.Array
    right: jax.Array
    swimming: jax.Array
    timer: jax.Array


class Enemies(NamedTuple):
    """Fish and submarines."""

    x: jax.Array
    y: jax.Array
    right: jax.Array
    alive: jax.Array
    submarine: jax.Array
    timer: jax.Array
    shot_timer: jax.Array
    bullet_x: jax.Array
    bullet_flying: jax.Array
    """a submarine has one bullet at a time: it shoots every 11 steps, and a bullet is gone after at most 10"""


class Seaquest(NamedTuple):
    x: jax.Array
    y: jax.Array
    right: jax.Array
    """where the submarine is, and where it looks"""
    air: jax.Array
    crew: jax.Array
    """divers aboard"""
    surfaced: jax.Array
    """whether it is at the surface, and that was paid for"""
    bullets: Bullets
    divers: Divers
    enemies: Enemies
    shot_timer: jax.Array
    diver_timer: jax.Array
    spawn_timer: jax.Array
    spawn_interval: jax.Array
    move_interval: jax.Array
    ramps: jax.Array
    """how often the difficulty rose"""


def empty(length: int) -> tuple[jax.Array, jax.Array]:
    """Numbers and flags of things of which there are none yet."""
    return jnp.zeros(length, jnp.int32), jnp.zeros(length, bool)


def reset(_: jax.Array) -> Seaquest:
    number = jnp.int32
    where, flag = empty(BULLETS)
    bullets = Bullets(where, where, flag, flag)
    where, flag = empty(DIVERS)
    divers = Divers(where, where, flag, flag, where)
    where, flag = empty(ENEMIES)
    enemies = Enemies(where, where, flag, flag, flag, where, where, where, flag)
    return Seaquest(
        x=number(START),
        y=number(0),
        right=jnp.bool_(False),
        air=number(AIR),
        crew=number(0),
        surfaced=jnp.bool_(True),
        bullets=bullets,
        divers=divers,
        enemies=enemies,
        shot_timer=number(0),
        diver_timer=number(DIVER_SPAWN_INTERVAL),
        spawn_timer=number(SPAWN_INTERVAL),
        spawn_interval=number(SPAWN_INTERVAL),
        move_interval=number(MOVE_INTERVAL),
        ramps=number(0),
    )


Things = TypeVar("Things", Bullets, Divers, Enemies)


def joined(things: Things, newest: Things, comes: jax.Array) -> Things:
    """With one more at the end, if it comes, for which the first makes room."""
    with_it = lambda old, new: jnp.where(comes, jnp.concatenate([old[1:], jnp.asarray(new, old.dtype)[None]]), old)
    return jax.tree.map(with_it, things, newest)


def enemy_spawned(state: Seaquest, uniforms: jax.Array) -> Seaquest:
    """When it is time, a fish or a submarine, unless it would go against others in its row."""
    due = state.spawn_timer == 0
    right, submarine, y = uniforms[0] < 0.5, uniforms[1] < SUBMARINE_CHANCE, TOP + whole(uniforms[2], BOTTOM)
    enemies = state.enemies
    blocked = jnp.any(enemies.alive & (enemies.y == y) & (enemies.right != right))
    newest = Enemies(
        x=jnp.where(right, 0, LAST),
        y=y,
        right=right,
        alive=jnp.bool_(True),
        submarine=submarine,
        timer=state.move_interval,
        shot_timer=jnp.int32(ENEMY_SHOT_INTERVAL),
        bullet_x=jnp.int32(0),
        bullet_flying=jnp.bool_(False),
    )
    return state._replace(
        enemies=joined(enemies, newest, due & ~blocked),
        spawn_timer=jnp.where(due, state.spawn_interval, state.spawn_timer),
    )


def diver_spawned(state: Seaquest, uniforms: jax.Array) -> Seaquest:
    due = state.diver_timer == 0
    right, y = uniforms[0] < 0.5, TOP + whole(uniforms[1], BOTTOM)
    newest = Divers(jnp.where(right, 0, LAST), y, right, jnp.bool_(True), jnp.int32(DIVER_MOVE_INTERVAL))
    return state._replace(
        divers=joined(state.divers, newest, due),
        diver_timer=jnp.where(due, DIVER_SPAWN_INTERVAL, state.diver_timer),
    )


def player_moved(state: Seaquest, action: jax.Array) -> Seaquest:
    """It shoots or moves."""
    fires = (action == FIRE) & (state.shot_timer == 0)
    bullet = Bullets(state.x, state.y, state.right, jnp.bool_(True))
    x = state.x + (action == RIGHT) - (action == LEFT)
    y = state.y + (action == DOWN) - (action == UP)
    return state._replace(
        x=jnp.clip(x, 0, LAST),
        y=jnp.clip(y, 0, BOTTOM),
        right=(state.right | (action == RIGHT)) & (action != LEFT),
        bullets=joined(state.bullets, bullet, fires),
        shot_timer=jnp.where(fires, SHOT_INTERVAL, state.shot_timer),
    )


def meetings(bullets: Bullets, enemies: Enemies) -> jax.Array:
    """[bullets, enemies]: who is in the same cell."""
    same_x, same_y = bullets.x[:, None] == enemies.x, bullets.y[:, None] == enemies.y
    return same_x & same_y & bullets.flying[:, None] & enemies.alive


def bullets_moved(state: Seaquest) -> tuple[Seaquest, jax.Array]:
    """A bullet hits one enemy: the oldest fish where it is, or else the oldest submarine."""
    x = state.bullets.x + heading(state.bullets.right)
    bullets = state.bullets._replace(x=x, flying=state.bullets.flying & on_board(x))
    met = meetings(bullets, state.enemies)
    turn = np.arange(ENEMIES) + ENEMIES * state.enemies.submarine
    hit = met & (turn == jnp.min(jnp.where(met, turn, 2 * ENEMIES), axis=1, keepdims=True))
    state = state._replace(
        bullets=bullets._replace(flying=bullets.flying & ~jnp.any(hit, axis=1)),
        enemies=state.enemies._replace(alive=state.enemies.alive & ~jnp.any(hit, axis=0)),
    )
    return state, jnp.sum(hit)


def divers_moved(state: Seaquest) -> Seaquest:
    """A diver comes aboard where the submarine is, before or after swimming, while there is room; the latest first."""
    divers = state.divers
    due = divers.timer == 0
    x = divers.x + jnp.where(due, heading(divers.right), 0)
    here = divers.swimming & (divers.y == state.y) & ((divers.x == state.x) | (x == state.x))
    before = jnp.stack([here[1], jnp.bool_(False)])
    boards = here & (state.crew + before < CREW)
    return state._replace(
        crew=state.crew + jnp.sum(boards),
        divers=divers._replace(
            x=x,
            swimming=divers.swimming & on_board(x) & ~boards,
            timer=jnp.where(due, DIVER_MOVE_INTERVAL, divers.timer - 1),
        ),
    )


def enemies_moved(state: Seaquest) -> tuple[Seaquest, jax.Array, jax.Array]:
    """What moves onto a bullet is shot, what meets the player ends the game, and submarines shoot.

    Only one enemy at a time moves into a cell, as no two of a row came in the same step.
    """
    before = state.enemies
    here = lambda x: (x == state.x) & (before.y == state.y)
    due = before.timer == 0
    x = before.x + jnp.where(due, heading(before.right), 0)
    enemies = before._replace(x=x, alive=before.alive & on_board(x))
    over = jnp.any(before.alive & here(before.x)) | jnp.any(enemies.alive & here(x))

    shot = meetings(state.bullets, enemies) & due & ~here(x)
    # One that is shot or leaves the board in this step may still shoot in it.
    shoots = before.alive & before.submarine & (before.shot_timer == 0)
    bullet_x = jnp.where(shoots, x, before.bullet_x)
    bullet_flying = before.bullet_flying | shoots
    over |= jnp.any(bullet_flying & here(bullet_x))
    bullet_x = bullet_x + heading(before.right)
    bullet_flying &= on_board(bullet_x)
    over |= jnp.any(bullet_flying & here(bullet_x))

    enemies = enemies._replace(
        alive=enemies.alive & ~jnp.any(shot, axis=0),
        timer=jnp.where(due, state.move_interval, before.timer - 1),
        shot_timer=jnp.where(shoots, ENEMY_SHOT_INTERVAL, before.shot_timer - 1),
        bullet_x=bullet_x,
        bullet_flying=bullet_flying,
    )
    bullets = state.bullets._replace(flying=state.bullets.flying & ~jnp.any(shot, axis=1))
    return state._replace(enemies=enemies, bullets=bullets), jnp.sum(shot), over


def breathed(ramping: bool, state: Seaquest) -> tuple[Seaquest, jax.Array, jax.Array]:
    """Under water air is used up; at the surface it is filled up for a diver, and the game becomes more difficult."""
    under_water = state.y > 0
    emerges = ~under_water & ~state.surfaced
    over = (state.air <= 0) | (emerges & (state.crew == 0))
    paid = emerges & (state.crew != 0)
    full = state.crew == CREW
    reward = jnp.where(paid & full, state.air * SIZE // AIR, 0)
    faster = ramping & paid & (state.move_interval > FASTEST_MOVE_INTERVAL) & (state.ramps % 2 == 1)
    more_often = ramping & paid & (state.spawn_interval > 1)
    state = state._replace(
        air=jnp.where(paid, AIR, state.air - under_water),
        crew=jnp.where(paid, jnp.where(full, 0, state.crew) - 1, state.crew),
        surfaced=~under_water & (state.surfaced | paid),
        move_interval=state.move_interval - faster,
        spawn_interval=state.spawn_interval - more_often,
        ramps=state.ramps + paid,
    )
    return state, reward, over


def step(
    ramping: bool, state: Seaquest, action: jax.Array, uniforms: jax.Array
) -> tuple[Seaquest, jax.Array, jax.Array]:
    state = player_moved(diver_spawned(enemy_spawned(state, uniforms[:3]), uniforms[3:]), action)
    state, reward = bullets_moved(state)
    state, more, caught = enemies_moved(divers_moved(state))
    state, bonus, drowned = breathed(ramping, state)
    state = state._replace(
        spawn_timer=state.spawn_timer - 1,
        diver_timer=state.diver_timer - 1,
        shot_timer=jnp.maximum(state.shot_timer - 1, 0),
    )
    return state, reward + more + bonus, caught | drowned


def observe(state: Seaquest) -> jax.Array:
    """Enemies and divers are followed by a trail, which tells where they go."""
    bullets, divers, enemies = state.bullets, state.divers, state.enemies
    return drawn(
        CHANNELS,
        Marks(FRONT, state.y, state.x),
        Marks(BACK, state.y, state.x - heading(state.right)),
        Marks(BULLET, bullets.y, bullets.x, bullets.flying),
        Marks(TRAIL, enemies.y, enemies.x - heading(enemies.right), enemies.alive),
        Marks(TRAIL, divers.y, divers.x - heading(divers.right), divers.swimming),
        Marks(ENEMY_BULLET, enemies.y, enemies.bullet_x, enemies.bullet_flying),
        Marks(jnp.where(enemies.submarine, ENEMY_SUBMARINE, FISH), enemies.y, enemies.x, enemies.alive),
        Marks(AIR_GAUGE, LAST, CELLS, state.air * SIZE // AIR > CELLS),
        Marks(CREW_GAUGE, LAST, CELLS, (LAST - state.crew <= CELLS) & (CELLS < LAST)),
        Marks(DIVER, divers.y, divers.x, divers.swimming),
    )


def seaquest(name: str, sticky: float = 0.1, ramping: bool = True) -> Task:
    return as_task(
        name, 6, CHANNELS, reset, partial(step, ramping), observe, sticky,
        "rescue divers with a submarine and shoot enemies; an image", num_step_uniforms=5,
    )  # fmt: skip
