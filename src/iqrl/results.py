"""What training gives back: curves, their summary, and agents that act."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from iqrl.agent import Agent, AgentState
from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.parts.losses import pick
from iqrl.tasks.base import Task


class TrainedAgent:
    """One seed's greedy policy."""

    def __init__(self, agent: Agent, state: AgentState, seed: int):
        self.seed, self.state, self._obs_size = seed, state, agent.obs_size
        contexts, network = agent.contexts, agent.network

        def q_values(state: AgentState, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
            context = contexts.assign(state.contexts, obs)
            return pick(network.apply(state.params, obs).q, context), context

        self._one, self._many = jax.jit(q_values), jax.jit(jax.vmap(q_values, in_axes=(None, 0)))

    def q_values(self, obs: np.ndarray) -> np.ndarray:
        """Q(s, ·, ω(s)) of one observation [d] or of several [n, d]."""
        return np.asarray(self._evaluate(obs)[0])

    def context(self, obs: np.ndarray) -> np.ndarray:
        """ω(s)."""
        return np.asarray(self._evaluate(obs)[1])

    def predict(self, obs: np.ndarray) -> np.ndarray:
        """The greedy action for one observation [d], or one action each for several [n, d]."""
        return np.argmax(self.q_values(obs), axis=-1)

    def _evaluate(self, obs: np.ndarray) -> tuple[jax.Array, jax.Array]:
        obs = np.asarray(obs, np.float32)
        if obs.ndim not in (1, 2) or obs.shape[-1] != self._obs_size:
            raise BadInput(
                f"an observation has shape ({self._obs_size},), several (n, {self._obs_size}), got {obs.shape}."
            )
        return (self._one if obs.ndim == 1 else self._many)(self.state, obs)


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
        state_of = lambda i: jax.tree.map(lambda leaf: leaf[i], self.agent_state)
        return [TrainedAgent(self.agent, state_of(i), self.run.seed + i) for i in range(self.run.seeds)]

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
    ended = np.isfinite(returns)
    total = np.where(ended, returns, 0.0).sum(axis=0)
    return np.where(ended.any(axis=0), total / np.maximum(ended.sum(axis=0), 1), np.nan)


def summarise(curve: np.ndarray) -> dict[str, float | None]:
    """The highest point (the paper's number), the mean of the last 10% of points, and the mean of all."""
    last = curve[-max(len(curve) // 10, 1) :]
    return {name: _number(part) for name, part in (("highest", curve), ("final", last), ("auc", curve))} | {
        "highest": None if np.isnan(curve).all() else float(np.nanmax(curve))
    }


def _number(values: np.ndarray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))
