"""Spaces of Gymnasium in the one form that the agent knows: a vector or an image of bytes, and actions from 0.

observations   Box of any shape, Discrete (one-hot), MultiDiscrete, MultiBinary, Tuple, Dict: flattened to a vector;
               images with channels first: channels last
actions        Discrete with any start: from 0; MultiDiscrete: one number for each combination
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.spaces.utils import flatten_space
from gymnasium.wrappers import FlattenObservation, TransformAction, TransformObservation

from iqrl.errors import BadInput

MOST_ACTIONS = 1024
"""combinations of MultiDiscrete actions"""
MOST_NUMBERS = 4096
"""of a flattened observation; more are an image"""


def in_known_spaces(name: str, env: gymnasium.Env) -> gymnasium.Env:
    """The environment with wrappers around it where its spaces are of another form."""
    for space in ("action_space", "observation_space"):
        if getattr(env, space, None) is None:
            raise BadInput(f"{name} has no {space}; an environment declares which actions and observations it has.")
    return _with_vectors_or_images(name, _with_numbered_actions(name, env))


def is_image(space: Space) -> bool:
    bytes_in_rows = isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)
    # Pictures of other numbers are too many to be a vector; what is to be done about them is said later.
    return bytes_in_rows or (isinstance(space, Box) and len(space.shape) == 3 and math.prod(space.shape) > MOST_NUMBERS)


def _with_vectors_or_images(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space = env.observation_space
    if isinstance(space, Box) and is_image(space):
        return _with_channels_last(env, space)
    if isinstance(space, Box) and len(space.shape) == 1:
        return env
    try:
        flat = flatten_space(space)
    except NotImplementedError:
        flat = None
    if not isinstance(flat, Box):
        raise BadInput(
            f"{name} has observations of the kind {type(space).__name__}, which cannot be flattened to a vector; wrap "
            f"it in a gymnasium.ObservationWrapper that makes a Box of them."
        )
    if flat.shape[0] > MOST_NUMBERS:
        raise BadInput(
            f"{name} has observations that flatten to {flat.shape[0]:,} numbers, and at most {MOST_NUMBERS:,} can be a "
            f"vector; show images as a Box of bytes (uint8) of shape [height, width, channels]."
        )
    return FlattenObservation(env)


def _with_channels_last(env: gymnasium.Env, space: Box) -> gymnasium.Env:
    if len(space.shape) != 3 or not space.shape[0] <= 4 < min(space.shape[1:]):
        return env
    last = lambda image: np.moveaxis(np.asarray(image), 0, -1)
    shown = Box(last(space.low), last(space.high), dtype=space.dtype.type)
    return TransformObservation(env, last, shown)


def _with_numbered_actions(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space: Any = env.action_space
    if isinstance(space, Discrete):
        start = int(space.start)
        return env if start == 0 else TransformAction(env, lambda action: action + start, Discrete(int(space.n)))
    if isinstance(space, MultiBinary):
        space = MultiDiscrete(np.full(space.shape, 2))
    if not isinstance(space, MultiDiscrete):
        raise BadInput(
            f"{name} has actions {env.action_space}; only discrete actions can be learned by Q values: Discrete, or "
            f"MultiDiscrete with at most {MOST_ACTIONS:,} combinations."
        )
    sizes, starts = tuple(map(int, space.nvec.ravel())), space.start.ravel()
    count = math.prod(sizes)
    if count > MOST_ACTIONS:
        raise BadInput(
            f"{name} has {count:,} combinations of actions, and at most {MOST_ACTIONS:,} can have a Q value each; wrap "
            f"it in a gymnasium.ActionWrapper that offers fewer."
        )

    def split(action: int) -> np.ndarray:
        each = np.asarray(np.unravel_index(int(action), sizes)) + starts
        return each.reshape(space.nvec.shape).astype(space.dtype)

    return TransformAction(env, split, Discrete(count))
