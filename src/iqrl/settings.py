"""Settings: everything that defines a run, declared by whoever uses it.

The settings that every run has are declared here. A method or a task declares its own in its own file, as a group: a
class whose docstring names the group and whose fields are made by `setting`. `Run` is the common settings and those of
its method and task (`run_class`). Flags, keywords, TOML keys, checks, help texts and `run.json` all follow from the
fields.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import numbers
import operator
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from iqrl.errors import BadInput, shown, unknown
from iqrl.plugins import source_of

REQUIRED = dataclasses.MISSING
LARGEST = 2**31 - 1
"""whole numbers are counted in 32 bits"""
LARGEST_REAL = 3.4e38
"""real numbers are computed in 32 bits"""


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    paper: str = "",
    may_change: bool = False,
    empty: bool = False,
) -> Any:
    """A field with its help text and its range; `paper` says what the IQ paper has, where that is known. `may_change`:
    between two calls of `Model.learn`. `empty`: a list may have no value."""
    bounds = {"minimum": minimum, "maximum": maximum, "above": above, "below": below}
    notes = {"help": help, "paper": paper, "may_change": may_change, "empty": empty}
    return dataclasses.field(default=default, metadata=bounds | notes)


@typing.dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class Settings:
    """A group of settings. Every subclass becomes a frozen dataclass with keyword arguments.

    Values are brought to their declared type and range, or refused with a sentence.

    A group may define `check`, for what several settings must fulfil together.
    """

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        hints = _hints(type(self))
        for field in dataclasses.fields(self):  # ty: ignore[invalid-argument-type]
            value = check_value(field, hints[field.name], getattr(self, field.name))
            object.__setattr__(self, field.name, value)
        for cls in reversed(type(self).__mro__):
            if "check" in vars(cls):
                vars(cls)["check"](self)


# The settings of every run


class TaskSettings(Settings):
    """the task"""

    max_episode_steps: int | None = setting(None, "time limit of an episode; the task's own if not given", minimum=1)
    bootstrap_time_limit: bool = setting(
        True,
        "bootstrap from the state at a time limit, instead of treating the time limit as termination",
        paper="not stated; an end in Baselines",
    )
    reward_scale: float = setting(
        1.0,
        "factor of the reward that is learned from; reported returns are without it",
        minimum=1e-6,
        paper="not stated",
    )


class Training(Settings):
    """training"""

    steps: int = setting(
        REQUIRED,
        "environment steps per seed; if not given, the paper's for its tasks, 1,000,000 for MinAtar, else 100,000",
        minimum=1,
        maximum=LARGEST,
    )
    period: int = setting(REQUIRED, "steps between two points of the curve; steps / 40 if not given", minimum=1)
    seeds: int = setting(5, "independent runs, trained side by side", minimum=1, maximum=LARGEST, paper="5")
    seed: int = setting(0, "the first seed; the others follow it", minimum=0, maximum=LARGEST)
    accelerator: Literal["none", "fused"] = setting(
        "none", "fused: updates of dqn and iq by one kernel of C++, which a compiler found here makes; other last bits"
    )


class Learning(Settings):
    """learning"""

    gamma: float = setting(
        0.99, "discount factor γ", minimum=0, maximum=1, paper="not stated; 1.0 in Baselines", may_change=True
    )
    n_step: int = setting(1, "rewards added up before bootstrapping; the last n - 1 steps are kept for it", minimum=1)
    double_q: bool = setting(False, "choose the next action by θ, value it by θ⁻", paper="yes for DQN, no for IQ")
    td_error: Literal["huber", "squared"] = setting("huber", "what is minimised of the TD error", paper="huber")
    learning_starts: int = setting(1000, "steps before the first update", minimum=0, paper="1000")
    update_every: int = setting(1, "steps between two learning steps", minimum=1, paper="1")
    gradient_steps: int = setting(1, "updates each time, every one from a batch of its own", minimum=1, paper="1")
    target_period: int = setting(
        1000, "steps C between two syncs of the target", minimum=1, paper="1000", may_change=True
    )
    target_average: float = setting(
        0.0, "τ: the target moves by this share towards θ after every update, instead of syncs; 0 is syncs",
        minimum=0, maximum=1, paper="0", may_change=True,
    )  # fmt: skip
    act_average: float = setting(
        0.0, "τ: a running average of θ acts, which moves by this share after every update; 0: θ acts",
        minimum=0, maximum=1, paper="0",
    )  # fmt: skip
    average_fall: int = setting(
        0, "T: after T steps act_average falls as T / t, so that the average spans a share of all steps; 0: it stays",
        minimum=0, paper="0",
    )  # fmt: skip
    normalise_inputs: bool = setting(
        False, "states by their running mean and deviation, rewards by that of the running return", paper="no"
    )


class Replay(Settings):
    """replay"""

    buffer_size: int = setting(
        100, "replay capacity N; 1 is no replay at all", minimum=1, maximum=LARGEST, paper="1, 100 or 50,000"
    )
    batch_size: int = setting(
        32, "transitions per update, drawn with replacement", minimum=1, paper="32", may_change=True
    )
    sampling: Literal["uniform", "prioritised", "whole"] = setting(
        "uniform",
        "batches drawn uniformly, in proportion to their last loss, or the whole buffer each time",
        paper="uniform; prioritised for Rainbow",
    )
    priority_exponent: float = setting(0.5, "prioritised: a priority is the loss to this power", minimum=0, paper="0.5")
    priority_correction: float = setting(
        0.5, "prioritised: what is drawn more often counts less, by its priority to this power", minimum=0, paper="0.5"
    )


class QNetwork(Settings):
    """network"""

    network: str = setting(
        "", "a module of your own before the heads, module:name or file.py:name; hidden is empty then if not given"
    )
    hidden: tuple[int, ...] = setting(
        (64,), "units of each hidden layer of the shared trunk", minimum=1, paper="64", empty=True
    )
    activation: Literal["tanh", "relu", "leaky-relu"] = setting("tanh", "of the hidden layers", paper="tanh")
    features: Literal["dense", "hats", "fta", "elephant", "rbf"] = setting(
        "dense", "what the last hidden layer has: an activation, or local features", paper="dense"
    )
    bins: int = setting(16, "hats, fta, rbf: parts into which a unit's range is divided", minimum=1)
    feature_width: float | None = setting(
        None, "fta, rbf: width in bins, 1 and 0.5 if not given; elephant: width of the bump, 0.2", above=0
    )
    layer_norm: bool = setting(False, "normalise each hidden layer before its activation", paper="no")
    dueling: bool = setting(False, "a value and an advantage per action instead of a Q value", paper="no")
    noisy: bool = setting(False, "explore by noise in the heads' weights; ε is best 0 then", paper="no")
    own_layers: int = setting(
        0, "how many of the last hidden layers each head has separately", minimum=0,
        paper="0; 1 for images",
    )  # fmt: skip
    padding: Literal["valid", "same"] = setting(
        "valid", "of the convolutions, for images", paper="valid in its table, same in the released code"
    )


class Optimiser(Settings):
    """optimiser"""

    optimiser: Literal["adam", "rmsprop", "bounded"] = setting(
        "adam",
        "RMSProp is the centred one; bounded: a step that cannot overshoot, without replay",
        paper="not stated; adam in Baselines, rmsprop for DQN on Atari",
    )
    learning_rate: float = setting(
        5e-4, "step size; 2e-5 with features hats, 1 with optimiser bounded", minimum=0,
        paper="5e-4; 2.5e-4 and 6.25e-5 on Atari", may_change=True,
    )  # fmt: skip
    adam_epsilon: float = setting(
        1e-8, "Adam's ε, added to the root of the bias-corrected square", minimum=0,
        paper="not stated; 1e-8 in Baselines",
    )  # fmt: skip
    rmsprop_decay: float = setting(0.95, "of RMSProp's averages", minimum=0, maximum=1, paper="0.95")
    rmsprop_epsilon: float = setting(1e-5, "added under RMSProp's root", minimum=0, paper="1e-5")
    share_step: float = setting(
        0.0, "ρ: the heads of the other actions move by this share of the taken action's step", minimum=0, maximum=1,
        paper="0",
    )  # fmt: skip
    gradient_clip: float = setting(
        0.0, "clip the gradient to this global norm; 0 is no clipping", minimum=0, paper="not stated", may_change=True
    )


class Exploration(Settings):
    """exploration"""

    epsilon_start: float = setting(
        1.0, "share of random actions at the start", minimum=0, maximum=1, paper="1.0", may_change=True
    )
    epsilon_final: float = setting(
        0.02, "share of random actions after the decay", minimum=0, maximum=1, paper="0.02", may_change=True
    )
    epsilon_begin: int = setting(
        0, "steps before the decay begins", minimum=0, paper="0; 20,000 on Atari", may_change=True
    )
    epsilon_decay: int = setting(
        REQUIRED, "steps of the linear decay; steps / 10 if not given", minimum=0, paper="10%", may_change=True
    )


class Measuring(Settings):
    """measuring"""

    measure_every: int = setting(
        0, "measure interference at every m-th learning step, and probe the network each period; 0: not at all",
        minimum=0, paper="1",
    )  # fmt: skip
    measure_sample: int = setting(
        125, "transitions evaluated each time, spread over the recent ones; 0: all of them", minimum=0, paper="all"
    )
    measure_recent: int = setting(
        10_000, "recent transitions on which the TD error is measured", minimum=1, maximum=LARGEST, paper="10,000"
    )
    measure_weights: Literal["acting", "learned"] = setting(
        "acting", "the Q-function that is measured: that of the weights that act, or of those that learn"
    )
    measure_reservoir: int = setting(
        1000,
        "size of a uniform sample of all transitions, on which the TD error is measured too",
        minimum=1,
        maximum=LARGEST,
    )
    measure_states: int = setting(
        1000, "states kept apart before training, on which the network is probed", minimum=1, maximum=100_000
    )


COMMON: tuple[type[Settings], ...] = (
    Training, Learning, Replay, QNetwork, Optimiser, Exploration, Measuring, TaskSettings,
)  # fmt: skip


class Following(Settings):
    """evaluations, early stop, tracking"""

    eval_every: int = setting(
        0, "evaluate greedily after every so many steps, at the end of a period; 0: never", minimum=0
    )
    eval_episodes: int = setting(10, "episodes of each evaluation, for each seed", minimum=1, maximum=LARGEST)
    keep_best: bool = setting(False, "keep the model of the best evaluation as best.iqrl in the directory of the run")
    stop_at: float | Literal["never"] = setting(
        "never", "stop when the mean over the seeds reaches this return: of an evaluation, or without, of a period"
    )
    patience: int = setting(
        0, "stop after so many evaluations, or without them periods, that are no better than the best; 0: never",
        minimum=0,
    )  # fmt: skip
    track: Literal["none", "csv", "tensorboard", "trackio", "wandb"] = setting("none", "where the metrics also go")

    def check(self) -> None:
        if self.keep_best and not self.eval_every:
            raise BadInput("keep_best is for a run that is evaluated; give eval_every.")

    @property
    def stops(self) -> bool:
        """Whether it may end the run early."""
        return self.stop_at != "never" or self.patience > 0


class Run(Measuring, Exploration, Optimiser, QNetwork, Replay, Learning, Training, TaskSettings):
    """One run. `iqrl.resolve` makes it from names, a preset and the settings that differ."""

    task: str
    method: str

    if TYPE_CHECKING:  # the settings of a method and a task, which are known only to them

        def __getattr__(self, name: str) -> Any: ...

    def check(self) -> None:
        self._check_lengths()
        if not self.hidden and (not self.network or self.features != "dense"):
            raise BadInput("hidden must have at least one value.")
        if self.own_layers > len(self.hidden):
            raise BadInput(f"own_layers is {self.own_layers}, and there are {len(self.hidden)} hidden layers.")
        if self.features != "dense" and (self.own_layers or self.noisy):
            raise BadInput(
                f"features {self.features} are for a last hidden layer that the heads share, and heads without noise: "
                f"own_layers must be 0 and noisy false."
            )
        if self.share_step and (self.dueling or self.noisy):
            raise BadInput("share_step is for heads that are neither dueling nor noisy.")

    def _check_lengths(self) -> None:
        for name in ("steps", "period", "learning_starts"):
            if getattr(self, name) % self.update_every:
                raise BadInput(
                    f"{name} is {getattr(self, name)}; it must be a multiple of update_every, {self.update_every}."
                )
        for name in ("steps", "period"):
            if getattr(self, name) % self.env_count:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be a multiple of n_envs, {self.env_count}.")
        for name in ("period", "learning_starts"):
            if getattr(self, name) > self.steps:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at most steps, {self.steps}.")
        # Learning starts with something to learn from.
        ready = (self.buffer_size if self.sampling == "whole" else 1) + (self.n_step - 1) * self.env_count
        if ready > max(self.learning_starts, 1):
            why = "sampling whole waits for a full buffer" if self.sampling == "whole" else f"n_step is {self.n_step}"
            raise BadInput(f"learning_starts is {self.learning_starts}; {why}, so it must be at least {ready}.")

        learnings = self.period // self.update_every
        if self.measure_every > learnings:
            raise BadInput(
                f"measure_every is {self.measure_every}, and a period of {self.period} steps has {learnings} learning "
                f"steps; take a smaller measure_every or a longer period."
            )
        # They are evaluated a thousand at a time.
        if self.measure_recent > 1000 and self.measure_recent % 1000:
            raise BadInput(f"measure_recent is {self.measure_recent}; above 1000 it must be a multiple of 1000.")

    @property
    def steps_between_syncs(self) -> int:
        """`target_period`, but the target is synced after an update: the next multiple of `update_every`."""
        return -(-self.target_period // self.update_every) * self.update_every

    @property
    def env_count(self) -> int:
        """Environments per seed, which take turns; 1 where the task has no such setting."""
        return getattr(self, "n_envs", 1)

    @property
    def has_target(self) -> bool:
        """Whether there is a target network: one that followed after every update would be the network itself."""
        synced_seldom = self.steps_between_syncs != self.update_every or self.gradient_steps > 1
        return synced_seldom or self.target_average > 0

    @property
    def names(self) -> tuple[str, ...]:
        """What may be code of the user's own."""
        return (self.task, self.method, *([self.network] if self.network else []))

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits made of all that decides the trajectory: the settings but for how far to go, and
        the source of a task, method or network of the user's own. What is at its default is left out, so that a run
        keeps its name when settings are added to the library. A run that is read from a study has the one it was made
        with: the file of a task of somebody's own may not be here."""
        if recorded := self.__dict__.get("recorded_identity"):
            return recorded
        defaults = {field.name: field.default for field in dataclasses.fields(self)} | {"steps": self.steps}
        values = dataclasses.asdict(self)
        settings = {name: values[name] for name in values if values[name] != defaults[name]}
        sources = [source_of(self.task), source_of(self.method), *([source_of(self.network)] if self.network else [])]
        text = json.dumps([settings, *sources], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: lists for tuples."""
        values = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@functools.cache
def run_class(groups: tuple[type[Settings], ...]) -> type[Run]:
    """Run with these groups of settings beside the common ones."""
    return merge_groups("Run", (*groups, Run)) if groups else Run


@functools.cache
def task_settings_class(groups: tuple[type[Settings], ...]) -> type[TaskSettings]:
    """What a task is made with: the common settings of tasks and its own."""
    return merge_groups("TaskSettings", (*groups, TaskSettings)) if groups else TaskSettings


def merge_groups(name: str, groups: tuple[type, ...]) -> Any:
    fields: dict[str, type] = {}
    for each in groups:
        for field in dataclasses.fields(each):  # ty: ignore[invalid-argument-type]
            if fields.setdefault(field.name, each) is not each:
                raise BadInput(
                    f"two groups of settings both have {field.name}: {fields[field.name].__name__}, {each.__name__}."
                )
    return types.new_class(name, tuple(dict.fromkeys(groups)))


@functools.cache
def fields_of(cls: type) -> tuple[dataclasses.Field, ...]:
    """The settings declared by one group, in order."""
    own, fields = inspect.get_annotations(cls), dataclasses.fields(cls)  # ty: ignore[invalid-argument-type]
    return tuple(field for field in fields if field.name in own)


def settings_of(groups: typing.Iterable[type]) -> Mapping[str, dataclasses.Field]:
    """The settings of several groups by name."""
    return _settings_of(tuple(groups))


@functools.cache
def _settings_of(groups: tuple[type, ...]) -> Mapping[str, dataclasses.Field]:
    return types.MappingProxyType({field.name: field for each in groups for field in fields_of(each)})


def types_of(groups: typing.Iterable[type]) -> Mapping[str, Any]:
    """The declared type of each."""
    return _types_of(tuple(groups))


@functools.cache
def _types_of(groups: tuple[type, ...]) -> Mapping[str, Any]:
    return types.MappingProxyType({name: hint for each in groups for name, hint in _hints(each).items()})


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    return typing.get_type_hints(cls)


# Checking values


def check_groups(name: str, groups: Any) -> tuple[type[Settings], ...]:
    """The groups of settings that a task or method of the user's own declares."""
    is_group = lambda each: isinstance(each, type) and issubclass(each, Settings)
    if not isinstance(groups, tuple) or not all(map(is_group, groups)):
        raise BadInput(f"{name}: its settings must be a tuple of classes of iqrl.Settings, got {shown(groups)}.")
    return groups


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def check_value(field: dataclasses.Field, hint: Any, value: Any) -> Any:
    """The value in its declared type and range; raises BadInput otherwise."""
    name = field.name
    if hint is Any:  # the declaration is not loaded
        return tuple(value) if isinstance(value, list) else value
    if is_union(hint):
        hint, alternative = typing.get_args(hint)
        if (value is None and alternative is type(None)) or _is_one_of(value, typing.get_args(alternative)):
            return value
    origin = typing.get_origin(hint)
    if origin is Literal:
        if not _is_one_of(value, typing.get_args(hint)):
            given = value if isinstance(value, str) else shown(value)
            raise unknown(name, given, typing.get_args(hint))
        return value
    if origin is tuple:
        values = value if isinstance(value, (list, tuple)) else (value,)
        if not values and field.default and not field.metadata.get("empty"):
            raise BadInput(f"{name} must have at least one value.")
        return tuple(_number(field, typing.get_args(hint)[0], item) for item in values)
    if hint is bool or hint is str:
        if not isinstance(value, hint):
            raise BadInput(f"{name} must be {'true or false' if hint is bool else 'text'}, got {shown(value)}.")
        return value
    return _number(field, hint, value)


BOUNDS = (
    ("minimum", operator.ge, "at least"), ("maximum", operator.le, "at most"), ("above", operator.gt, "above"),
    ("below", operator.lt, "below"),
)  # fmt: skip


def _number(field: dataclasses.Field, kind: type, value: Any) -> Any:
    name = field.name
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not _is_finite(value):
        raise BadInput(f"{name} must be a finite number, got {shown(value)}.")
    if kind is int and value != int(value):
        raise BadInput(f"{name} must be a whole number, got {shown(value)}.")
    for bound, holds, words in BOUNDS:
        limit = field.metadata.get(bound)
        if limit is not None and not holds(value, limit):
            raise BadInput(f"{name} must be {words} {limit}, got {shown(value)}.")
    largest = LARGEST if kind is int else LARGEST_REAL
    if not -largest <= value <= largest:
        raise BadInput(f"{name} must be at most {largest}, got {shown(value)}.")
    return kind(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return isinstance(value, str) and value in choices
