"""Approximate Expected Interference (AEI) of agents that are not ours: all it needs is their Q-values.

AEI of an update is the mean, over the most recent transitions, of δ² after it less δ² before it, where
δ = r + γ max_a' Q(s', a') - Q(s, a) with the online network in both places: above 0, the update undid more
than it learned (Liu et al., 2020, arXiv:2007.03807).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from iqrl.errors import BadInput
from iqrl.measure.readings import Readings
from iqrl.measure.window import Window

BLOCK = 500
"""Transitions per call of `q_values`. Always as many: a row then has the same value, to the last bit, whichever others
are asked for; programs compiled for a shape are compiled once; and images fit in memory."""

ROUND_OFF = 1e-5
"""How much a value may differ between two evaluations of the same network, relative to the largest value."""


class InterferenceMeter:
    """Measures the updates of any learner that has Q-values.

    `q_values` gives [n, actions] for observations [n, ...] under the parameters of the moment. Of the window
    of the last `capacity` transitions, `sample` evaluates that many, evenly spread, instead of all.

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
        self._slots = np.zeros(0, np.int64)  # what the update under way is measured on
        self._squared_before: np.ndarray | None = None  # δ² of these, between before() and after()
        self._predicted_until: int | None = None  # the last after() left predictions of all transitions so far

    @property
    def steps(self) -> np.ndarray:
        """[updates]: when each was measured."""
        return np.array(self.readings.steps, np.int64)

    @property
    def aei(self) -> np.ndarray:
        """[updates]: the interference of each."""
        return np.array(self.readings.aei, float)

    @property
    def squared_td_error(self) -> np.ndarray:
        """[updates]: the mean of δ² before each."""
        return np.array(self.readings.squared_td_error, float)

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any) -> None:
        """A transition of the learner's, or one per environment: [n, ...], [n], [n], [n, ...], [n].

        `terminated` ends the bootstrap; an episode cut short by a time limit is not terminated, and its `next_obs`
        is its own last observation, not the first of the next episode.
        """
        if self._squared_before is not None:
            raise BadInput("add() came between before() and after(), which compare the same transitions.")
        self._window.add(obs, action, reward, next_obs, terminated)

    def episode(self, step: int, episode_return: float) -> None:
        """An episode ended; its return goes beside the interference in `frame`."""
        self.readings.episode_steps.append(int(step))
        self.readings.episode_returns.append(float(episode_return))

    def before(self, *, consecutive: bool = False) -> None:
        """Call right before an update.

        `consecutive` promises that no parameter changed since the last `after`, so that only transitions added since
        are evaluated: the reading is the same, in half the time. A broken promise is refused where it shows.
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
        """Call right after the update; `step` is the number of transitions so far, unless given."""
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
        """Take back a `before` whose update did not happen or was interrupted; the next reading starts afresh."""
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
        """Evaluate the blocks that hold the transitions from number `start` on; the old ones there test the promise."""
        new = self._window.since(start)
        blocks = np.unique((new if len(new) else self._slots[-1:]) // self._block)
        touched = self._slots[np.isin(self._slots // self._block, blocks)]
        fresh, old = self._evaluate(touched), ~np.isin(touched, new)
        if not old.any():  # nothing to test it on
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
