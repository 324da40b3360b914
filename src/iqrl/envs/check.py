"""A task of the user's own, tried before anything is compiled or written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Env, Space

from iqrl.envs.base import EnvInputs, Task
from iqrl.envs.masks import BadMask, gives_mask, read_mask
from iqrl.errors import BadInput, shown
from iqrl.plugins import in_a_sentence
from iqrl.settings import LARGEST


def check_task(name: str, task: Any) -> Task:
    """The task, if its functions fit together; raises BadInput otherwise."""
    if not isinstance(task, Task):
        raise BadInput(f"{name} makes {type(task).__name__}, not an iqrl.Task or a gymnasium.Env.")
    _check_fields(name, task)
    if task.external is not None:
        return task
    whole: Any = jax.ShapeDtypeStruct((), jnp.int32)
    uniforms: Any = lambda count: jax.ShapeDtypeStruct((count,), jnp.float32)
    inputs = lambda count: EnvInputs(uniforms=uniforms(count), step=whole)
    state = _traced(name, "reset", task.reset, inputs(task.num_reset_uniforms))
    again = _traced(name, "reset", task.reset, inputs(task.num_reset_uniforms)._replace(previous=state))
    obs = _traced(name, "observe", task.observe, state)
    shape = getattr(obs, "shape", None)
    image = task.image
    if image and shape != task.observation_shape:
        raise BadInput(f"{name}: observe gives shape {shape}, but its image is {task.observation_shape}.")
    size = image.frame + image.vector if image else len(task.low)
    if (not image and shape != (size,)) or not size == len(task.low) == len(task.high):
        raise BadInput(f"{name}: observe gives shape {shape}, but low and high have {len(task.low)}, {len(task.high)}.")
    if task.action_mask is not None:
        mask = _traced(name, "action_mask", task.action_mask, state)
        if (getattr(mask, "shape", None), getattr(mask, "dtype", None)) != ((task.actions,), bool):
            raise BadInput(f"{name}: action_mask must give a boolean for each of the {task.actions} actions.")
    after = _traced(name, "step", task.step, state, whole, inputs(task.num_step_uniforms))
    if not isinstance(after, tuple) or len(after) != 3:
        raise BadInput(f"{name}: step must return (state, reward, terminated).")
    if not _same_shapes(after[0], state):
        raise BadInput(f"{name}: step returns a state of another shape or type than reset does.")
    if not _same_shapes(again, state):
        raise BadInput(f"{name}: reset returns another shape or type after an episode than before the first one.")
    if getattr(after[1], "shape", None) != () or getattr(after[2], "shape", None) != () or after[2].dtype != bool:
        raise BadInput(f"{name}: step must return a scalar reward and a boolean scalar that says whether it is over.")
    return task


def _check_fields(name: str, task: Task) -> None:
    """What is declared, before anything is computed with it."""
    for field, least in (("actions", 1), ("time_limit", 1), ("num_reset_uniforms", 0), ("num_step_uniforms", 0)):
        value = getattr(task, field)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= LARGEST:
            raise BadInput(f"{name}: {field} must be a whole number from {least}, got {shown(value)}.")
    if not isinstance(task.name, str) or not task.name:
        raise BadInput(f"{name}: name must be text, got {shown(task.name)}.")
    for field in ("reset", "step", "observe"):
        if not callable(getattr(task, field)):
            raise BadInput(f"{name}: {field} must be a function, got {shown(getattr(task, field))}.")
    low, high = (_bounds(name, field, getattr(task, field)) for field in ("low", "high"))
    if len(low) == len(high) and (low > high).any():
        raise BadInput(f"{name}: low must nowhere be above high.")


def _bounds(name: str, field: str, values: Any) -> np.ndarray:
    wrong = BadInput(f"{name}: {field} must be finite numbers, one for each variable, got {shown(values)}.")
    try:
        bounds = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    if bounds.ndim != 1 or not bounds.size or not np.isfinite(bounds).all():
        raise wrong
    return bounds


def _same_shapes(one: Any, other: Any) -> bool:
    same = jax.tree.structure(one) == jax.tree.structure(other)
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=False)
    return same and all((x.shape, x.dtype) == (y.shape, y.dtype) for x, y in leaves)


def check_environment(name: str, env: Env, actions: Space) -> bool:
    """A reset and a step; raises BadInput if they do not fit the spaces of the environment.

    `actions`: its own space of them, before they were numbered. It says whether the environment gives action masks.
    """
    first = _tried(name, "reset(seed=0)", lambda: env.reset(seed=0), "Gymnasium calls reset(seed=…, options=…)")
    if not isinstance(first, tuple) or len(first) != 2:
        raise BadInput(f"{name}: reset must return (observation, info).")
    masked = gives_mask(env, first[1])
    legal = _mask(name, "reset", lambda: read_mask(actions, env, first[1])) if masked else np.ones(1, bool)
    action = int(np.argmax(legal))
    after = _tried(name, f"step({action})", lambda: env.step(action))
    if not isinstance(after, tuple) or len(after) != 5:
        raise BadInput(f"{name}: step must return (observation, reward, terminated, truncated, info).")
    for part, obs in (("reset", first[0]), ("step", after[0])):
        wrong = unlike_space(obs, env)
        if wrong:
            raise BadInput(f"{name}: {part} gives an observation {wrong}.")
        if not np.isfinite(obs).all():
            raise BadInput(f"{name}: {part} gives an observation that is not finite.")
    if wrong := unlike_reward(after[1]):
        raise BadInput(f"{name}: step gives a reward {wrong}.")
    if gives_mask(env, after[4]) and not masked:
        raise BadInput(f"{name}: step gives an action mask and reset does not; the first action needs one too.")
    if masked and not _tried(name, "step", lambda: bool(after[2])):
        _mask(name, "step", lambda: read_mask(actions, env, after[4]))
    return masked


def _mask(name: str, part: str, read: Callable[[], np.ndarray]) -> np.ndarray:
    try:
        return read()
    except BadMask as wrong:
        raise BadInput(f"{name}: {part} gives {wrong}.") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name}: action_masks failed with {in_a_sentence(error)}.") from error


def unlike_reward(reward: Any) -> str:
    """What is wrong with a reward, if anything."""
    if isinstance(reward, float | np.floating):  # nearly always
        return "" if math.isfinite(reward) else "that is not finite"
    try:
        number = np.asarray(reward)
        if number.shape != () or number.dtype.kind not in "biuf":
            return f"that is no number: {shown(reward)}"
        return "" if np.isfinite(number) else "that is not finite"
    except ValueError:  # lists of different lengths
        return f"that is no number: {shown(reward)}"


def unlike_space(obs: Any, env: Env) -> str:
    """What is wrong with an observation, if anything."""
    space = env.observation_space
    if type(obs) is np.ndarray and (obs.shape, obs.dtype) == (space.shape, space.dtype):  # nearly always
        return ""
    try:
        array = np.asarray(obs)
    except ValueError:  # lists of different lengths
        return "that is no array"
    shape, kind = array.shape, array.dtype
    if kind.kind not in "biuf":
        return f"of {kind}, which are not numbers"
    if shape != space.shape:
        return f"of shape {shape}, but its space has {space.shape}"
    if space.dtype == np.uint8 and not np.can_cast(kind, np.uint8):
        return f"of {kind}, but its space has bytes (uint8)"
    return ""


def _traced(name: str, part: str, function: Any, *arguments: Any) -> Any:
    return _tried(name, part, lambda: jax.eval_shape(function, *arguments))


def _tried(name: str, part: str, function: Callable[[], Any], form: str = "") -> Any:
    """`form`: how Gymnasium calls it, for environments of another form."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        hint = f"; {form}" if form and isinstance(error, TypeError) else ""
        raise BadInput(f"{name}: {part} failed with {in_a_sentence(error)}{hint}.") from error
