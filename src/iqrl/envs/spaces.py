"""Spaces of Gymnasium in the forms that the agent knows: a vector, an image of bytes or both, and actions from 0.

observations   Box of any shape, Discrete (one-hot), MultiDiscrete, MultiBinary, Tuple, Dict: flattened to a vector;
               images with channels first: channels last;
               images in a Tuple or Dict: one image with the channels of all, and a vector of the other parts
actions        Discrete with any start: from 0; MultiDiscrete: one number for each combination
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.wrappers import FlattenObservation, TransformAction, TransformObservation

from iqrl.core.encoders import Image
from iqrl.errors import BadInput

MOST_ACTIONS = 1024
"""combinations of MultiDiscrete actions"""
MOST_NUMBERS = 4096
"""of a flattened observation; more are an image"""
WITH_VECTORS = (Box, Discrete, MultiDiscrete, MultiBinary)
"""spaces whose observations are flattened to a vector"""
SMALLEST = 3
"""sides of an image in a Tuple or Dict; a smaller table of bytes is a part of the vector"""


def in_known_spaces(name: str, env: gymnasium.Env, flat: bool = False) -> gymnasium.Env:
    """The environment with wrappers around it where its spaces are of another form.

    `flat`: images are part of the vector.
    """
    for space in ("action_space", "observation_space"):
        if getattr(env, space, None) is None:
            raise BadInput(f"{name} has no {space}; an environment declares which actions and observations it has.")
    env = _with_numbered_actions(name, env)
    return _with_vectors(name, env) if flat else _with_vectors_or_images(name, env)


def is_image(space: Space) -> bool:
    bytes_in_rows = isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)
    # Pictures of other numbers are too many to be a vector; what is to be done about them is said later.
    return bytes_in_rows or (isinstance(space, Box) and len(space.shape) == 3 and math.prod(space.shape) > MOST_NUMBERS)


def _with_vectors_or_images(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space = env.observation_space
    if isinstance(space, Box) and is_image(space):
        return _with_channels_last(env, space)
    if any(is_image_part(part) for part, _ in parts_of(space, space)):
        return _with_images_in_one(name, env)
    return _with_vectors(name, env)


def _with_vectors(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space = env.observation_space
    if isinstance(space, Box) and len(space.shape) == 1:
        return env
    _flat_space(name, space)
    return FlattenObservation(env)


def _flat_space(name: str, space: Space) -> Box:
    """Of the vector that a space is flattened to; raises BadInput where there is none."""
    parts = [part for part, _ in parts_of(space, space)]
    flat = flatten_space(space) if parts and all(isinstance(part, WITH_VECTORS) for part in parts) else None
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
    return flat


def channels_first(space: Space) -> bool:
    return isinstance(space, Box) and len(space.shape) == 3 and space.shape[0] <= 4 < min(space.shape[1:])


def _with_channels_last(env: gymnasium.Env, space: Box) -> gymnasium.Env:
    if not channels_first(space):
        return env
    shown = Box(_last(space.low), _last(space.high), dtype=space.dtype.type)
    return TransformObservation(env, _last, shown)


def _last(image: Any) -> np.ndarray:
    return np.moveaxis(np.asarray(image), 0, -1)


# Images among other parts


class ImageBesideVector(gymnasium.ObservationWrapper):
    """Observations of several parts as numbers in a row: the pixels of `image`, then a vector of the other parts."""

    def __init__(self, env: gymnasium.Env, image: Image, vector: Box):
        super().__init__(env)
        self.image = image
        of_pixels = lambda number: np.full(image.frame, number)
        low, high = np.append(of_pixels(0), vector.low), np.append(of_pixels(image.highest), vector.high)
        self.observation_space = Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return encode_observation(self.env.observation_space, observation, self.image)


def parts_of(space: Space, obs: Any) -> Iterator[tuple[Space, Any]]:
    """What a Tuple or Dict consists of, and each part of an observation; any other space is one part."""
    if isinstance(space, Dict):
        for name, part in space.spaces.items():
            yield from parts_of(part, obs[name])
    elif isinstance(space, Tuple):
        for part, seen in zip(space.spaces, obs, strict=True):
            yield from parts_of(part, seen)
    else:
        yield space, obs


def is_image_part(part: Space) -> bool:
    return is_image(part) and min(_shape_of_image(part)[:2]) >= SMALLEST


def _shape_of_image(part: Any) -> tuple[int, int, int]:
    """Height, width, channels."""
    first, second, third = (*part.shape, 1)[:3]
    return (second, third, first) if channels_first(part) else (first, second, third)


def _with_images_in_one(name: str, env: gymnasium.Env) -> gymnasium.Env:
    space = env.observation_space
    parts = [part for part, _ in parts_of(space, space)]
    image = _image_of_all(name, [part for part in parts if is_image_part(part)])
    others = [part for part in parts if not is_image_part(part)]
    if others:
        vector = _flat_space(name, Tuple(others))
        return ImageBesideVector(env, image._replace(vector=vector.shape[0]), vector)
    shown = Box(0, int(image.highest), image[:3], np.uint8)
    return TransformObservation(env, lambda obs: encode_observation(space, obs, image), shown)


def _image_of_all(name: str, parts: list[Any]) -> Image:
    kinds = {str(part.dtype) for part in parts} - {"uint8"}
    if kinds:
        raise BadInput(f"{name} has images of {kinds.pop()}; they must be bytes (uint8).")
    shapes = [_shape_of_image(part) for part in parts]
    alike = {(*shape[:2], float(part.high.max())) for shape, part in zip(shapes, parts, strict=True)}
    if len(alike) > 1:
        raise BadInput(
            f"{name} has images of several sizes or highest values; wrap it in a gymnasium.ObservationWrapper that "
            f"gives them one size and one highest value, or make a vector of all parts by flatten_observations."
        )
    height, width, highest = alike.pop()
    return Image(height, width, sum(channels for _, _, channels in shapes), highest=highest)


def _as_image(part: Any, seen: Any) -> np.ndarray:
    """[height, width, channels] of bytes."""
    seen = np.asarray(seen)
    if seen.shape != part.shape or not np.can_cast(seen.dtype, np.uint8):
        raise ValueError(f"an image of {seen.dtype} and shape {seen.shape}, but its space has {part.shape} of uint8")
    return (_last(seen) if channels_first(part) else seen).reshape(_shape_of_image(part))


# Actions


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


def encode_observation(space: Space, obs: Any, image: Image | None) -> np.ndarray:
    """An observation of the space as the agent gets it; `image`: what of it is one.

    Where frames are stacked, the observation is a sequence of the last ones, fewer where the episode has fewer.
    """
    if image is None:
        return np.asarray(flatten(space, obs))
    if image.stack > 1:
        return _encode_stack(space, obs, image)
    if isinstance(space, Box):
        return _last(obs) if channels_first(space) else np.asarray(obs)
    parts = list(parts_of(space, obs))
    pixels = np.concatenate([_as_image(part, seen) for part, seen in parts if is_image_part(part)], axis=-1)
    if not image.vector:
        return pixels
    vector = [np.asarray(flatten(part, seen)) for part, seen in parts if not is_image_part(part)]
    return np.concatenate([pixels.ravel(), *vector]).astype(np.float32)


def _encode_stack(space: Space, frames: Any, image: Image) -> np.ndarray:
    if not isinstance(frames, list | tuple | deque) or not 1 <= len(frames) <= image.stack:
        raise ValueError(f"frame_stack is {image.stack}, so it must be a tuple of the last {image.stack}, oldest first")
    encoded = [encode_observation(space, frame, image._replace(stack=1)) for frame in frames]
    before = [np.zeros_like(encoded[0])] * (image.stack - len(encoded))
    return np.stack([*before, *encoded])


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
