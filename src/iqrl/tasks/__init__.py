"""The tasks by name. A task of your own is named `module:attribute`."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable

import gymnasium
import numpy as np

from iqrl.config import Run, TaskOptions
from iqrl.errors import BadInput, PackagesMissing, unknown
from iqrl.plugins import load_attribute, load_module
from iqrl.tasks.acrobot import acrobot
from iqrl.tasks.atari import atari_task
from iqrl.tasks.atari_names import game_names
from iqrl.tasks.base import Task, scaled
from iqrl.tasks.cartpole import cartpole
from iqrl.tasks.check import check_task
from iqrl.tasks.hosted import gymnasium_task, made
from iqrl.tasks.minatar import asterix, breakout, freeway, seaquest, space_invaders
from iqrl.tasks.mountain_car import mountain_car
from iqrl.tasks.pendulum import pendulum
from iqrl.tasks.probes import PROBES

TASKS: dict[str, Callable[[TaskOptions], Task]] = {
    "CartPole-v0": lambda options: cartpole("CartPole-v0", 200, 400_000, 10_000),
    "CartPole-v1": lambda options: cartpole("CartPole-v1", 500, 1_000_000, 20_000),
    "Acrobot-v1": lambda options: acrobot("Acrobot-v1"),
    "Pendulum-v0": lambda options: pendulum("Pendulum-v0", options.torques),
    "MountainCar": lambda options: mountain_car("MountainCar", 1000, options.shaping_scale),
    "MountainCar-v0": lambda options: mountain_car("MountainCar-v0", 200, None),
    "MinAtar/Asterix-v1": lambda options: asterix("MinAtar/Asterix-v1", stickiness(options, 0.1)),
    "MinAtar/Breakout-v1": lambda options: breakout("MinAtar/Breakout-v1", stickiness(options, 0.1)),
    "MinAtar/Freeway-v1": lambda options: freeway("MinAtar/Freeway-v1", stickiness(options, 0.1)),
    "MinAtar/Seaquest-v1": lambda options: seaquest("MinAtar/Seaquest-v1", stickiness(options, 0.1)),
    "MinAtar/SpaceInvaders-v1": lambda options: space_invaders("MinAtar/SpaceInvaders-v1", stickiness(options, 0.1)),
}


def stickiness(options: TaskOptions, usual: float) -> float:
    return usual if options.sticky is None else options.sticky


SETTINGS_OF = {"torques": ("Pendulum-v0",), "shaping_scale": ("MountainCar",), "sticky": ("MinAtar/", "ALE/")}
"""settings that only some tasks use; a slash stands for all of a kind"""


def make_task(run: Run) -> Task:
    """The run's task with its options applied."""
    task = find_task(run.task)(run)
    if run.max_episode_steps is not None:
        if task.host is not None and run.max_episode_steps > task.time_limit:
            raise BadInput(
                f"max_episode_steps is {run.max_episode_steps}; {run.task} ends after {task.time_limit} steps as it is."
            )
        task = task._replace(time_limit=run.max_episode_steps)
    if run.reward_scale == 1:
        return task
    own, scale = task.host_reward, np.float32(run.reward_scale)
    learned = scaled(task.learned_reward, run.reward_scale)
    return task._replace(learned_reward=learned, host_reward=lambda rewards: scale * own(rewards))


def find_task(name: str) -> Callable[[TaskOptions], Task]:
    if name in TASKS:
        return TASKS[name]
    if name in PROBES:
        return lambda options: PROBES[name]
    if name.startswith("ALE/"):
        return lambda options: atari_task(name, options)
    if _is_registered(name):
        return lambda options: gymnasium_task(name, lambda: gymnasium.make(name), options.frame_stack)
    if ":" not in name:
        raise unknown("task", name, TASKS, also=_registered())
    found = load_attribute(name)
    if isinstance(found, Task):
        return lambda options: check_task(name, found)
    if callable(found):
        return lambda options: _made_by(name, found, options)
    raise BadInput(
        f"{name} is {type(found).__name__}, not an iqrl.Task, a gymnasium.Env class, or a function that makes one of "
        f"these."
    )


def _registered() -> list[str]:
    """What Gymnasium has, and the games of Atari where they are installed; not those under their old names."""
    names = [name for name, spec in gymnasium.registry.items() if "ale_py" not in str(spec.entry_point)]
    with contextlib.suppress(PackagesMissing):
        names += [f"ALE/{game}-v5" for game in game_names()]
    return names


def _is_registered(name: str) -> bool:
    """With Gymnasium, by this name or, as in package:Name-v0, when the package has been imported."""
    identifier = name.partition(":")[2]
    if identifier and not identifier.isidentifier():
        load_module(name)
        if identifier not in gymnasium.registry:
            raise unknown("environment", identifier, gymnasium.registry)
    return (identifier or name) in gymnasium.registry


def _made_by(name: str, maker: Callable, options: TaskOptions) -> Task:
    """What a class or function of the user's own makes; a function that asks for something is given the options."""
    given = (options,) if not isinstance(maker, type) and _asks(maker) else ()
    make = lambda: maker(*given)
    task = made(name, make)
    if isinstance(task, gymnasium.Env):
        return gymnasium_task(name, make, options.frame_stack)
    return check_task(name, task)


def _asks(function: Callable) -> bool:
    parameters = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.default is each.empty and each.kind in by_position for each in parameters)


def _is_of(task: str, kind: str) -> bool:
    return task.startswith(kind) if kind.endswith("/") else task == kind


def refuse_unused(task: Task, settings: Iterable[str]) -> None:
    """A setting of another task would change nothing here; only a function of one's own may read any."""
    if ":" in task.name and task.host is None:
        return
    for setting in settings:
        names = SETTINGS_OF.get(setting, ())
        if names and not any(_is_of(task.name, kind) for kind in names):
            raise BadInput(f"{setting} is a setting of {' and '.join(names)}; it does not apply to {task.name}.")
    if "frame_stack" in settings and (task.host is None or task.name.startswith("ALE/")):
        raise BadInput(f"frame_stack is a setting of Gymnasium's environments; it does not apply to {task.name}.")
