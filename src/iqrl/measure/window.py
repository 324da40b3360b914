"""The most recent transitions, kept apart from any replay buffer: what interference is measured on."""

from __future__ import annotations

from typing import Any

import numpy as np

from iqrl.errors import BadInput


class Window:
    """A ring of `capacity` transitions; a transition stays in its slot until a newer one takes it."""

    def __init__(self, capacity: int):
        self.capacity, self.added = capacity, 0
        self.action, self.reward = np.zeros(capacity, np.int64), np.zeros(capacity)
        self.continues = np.zeros(capacity)  # 0 where the episode terminated, 1 elsewhere
        self.obs: Any = None  # shape and type are those of the first observation
        self.next_obs: Any = None

    @property
    def filled(self) -> int:
        return min(self.added, self.capacity)

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any) -> None:
        """One transition, or one per environment where `action` is a vector."""
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
        """The slots of transition number `start` and later, oldest first, as far as they are still there."""
        end = self.added if end is None else end
        return np.arange(max(start, end - self.capacity), end) % self.capacity

    def spread(self, count: int) -> np.ndarray:
        """The slots of `count` transitions, evenly spread from the oldest to the newest."""
        ages = np.linspace(0, self.filled - 1, min(count, self.filled)).astype(int)
        return self.since(0)[ages]

    def _check(self, obs, action, reward, next_obs, terminated) -> None:
        count = (len(action),)
        if action.ndim != 1 or obs.shape[:1] != count or reward.shape != count or terminated.shape != count:
            shapes = ", ".join(str(part.shape) for part in (obs, action, reward, terminated))
            raise BadInput(f"obs, action, reward and terminated must be of as many transitions, got {shapes}.")
        expected = obs.shape if self.obs is None else count + self.obs.shape[1:]
        if obs.shape != expected or next_obs.shape != expected:
            raise BadInput(
                f"observations must have shape {expected[1:]}, got {obs.shape[1:]} and {next_obs.shape[1:]}."
            )
        if not np.issubdtype(action.dtype, np.integer) or (action < 0).any():
            raise BadInput("an action must be an integer, counted from 0.")
        if not np.isfinite(reward).all():
            raise BadInput("a reward must be a finite number.")
