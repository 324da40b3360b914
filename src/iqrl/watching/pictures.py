"""A moment of an environment as a picture: its own, or made of the observation.

Gymnasium's environments draw themselves. An image that an agent sees is shown as it is: grey, coloured, or with a
colour for each channel, as in MinAtar. What has neither is shown as bars, one for each observed variable.
"""

from __future__ import annotations

import colorsys
import os
import sys
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np

from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.plugins import in_a_sentence

PAPER, INK = (255, 255, 255), (52, 92, 130)
WIDTH, HEIGHT = 300, 200


INSTALL = 'pip install ".[watch]" in the clone of iqrl'
"""what brings pygame and OpenCV"""


def has_screen() -> bool:
    """Whether a window can be opened: on Linux somebody must say where."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return not os.environ.get("SSH_CONNECTION")


def check_drawing() -> None:
    """Classic control is drawn by pygame."""
    if find_spec("pygame") is None:
        raise BadInput(f"classic control is drawn by pygame, which is not installed: {INSTALL}.")


def prepare(env: gymnasium.Env) -> None:
    """Environments are made to be stepped; this one is to be seen too."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not has_screen():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # else pygame complains that there is none
    modes = env.unwrapped.metadata.get("render_modes", ())
    if "rgb_array" in modes and env.unwrapped.render_mode is None:
        env.unwrapped.render_mode = "rgb_array"


def draw_environment(env: gymnasium.Env, task: Task, obs: Any) -> np.ndarray:
    """[height, width, 3] of bytes."""
    own = None if isinstance(env.unwrapped, TaskEnvironment) else _own_picture(env, task)
    if own is not None:
        return own
    if task.image is not None:
        return draw_image(np.asarray(obs), task)
    return draw_variables(np.ravel(obs), np.asarray(task.low), np.asarray(task.high))


def _own_picture(env: gymnasium.Env, task: Task) -> np.ndarray | None:
    if env.unwrapped.render_mode != "rgb_array":
        return None
    try:
        drawn: Any = env.render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise BadInput(
            f'{task.name} is drawn by a package that is not installed: pip install "iqrl[watch]" for classic control, '
            f"else as the environment says ({in_a_sentence(error)})."
        ) from error
    return np.asarray(drawn, np.uint8) if np.ndim(drawn) == 3 and np.shape(drawn)[2] == 3 else None


def draw_image(obs: np.ndarray, task: Task) -> np.ndarray:
    """What the agent sees: the newest of stacked frames."""
    image = task.image
    assert image is not None
    newest = obs.reshape(image.stack, -1)[-1, : image.frame]
    frame = newest.reshape(image.height, image.width, image.channels) / image.highest
    if image.channels == 1:
        return np.repeat(_bytes(frame), 3, axis=2)
    if image.channels == 3 and image.highest > 1:
        return _bytes(frame)
    strongest = frame.argmax(axis=2)
    return _bytes(channel_colours(image.channels)[strongest] / 255 * frame.max(axis=2, keepdims=True))


def channel_colours(count: int) -> np.ndarray:
    """[count, 3]: a colour for each channel, as far apart as they can be."""
    hues = [colorsys.hsv_to_rgb(i / count, 0.55, 1.0) for i in range(count)]
    return np.array([[255 * part for part in hue] for hue in hues])


def draw_variables(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A bar for each variable, from the middle of its range."""
    picture = np.full((HEIGHT, WIDTH, 3), PAPER, np.uint8)
    shown = min(len(values), HEIGHT // 4)
    rows, middle = HEIGHT // shown, WIDTH // 2
    span = np.where(high > low, high - low, 1.0)
    places = np.clip((values - low) / span, 0.0, 1.0) * (WIDTH - 1)
    for i in range(shown):
        left, right = sorted((middle, int(places[i])))
        picture[i * rows + 1 : (i + 1) * rows - 1, left : right + 1] = INK
    return picture


def _bytes(shares: np.ndarray) -> np.ndarray:
    return np.clip(np.round(255 * shares), 0, 255).astype(np.uint8)
