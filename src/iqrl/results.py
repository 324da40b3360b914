"""What training gives back: curves, their summary, and agents that act."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from iqrl.agent import Agent, AgentState
from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.parts.contexts import Situation
from iqrl.statistics.known import mean_known
from iqrl.tasks.base import Task


class TrainedAgent:
    """One seed's greedy policy.

    Where contexts depend on the episode and not on the state alone, `first` is the observation the
    episode began with (this one, if not given) and `score` the sum of its rewards so far.
    """

    def __init__(self, agent: Agent, state: AgentState, seed: int, shape: tuple[int, ...]):
        """`shape`: of an observation."""
        self.seed, self.state, self._shape = seed, state, shape
        self._one, self._many = jax.jit(agent.values), jax.jit(jax.vmap(agent.values, in_axes=(None, 0)))

    def q_values(self, obs: np.ndarray, *, first: np.ndarray | None = None, score: float = 0.0) -> np.ndarray:
        """Q(s, ·, ω(s)) of one observation, a vector [d] or an image, or of several [n, …]."""
        return np.asarray(self._evaluate(obs, first, score)[0])

    def context(self, obs: np.ndarray, *, first: np.ndarray | None = None, score: float = 0.0) -> np.ndarray:
        """ω(s)."""
        return np.asarray(self._evaluate(obs, first, score)[1])

    def predict(self, obs: np.ndarray, *, first: np.ndarray | None = None, score: float = 0.0) -> np.ndarray:
        """The greedy action for one observation, or one action each for several [n, …]."""
        return np.argmax(self.q_values(obs, first=first, score=score), axis=-1)

    def _evaluate(self, obs: np.ndarray, first: np.ndarray | None, score: float) -> tuple[jax.Array, jax.Array]:
        obs = self._in_rows(obs)
        start = np.broadcast_to(obs if first is None else self._in_rows(first), obs.shape)
        scores = np.broadcast_to(np.float32(score), obs.shape[:-1])
        situation: Any = Situation(*(obs, start, scores))  # ty: ignore[invalid-argument-type]
        return (self._one if obs.ndim == 1 else self._many)(self.state, situation)

    def _in_rows(self, obs: np.ndarray) -> np.ndarray:
        """[d] or [n, d]."""
        given = np.asarray(obs, np.float32)
        if self._is_one(given.shape) and (given.ndim == 1 or given.shape[0] != 1):
            return given.reshape(-1)
        if given.ndim > 1 and self._is_one(given.shape[1:]):
            return given.reshape(len(given), -1)
        raise BadInput(f"an observation has shape {self._shape}, several are (n, …), got shape {given.shape}.")

    def _is_one(self, shape: tuple[int, ...]) -> bool:
        """Numbers in a row, too, are one; sides of length one make no difference."""
        without_ones = lambda shape: tuple(side for side in shape if side != 1)
        return shape == (math.prod(self._shape),) or without_ones(shape) == without_ones(self._shape)


@dataclass(frozen=True)
class Result:
    """A trained run: `metrics` has one row per seed and period, `agents` one policy per seed."""

    run: Run
    metrics: pl.DataFrame
    agent_state: AgentState = field(repr=False)
    task: Task = field(repr=False)
    agent: Agent = field(repr=False)
    timing: dict[str, float]
    path: Path | None = None

    @property
    def steps(self) -> np.ndarray:
        """[periods]: the step at which each period ended."""
        return steps_and_returns(self.metrics)[0]

    @property
    def returns(self) -> np.ndarray:
        """[seeds, periods]: mean return of the training episodes that ended in each period."""
        return steps_and_returns(self.metrics)[1]

    @property
    def agents(self) -> list[TrainedAgent]:
        shape = self.task.observation_shape
        state_of = lambda i: jax.tree.map(lambda leaf: leaf[i], self.agent_state)
        return [TrainedAgent(self.agent, state_of(i), self.run.seed + i, shape) for i in range(self.run.seeds)]

    def summary(self) -> dict[str, Any]:
        """What `iqrl train --json` prints."""
        curves = self.returns
        per_seed = [{"seed": self.run.seed + i} | summarise(curve) for i, curve in enumerate(curves)]
        names = {"task": self.run.task, "method": self.run.method, "buffer_size": self.run.buffer_size}
        return (
            names
            | summarise(mean_curve(curves))
            | {
                "seeds": per_seed,
                **self.timing,
                "run": str(self.path or self.run.identity),
            }
        )


def steps_and_returns(metrics: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    table = metrics.sort("seed", "step").select("seed", "step", "return")
    steps = table["step"].unique().sort().to_numpy()
    return steps, table["return"].to_numpy().reshape(-1, len(steps))


def mean_curve(returns: np.ndarray) -> np.ndarray:
    """Mean over seeds; a seed counts in the periods in which it finished an episode."""
    return mean_known(returns, axis=0)


def summarise(curve: np.ndarray) -> dict[str, float | None]:
    """The highest point (the paper's number), the mean of the last 10% of points, and the mean of all."""
    last = curve[-max(len(curve) // 10, 1) :]
    return {name: _number(part) for name, part in (("highest", curve), ("final", last), ("auc", curve))} | {
        "highest": None if np.isnan(curve).all() else float(np.nanmax(curve))
    }


def _number(values: np.ndarray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))
