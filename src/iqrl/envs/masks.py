"""Action masks as environments give them: in `info["action_mask"]`, or by a method `action_masks()`, as sb3-contrib
takes them. Here they become what the agent knows, a boolean for each of its actions.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from iqrl.envs.spaces import count_actions, sizes_of

KEY, METHOD = "action_mask", "action_masks"


class BadMask(ValueError):
    """Says what was given in place of a mask."""


def gives_mask(env: gymnasium.Env, info: Any) -> bool:
    return _in_info(info) or _has_method(env)


def _in_info(info: Any) -> bool:
    return isinstance(info, Mapping) and info.get(KEY) is not None


def _has_method(env: gymnasium.Env) -> bool:
    return env.has_wrapper_attr(METHOD) and callable(env.get_wrapper_attr(METHOD))


def read_mask(space: Any, env: gymnasium.Env, info: Any) -> np.ndarray:
    """[A]: which actions are legal now; `space` has the actions as the environment knows them."""
    if not gives_mask(env, info):
        raise BadMask(f'no action mask, though its first reset did; info["{KEY}"] must be there in every step')
    legal = as_mask(space, info[KEY] if _in_info(info) else env.get_wrapper_attr(METHOD)())
    if not legal.any():
        raise BadMask("an action mask in which no action is legal")
    return legal


def as_mask(space: Any, given: Any) -> np.ndarray:
    """[A]: a boolean for each action, of a mask for them or of masks for each dimension, one after the other."""
    one_action = isinstance(space, Discrete)
    sizes = (int(space.n),) if one_action else sizes_of(space)
    several = isinstance(given, tuple) and not one_action
    mask = as_booleans(np.concatenate([np.ravel(part) for part in given]) if several else given)
    # Four booleans for (2, 2) could be either: they are two for each dimension. An array (2, 2) is of combinations.
    if mask.shape == (sum(sizes),):
        each = np.split(mask, np.cumsum(sizes)[:-1])
        return functools.reduce(np.logical_and.outer, each).reshape(-1)
    if mask.shape in ((count_actions(space),), sizes):
        return mask.reshape(-1)
    wanted = f"{count_actions(space)}" + ("" if one_action else f", or {sum(sizes)} for its dimensions one by one")
    raise BadMask(f"an action mask of shape {mask.shape}, which must have {wanted}")


def as_booleans(given: Any) -> np.ndarray:
    try:
        mask = np.asarray(given)
    except ValueError:  # lists of different lengths
        raise BadMask("an action mask that is no array") from None
    if mask.dtype != bool and not (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all()):
        raise BadMask(f"an action mask of {mask.dtype}, which must be booleans, or whole numbers that are 0 or 1")
    return mask.astype(bool)
