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
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatten, flatten_space
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
    except (NotImplementedError, ValueError, TypeError):  # a kind without vectors, or nothing in it
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


def channels_first(space: Space) -> bool:
    return isinstance(space, Box) and len(space.shape) == 3 and space.shape[0] <= 4 < min(space.shape[1:])


def _with_channels_last(env: gymnasium.Env, space: Box) -> gymnasium.Env:
    if not channels_first(space):
        return env
    shown = Box(_last(space.low), _last(space.high), dtype=space.dtype.type)
    return TransformObservation(env, _last, shown)


def _last(image: Any) -> np.ndarray:
    return np.moveaxis(np.asarray(image), 0, -1)


def _with_numbered_actions(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space: Any = env.action_space
    if not isinstance(space, Discrete | MultiDiscrete | MultiBinary):
        raise BadInput(
            f"{name} has actions {env.action_space}; only discrete actions can be learned by Q values: Discrete, or "
            f"MultiDiscrete with at most {MOST_ACTIONS:,} combinations."
        )
    count = count_actions(space)
    if count > MOST_ACTIONS:
        raise BadInput(
            f"{name} has {count:,} combinations of actions, and at most {MOST_ACTIONS:,} can have a Q value each; wrap "
            f"it in a gymnasium.ActionWrapper that offers fewer."
        )
    if isinstance(space, Discrete) and space.start == 0:
        return env
    return TransformAction(env, lambda action: decode_action(space, action), Discrete(count))


# One observation, one action


def count_actions(space: Any) -> int:
    return int(space.n) if isinstance(space, Discrete) else math.prod(sizes_of(space))


def sizes_of(space: Any) -> tuple[int, ...]:
    """How many choices each dimension of several has."""
    return tuple(map(int, np.full(space.shape, 2).ravel() if isinstance(space, MultiBinary) else space.nvec.ravel()))


def encode_observation(space: Space, obs: Any) -> np.ndarray:
    """An observation of the space as the agent gets it."""
    if isinstance(space, Box) and is_image(space):
        return _last(obs) if channels_first(space) else np.asarray(obs)
    return np.asarray(flatten(space, obs))


def decode_action(space: Any, number: Any) -> Any:
    """The action of the space that has this number."""
    if isinstance(space, Discrete):
        return space.dtype.type(int(number) + int(space.start))
    starts = 0 if isinstance(space, MultiBinary) else space.start.ravel()
    each = np.asarray(np.unravel_index(int(number), sizes_of(space))) + starts
    return each.reshape(space.shape).astype(space.dtype)


# Spaces in a file


def describe_space(space: Any) -> dict[str, Any]:
    """As JSON has it; bounds of a box are left out, since encoding does not need them."""
    kind = type(space).__name__
    if isinstance(space, Box):
        return {"kind": kind, "shape": list(space.shape), "bytes": bool(space.dtype == np.uint8)}
    if isinstance(space, Discrete):
        return {"kind": kind, "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        return {"kind": kind, "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, MultiBinary):
        return {"kind": kind, "shape": list(space.shape)}
    if isinstance(space, Tuple):
        return {"kind": kind, "spaces": [describe_space(each) for each in space.spaces]}
    if isinstance(space, Dict):
        return {"kind": kind, "spaces": [[name, describe_space(each)] for name, each in space.spaces.items()]}
    raise BadInput(f"a space of the kind {kind} cannot be written to a file.")


def read_space(described: Any) -> Any:
    kind = described["kind"]
    if kind == "Box":
        shape = tuple(described["shape"])
        return Box(0, 255, shape, np.uint8) if described["bytes"] else Box(-np.inf, np.inf, shape, np.float32)
    if kind == "Discrete":
        return Discrete(described["n"], start=described["start"])
    if kind == "MultiDiscrete":
        return MultiDiscrete(np.array(described["nvec"]), start=np.array(described["start"]))
    if kind == "MultiBinary":
        return MultiBinary(described["shape"])
    if kind == "Tuple":
        return Tuple([read_space(each) for each in described["spaces"]])
    return Dict([(name, read_space(each)) for name, each in described["spaces"]])
