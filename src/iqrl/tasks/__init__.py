"""The tasks by name. A task of your own is named `module:attribute`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import gymnasium
import numpy as np

from iqrl.config import Run, TaskOptions
from iqrl.errors import BadInput, unknown
from iqrl.plugins import load_attribute
from iqrl.tasks.acrobot import acrobot
from iqrl.tasks.atari import atari_task
from iqrl.tasks.base import Task, scaled
from iqrl.tasks.cartpole import cartpole
from iqrl.tasks.check import check_task
from iqrl.tasks.hosted import gymnasium_task
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


SETTINGS_OF = {"torques": "Pendulum-v0", "shaping_scale": "MountainCar", "sticky": "MinAtar/"}
"""settings that only one task, or one kind, uses"""


def make_task(run: Run) -> Task:
    """The run's task with its options applied."""
    task = find_task(run.task)(run)
    if run.max_episode_steps is not None:
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
    if name in gymnasium.registry:
        return lambda options: gymnasium_task(name, lambda: gymnasium.make(name))
    if ":" not in name:
        raise unknown("task", name, TASKS)
    found = load_attribute(name)
    if isinstance(found, Task):
        return lambda options: check_task(name, found)
    if isinstance(found, type) and issubclass(found, gymnasium.Env):
        return lambda options: gymnasium_task(name, found)
    if callable(found):
        return lambda options: check_task(name, found(options))
    raise BadInput(
        f"{name} is {type(found).__name__}, not an iqrl.Task, a function that makes one, or a gymnasium.Env class."
    )


def _is_of(task: str, kind: str) -> bool:
    return task.startswith(kind) if kind.endswith("/") else task == kind


def refuse_unused(task: str, settings: Iterable[str]) -> None:
    """A setting of another task would change nothing here."""
    for setting in settings:
        if task in TASKS and setting in SETTINGS_OF and not _is_of(task, SETTINGS_OF[setting]):
            raise BadInput(f"{setting} is a setting of {SETTINGS_OF[setting]}; it does not apply to {task}.")
