"""Models: an agent as one object, in the manner of Stable-Baselines3.

    model = iqrl.LocalQ("LunarLander-v3", seed=0)
    model.learn(200_000, progress_bar=True)
    action, _ = model.predict(obs)
    model.save("agent.iqrl")
    model = iqrl.load("agent.iqrl")

There is a class for each method. All of them train by the same loop as `iqrl train` (`training/loop.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import polars as pl

from iqrl.envs.external import copies_of
from iqrl.envs.masks import BadMask, as_mask
from iqrl.envs.registry import make_task
from iqrl.envs.spaces import decode_action, encode_observation
from iqrl.errors import BadInput
from iqrl.make_run import Named, resolve
from iqrl.methods.registry import METHODS
from iqrl.plugins import name_of, trust
from iqrl.settings import Run
from iqrl.training.evaluation import evaluate
from iqrl.training.loop import Display, Progress, Session, driver_of
from iqrl.training.model_file import read_model, write_model
from iqrl.training.results import Result, TrainedAgent

Callback = Callable[["Model", Progress], bool | None]
"""called after each period; False stops the training"""


class _Stopped(Exception):
    """A callback gave False."""


class Model:
    """An agent that learns, acts, and can be saved.

    `env`: the name of a task or of a Gymnasium environment, a class or function that makes one, or an environment.
    `settings` are those of `iqrl.train`. With `seeds=n` there are n independent agents, trained side by side.
    """

    method: ClassVar[str]

    def __init__(
        self, env: Named, *, preset: str | None = None, seed: int = 0, seeds: int = 1, **settings: Any
    ) -> None:
        if "steps" in settings:
            raise BadInput("steps is the argument of learn; leave it out.")
        self._given = {"seed": seed, "seeds": seeds} | settings
        self._env, self._preset = env, preset
        self._session: Session | None = None
        self._result: Result | None = None
        self._step_of_result = 0
        resolve(env, self.method, preset, **self._given)  # says at once what is wrong

    # Learning

    def learn(self, total_timesteps: int, callback: Callback | None = None, progress_bar: bool = False) -> Self:
        """Train for so many steps of each seed; called again, go on for so many more.

        Schedules, such as that of ε, follow from the steps of the first call. `callback` is called after each period,
        and stops the training by giving False. Whatever ends it, what was learned until then is kept.
        """
        session = self._session or self._begin(total_timesteps)
        goal = session.step + _positive(total_timesteps)
        with _display(self, callback, progress_bar) as display, contextlib.suppress(_Stopped):
            session.train_to(goal, display)
        return self

    def _begin(self, total: int) -> Session:
        if self._result is not None:
            raise BadInput("this model was saved to act; save it with learning=True to go on learning.")
        run = resolve(self._env, self.method, self._preset, **self._given, steps=_positive(total))
        self._session = Session(driver_of(run))
        return self._session

    @property
    def run(self) -> Run:
        """All settings."""
        return self.result.run

    @property
    def num_timesteps(self) -> int:
        """Steps that each seed has learned from."""
        if self._session is not None:
            return self._session.step
        return 0 if self._result is None else int(self._result.steps[-1])

    @property
    def result(self) -> Result:
        """Curves, metrics and agents, as of `iqrl.train`; in a callback, as they are now."""
        session = self._session
        if session is not None and session.step and session.step != self._step_of_result:
            self._result, self._step_of_result = session.result(), session.step
        if self._result is None:
            raise BadInput("this model has not learned yet; call learn first.")
        return self._result

    @property
    def metrics(self) -> pl.DataFrame:
        """One row per seed and period."""
        return self.result.metrics

    @property
    def agents(self) -> list[TrainedAgent]:
        return self.result.agents

    # Acting

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, Any]:
        """The action for one observation, or one each for several in a list or an array, and `state` as it was given.

        Observations and actions are those of the environment, whatever its spaces are. It is the agent of the first
        seed that acts; `model.agents` has all. There is no other policy than the greedy one. `action_masks` says which
        actions are legal, as the environment does, for one observation or for each of several; without it all are.
        """
        if not deterministic:
            raise BadInput("a model acts by its Q values; draw random actions from the environment's action_space.")
        spaces = self.result.task.spaces
        if spaces is None:
            return self._first_agent.predict(observation, action_masks=action_masks), state
        return self._predict_raw(observation, action_masks, *spaces), state

    def _predict_raw(self, observation: Any, masks: Any, seen: Any, acted: Any) -> np.ndarray:
        """For an environment whose spaces were brought to another form."""
        one = np.shape(observation) == seen.shape if seen.shape is not None else not isinstance(observation, list)
        rows = np.stack([encode_observation(seen, obs) for obs in ([observation] if one else observation)])
        if masks is not None:
            masks = _masks_in_rows(acted, [masks] if one else masks, len(rows))
        actions = [decode_action(acted, number) for number in self._first_agent.predict(rows, action_masks=masks)]
        return np.asarray(actions[0] if one else actions)

    @property
    def _first_agent(self) -> TrainedAgent:
        result = self.result
        if getattr(self, "_agent_of", None) is not result:
            self._agent_of, self._agent = result, result.agents[0]
        return self._agent

    def evaluate(self, episodes: int = 10, seed: int = 0) -> np.ndarray:
        """[seeds, episodes]: returns of greedy episodes."""
        result = self.result
        if self._session is None:  # it was loaded to act, which needs no environment
            result = dataclasses.replace(result, task=make_task(result.run))
        return evaluate(result, episodes, seed)

    # Files

    def save(self, path: str | Path, *, learning: bool = False) -> Path:
        """One file. `learning`: with replay and all else that learning needs, so that `learn` goes on exactly."""
        if learning and self._session is None:
            raise BadInput("this model has nothing to go on learning from.")
        return write_model(Path(path), self.result, self._session if learning else None)

    def __repr__(self) -> str:
        return f"<iqrl.{type(self).__name__} on {self._env}, {self.num_timesteps:,} steps>"


def _masks_in_rows(space: Any, masks: Any, count: int) -> np.ndarray:
    """[n, A]: of the masks given for each of several observations, in the form that the environment has them."""
    if len(masks) != count:
        raise BadInput(f"action_masks has {len(masks)} masks for {count} observations; there must be one for each.")
    try:
        return np.stack([as_mask(space, mask) for mask in masks])
    except BadMask as wrong:
        raise BadInput(f"action_masks has {wrong}.") from None


def _positive(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise BadInput(f"total_timesteps must be a whole number of at least 1, got {steps!r}.")
    return int(steps)


@contextlib.contextmanager
def _display(model: Model, callback: Callback | None, bar: bool) -> Generator[Display]:
    """What the training loop calls after each period."""
    with contextlib.ExitStack() as stack:
        shown: Display = lambda progress: None
        if bar:
            from iqrl.experiments.report.terminal import show_training

            shown = stack.enter_context(show_training(model.method))

        def display(progress: Progress) -> None:
            shown(progress)
            if callback is not None and callback(model, progress) is False:
                raise _Stopped

        yield display


# A class for each method

WORDS = {"medqn": "MeDQN", "layernorm": "LayerNorm", "clustering": "Clustering", "distillation": "Distillation"}
ACRONYMS = ("dqn", "iq", "srnn", "dsom", "tcnn", "re", "te", "q", "u", "r", "c51")


def class_name(method: str) -> str:
    """
    >>> class_name("local-q"), class_name("rainbow-iq-re"), class_name("medqn-u")
    ('LocalQ', 'RainbowIQRE', 'MeDQNU')
    """
    word = lambda part: part.upper() if part in ACRONYMS else WORDS.get(part, part.capitalize())
    return "".join(map(word, method.split("-")))


def _model_of(method: str) -> type[Model]:
    record = METHODS[method]
    text = f"{record.summary} ({record.paper}).\n\n{Model.__doc__}"
    return type(class_name(method), (Model,), {"method": method, "__doc__": text, "__module__": "iqrl"})


MODELS = {method: _model_of(method) for method in METHODS}


def load_model(path: str | Path, env: Named | None = None) -> Model:
    """A model from its file. `env`: the environment, to evaluate a model or to go on learning where its name is not
    enough; acting needs none."""
    task = None
    if env is not None:
        task = name_of(copies_of(env) if isinstance(env, gymnasium.Env) else env)
        trust([task])
    saved = read_model(Path(path), task)
    run = saved.result.run
    kind = MODELS.get(run.method) or type("Model", (Model,), {"method": run.method})
    model = kind.__new__(kind)
    model._given, model._env, model._preset = {}, run.task, None
    model._result, model._session, model._step_of_result = saved.result, saved.session, 0
    return model
