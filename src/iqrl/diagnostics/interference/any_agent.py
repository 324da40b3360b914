"""Approximate Expected Interference (AEI) of agents of any library, from their Q-values alone.

AEI of an update is the mean, over the most recent transitions, of δ² after the update minus δ² before it, where
δ = r + γ max_a' Q(s', a') - Q(s, a) with the online network in both places. Above 0, the update undid more than it
learned (Liu et al., 2020, arXiv:2007.03807).

`Window` holds the transitions, `Readings` the measurements, and `InterferenceMeter` is what users call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from iqrl.diagnostics.metrics import check_listed
from iqrl.errors import BadInput

BLOCK = 500
"""Transitions per call of `q_values`. The size is always the same, for three reasons: a row has the same value, to the
last bit, whatever else is in its block; programs compiled for a shape are compiled once; images fit in memory."""

ROUND_OFF = 1e-5
"""How much a value may differ between two evaluations of the same network, relative to the largest value."""


class Window:
    """The most recent transitions, kept apart from any replay buffer.

    A ring of `capacity` slots: a transition stays in its slot until a newer one replaces it.
    """

    def __init__(self, capacity: int):
        self.capacity, self.added = capacity, 0
        self.action, self.reward = np.zeros(capacity, np.int64), np.zeros(capacity)
        self.continues = np.zeros(capacity)  # 0 where the episode terminated, 1 elsewhere
        self.obs: Any = None  # an array once the first observation has given its shape and type
        self.next_obs: Any = None

    @property
    def filled(self) -> int:
        return min(self.added, self.capacity)

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any) -> None:
        """Store one transition, or one per environment where `action` is a vector."""
        one = (lambda value: np.asarray(value)[None]) if np.ndim(action) == 0 else np.asarray
        obs, action, reward, next_obs, terminated = map(one, (obs, action, reward, next_obs, terminated))
        self._check(obs, action, reward, next_obs, terminated)
        if self.obs is None:
            self.obs, self.next_obs = (np.zeros((self.capacity, *obs.shape[1:]), obs.dtype) for _ in range(2))
        kept = slice(-self.capacity, None)
        slots = self.since(self.added, self.added + len(action))
        self.obs[slots], self.next_obs[slots] = obs[kept], next_obs[kept]
        self.action[slots], self.reward[slots] = action[kept], reward[kept]
        self.continues[slots] = ~terminated[kept].astype(bool)
        self.added += len(action)

    def since(self, start: int, end: int | None = None) -> np.ndarray:
        """The slots of the transitions from number `start` on that are still stored, oldest first."""
        end = self.added if end is None else end
        return np.arange(max(start, end - self.capacity), end) % self.capacity

    def spread(self, count: int) -> np.ndarray:
        """The slots of `count` transitions, evenly spread from the oldest to the newest."""
        ages = np.linspace(0, self.filled - 1, min(count, self.filled)).astype(int)
        return self.since(0)[ages]

    def _check(
        self, obs: np.ndarray, action: np.ndarray, reward: np.ndarray, next_obs: np.ndarray, terminated: np.ndarray
    ) -> None:
        count = (len(action),)
        if action.ndim != 1 or obs.shape[:1] != count or reward.shape != count or terminated.shape != count:
            shapes = ", ".join(str(part.shape) for part in (obs, action, reward, terminated))
            raise BadInput(f"obs, action, reward and terminated must have one entry per transition, got {shapes}.")
        expected = obs.shape if self.obs is None else count + self.obs.shape[1:]
        if obs.shape != expected or next_obs.shape != expected:
            raise BadInput(
                f"observations must have shape {expected[1:]}, got {obs.shape[1:]} and {next_obs.shape[1:]}."
            )
        if not np.issubdtype(action.dtype, np.integer) or (action < 0).any():
            raise BadInput("an action must be an integer, counted from 0.")
        if not np.isfinite(reward).all():
            raise BadInput("a reward must be a finite number.")


RAISED = pl.col("aei") > 0

MEASURES = {
    "aei": pl.col("aei").mean(),
    "negative_interference": pl.col("aei").filter(RAISED).mean().fill_null(float("nan")),
    "raised_share": RAISED.mean(),
    "aei_largest": pl.col("aei").max(),
    "squared_td_error": pl.col("squared_td_error").mean(),
}
"""the metrics of a period, from its updates; `negative_interference` is NaN if no update raised the error"""
check_listed(MEASURES)


@dataclass
class Readings:
    """What was measured: one entry per update, and one per episode that ended."""

    steps: list[int] = field(default_factory=list)
    aei: list[float] = field(default_factory=list)
    squared_td_error: list[float] = field(default_factory=list)
    episode_steps: list[int] = field(default_factory=list)
    episode_returns: list[float] = field(default_factory=list)

    def frame(self, period: int) -> pl.DataFrame:
        """A row per period of that many steps; null where no episode ended or no update was measured."""
        if not isinstance(period, int) or period < 1:
            raise BadInput(f"a period is a whole number of steps, at least 1, got {period!r}.")
        last = max([0, *self.steps, *self.episode_steps])
        ends = pl.DataFrame({"end": range(period, last + period, period)}, schema={"end": pl.Int64})
        # The last step of a period belongs to it; step 0 belongs to the first period.
        end = pl.max_horizontal((pl.col("step") + period - 1) // period, 1) * period
        returns = self._episodes().group_by(end=end).agg(pl.col("return").mean())
        measures = self._updates().group_by(end=end).agg(**MEASURES)
        table = ends.join(returns, on="end", how="left").join(measures, on="end", how="left").sort("end")
        return table.select(pl.min_horizontal("end", last).alias("step"), "return", *MEASURES)

    def _episodes(self) -> pl.DataFrame:
        schema = {"step": pl.Int64, "return": pl.Float64}
        return pl.DataFrame({"step": self.episode_steps, "return": self.episode_returns}, schema=schema)

    def _updates(self) -> pl.DataFrame:
        columns = {"step": self.steps, "aei": self.aei, "squared_td_error": self.squared_td_error}
        return pl.DataFrame(columns, schema={"step": pl.Int64, "aei": pl.Float64, "squared_td_error": pl.Float64})


class InterferenceMeter:
    """Measures the updates of any learner that has Q-values.

    `q_values` returns [n, actions] for observations [n, ...] under the current parameters. Interference is measured on
    the last `capacity` transitions; with `sample`, on so many of them, evenly spread.

    >>> weights = np.array([[0.0, 1.0]])  # one feature, two actions
    >>> meter = InterferenceMeter(lambda obs: obs @ weights, gamma=0.9)
    >>> meter.add(obs=[1.0], action=1, reward=2.0, next_obs=[1.0], terminated=True)
    >>> meter.before()
    >>> weights += 0.5  # the update: δ = 2 - 1 becomes 2 - 1.5
    >>> meter.after()
    -0.75
    """

    def __init__(
        self,
        q_values: Callable[[np.ndarray], np.ndarray],
        gamma: float,
        *,
        capacity: int = 10_000,
        sample: int | None = None,
    ):
        if not 0 <= gamma <= 1:
            raise BadInput(f"gamma must be between 0 and 1, got {gamma}.")
        if capacity < 1 or (sample is not None and sample < 1):
            raise BadInput(f"capacity and sample must be at least 1, got {capacity} and {sample}.")
        self._q_values, self._gamma, self._sample = q_values, gamma, sample
        self._window, self.readings = Window(capacity), Readings()
        self._block = min(BLOCK, capacity, sample or capacity)
        self._predictions = np.zeros((capacity, 2))  # Q(s, a) and max Q(s', ·) by slot
        self._slots = np.zeros(0, np.int64)  # the transitions that the current update is measured on
        self._squared_before: np.ndarray | None = None  # δ² of these, between before() and after()
        self._predicted_until: int | None = None  # number of transitions that the last after() has predictions of

    @property
    def steps(self) -> np.ndarray:
        """[updates]: the step at which each was measured."""
        return np.array(self.readings.steps, np.int64)

    @property
    def aei(self) -> np.ndarray:
        """[updates]: the AEI of each."""
        return np.array(self.readings.aei, float)

    @property
    def squared_td_error(self) -> np.ndarray:
        """[updates]: the mean of δ² before each."""
        return np.array(self.readings.squared_td_error, float)

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any) -> None:
        """Store a transition, or one per environment: [n, ...], [n], [n], [n, ...], [n].

        `terminated` ends the bootstrap. An episode that a time limit cuts short is not terminated; its `next_obs` is
        its own last observation, not the first of the next episode.
        """
        if self._squared_before is not None:
            raise BadInput("add() came between before() and after(), which compare the same transitions.")
        self._window.add(obs, action, reward, next_obs, terminated)

    def episode(self, step: int, episode_return: float) -> None:
        """Store the return of an episode that ended; `frame` shows it beside the interference."""
        self.readings.episode_steps.append(int(step))
        self.readings.episode_returns.append(float(episode_return))

    def before(self, *, consecutive: bool = False) -> None:
        """Call right before an update.

        `consecutive` promises that no parameter changed since the last `after`. Then only the transitions added since
        are evaluated: the result is the same, in half the time. A promise that is found broken is an error.
        """
        if self._squared_before is not None:
            raise BadInput("before() came twice; call after() when the update is done, or cancel() if there was none.")
        if self._window.filled == 0:
            raise BadInput("there is no transition to measure on; add() some first.")
        self._slots = self._window.spread(self._sample) if self._sample else np.arange(self._window.filled)
        if consecutive and self._predicted_until is not None:
            self._predict_new(self._predicted_until)
        else:
            self._predict(self._slots)
        self._predicted_until = None
        self._squared_before = self._squared_errors()

    def after(self, step: int | None = None) -> float:
        """Call right after the update; returns its AEI. `step` is the number of transitions so far, unless given."""
        if self._squared_before is None:
            raise BadInput("after() came without a before() ahead of the update.")
        self._predict(self._slots)
        aei = float(np.mean(self._squared_errors() - self._squared_before))
        self.readings.steps.append(self._window.added if step is None else int(step))
        self.readings.aei.append(aei)
        self.readings.squared_td_error.append(float(np.mean(self._squared_before)))
        self._squared_before = None
        self._predicted_until = None if self._sample else self._window.added
        return aei

    def cancel(self) -> None:
        """Undo a `before` whose update did not happen or was interrupted; the next reading starts anew."""
        self._squared_before = self._predicted_until = None

    def frame(self, period: int) -> pl.DataFrame:
        """A row per period: `step`, `return`, `aei`, `negative_interference`, `raised_share`, `aei_largest`, …"""
        return self.readings.frame(period)

    def _squared_errors(self) -> np.ndarray:
        value, next_value = self._predictions[self._slots].T
        bootstrap = self._gamma * self._window.continues[self._slots] * next_value
        return (self._window.reward[self._slots] + bootstrap - value) ** 2

    def _predict(self, slots: np.ndarray) -> None:
        self._predictions[slots] = self._evaluate(slots)

    def _predict_new(self, start: int) -> None:
        """Evaluate the blocks with transitions from number `start` on; the older ones in them test the promise."""
        new = self._window.since(start)
        blocks = np.unique((new if len(new) else self._slots[-1:]) // self._block)
        touched = self._slots[np.isin(self._slots // self._block, blocks)]
        fresh, old = self._evaluate(touched), ~np.isin(touched, new)
        if not old.any():  # nothing to test the promise on
            touched, fresh = self._slots, self._evaluate(self._slots)
        elif np.abs(fresh - self._predictions[touched])[old].max() > ROUND_OFF * np.abs(fresh).max():
            raise BadInput("q_values changed since the last after(); call before() without consecutive.")
        self._predictions[touched] = fresh

    def _evaluate(self, slots: np.ndarray) -> np.ndarray:
        """[n, 2]: Q(s, a) and max Q(s', ·)."""
        blocks = [slots[start : start + self._block] for start in range(0, len(slots), self._block)]
        return np.concatenate([self._evaluate_block(block) for block in blocks])

    def _evaluate_block(self, slots: np.ndarray) -> np.ndarray:
        padded = np.pad(slots, (0, self._block - len(slots)), mode="edge")
        obs, next_obs = self._window.obs[padded], self._window.next_obs[padded]
        values = np.asarray(self._q_values(np.concatenate([obs, next_obs])))
        action = self._window.action[slots]
        if values.ndim != 2 or len(values) != 2 * self._block or action.max() >= values.shape[1]:
            needed = f"({2 * self._block}, actions) with more than {action.max()} actions"
            raise BadInput(f"q_values must give an array of shape {needed}, got {values.shape}.")
        if not np.isfinite(values).all():
            raise BadInput("q_values gave NaN or infinity; there is no interference to measure in a diverged network.")
        chosen, best = values[np.arange(len(slots)), action], values[self._block :].max(axis=1)
        return np.stack([chosen, best[: len(slots)]], axis=1)
