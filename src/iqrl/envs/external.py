"""Any Gymnasium environment with discrete actions as a task: it is stepped outside the compiled program."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import FrameStackObservation

from iqrl.core.encoders import MINATAR, NATURE, Image, Layers
from iqrl.envs.base import Task, external_task
from iqrl.envs.check import check_environment
from iqrl.errors import BadInput
from iqrl.plugins import in_a_sentence
from iqrl.settings import Settings, setting

NO_LIMIT = 2**30
"""steps: the environment's own limit is enough"""


class ExternalSettings(Settings):
    """Gymnasium's environments"""

    frame_stack: int = setting(1, "images: frames that are stacked; Atari always has 4", minimum=1, paper="4")


def gymnasium_task(name: str, make: Callable[[], gymnasium.Env], stack: int = 1) -> Task:
    """The task that the environments made are; of images, `stack` are seen together."""
    env = make_environment(name, make)
    task = task_of_environment(name, env, lambda seed: make(), stack)
    check_environment(name, env)
    with contextlib.suppress(Exception):  # nothing more is wanted of it
        env.close()
    return task


def make_environment(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name} cannot be made: {in_a_sentence(error)}.") from error


def task_of_environment(name: str, env: gymnasium.Env, make: Callable[[int], gymnasium.Env], stack: int = 1) -> Task:
    """The task that an environment is; `make(seed)` makes one of its kind."""
    for space in ("action_space", "observation_space"):
        if getattr(env, space, None) is None:
            raise BadInput(f"{name} has no {space}; an environment declares which actions and observations it has.")
    if not isinstance(env.action_space, Discrete):
        raise BadInput(f"{name} has actions {env.action_space}; only discrete actions can be learned by Q values.")
    if env.action_space.start != 0:
        raise BadInput(f"{name} numbers its actions from {env.action_space.start}; they must start at 0.")
    space = env.observation_space
    if not isinstance(space, Box):
        kind = type(space).__name__
        raise BadInput(
            f"{name} has observations of the kind {kind}; they must be a Box, of a vector or an image "
            f"(gymnasium.wrappers.FlattenObservation makes one of most others)."
        )
    is_image = len(space.shape) == 3 or (len(space.shape) == 2 and space.dtype == np.uint8)
    if stack > 1 and not is_image:
        raise BadInput(f"frame_stack is for images, and {name} has none.")
    described = _as_image(name, space, stack) if is_image else _as_vector(name, space)
    return external_task(
        make if stack == 1 else lambda seed: FrameStackObservation(make(seed), stack, padding_type="zero"),
        name=name,
        actions=int(env.action_space.n),
        time_limit=NO_LIMIT,
        summary="an environment of Gymnasium",
        **described,
    )


def _as_vector(name: str, space: Box) -> dict[str, Any]:
    if len(space.shape) != 1:
        raise BadInput(f"{name} has observations of shape {space.shape}; they must be a vector or an image.")
    if not space.shape[0]:
        raise BadInput(f"{name} has observations without numbers; they must have at least one.")
    low, high = (np.asarray(bound, np.float64).tolist() for bound in (space.low, space.high))
    if any(map(math.isnan, (*low, *high))):
        raise BadInput(f"{name} has an observation_space with bounds that are not numbers (NaN).")
    bounded = all(math.isfinite(bound) and abs(bound) < 1e30 for bound in (*low, *high))
    if bounded:
        return {"low": tuple(low), "high": tuple(high)}
    # Where nobody says how far a variable goes, distances are measured by how far it went.
    size = len(low)
    return {"low": (-1.0,) * size, "high": (1.0,) * size, "defaults": (("context_scaling", "running"),)}


IMAGE_DEFAULTS = (
    ("buffer_size", 10_000), ("learning_starts", 5000), ("update_every", 4), ("gamma", 0.99),
    ("learning_rate", 2.5e-4), ("epsilon_final", 0.05), ("activation", "relu"), ("seeds", 1),
    ("srnn_form", "samples"),
)  # fmt: skip
"""between MinAtar's and Atari's"""


def _as_image(name: str, space: Box, stack: int) -> dict[str, Any]:
    if space.dtype != np.uint8:
        raise BadInput(f"{name} has images of {space.dtype}; they must be bytes (uint8).")
    height, width, channels = (*space.shape, 1)[:3]
    if height <= 4 < min(width, channels):
        raise BadInput(
            f"{name} has images of shape {space.shape}, which looks like channels or frames first; they must be "
            f"[height, width, channels] or [height, width], and frame_stack puts frames together."
        )
    highest = float(space.high.max())
    size = height * width * channels
    image = Image(height, width, channels, stack, highest)
    layers = convolutions_for(image)
    return {
        "low": (0.0,) * (stack * size), "high": (highest,) * (stack * size), "image": image,
        "layers": layers, "defaults": IMAGE_DEFAULTS,
        "network": (("hidden", (512,) if layers == NATURE else (128,)), ("own_layers", 1)),
    }  # fmt: skip


def convolutions_for(image: Image) -> Layers:
    """Those of Mnih et al. 2015, or for small images one layer."""
    return NATURE if min(image.height, image.width) >= 36 else MINATAR
