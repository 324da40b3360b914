"""Greedy episodes, or nearly: in Gymnasium's own environment where there is one, else in the task itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.masks import read_mask
from iqrl.errors import BadInput, RunFailed
from iqrl.plugins import in_a_sentence
from iqrl.training.results import Result, TrainedAgent

LONGEST = 108_000
"""steps after which an episode is left, where it has no limit of its own"""


def evaluate(
    result: Result,
    episodes: int = 10,
    seed: int = 0,
    *,
    epsilon: float = 0.0,
    display: Callable[[int, int], None] = lambda played, of: None,
) -> np.ndarray:
    """[seeds, episodes]: the return of each greedy episode; every agent meets the same starts.

    `epsilon`: the share of actions that are drawn at random instead.
    """
    if episodes < 1:
        raise BadInput(f"episodes must be at least 1, got {episodes}.")
    if seed < 0:
        raise BadInput(f"seed must be at least 0, got {seed}.")
    if not 0 <= epsilon <= 1:
        raise BadInput(f"epsilon is {epsilon}; it must be from 0 to 1.")
    starts, agents, task = range(seed, seed + episodes), result.agents, result.task
    returns = np.zeros((len(agents), episodes))
    with opened(result) as (env, limit, mask_of):
        for played, (i, j) in enumerate(np.ndindex(*returns.shape), start=1):
            try:
                returns[i, j] = play(agents[i], env, starts[j], limit, epsilon, mask_of)
            except Exception as error:
                failed = f"an episode of {task.name} that began with seed {starts[j]} failed"
                raise RunFailed(f"{failed} with {in_a_sentence(error)}.") from error
            display(played, returns.size)
    return returns


MaskOf = Callable[[gymnasium.Env, Any], np.ndarray | None]


@contextlib.contextmanager
def opened(result: Result) -> Generator[tuple[gymnasium.Env, int, MaskOf]]:
    """The environment that its agents are evaluated in, after how many steps an episode is left, and who says which
    actions are legal."""
    task, limit = result.task, min(result.task.time_limit, LONGEST)
    env = task.gymnasium(limit) if task.gymnasium else TaskEnvironment(task, result.step, frozen=True)
    mask_of = (task.external_mask or partial(read_mask, env.action_space)) if task.masked_actions else no_mask
    with contextlib.closing(env):
        yield env, limit, mask_of


class Seen(NamedTuple):
    """A moment of an episode, before its action."""

    obs: np.ndarray
    first: np.ndarray
    """the observation that the episode began with"""
    total: float
    """the rewards so far"""
    action: int | None
    """None at the end"""
    terminated: bool = False
    """whether the episode is over, and not by a time limit"""
    truncated: bool = False
    """whether the environment's time limit ended it"""


def no_mask(env: gymnasium.Env, info: Any) -> None:
    return None


def play(
    agent: TrainedAgent,
    env: gymnasium.Env,
    seed: int,
    limit: int,
    epsilon: float = 0.0,
    mask_of: MaskOf = no_mask,
    see: Callable[[Seen], None] = lambda seen: None,
) -> float:
    """The return of one episode, greedy but for a share of its actions; `mask_of` says which actions are legal. `see`
    is given every moment, the last one too."""
    chance, actions = np.random.default_rng(seed), env.action_space
    assert isinstance(actions, Discrete)
    first, info = env.reset(seed=seed)
    obs, total, terminated, truncated = first, 0.0, False, False
    for _ in range(limit):
        mask = mask_of(env, info)
        if chance.random() < epsilon:
            legal = np.arange(actions.n) if mask is None else np.flatnonzero(mask)
            action = legal[chance.integers(len(legal))]
        else:
            action = agent.predict(obs, first=first, score=total, action_masks=mask)
        see(Seen(obs, first, total, int(action)))
        obs, reward, terminated, truncated, info = env.step(int(action))
        total += float(reward)
        if terminated or truncated:
            break
    see(Seen(obs, first, total, None, bool(terminated), bool(truncated)))
    return total
