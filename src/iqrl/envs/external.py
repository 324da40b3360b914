"""Any Gymnasium environment with discrete actions as a task: it is stepped outside the compiled program."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.wrappers import FrameStackObservation

from iqrl.core.encoders import MINATAR, NATURE, Image, Layers
from iqrl.envs.base import Task, external_task
from iqrl.envs.check import check_environment
from iqrl.envs.masks import read_mask
from iqrl.envs.spaces import ImageBesideVector, in_known_spaces, is_image
from iqrl.errors import BadInput, PackagesMissing, shown
from iqrl.plugins import Held, in_a_sentence
from iqrl.settings import Settings, setting

NO_LIMIT = 2**30
"""steps: the environment's own limit is enough"""


class ExternalSettings(Settings):
    """Gymnasium's environments"""

    frame_stack: int = setting(1, "images: frames that are stacked; Atari always has 4", minimum=1, paper="4")
    flatten_observations: bool = setting(False, "images, alone or in a Tuple or Dict, are part of a vector")
    env_kwargs: str = setting("", 'keyword arguments of the environment, as JSON, such as \'{"map_name": "8x8"}\'')


class VectorSettings(Settings):
    """environments outside the program"""

    n_envs: int = setting(1, "environments per seed that are stepped together; each step of one counts", minimum=1)
    env_processes: int = setting(0, "processes that the environments are spread over; 0: in this one", minimum=0)


def gymnasium_task(name: str, make: Callable[[], gymnasium.Env], stack: int = 1, flat: bool = False) -> Task:
    """The task that the environments made are; of images, `stack` are seen together, unless they are made `flat`."""
    made = make_environment(name, make)
    env = in_known_spaces(name, made, flat)
    task = task_of_environment(name, env, lambda seed: in_known_spaces(name, make(), flat), stack)
    whole = stack == 1 or isinstance(made.observation_space, Dict | Tuple)
    task = task._replace(spaces=(made.observation_space, made.action_space) if whole else None)
    if check_environment(name, env, made.action_space):
        task = task._replace(external_mask=partial(read_mask, made.action_space))
    with contextlib.suppress(Exception):  # nothing more is wanted of it
        env.close()
    return task


def keywords_of(given: str) -> dict[str, Any]:
    """The keyword arguments in `env_kwargs`."""
    try:
        found = json.loads(given) if given else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadInput(f'env_kwargs is {shown(given)}; it must be a JSON object, such as {{"size": 5}}.')
    return found


def copies_of(env: gymnasium.Env) -> Held:
    """A function that makes environments like this one, each with a state of its own."""
    label = type(env.unwrapped).__name__
    if env.spec is not None:
        spec = env.spec
        return Held(lambda: gymnasium.make(spec), label)
    try:
        whole = copy.deepcopy(env)
    except Exception as error:
        raise BadInput(
            f"the {label} given cannot be copied ({in_a_sentence(error)}); give its class or a function that makes it."
        ) from error
    return Held(lambda: copy.deepcopy(whole), label)


def make_environment(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except gymnasium.error.DependencyNotInstalled as error:
        raise PackagesMissing(f"{name} cannot be made: {in_a_sentence(error)}.", "packages of Gymnasium") from error
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name} cannot be made: {in_a_sentence(error)}.") from error


def task_of_environment(name: str, env: gymnasium.Env, make: Callable[[int], gymnasium.Env], stack: int = 1) -> Task:
    """The task that an environment is; `make(seed)` makes one of its kind."""
    space, actions = env.observation_space, env.action_space
    assert isinstance(space, Box)
    assert isinstance(actions, Discrete)
    if isinstance(env, ImageBesideVector):
        described = _beside_vector(name, env, stack)
    elif is_image(space):
        described = _as_image(name, space, stack)
    elif stack == 1:
        described = _as_vector(name, space)
    else:
        raise BadInput(f"frame_stack is for images, and {name} has none.")
    return external_task(
        make if stack == 1 else lambda seed: FrameStackObservation(make(seed), stack, padding_type="zero"),
        name=name,
        actions=int(actions.n),
        time_limit=NO_LIMIT,
        summary="an environment of Gymnasium",
        **described,
    )


def _as_vector(name: str, space: Box) -> dict[str, Any]:
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
    image = Image(height, width, channels, stack, float(space.high.max()))
    return _of_image(image, (0.0,) * image.frame, (image.highest,) * image.frame)


def _beside_vector(name: str, env: ImageBesideVector, stack: int) -> dict[str, Any]:
    """The numbers of a frame, then those of the vector, which has the ranges of a vector alone."""
    image, space = env.image._replace(stack=stack), env.observation_space
    assert isinstance(space, Box)
    vector = _as_vector(name, Box(space.low[image.frame :], space.high[image.frame :], dtype=np.float32))
    frame = image.frame
    return _of_image(image, (0.0,) * frame + vector["low"], (image.highest,) * frame + vector["high"])


def _of_image(image: Image, low: tuple[float, ...], high: tuple[float, ...]) -> dict[str, Any]:
    """`low`, `high`: of the numbers that come with one frame."""
    layers = convolutions_for(image)
    return {
        "low": low * image.stack, "high": high * image.stack, "image": image,
        "layers": layers, "defaults": IMAGE_DEFAULTS,
        "network": (("hidden", (512,) if layers == NATURE else (128,)), ("own_layers", 1)),
    }  # fmt: skip


def convolutions_for(image: Image) -> Layers:
    """Those of Mnih et al. 2015, or for small images one layer."""
    return NATURE if min(image.height, image.width) >= 36 else MINATAR
