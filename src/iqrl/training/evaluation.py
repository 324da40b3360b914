"""Greedy episodes in Gymnasium's own environment."""

from __future__ import annotations

import numpy as np

from iqrl.errors import BadInput
from iqrl.results import Result, TrainedAgent


def evaluate(result: Result, episodes: int = 10, seed: int = 0) -> np.ndarray:
    """[seeds, episodes]: the return of each greedy episode; every agent meets the same starts."""
    if episodes < 1:
        raise BadInput(f"episodes must be at least 1, got {episodes}.")
    if seed < 0:
        raise BadInput(f"seed must be at least 0, got {seed}.")
    if result.task.gymnasium is None:
        raise BadInput(f"task {result.task.name} does not say which Gymnasium environment it is.")
    env = result.task.gymnasium(result.task.time_limit)
    return np.array([[play(agent, env, seed + i) for i in range(episodes)] for agent in result.agents])


def play(agent: TrainedAgent, env, seed: int) -> float:
    """The return of one greedy episode."""
    first, _ = env.reset(seed=seed)
    obs, total, over = first, 0.0, False
    while not over:
        action = int(agent.predict(obs, first=first, score=total))
        obs, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    return total
