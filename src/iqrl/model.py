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
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, Self

import gymnasium
import numpy as np
import polars as pl
from gymnasium.spaces import Box

from iqrl.callbacks import Callbacks, followed, refuse_misfits
from iqrl.envs.external import copies_of
from iqrl.envs.masks import BadMask, as_mask
from iqrl.envs.registry import make_task
from iqrl.envs.spaces import decode_action, encode_observation
from iqrl.errors import BadInput, shown
from iqrl.exporting.export import Exported, export_result
from iqrl.make_run import Named, changed, resolve
from iqrl.methods.registry import METHODS
from iqrl.plugins import in_a_sentence, name_of, trust
from iqrl.settings import Run
from iqrl.tracking import Tracker
from iqrl.training.evaluation import evaluate
from iqrl.training.loop import Display, Session, driver_of
from iqrl.training.model_file import Change, read_model, write_model
from iqrl.training.results import Result, TrainedAgent, wrong_observation
from iqrl.training.run_directory import NO_EVALUATIONS

P = ParamSpec("P")


def _environment_first(init: Callable[P, None]) -> Callable[P, None]:
    """For those who write `DQN("MlpPolicy", env=env)`: Python's own message speaks of an argument given twice."""

    @functools.wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        model, *given = args
        if len(given) > 1 or (given and "env" in kwargs):
            raise BadInput(_call_here(type(model).__name__, [*given, *[kwargs[it] for it in ("env",) if it in kwargs]]))
        init(*args, **kwargs)

    return checked


def _call_here(name: str, given: list[Any]) -> str:
    """What to write instead of a call by position; `given`: the arguments, the environment among them.

    >>> _call_here("DQN", ["MlpPolicy", "CartPole-v1"]).partition(";")[0]
    'iqrl.DQN takes no policy: write iqrl.DQN("CartPole-v1")'
    """
    if not str(getattr(given[0], "__name__", given[0])).endswith("Policy"):
        return f"iqrl.{name} takes the environment first, and all else by name: iqrl.{name}(env, learning_rate=1e-3)."
    env = f'"{given[1]}"' if isinstance(given[1], str) else getattr(given[1], "__name__", "env")
    written = f"iqrl.{name}({env if env != '<lambda>' else 'env'})"
    return (
        f"iqrl.{name} takes no policy: write {written}; the network follows from the observations, and settings are "
        f"given by name, such as hidden=(64, 64)."
    )


class Model:
    """An agent that learns, acts, and can be saved.

    `env`: the name of a task or of a Gymnasium environment, a class or function that makes one, or an environment.
    `settings` are those of `iqrl.train`. With `seeds=n` there are n independent agents, trained side by side.
    """

    method: ClassVar[str]
    _session: Session | None = None
    """what learns; none before the first `learn`, and in a model that was loaded to act"""
    _result: Result | None = None
    _step_of_result: int = 0
    _acting: tuple[Result, TrainedAgent] | None = None
    """the agent that predicts, and of which result it is"""

    @_environment_first
    def __init__(
        self, env: Named, *, preset: str | None = None, seed: int = 0, seeds: int = 1, **settings: Any
    ) -> None:
        if "steps" in settings:
            raise BadInput("steps is the argument of learn; leave it out.")
        self._given = {"seed": seed, "seeds": seeds} | settings
        self._env = resolve(env, self.method, preset, **self._given).task  # says at once what is wrong
        self._preset = preset
        self.changes: list[Change] = []
        """of settings, by `set`: the step, and each setting's old and new value"""

    @staticmethod
    def of(session: Session) -> Model:
        """The model of a run that is in training."""
        model = _empty(session.driver.run)
        model._session = session
        return model

    @classmethod
    def load(cls, path: str | Path, env: Named | None = None) -> Self:
        """As `iqrl.load`, for a model of this class."""
        found = load_model(path, env)
        if not isinstance(found, cls):
            raise BadInput(f"{path} is a model of {found.method}; load it by iqrl.load.")
        return found

    # Learning

    def learn(
        self,
        total_timesteps: int,
        callback: Callbacks = None,
        progress_bar: bool = False,
        tracker: str | Tracker | None = None,
    ) -> Self:
        """Train for so many steps of each seed; called again, go on for so many more.

        Schedules, such as that of ε, follow from the steps of the first call. `callback`: a function of this model and
        the progress, or a list of them (`iqrl.callbacks`), called at the end of each period; False stops the training.
        `tracker`: tensorboard, wandb, trackio, csv, or an object with `log(step, values)`. Whatever ends it, what was
        learned until then is kept.
        """
        refuse_misfits(callback, tracker)
        steps = _positive(total_timesteps)
        session = self._session or self._begin(steps)
        goal = session.step + steps
        following = followed(session.driver.run, lambda session: self, callback, tracker)
        with show_progress(self.method, progress_bar) as display, following as follow:
            session.train_to(goal, display, follow)
        return self

    def set(self, **settings: Any) -> Self:
        """Learn with other settings from here on, such as `learning_rate`; `changes` has what was changed.

        What the agent consists of, such as `hidden` and `buffer_size`, is refused.
        """
        session = self._session
        if session is None:
            self._refuse_if_saved_to_act()
            resolve(self._env, self.method, self._preset, **(self._given | settings))
            self._given |= settings
            return self
        before, after = session.driver.run, changed(session.driver.run, **settings)
        values = {name: [getattr(before, name), getattr(after, name)] for name in settings}
        different = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
        if different:
            session.change(after)
            self.changes.append({"step": session.step} | different)
        return self

    @property
    def stopped(self) -> str:
        """Why a callback ended the last `learn`; empty where none did."""
        return "" if self._session is None else self._session.stopped

    def _refuse_if_saved_to_act(self) -> None:
        if self._result is not None:
            raise BadInput("this model was saved to act; save it with learning=True to go on learning.")

    def _begin(self, steps: int) -> Session:
        self._refuse_if_saved_to_act()
        run = resolve(self._env, self.method, self._preset, **self._given, steps=steps)
        self._session = Session(driver_of(run))
        return self._session

    @property
    def run(self) -> Run:
        """All settings, as they are now."""
        return self.result.run if self._session is None else self._session.driver.run

    @property
    def num_timesteps(self) -> int:
        """Steps that each seed has learned from."""
        if self._session is not None:
            return self._session.step
        return 0 if self._result is None else self._result.step

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
    def evaluations(self) -> pl.DataFrame:
        """One row per seed and evaluation that was made while it learned."""
        return NO_EVALUATIONS if self._session is None else self._session.evaluations

    def add_evaluation(self, returns: np.ndarray) -> None:
        """Put the returns [seeds, episodes] of an evaluation into `evaluations`; for callbacks."""
        if self._session is None:
            raise BadInput("evaluations are kept of a model that learns.")
        self._session.add_evaluation(returns)

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
        one = _shape(observation) == seen.shape if seen.shape is not None else not isinstance(observation, list)
        rows = self._encoded(seen, [observation] if one else observation)
        if math.prod(self.result.task.observation_shape) not in (rows[0].size, rows.size):
            raise wrong_observation(
                seen.shape or self.result.task.observation_shape, f"got shape {_shape(observation)}"
            )
        if masks is not None:
            masks = _masks_in_rows(acted, [masks] if one else masks, len(rows))
        actions = [decode_action(acted, number) for number in self._first_agent.predict(rows, action_masks=masks)]
        return np.asarray(actions[0] if one else actions)

    def _encoded(self, space: Any, observations: Any) -> np.ndarray:
        image = self.result.task.image
        try:
            return np.stack([encode_observation(space, obs, image) for obs in observations])
        except Exception as error:
            if isinstance(space, Box) and (image is None or image.stack == 1):
                raise wrong_observation(space.shape, f"this is {shown(observations)}") from error
            raise BadInput(f"the observation is none of {space}: {in_a_sentence(error)}.") from error

    @property
    def _first_agent(self) -> TrainedAgent:
        result = self.result
        if self._acting is None or self._acting[0] is not result:
            self._acting = result, result.agents[0]
        return self._acting[1]

    def evaluate(self, episodes: int = 10, seed: int = 0) -> np.ndarray:
        """[seeds, episodes]: returns of greedy episodes, in an environment of their own."""
        return evaluate(self.result_with_task, episodes, seed)

    @property
    def result_with_task(self) -> Result:
        """A model that was loaded to act has no environment; it is made here."""
        result = self.result
        return result if self._session is not None else dataclasses.replace(result, task=make_task(result.run))

    # Files

    def save(self, path: str | Path, *, learning: bool = False) -> Path:
        """One file. `learning`: with replay and all else that learning needs, so that `learn` goes on exactly."""
        if learning and self._session is None:
            raise BadInput("this model has nothing to go on learning from.")
        return write_model(Path(path), self.result, self._session if learning else None, self.changes)

    def export(self, path: str | Path | None = None, *, to: str = "numpy", seed: int | None = None) -> Exported:
        """A file that acts without JAX: `to="numpy"`, a Python file, or `to="onnx"`; see docs/export.md."""
        return export_result(self.result, path, to, seed)

    def _repr_html_(self) -> str | None:
        """In a notebook: the curve, once it has learned."""
        return self.result._repr_html_() if self.num_timesteps else None

    def __repr__(self) -> str:
        changes = "".join(f"; {_change_text(change)}" for change in self.changes)
        return f"<iqrl.{type(self).__name__} on {self._env}, {self.num_timesteps:,} steps{changes}>"


def _change_text(change: Change) -> str:
    """
    >>> _change_text({"step": 4000, "learning_rate": [0.001, 0.0001]})
    'learning_rate 0.0001 from step 4,000'
    """
    values = ", ".join(f"{name} {pair[1]}" for name, pair in change.items() if name != "step")
    return f"{values} from step {change['step']:,}"


def _shape(observation: Any) -> tuple[int, ...] | None:
    """None of rows of different lengths."""
    try:
        return np.shape(observation)
    except ValueError:
        return None


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


def show_progress(label: str, shown: bool) -> contextlib.AbstractContextManager[Display]:
    """A bar on a terminal and in a notebook, elsewhere a line every few seconds; nothing if not `shown`."""
    if not shown:
        return contextlib.nullcontext(lambda progress: None)
    from iqrl.experiments.report.terminal import show_training

    return show_training(label)


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
    saved = read_model(Path(path), given_task(env))
    model = _empty(saved.result.run)
    model._result, model._session, model.changes = saved.result, saved.session, saved.changes
    return model


def given_task(env: Named | None) -> str | None:
    """The name of an environment that the user gives; it is trusted."""
    if env is None:
        return None
    name = name_of(copies_of(env) if isinstance(env, gymnasium.Env) else env)
    trust([name])
    return name


def _empty(run: Run) -> Model:
    """A model of the class of a run's method."""
    kind = MODELS.get(run.method) or type("Model", (Model,), {"method": run.method})
    model = kind.__new__(kind)
    model._env, model.changes = run.task, []
    return model
