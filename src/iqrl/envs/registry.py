"""The tasks by name. A task of your own is named `module:attribute`."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from iqrl.envs.atari import atari_task, game_names
from iqrl.envs.base import Task, TaskEntry, scaled
from iqrl.envs.check import check_task
from iqrl.envs.classic.acrobot import acrobot
from iqrl.envs.classic.cartpole import cartpole
from iqrl.envs.classic.mountain_car import MountainCarSettings, mountain_car
from iqrl.envs.classic.pendulum import PendulumSettings, pendulum
from iqrl.envs.classic.probes import PROBES
from iqrl.envs.external import ExternalSettings, VectorSettings, gymnasium_task, keywords_of, make_environment
from iqrl.envs.minatar import asterix, breakout, freeway, seaquest, space_invaders
from iqrl.envs.minatar.game import GameSettings
from iqrl.errors import BadInput, PackagesMissing, unknown
from iqrl.plugins import load_attribute, load_module
from iqrl.settings import Run, Settings, TaskSettings, check_groups, task_settings_class


def minatar(name: str, game: Callable[[str, float], Task]) -> TaskEntry:
    return TaskEntry(lambda given: game(name, 0.1 if given.sticky is None else given.sticky), (GameSettings,))


TASKS: dict[str, TaskEntry] = {
    "CartPole-v0": TaskEntry(lambda given: cartpole("CartPole-v0", 200, 400_000, 10_000)),
    "CartPole-v1": TaskEntry(lambda given: cartpole("CartPole-v1", 500, 1_000_000, 20_000)),
    "Acrobot-v1": TaskEntry(lambda given: acrobot("Acrobot-v1")),
    "Pendulum-v0": TaskEntry(lambda given: pendulum("Pendulum-v0", given.torques), (PendulumSettings,)),
    "MountainCar": TaskEntry(
        lambda given: mountain_car("MountainCar", 1000, given.shaping_scale), (MountainCarSettings,)
    ),
    "MountainCar-v0": TaskEntry(lambda given: mountain_car("MountainCar-v0", 200, None)),
    "MinAtar/Asterix-v1": minatar("MinAtar/Asterix-v1", asterix),
    "MinAtar/Breakout-v1": minatar("MinAtar/Breakout-v1", breakout),
    "MinAtar/Freeway-v1": minatar("MinAtar/Freeway-v1", freeway),
    "MinAtar/Seaquest-v1": minatar("MinAtar/Seaquest-v1", seaquest),
    "MinAtar/SpaceInvaders-v1": minatar("MinAtar/SpaceInvaders-v1", space_invaders),
}
CONTINUOUS = ("mujoco", "Continuous", "Pendulum", "BipedalWalker", "CarRacing")
"""in names or modules of Gymnasium's environments whose actions are not discrete"""
HOSTED: tuple[type[Settings], ...] = (ExternalSettings, VectorSettings)
"""settings of Gymnasium's environments"""
TASK_GROUPS: tuple[type[Settings], ...] = (PendulumSettings, MountainCarSettings, GameSettings, *HOSTED)
"""settings that only some tasks have"""


def make_task(run: Run) -> Task:
    """The run's task with its settings applied."""
    task = task_of(find_task(run.task), run)
    if run.max_episode_steps is not None:
        if task.external is not None and run.max_episode_steps > task.time_limit:
            raise BadInput(
                f"max_episode_steps is {run.max_episode_steps}; {run.task} ends after {task.time_limit} steps as it is."
            )
        task = task._replace(time_limit=run.max_episode_steps)
    if run.reward_scale == 1:
        return task
    own, scale = task.external_reward, np.float32(run.reward_scale)
    learned = scaled(task.learned_reward, run.reward_scale)
    return task._replace(learned_reward=learned, external_reward=lambda rewards: scale * own(rewards))


def groups_of_task(name: str) -> tuple[type[Settings], ...]:
    """The settings that a task may have, without making or importing it; one of the user's own may have any."""
    if name in TASKS:
        return TASKS[name].settings
    if name in PROBES:
        return ()
    if ":" in name:
        return TASK_GROUPS
    return (GameSettings, VectorSettings) if name.startswith("ALE/") else HOSTED


def task_of(entry: TaskEntry, given: TaskSettings) -> Task:
    task: Any = entry.make(given)
    return task


def find_task(name: str) -> TaskEntry:
    if name in TASKS:
        return TASKS[name]
    if name in PROBES:
        return TaskEntry(lambda given: PROBES[name])
    if name.startswith("ALE/"):
        return TaskEntry(lambda given: atari_task(name, given), (GameSettings, VectorSettings))
    if _is_registered(name):
        return TaskEntry(lambda given: _registered_task(name, given), HOSTED)
    if name.endswith(".py"):
        raise BadInput(f"{name} is a file; name the environment in it, too, such as {name}:MyEnv.")
    if ":" not in name:
        own = f" Your own: file.py:{name}." if name.isidentifier() else ""
        raise BadInput(f"{unknown('task', name, TASKS, also=_registered())}{own}")
    return _own_task(name, load_attribute(name))


def _registered_task(name: str, given: Any) -> Task:
    keywords, identifier = keywords_of(given.env_kwargs), name.rpartition(":")[2]
    spec = gymnasium.registry[identifier]

    def make() -> gymnasium.Env:
        gymnasium.registry.setdefault(identifier, spec)  # a process of its own may not have it
        return gymnasium.make(name, **keywords)

    return gymnasium_task(name, make, given.frame_stack, given.flatten_observations)


def _own_task(name: str, found: Any) -> TaskEntry:
    """A task of the user's own: a record, a class, a function, or an entry with settings."""
    if isinstance(found, Task):
        return TaskEntry(lambda given: check_task(name, found))
    if isinstance(found, TaskEntry):
        own = tuple(dict.fromkeys((*check_groups(name, found.settings), *HOSTED)))
        return TaskEntry(lambda given: _make_own(name, lambda: found.make(given), given), own)
    if callable(found):
        return TaskEntry(lambda given: _make_own(name, _call(found, given), given), HOSTED)
    raise BadInput(
        f"{name} is {type(found).__name__}, not an iqrl.Task, an iqrl.TaskEntry, a gymnasium.Env class, or a function "
        f"that makes one of these."
    )


def _make_own(name: str, make: Callable[[], Any], given: Any) -> Task:
    task = make_environment(name, make)
    if isinstance(task, gymnasium.Env):
        return gymnasium_task(name, make, given.frame_stack, given.flatten_observations)
    return check_task(name, task)


def _call(maker: Callable, given: TaskSettings) -> Callable[[], Any]:
    """A function that has a parameter gets the settings of the task; any other gets `env_kwargs`."""
    keywords = keywords_of(getattr(given, "env_kwargs", ""))
    if keywords or isinstance(maker, type) or not _has_parameter(maker):
        return lambda: maker(**keywords)
    return lambda: maker(given)


def _has_parameter(function: Callable) -> bool:
    parameters = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.default is each.empty and each.kind in by_position for each in parameters)


def _registered() -> list[str]:
    """What Gymnasium has, and the games of Atari where they are installed; not those under their old names, nor what is
    known to have no discrete actions."""
    others = ("ale_py", *CONTINUOUS)
    written = {name: f"{name} {spec.entry_point}" for name, spec in gymnasium.registry.items()}
    names = [name for name, text in written.items() if not any(word in text for word in others)]
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


OTHER_TASKS = {
    "ALE/Pong-v5, …": "an Atari game with the settings of the paper; needs the extra atari",
    "LunarLander-v3, …": "any Gymnasium environment with discrete actions; package:Name-v0 imports the package first",
    "my_module:MyEnv": "your own, also by its file, my_file.py:MyEnv: a gymnasium.Env class, an iqrl.Task, an "
    "iqrl.TaskEntry, or a function that makes one",
}
"""names of tasks that are not in `TASKS`"""


def summaries() -> dict[str, str]:
    """One line for each task and for each kind of other tasks."""
    summary = lambda entry: task_of(entry, task_settings_class(entry.settings)()).summary
    return {name: summary(entry) for name, entry in TASKS.items()} | OTHER_TASKS
