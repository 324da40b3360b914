"""Run: everything that defines a run, one frozen, validated dataclass.

The fields are grouped by the classes `Run` inherits from; a method says which groups it uses. The
command line, the config files and the keyword arguments of `iqrl.train` are all derived from here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import numbers
import types
import typing
from typing import Any, Literal

from iqrl.errors import BadInput, unknown
from iqrl.plugins import source_of

REQUIRED = dataclasses.MISSING
LARGEST = 2**31 - 1
"""steps are counted in 32 bits"""


def option(
    default: Any, help: str, *, at_least: float | None = None, at_most: float | None = None, paper: str = ""
) -> Any:
    """A field with its help text and bounds; `paper` says what the paper has, where that is known."""
    metadata = {"help": help, "at_least": at_least, "at_most": at_most, "paper": paper}
    return dataclasses.field(default=default, metadata=metadata)


class Checked:
    """Fields are brought to their declared type and range, or refused with a sentence."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # ty: ignore[invalid-argument-type]
            object.__setattr__(self, field.name, checked(field, getattr(self, field.name)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions(Checked):
    """the task"""

    max_episode_steps: int | None = option(None, "time limit of an episode; the task's own if not given", at_least=1)
    bootstrap_time_limit: bool = option(
        True,
        "value the state at a time limit instead of treating it as the end of the world",
        paper="not stated; an end in Baselines",
    )
    reward_scale: float = option(
        1.0, "factor of the reward that is learned from; returns are told without it", at_least=1e-6, paper="not stated"
    )
    sticky: float | None = option(
        None, "games: chance that an action is repeated instead of the next one; the game's own if not given",
        at_least=0, at_most=0.99, paper="0.25",
    )  # fmt: skip
    frame_stack: int = option(
        1, "images of a Gymnasium environment: frames that are seen together; Atari always has 4", at_least=1, paper="4"
    )
    torques: int = option(5, "Pendulum: number of evenly spaced torques on [-2, 2]", at_least=2, paper="not stated")
    shaping_scale: float = option(
        1.0,
        "MountainCar: scale of the potential |velocity| added to the learned reward",
        at_least=0,
        paper="not stated",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training(Checked):
    """training"""

    steps: int = option(
        REQUIRED, "environment steps per seed; the paper's for the task if not given", at_least=1, at_most=LARGEST
    )
    period: int = option(REQUIRED, "steps between two points of the curve; steps / 40 if not given", at_least=1)
    seeds: int = option(5, "independent runs, trained side by side", at_least=1, at_most=LARGEST, paper="5")
    seed: int = option(0, "the first seed; the others follow it", at_least=0, at_most=LARGEST)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learning(Checked):
    """learning"""

    gamma: float = option(0.99, "discount factor γ", at_least=0, at_most=1, paper="not stated; 1.0 in Baselines")
    n_step: int = option(1, "rewards added up before bootstrapping; the last n - 1 steps are kept for it", at_least=1)
    double_q: bool = option(False, "choose the next action by θ, value it by θ⁻", paper="yes for DQN, no for IQ")
    td_error: Literal["huber", "squared"] = option("huber", "what is minimised of the TD error", paper="huber")
    learning_starts: int = option(1000, "steps before the first update", at_least=0, paper="1000")
    update_every: int = option(1, "steps between two times of learning", at_least=1, paper="1")
    gradient_steps: int = option(1, "updates each time, every one from a batch of its own", at_least=1, paper="1")
    target_period: int = option(1000, "steps C between two syncs of the target", at_least=1, paper="1000")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay(Checked):
    """replay"""

    buffer_size: int = option(
        100, "replay capacity N; 1 is no replay at all", at_least=1, at_most=LARGEST, paper="1, 100 or 50,000"
    )
    batch_size: int = option(32, "transitions per update, drawn with replacement", at_least=1, paper="32")
    sampling: Literal["uniform", "prioritised", "whole"] = option(
        "uniform",
        "batches drawn at random, in proportion to what was to be learned from them, or the whole buffer each time",
        paper="uniform; prioritised for Rainbow",
    )
    priority_exponent: float = option(0.5, "prioritised: a priority is the loss to this power", at_least=0, paper="0.5")
    priority_correction: float = option(
        0.5, "prioritised: what is drawn more often counts less, by its priority to this power", at_least=0, paper="0.5"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class QNetwork(Checked):
    """network"""

    hidden: tuple[int, ...] = option((64,), "units of each hidden layer of the shared trunk", at_least=1, paper="64")
    activation: Literal["tanh", "relu", "leaky-relu"] = option("tanh", "of the hidden layers", paper="tanh")
    layer_norm: bool = option(False, "normalise each hidden layer before its activation", paper="no")
    dueling: bool = option(False, "a value and an advantage per action instead of a Q value", paper="no")
    noisy: bool = option(False, "explore by noise in the heads' weights; ε is best 0 then", paper="no")
    own_layers: int = option(
        0, "of the hidden layers, how many each head has for itself, the last ones", at_least=0,
        paper="0; 1 for images",
    )  # fmt: skip
    padding: Literal["valid", "same"] = option(
        "valid", "of the convolutions, for images", paper="valid in its table, same in the released code"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimiser(Checked):
    """optimiser"""

    optimiser: Literal["adam", "rmsprop"] = option(
        "adam", "RMSProp is the centred one", paper="not stated; adam in Baselines, rmsprop for DQN on Atari"
    )
    learning_rate: float = option(5e-4, "step size", at_least=0, paper="5e-4; 2.5e-4 and 6.25e-5 on Atari")
    adam_epsilon: float = option(1e-8, "Adam's ε̂", at_least=0, paper="not stated; 1e-8 in Baselines")
    rmsprop_decay: float = option(0.95, "of RMSProp's averages", at_least=0, at_most=1, paper="0.95")
    rmsprop_epsilon: float = option(1e-5, "added under RMSProp's root", at_least=0, paper="1e-5")
    gradient_clip: float = option(
        0.0, "clip the gradient to this global norm; 0 is no clipping", at_least=0, paper="not stated"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exploration(Checked):
    """exploration"""

    epsilon_start: float = option(1.0, "share of random actions at the start", at_least=0, at_most=1, paper="1.0")
    epsilon_final: float = option(0.02, "share of random actions after the decay", at_least=0, at_most=1, paper="0.02")
    epsilon_begin: int = option(0, "steps before the decay begins", at_least=0, paper="0; 20,000 on Atari")
    epsilon_decay: int = option(REQUIRED, "steps of the linear decay; steps / 10 if not given", at_least=0, paper="10%")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measuring(Checked):
    """measuring"""

    measure_every: int = option(
        0, "measure interference at every m-th time of learning, and probe the network each period; 0: not at all",
        at_least=0, paper="1",
    )  # fmt: skip
    measure_sample: int = option(
        125, "transitions evaluated each time, spread over the recent ones; 0: all of them", at_least=0, paper="all"
    )
    measure_recent: int = option(
        10_000, "recent transitions over which the TD error is followed", at_least=1, at_most=LARGEST, paper="10,000"
    )
    measure_reservoir: int = option(
        1000, "transitions of all there were, over which it is followed too", at_least=1, at_most=LARGEST
    )
    measure_states: int = option(
        1000, "states kept apart before training, on which the network is probed", at_least=1, at_most=100_000
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contexts(Checked):
    """contexts"""

    contexts: int | Literal["auto"] = option(
        3, "number of contexts and heads k; auto: found before training in the states of a random policy",
        at_least=1, paper="3",
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clustering(Checked):
    """clustering of states"""

    context_init: Literal["kmeans", "random", "given"] = option(
        "kmeans", "first centroids: K-means on the states before learning starts, random, or given", paper="either"
    )
    context_scaling: Literal["task", "running", "none"] = option(
        "task",
        "scale of each variable in the distance: the task's ranges, a running deviation, or none",
        paper="advised",
    )
    centroids: tuple[float, ...] = option(
        (), "the first centroids, one after the other, with context_init given; contexts auto finds them"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoding(Checked):
    """codes of images"""

    code_size: int = option(50, "numbers in a code of the random encoder", at_least=1, paper="50")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreBins(Checked):
    """contexts by score"""

    score_low: float | None = option(None, "lower end of the first bin; the lowest score seen so far if not given")
    score_high: float | None = option(None, "upper end of the last bin; the highest score seen so far if not given")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distillation(Checked):
    """distillation"""

    distill_schedule: Literal["one-minus-epsilon", "constant"] = option(
        "one-minus-epsilon", "λ = weight × (1 - ε), or λ = weight", paper="1 - ε"
    )
    distill_weight: float = option(1.0, "weight of the distillation; 0 is none", at_least=0, paper="1")
    distill_actions: Literal["taken", "all"] = option("taken", "distil the taken action or all actions", paper="taken")
    distill_heads: Literal["sum", "mean"] = option("sum", "sum or mean over the other heads", paper="sum")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sparsity(Checked):
    """sparse representations"""

    srnn_beta: float = option(0.1, "β: the mean activation above which a unit pays", at_least=1e-6, paper="0.1")
    srnn_weight: float = option(0.1, "λ_KL, the weight of the regulariser; 0 is none", at_least=0, paper="0.1")
    srnn_form: Literal["units", "samples"] = option(
        "units",
        "set KL of each unit's mean over the batch, or the surrogate on each sample's mean over the units",
        paper="units; samples in the released Atari code",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfOrganisingMap(Checked):
    """self-organising map"""

    dsom_rate: float = option(0.25, "ε, the map's learning rate", at_least=0, at_most=1, paper="0.25")
    dsom_elasticity: float = option(1.0, "η: larger spreads an update further", at_least=1e-6, paper="1.0")
    dsom_width: float = option(0.5, "κ: distance over which a gate falls to 1/e", at_least=1e-6, paper="0.5")
    dsom_scaling: Literal["task", "none"] = option(
        "task", "states brought to [0, 1] by the task's ranges, or as they are", paper="not stated"
    )
    dsom_target: Literal["synced", "live"] = option(
        "synced", "the target network has the map of the last sync, or the map as it is", paper="not stated"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TileCoding(Checked):
    """tile coding"""

    tile_bins: int = option(20, "bins per variable", at_least=1, paper="20")
    tile_range: Literal["task", "unit"] = option(
        "task",
        "bins cover the task's ranges, or [-1, 1] for every variable; edge bins take the rest",
        paper="not stated",
    )
    tilings: int = option(1, "1: each variable by itself; more: joint tilings of the space", at_least=1, paper="1")
    tile_inputs: int = option(512, "most inputs that joint tilings make; more tiles are hashed to these", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Consolidation(Checked):
    """consolidation"""

    consolidation_start: float = option(0.01, "its weight at the first step", at_least=0)
    consolidation_weight: float = option(1.0, "its weight after the growth; 0 is none", at_least=0)
    consolidation_growth: int | None = option(None, "steps of the linear growth; steps if not given", at_least=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Streaming(Checked):
    """streaming"""

    trace_decay: float = option(0.8, "λ of the eligibility traces", at_least=0, at_most=1)
    step_bound: float = option(2.0, "κ: larger takes shorter steps where many weights would move", at_least=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalisation(Checked):
    """normalisation"""

    normalise: bool = option(True, "states by their running mean and deviation, rewards by that of the running return")
    sparse_init: float = option(0.9, "share of each unit's incoming weights that start at 0", at_least=0, at_most=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distribution(Checked):
    """value distribution"""

    atoms: int = option(51, "points of the support", at_least=2)
    value_low: float = option(-10.0, "lower end of the support")
    value_high: float = option(10.0, "upper end of the support")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run(
    Distribution, Normalisation, Streaming, Consolidation, TileCoding, SelfOrganisingMap, Sparsity, ScoreBins,
    Encoding, Distillation, Clustering, Contexts, Measuring, Exploration, Optimiser, QNetwork, Replay, Learning,
    Training, TaskOptions,
):  # fmt: skip
    """One run. `iqrl.resolve` makes it from names, a preset and the settings that differ."""

    task: str
    method: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths()
        self._check_ranges()

    def _check_lengths(self) -> None:
        for name in ("steps", "period", "learning_starts", "target_period"):
            if getattr(self, name) % self.update_every:
                raise BadInput(
                    f"{name} is {getattr(self, name)}; it must be a multiple of update_every, {self.update_every}."
                )
        for name in ("period", "learning_starts"):
            if getattr(self, name) > self.steps:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at most steps, {self.steps}.")
        # Learning starts with something to learn from.
        ready = (self.buffer_size if self.sampling == "whole" else 1) + self.n_step - 1
        if ready > max(self.learning_starts, 1):
            why = "sampling whole waits for a full buffer" if self.sampling == "whole" else f"n_step is {self.n_step}"
            raise BadInput(f"learning_starts is {self.learning_starts}; {why}, so it must be at least {ready}.")

        learnings = self.period // self.update_every
        if self.measure_every > learnings:
            raise BadInput(
                f"measure_every is {self.measure_every}, and a period of {self.period} steps has {learnings} times of "
                f"learning; take a smaller measure_every or a longer period."
            )
        # They are evaluated a thousand at a time.
        if self.measure_recent > 1000 and self.measure_recent % 1000:
            raise BadInput(f"measure_recent is {self.measure_recent}; above 1000 it must be a multiple of 1000.")

    def _check_ranges(self) -> None:
        if self.own_layers > len(self.hidden):
            raise BadInput(f"own_layers is {self.own_layers}, and there are {len(self.hidden)} hidden layers.")
        for low, high in (("value_low", "value_high"), ("score_low", "score_high")):
            lowest, highest = getattr(self, low), getattr(self, high)
            if None not in (lowest, highest) and lowest >= highest:
                raise BadInput(f"{low} is {lowest}; it must be less than {high}, {highest}.")

    @property
    def k(self) -> int:
        """The number of contexts."""
        if self.contexts == "auto":
            raise BadInput("contexts auto becomes a number in iqrl.resolve; make the run with it.")
        return self.contexts

    @property
    def has_target(self) -> bool:
        """Whether there is a target network: one that followed after every update would be the network itself."""
        return self.target_period != self.update_every or self.gradient_steps > 1

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits made of all that decides the trajectory: the settings but for how far to go, and
        the source of a task or method of the user's own. What is at its default is left out, so that a run keeps
        its name when settings are added to the library."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)} | {"steps": self.steps}
        values = dataclasses.asdict(self)
        settings = {name: values[name] for name in values if values[name] != defaults[name]}
        text = json.dumps([settings, source_of(self.task), source_of(self.method)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: lists for tuples."""
        values = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


COMMON: tuple[type, ...] = (Training, Learning, Replay, QNetwork, Optimiser, Exploration, Measuring, TaskOptions)
"""settings that every method uses"""
OPTIONAL: tuple[type, ...] = (
    Contexts, Clustering, Encoding, ScoreBins, Distillation, Sparsity, SelfOrganisingMap, TileCoding, Consolidation,
    Streaming, Normalisation, Distribution,
)  # fmt: skip
"""settings of the methods that name them"""
GROUPS: tuple[type, ...] = (*COMMON, *OPTIONAL)


def fields_of(group: type) -> list[dataclasses.Field]:
    """The fields declared by one group, in order."""
    fields = dataclasses.fields(group)  # ty: ignore[invalid-argument-type]
    return [field for field in fields if field.name in vars(group)["__annotations__"]]


OPTIONS: dict[str, dataclasses.Field] = {field.name: field for group in GROUPS for field in fields_of(group)}
TYPES: dict[str, Any] = typing.get_type_hints(Run)


def check_names(names: typing.Iterable[str]) -> None:
    for name in names:
        if name not in OPTIONS and name not in ("task", "method"):
            raise unknown("setting", name, [*OPTIONS, "task", "method"])


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def checked(field: dataclasses.Field, value: Any) -> Any:
    """The value in its declared type and range, or a sentence."""
    name, hint = field.name, TYPES[field.name]
    if is_union(hint):
        hint, alternative = typing.get_args(hint)
        if (value is None and alternative is type(None)) or value in typing.get_args(alternative):
            return value
    origin = typing.get_origin(hint)
    if origin is Literal:
        if value not in typing.get_args(hint):
            raise unknown(name, str(value), typing.get_args(hint))
        return value
    if origin is tuple:
        values = value if isinstance(value, (list, tuple)) else (value,)
        if not values and field.default:
            raise BadInput(f"{name} must name at least one layer.")
        return tuple(_number(field, typing.get_args(hint)[0], item) for item in values)
    if hint is bool or hint is str:
        if not isinstance(value, hint):
            raise BadInput(f"{name} must be {'true or false' if hint is bool else 'text'}, got {value!r}.")
        return value
    return _number(field, hint, value)


def _number(field: dataclasses.Field, kind: type, value: Any) -> Any:
    name = field.name
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise BadInput(f"{name} must be a finite number, got {value!r}.")
    whole = float(value).is_integer()
    if kind is int and not whole:
        raise BadInput(f"{name} must be a whole number, got {value!r}.")
    low, high = field.metadata.get("at_least"), field.metadata.get("at_most")
    if low is not None and value < low:
        raise BadInput(f"{name} must be at least {low}, got {value}.")
    if high is not None and value > high:
        raise BadInput(f"{name} must be at most {high}, got {value}.")
    return kind(value)
