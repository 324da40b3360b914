"""What the five games share: a board of ten by ten cells, actions that stick, and how they become a task.

The rules are those of MinAtar 1.0.15 (Young and Tian 2019, arXiv:1903.03176) with its minimal action sets, which are
its environments "-v1". A rule that may look odd is the original's own; the file of each game says which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from iqrl.core.encoders import MINATAR, Image
from iqrl.envs.base import EnvInputs, State, Task
from iqrl.settings import Settings, setting

SIZE = 10
CELLS = np.arange(SIZE)
"""the numbers of the columns, or of the rows"""
LAST = SIZE - 1
ENDLESS = 2**30
"""the games end by themselves"""

DEFAULTS = (
    ("steps", 1_000_000), ("buffer_size", 10_000), ("learning_starts", 5000), ("update_every", 4), ("gamma", 0.99),
    ("optimiser", "rmsprop"), ("learning_rate", 2.5e-4), ("rmsprop_decay", 0.95), ("rmsprop_epsilon", 1e-4),
    ("epsilon_begin", 5000), ("epsilon_final", 0.1), ("epsilon_decay", 100_000), ("activation", "relu"),
    ("srnn_form", "samples"),
)  # fmt: skip
"""of Young and Tian, but for a tenth of their buffer, a fifth of their steps and an update every fourth step.

Their RMSProp adds 0.01 outside the root: 1e-4 under it bounds the steps alike."""


class GameSettings(Settings):
    """games, MinAtar/… and ALE/…"""

    sticky: float | None = setting(
        None, "chance that an action is repeated instead of the next one; the game's own if not given",
        minimum=0, maximum=0.99, paper="0.25",
    )  # fmt: skip


class Play(NamedTuple):
    """A game under way."""

    game: State
    last_action: jax.Array
    """the action that is repeated when the next one does not get through; the first one doing nothing"""


def as_task(
    name: str,
    actions: int,
    channels: int,
    reset: Callable[[jax.Array], State],
    step: Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array, jax.Array]],
    observe: Callable[[State], jax.Array],
    sticky: float,
    summary: str,
    num_reset_uniforms: int = 0,
    num_step_uniforms: int = 0,
) -> Task:
    """A game, and the chance `sticky` that the action before is played again instead of the one chosen."""

    def first(inputs: EnvInputs) -> Play:
        return Play(game=reset(inputs.uniforms), last_action=jnp.int32(0))

    def play_on(play: Play, action: jax.Array, inputs: EnvInputs) -> tuple[Play, jax.Array, jax.Array]:
        uniforms = inputs.uniforms
        action = jnp.where(uniforms[0] < sticky, play.last_action, action).astype(jnp.int32)
        game, reward, over = step(play.game, action, uniforms[1:])
        return Play(game=game, last_action=action), reward.astype(jnp.float32), over

    cells = SIZE * SIZE * channels
    return Task(
        name=name,
        actions=actions,
        low=(0.0,) * cells,
        high=(1.0,) * cells,
        time_limit=ENDLESS,
        reset=first,
        step=play_on,
        observe=lambda play: observe(play.game),
        num_reset_uniforms=num_reset_uniforms,
        num_step_uniforms=1 + num_step_uniforms,
        summary=summary,
        image=Image(SIZE, SIZE, channels, highest=1.0),
        layers=MINATAR,
        defaults=DEFAULTS,
        network=(("hidden", (128,)), ("own_layers", 1)),
    )


def whole(uniform: jax.Array, count: int | jax.Array) -> jax.Array:
    """A uniform number as one of 0, …, count - 1."""
    return (uniform * count).astype(jnp.int32)


def on_board(x: jax.Array) -> jax.Array:
    return (x >= 0) & (x <= LAST)


def heading(right: jax.Array) -> jax.Array:
    """One step to the right or to the left."""
    return jnp.where(right, 1, -1)


class Marks(NamedTuple):
    """Things to be seen in an image, each in one cell of one channel; each of these is a number or an array."""

    channel: ArrayLike
    y: ArrayLike
    x: ArrayLike
    shown: ArrayLike = True


def drawn(channels: int, *marks: Marks) -> jax.Array:
    """[10, 10, channels]: an image of 0 and 1; what is beside the board is not seen.

    Written mark by mark: comparing every mark with every cell would compute the marks anew for every cell.
    """
    lists = [jnp.broadcast_arrays(*(jnp.atleast_1d(part) for part in one)) for one in marks]
    channel, y, x, shown = (jnp.concatenate(parts) for parts in zip(*lists, strict=True))
    y = jnp.where(shown & on_board(x), y, SIZE)  # out of the image, where nothing is written
    return jnp.zeros((SIZE, SIZE, channels), jnp.uint8).at[y, x, channel].set(1, mode="drop")


def with_map(picture: jax.Array, channel: int, board: jax.Array) -> jax.Array:
    """A channel of the image that is a board as it is."""
    return picture.at[:, :, channel].set(board.astype(jnp.uint8))
