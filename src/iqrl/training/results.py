"""What training gives back: curves, their summary, and agents that act."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from iqrl.colours import method_colour
from iqrl.core.types import Agent, ContextInputs
from iqrl.curve_svg import draw_curve
from iqrl.envs.base import Task
from iqrl.envs.masks import BadMask, as_booleans
from iqrl.errors import BadInput, shown
from iqrl.methods.registry import build_agent, in_words
from iqrl.settings import Run
from iqrl.statistics.curves import mean_curve, steps_and_returns, summarise


def wrong_observation(shape: tuple[int, ...], got: str) -> BadInput:
    """
    >>> str(wrong_observation((2,), "got shape (1,)"))
    'an observation of shape (2,) is expected, or (n, 2) for several; got shape (1,).'
    """
    several = ", ".join(["n", *map(str, shape)])
    return BadInput(f"an observation of shape {shape} is expected, or ({several}) for several; {got}.")


def _not_finite(rows: np.ndarray) -> BadInput:
    """Which number of which observation, both counted from 1."""
    row, place = np.argwhere(~np.isfinite(rows))[0]
    which = f"observation {row + 1}" if len(rows) > 1 else "the observation"
    return BadInput(f"number {place + 1} of the {rows.shape[1]} in {which} is {rows[row, place]}; each must be finite.")


class TrainedAgent:
    """One seed's policy, without exploration.

    Where contexts depend on the episode and not on the state alone, `first` is the observation the episode began with
    (this one, if not given) and `score` the sum of its rewards so far. `action_masks` has True for each action that is
    legal, for one observation or for each of several; without it all are.
    """

    def __init__(self, agent: Agent, state: Any, seed: int, shape: tuple[int, ...], actions: int):
        """`shape`: of an observation."""
        self.seed, self.state, self._agent, self._shape, self._actions = seed, state, agent, shape, actions
        self._policy = self._compiled(agent.policy)

    def predict(
        self,
        obs: np.ndarray,
        *,
        first: np.ndarray | None = None,
        score: float = 0.0,
        action_masks: np.ndarray | None = None,
    ) -> np.ndarray:
        """The action for one observation, a vector [d] or an image, or one action each for several [n, …]."""
        inputs = self._inputs(obs, first, score)
        return np.asarray(self._policy(inputs if action_masks is None else self._masked(inputs, action_masks)))

    def _masked(self, inputs: ContextInputs, given: np.ndarray) -> ContextInputs:
        shape = (*inputs.obs.shape[:-1], self._actions)
        try:
            legal: Any = as_booleans(given)
        except BadMask as wrong:
            raise BadInput(f"action_masks has {wrong}.") from None
        if legal.shape != shape or not legal.any(axis=-1).all():
            raise BadInput(f"action_masks must have shape {shape} and a legal action for each observation.")
        return inputs._replace(mask=legal)

    def q_values(self, obs: np.ndarray, *, first: np.ndarray | None = None, score: float = 0.0) -> np.ndarray:
        """Q(s, ·, ω(s)); of agents that learn Q values."""
        return np.asarray(self._q_values(self._inputs(obs, first, score))[0])

    def context(self, obs: np.ndarray, *, first: np.ndarray | None = None, score: float = 0.0) -> np.ndarray:
        """ω(s); of agents that have contexts."""
        return np.asarray(self._q_values(self._inputs(obs, first, score))[1])

    @cached_property
    def _q_values(self) -> Callable[[ContextInputs], Any]:
        q_values = getattr(self._agent, "q_values", None)
        if q_values is None:
            raise BadInput(f"{type(self._agent).__name__} has no Q values.")
        return self._compiled(q_values)

    def _compiled(self, function: Callable[[Any, ContextInputs], Any]) -> Callable[[ContextInputs], Any]:
        one, many = jax.jit(function), jax.jit(jax.vmap(function, in_axes=(None, 0)))
        return lambda inputs: (one if inputs.obs.ndim == 1 else many)(self.state, inputs)

    def _inputs(self, obs: np.ndarray, first: np.ndarray | None, score: float) -> ContextInputs:
        rows = self._in_rows(obs)
        initial: Any = np.broadcast_to(rows if first is None else self._in_rows(first), rows.shape)
        scores: Any = np.broadcast_to(np.float32(score), rows.shape[:-1])
        every: Any = rows
        return ContextInputs(obs=every, initial_obs=initial, score=scores)

    def _in_rows(self, obs: np.ndarray) -> np.ndarray:
        """[d] or [n, d]."""
        try:
            given = np.asarray(obs, np.float32)
        except (TypeError, ValueError) as error:
            raise wrong_observation(self._shape, f"this is {shown(obs)}") from error
        if self._is_one(given.shape) and (given.ndim == 1 or given.shape[0] != 1):
            rows = given.reshape(-1)
        elif given.ndim > 1 and self._is_one(given.shape[1:]):
            rows = given.reshape(len(given), -1)
        else:
            raise wrong_observation(self._shape, f"got shape {given.shape}")
        if not np.isfinite(rows).all():
            raise _not_finite(np.atleast_2d(rows))
        return rows

    def _is_one(self, shape: tuple[int, ...]) -> bool:
        """Numbers in a row, too, are one; sides of length one make no difference."""
        without_ones = lambda shape: tuple(side for side in shape if side != 1)
        return shape == (math.prod(self._shape),) or without_ones(shape) == without_ones(self._shape)


@dataclass(frozen=True)
class Result:
    """A trained run: `metrics` has one row per seed and period, `agents` one policy per seed."""

    run: Run
    metrics: pl.DataFrame
    agent_state: Any = field(repr=False)
    task: Task = field(repr=False)
    agent: Agent = field(repr=False)
    timing: dict[str, float]
    path: Path | None = None
    step: int = 0
    """steps that each seed has learned from; fewer than `run.steps` in a run that is not finished"""

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
        shape, actions = self.task.observation_shape, self.task.actions
        state_of = lambda i: jax.tree.map(lambda leaf: leaf[i], self.agent_state)
        seeds = range(self.run.seeds)
        return [TrainedAgent(self.agent, state_of(i), self.run.seed + i, shape, actions) for i in seeds]

    @property
    def memory(self) -> int:
        """Bytes that an agent keeps while it learns: weights, what the optimiser needs, replay."""
        learner = build_agent(self.run, self.task)  # the agent of a model that was loaded may be in a form to act
        state = jax.eval_shape(learner.init, jax.random.key(0))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))

    def _repr_html_(self) -> str:
        """In a notebook: the numbers of the summary, and the curve of every seed."""
        if not self.metrics.height:  # of a model that was loaded to act
            return f"<div>{html.escape(repr(self.run))}</div>"
        summary, run = self.summary(), self.run
        text = lambda value: "none" if value is None else f"{value:.1f}"
        far = f"{self.step:,} of {run.steps:,} steps" if self.step < run.steps else f"{run.steps:,} steps"
        seeds = f"{run.seeds} seed{'s' if run.seeds > 1 else ''}"
        numbers = ", ".join(f"{name} {text(summary[name])}" for name in ("highest", "final", "auc"))
        title = in_words(run)
        line = f"{seeds}, {far}; return: {numbers}; {self.memory:,} bytes of memory per seed"
        drawn = draw_curve(self.steps, self.returns, title, colour=method_colour(run.method))
        return f"<div>{drawn}<div>{html.escape(line)}</div></div>"

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
                "memory": self.memory,
                **self.timing,
                "run": str(self.path or self.run.identity),
            }
        )
