"""A moment of an environment as a picture: its own, or made of the observation.

Gymnasium's environments draw themselves. An image that an agent sees is shown as it is: grey, coloured, or with a
colour for each channel, as in MinAtar. What has neither is shown as labelled bars, one for each observed variable.
"""

from __future__ import annotations

import colorsys
import functools
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from iqrl.diagnostics.text import three_digits
from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.plugins import in_a_sentence

PAPER, BAR, INK = (255, 255, 255), (168, 196, 222), (36, 41, 47)
WIDTH, HEIGHT = 300, 200
LABEL, MOST_LABELS, MOST_COLUMNS = 10, 16, 3
"""size of a label, how many fit below each other, and columns of them at most"""


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


class Variables(NamedTuple):
    """What is observed where there is no picture of it."""

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def places(self) -> np.ndarray:
        """Where the values lie in their ranges, as shares; the middle where a range has no end."""
        known = np.isfinite(self.low) & np.isfinite(self.high) & (self.high > self.low)
        span = np.where(known, self.high - self.low, 1.0)
        return np.where(known, np.clip((self.values - np.where(known, self.low, 0.0)) / span, 0.0, 1.0), 0.5)


def draw_environment(env: gymnasium.Env, task: Task, obs: Any) -> tuple[np.ndarray, Variables | None]:
    """[height, width, 3] of bytes, and the variables where it is a picture of them."""
    own = None if isinstance(env.unwrapped, TaskEnvironment) else _own_picture(env, task)
    if own is not None:
        return own, None
    if task.image is not None:
        return draw_image(np.asarray(obs), task), None
    seen = Variables(np.ravel(obs), np.asarray(task.low), np.asarray(task.high))
    return draw_variables(seen), seen


def _own_picture(env: gymnasium.Env, task: Task) -> np.ndarray | None:
    if env.unwrapped.render_mode != "rgb_array":
        return None
    try:
        drawn: Any = env.render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise BadInput(
            f"{task.name} is drawn by a package that is not installed: {INSTALL} for classic control, else as the "
            f"environment says ({in_a_sentence(error)})."
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


def draw_variables(seen: Variables) -> np.ndarray:
    """A bar for each variable, from the middle of its range, with its number and value; in columns where there are
    many."""
    values = seen.values
    columns = min(-(-len(values) // MOST_LABELS), MOST_COLUMNS)
    shown = min(len(values), MOST_LABELS * columns)
    in_column = -(-shown // columns)
    rows, width = HEIGHT // in_column, WIDTH // columns
    places = seen.places() * (width - 1)
    picture = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(picture)
    for i in range(shown):
        x, y = i // in_column * width, i % in_column * rows
        left, right = sorted((width // 2, int(places[i])))
        draw.rectangle((x + left, y + 1, x + right, y + rows - 2), BAR)
        label = f"obs {i} = {three_digits(float(values[i]))}"
        draw.text((x + 3, y + rows // 2 - LABEL // 2 - 1), label, INK, font(LABEL))
    return np.asarray(picture)


@functools.cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def _bytes(shares: np.ndarray) -> np.ndarray:
    return np.clip(np.round(255 * shares), 0, 255).astype(np.uint8)
