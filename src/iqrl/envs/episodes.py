"""The environments of a hosted run, one or more per seed, and how they are brought back to where they were.

The ends of episodes are those of Gymnasium's vector environments in the mode SAME_STEP: where an episode ends, its last
observation is what was seen, and the first one of the next episode comes with it, in the same step.

An environment may have `snapshot()`, which gives a dictionary of arrays, and `restore(arrays)`. Any other is reset with
a seed of its own in every episode, so that an episode is its seed and its actions. To restore it, the actions are
replayed from the seed, and the last observation is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from iqrl.core.masks import Mask
from iqrl.envs.base import Task
from iqrl.envs.check import unlike_reward, unlike_space
from iqrl.envs.masks import BadMask
from iqrl.errors import RunFailed
from iqrl.plugins import in_a_sentence


class Outcome(NamedTuple):
    """What came of an action, for each environment."""

    obs: Any
    reward: Any
    learned: Any
    """the reward that is learned from"""
    terminated: Any
    truncated: Any
    initial_obs: Any
    """the first observation of the next episode, where this one ended"""
    mask: Mask = ()
    """which actions are legal, of a task that has masks"""
    initial_mask: Mask = ()
    """the same at the start of the next episode, where this one ended"""


class Episode:
    """One environment in the course of its episodes."""

    def __init__(self, task: Task, seed: int, place: int = 0):
        """`place`: the number of the environment among those of the seed."""
        self.task, self.seed, self.place = task, seed, place
        own = episode_seed(seed, 0, place) if place else seed
        self.env: Any = task.external(own)  # ty: ignore[call-non-callable]
        # Not of what a wrapper holds: that would leave out the wrapper's own state.
        self.saves = hasattr(self.env, "snapshot") and hasattr(self.env, "restore")
        self.number, self.actions = -1, []
        self.mask: Any = ()
        """which actions are legal now; empty where the environment does not say"""

    def begin(self) -> np.ndarray:
        self.number, self.actions = self.number + 1, []
        return self._reset()

    def _reset(self) -> np.ndarray:
        seeded = self.number == 0 or not self.saves
        seed = episode_seed(self.seed, self.number, self.place) if seeded else None
        first = self._tried("reset", lambda: self.env.reset(seed=seed))
        if not isinstance(first, tuple) or len(first) != 2:
            raise self._failure("did not return (observation, info) from reset")
        obs, info = first
        self.mask = self._legal(info)
        return self._seen(obs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        try:  # without a function of its own: it is called at every step
            after = self.env.step(action)
        except (Exception, SystemExit) as error:
            raise self._failure(f"failed in step with {in_a_sentence(error)}") from error
        self.actions.append(action)
        if not isinstance(after, tuple) or len(after) != 5:
            raise self._failure("did not return (observation, reward, terminated, truncated, info) from step")
        obs, reward, terminated, truncated, info = after
        if wrong := unlike_reward(reward):
            raise self._failure(f"gave a reward {wrong}")
        over_time = len(self.actions) >= self.task.time_limit
        ended, cut = (self._tried("step", lambda flag=flag: bool(flag)) for flag in (terminated, truncated))
        self.mask = self._legal(info, ended)
        return self._seen(obs), float(reward), ended, cut or over_time

    def _legal(self, info: Any, ended: bool = False) -> Any:
        """The mask; where the episode ended by itself, no action follows and none need be legal."""
        mask_of = self.task.external_mask
        if mask_of is None:
            return ()
        if ended:
            return np.ones(self.task.actions, bool)
        try:
            return mask_of(self.env, info)
        except BadMask as wrong:
            raise self._failure(f"gave {wrong}") from None
        except (Exception, SystemExit) as error:
            raise self._failure(f"failed in action_masks with {in_a_sentence(error)}") from error

    def _seen(self, obs: Any) -> np.ndarray:
        """Numbers in a row."""
        wrong = unlike_space(obs, self.env)
        if wrong:
            raise self._failure(f"gave an observation {wrong}")
        seen = np.asarray(obs).reshape(-1)
        if self.task.obs_dtype == np.uint8:
            return seen.astype(np.uint8, copy=False)
        seen = seen.astype(np.float32)
        if not np.isfinite(seen).all():
            raise self._failure("gave an observation that is not finite")
        return seen

    def _tried(self, part: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (Exception, SystemExit) as error:
            raise self._failure(f"failed in {part} with {in_a_sentence(error)}") from error

    def _failure(self, what: str) -> RunFailed:
        which = f"seed {self.seed}" + (f", environment {self.place + 1}," if self.place else "")
        where = f"in episode {self.number + 1} of {which} after {len(self.actions)} steps"
        return RunFailed(f"{self.task.name} {what}, {where}.")

    def snapshot(self) -> dict[str, np.ndarray]:
        counted = {"number": np.asarray(self.number), "actions": np.asarray(self.actions, np.int32)}
        own = self.env.snapshot() if self.saves else {}
        return counted | {f"own.{name}": array for name, array in own.items()}

    def restore(self, saved: Mapping[str, np.ndarray], obs: np.ndarray) -> bool:
        """Whether it is where it was, which is where it shows `obs`."""
        self.number, self.actions = int(saved["number"]), saved["actions"].tolist()
        if self.saves:
            own = {name.removeprefix("own."): array for name, array in saved.items() if name.startswith("own.")}
            self.env.restore(own)
            return True
        seen = self._reset()
        for action in self.actions:
            seen = self._seen(self.env.step(action)[0])
        return np.array_equal(seen, obs)

    @property
    def label(self) -> str:
        """What its part of a snapshot is called."""
        return f"{self.seed}-{self.place}." if self.place else f"{self.seed}."


def episode_seed(seed: int, number: int, place: int = 0) -> int:
    """Different for every episode of every environment. The first environment has the episodes that it has alone."""
    return int(np.random.SeedSequence([seed, number, place]).generate_state(1)[0] >> 1)


class Environments:
    """The episodes of all environments, side by side: those of the first seed, then those of the next."""

    def __init__(self, task: Task, seed: int, seeds: int, n_envs: int = 1, share: slice = slice(None)):
        """`n_envs`: per seed. `share`: which of all these environments are here; the others are elsewhere."""
        self.task = task
        places = [(seed + i, place) for i in range(seeds) for place in range(n_envs)]
        self.episodes = [Episode(task, *place) for place in places[share]]

    def begin(self) -> np.ndarray:
        return np.stack([episode.begin() for episode in self.episodes])

    def step(self, actions: np.ndarray) -> Outcome:
        each = [self._step(episode, int(action)) for episode, action in zip(self.episodes, actions, strict=True)]
        obs, reward, terminated, truncated, first, mask, first_mask = zip(*each, strict=True)
        rewards, seen = np.asarray(reward, np.float32), np.stack(obs)
        learned = self.task.external_reward(rewards)
        return Outcome(
            obs=seen,
            reward=rewards,
            learned=learned,
            terminated=np.array(terminated),
            truncated=np.array(truncated),
            initial_obs=np.stack(first) if any(terminated) or any(truncated) else seen,
            mask=self._stacked(mask),
            initial_mask=self._stacked(first_mask),
        )

    def _step(self, episode: Episode, action: int) -> tuple:
        obs, reward, terminated, truncated = episode.step(action)
        mask = episode.mask
        first = episode.begin() if terminated or truncated else obs
        return obs, reward, terminated, truncated, first, mask, episode.mask

    @property
    def masks(self) -> Any:
        """[environments, A]: which actions are legal now; empty where the task has no masks."""
        return self._stacked([episode.mask for episode in self.episodes])

    def _stacked(self, masks: Sequence[Any]) -> Any:
        return np.stack(masks) if self.task.masked_actions else ()

    def snapshot(self) -> dict[str, np.ndarray]:
        return {
            f"{episode.label}{name}": value for episode in self.episodes for name, value in episode.snapshot().items()
        }

    def restore(self, saved: Mapping[str, np.ndarray], obs: np.ndarray) -> dict[int, np.ndarray]:
        """The environments that cannot be brought back to where they were, and the first observations of the episodes
        that they begin anew."""
        lost = {}
        for i, episode in enumerate(self.episodes):
            prefix = episode.label
            own = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
            if not episode.restore(own, obs[i]):
                lost[i] = episode.begin()
        return lost

    def close(self) -> None:
        """Nothing: what is in this process ends with it."""
