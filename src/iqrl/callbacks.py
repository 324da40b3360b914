"""Callbacks: what is called at the end of each period of training.

A callback is a function of the model and of the progress (`iqrl.training.loop.Progress`). If it gives False or a text,
the training stops; the text says why. The same callbacks serve `Model.learn`, `iqrl.train` and `iqrl.resume`. Those
here have no state: what they need is in the model's tables, so a run that is resumed is stopped where it would have
been.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from iqrl.errors import BadInput, shown
from iqrl.settings import Following, Run
from iqrl.tracking import Tracker, make_tracker, package_of
from iqrl.training.loop import Follow, Progress, Session
from iqrl.training.model_file import step_of
from iqrl.training.run_directory import BEST_FILE, RunStore, default_directory

if TYPE_CHECKING:
    from iqrl.model import Model

__all__ = ["Evaluate", "SaveEvery", "StopAt", "StopWithoutProgress", "Track"]

Callback = Callable[["Model", Progress], bool | str | None]
Callbacks = Callback | Sequence[Callback] | None
FIRST_START = 1_000_000
"""seed of the first episode: other starts than those of `iqrl evaluate`, by which the chosen model may be judged"""


# Evaluation


@dataclass(frozen=True)
class Evaluate:
    """Greedy episodes in an environment of their own, at the first end of a period after every `every` steps.

    `model.evaluations` has the returns. `keep_best`: a file for the model whose mean return over all seeds and episodes
    is the highest so far; it has all seeds. `seed`: of the first episode; every evaluation has the same starts.
    """

    every: int
    episodes: int = 10
    keep_best: str | Path | None = None
    seed: int = FIRST_START

    def __post_init__(self) -> None:
        _check_whole("every", self.every)
        _check_whole("episodes", self.episodes)

    def __call__(self, model: Model, progress: Progress) -> None:
        if not _due(self.every, progress):
            return
        returns = model.evaluate(self.episodes, self.seed)
        model.add_evaluation(returns)
        if self.keep_best is not None and returns.mean() > _value_of(Path(self.keep_best), model.evaluations):
            model.save(self.keep_best)


def _value_of(path: Path, evaluations: pl.DataFrame) -> float:
    """The mean return of the model in a file, by the evaluation at its step; -∞ where there is none."""
    rows = evaluations.filter(pl.col("step") == step_of(path))
    return float(rows["return"].mean()) if rows.height else -np.inf  # ty: ignore[invalid-argument-type]


# Early stop

Judge = Literal["evaluation", "training"]


@dataclass(frozen=True)
class StopAt:
    """Stop when the mean return over the seeds is `value` or more.

    `by`: of an evaluation, or of the training episodes of a period. Not given: of evaluations, where `Evaluate` is
    among the callbacks.
    """

    value: float
    by: Judge | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | np.number):
            raise BadInput(f"value must be a number, got {shown(self.value)}.")
        _check_judge(self.by)

    def __call__(self, model: Model, progress: Progress) -> str | None:
        means = _means(self.by, model, progress)
        if not len(means) or means[-1] < self.value:
            return None
        return f"the return of {_whose(self.by)} reached {means[-1]:.5g}, and {self.value:.5g} was asked for"


@dataclass(frozen=True)
class StopWithoutProgress:
    """Stop when so many evaluations, or periods, in a row are no better than the best before. `by`: as of `StopAt`."""

    periods: int
    by: Judge | None = None

    def __post_init__(self) -> None:
        _check_whole("periods", self.periods)
        _check_judge(self.by)

    def __call__(self, model: Model, progress: Progress) -> str | None:
        means = _means(self.by, model, progress)
        if not len(means) or len(means) - 1 - int(np.argmax(means)) < self.periods:
            return None
        times = f"{self.periods} times" if self.periods > 1 else "time"
        return f"the return of {_whose(self.by)} was no better than {means.max():.5g} the last {times}"


def _means(by: Judge | None, model: Model, progress: Progress) -> np.ndarray:
    """The mean return over the seeds, one for each evaluation or period up to now; none where there is none now."""
    table = model.evaluations if by == "evaluation" else model.metrics
    finite = table.filter(pl.col("return").is_finite())
    means = finite.group_by("step", maintain_order=True).agg(pl.col("return").mean())
    if not means.height or means["step"][-1] != progress.step:
        return np.zeros(0)
    return means["return"].to_numpy()


def _whose(by: Judge | None) -> str:
    return "the evaluation" if by == "evaluation" else "the training episodes"


# Files and trackers


@dataclass(frozen=True)
class SaveEvery:
    """Save the model after every `steps` steps. `{step}` in the path becomes the step, so that each is kept.

    `learning`: with all that learning needs.
    """

    steps: int
    path: str | Path
    learning: bool = False

    def __post_init__(self) -> None:
        _check_whole("steps", self.steps)

    def __call__(self, model: Model, progress: Progress) -> None:
        if _due(self.steps, progress):
            path = Path(str(self.path).replace("{step}", str(progress.step)))
            model.save(path, learning=self.learning)


@dataclass(frozen=True)
class Track:
    """Log every number of the metrics: its mean over the seeds; of several seeds, the return of each."""

    tracker: Tracker | Any
    """any object with `log(step, values)`"""

    def __call__(self, model: Model, progress: Progress) -> None:
        values = means_of(progress.metrics) | {"steps_per_second": progress.steps_per_second}
        evaluated = model.evaluations.filter(pl.col("step") == progress.step)
        if evaluated.height:
            values |= _by_seed("evaluation", evaluated)
        self.tracker.log(progress.step, values)


def means_of(metrics: pl.DataFrame) -> dict[str, float]:
    """The means over the seeds of one period; what is not a number is left out."""
    numbers = [name for name, kind in metrics.schema.items() if kind.is_numeric() and name not in ("seed", "step")]
    columns = {name: metrics[name].cast(pl.Float64).to_numpy() for name in numbers}
    finite = {name: column[np.isfinite(column)] for name, column in columns.items()}
    return {name: float(column.mean()) for name, column in finite.items() if column.size} | _by_seed("return", metrics)


def _by_seed(name: str, rows: pl.DataFrame) -> dict[str, float]:
    finite = rows.filter(pl.col("return").is_finite())
    if not finite.height:
        return {}
    each = {f"{name}/seed_{seed}": value for seed, value in finite.select("seed", "return").iter_rows()}
    return {name: float(np.mean(list(each.values())))} | (each if rows.height > 1 else {})


# Together


@contextlib.contextmanager
def followed(
    run: Run,
    model_of: Callable[[Session], Model],
    callback: Callbacks = None,
    tracker: Any = None,
    store: RunStore | None = None,
) -> Generator[Follow | None]:
    """What the training loop calls at the end of each period; None where nobody follows. A tracker that is made here is
    closed here.

    `model_of`: the model that callbacks are given. `tracker`: a name, or an object with `log`. `store`: of the run,
    with the rules that are kept in it.
    """
    following = store.following if store is not None else Following()
    callbacks = [*kept_callbacks(following, store), *as_list(callback)]
    with contextlib.ExitStack() as stack:
        for each in (tracker, None if following.track == "none" else following.track):
            if isinstance(each, str):
                each = stack.enter_context(contextlib.closing(_tracker_of(each, run, store)))
            if each is not None:
                callbacks.append(Track(each))
        yield _follow(callbacks, functools.cache(model_of)) if callbacks else None


def kept_callbacks(following: Following, store: RunStore | None) -> list[Callback]:
    """The callbacks that the settings stand for; the tracker is not among them."""
    callbacks: list[Callback] = []
    if following.eval_every:
        best = store.path / BEST_FILE if store is not None and following.keep_best else None
        callbacks.append(Evaluate(following.eval_every, following.eval_episodes, best))
    if following.stop_at != "never":
        callbacks.append(StopAt(following.stop_at))
    if following.patience:
        callbacks.append(StopWithoutProgress(following.patience))
    return callbacks


def refuse_misfits(callback: Any, tracker: Any) -> None:
    """Say what is wrong with them before anything is compiled or written."""
    given = as_list(callback)
    if not all(map(callable, given)):
        raise BadInput(f"callback must be a function of model and progress, or a list of them, got {shown(callback)}.")
    if isinstance(tracker, str):
        package_of(tracker)
    elif tracker is not None and not callable(getattr(tracker, "log", None)):
        raise BadInput(f"tracker must be a name or an object with log(step, values), got {shown(tracker)}.")


def as_list(callback: Any) -> list[Any]:
    if callback is None:
        return []
    return list(callback) if isinstance(callback, list | tuple) else [callback]


def _follow(callbacks: list[Callback], model_of: Callable[[Session], Model]) -> Follow:
    # Evaluations come first: the others look at them.
    ordered = sorted(callbacks, key=lambda each: not isinstance(each, Evaluate))
    judge: Judge = "evaluation" if isinstance(ordered[0], Evaluate) else "training"
    settled = [
        dataclasses.replace(each, by=each.by or judge) if isinstance(each, StopAt | StopWithoutProgress) else each
        for each in ordered
    ]

    def follow(session: Session, progress: Progress) -> str:
        model = model_of(session)
        reasons = [_reason(each(model, progress)) for each in settled]
        return next(filter(None, reasons), "")

    return follow


def _reason(answer: Any) -> str:
    """Why a callback stops the training; empty where it does not."""
    if isinstance(answer, bool | np.bool_) and not answer:
        return "a callback asked for it"
    return answer if isinstance(answer, str) else ""


def _tracker_of(kind: str, run: Run, store: RunStore | None) -> Any:
    name = default_directory(run).name
    folder = store.path if store is not None else Path("tracking") / name
    config: Mapping[str, Any] = run.to_dict()
    return make_tracker(kind, folder, name, config)


def _due(every: int, progress: Progress) -> bool:
    """Whether a multiple of `every` lies in this period."""
    return progress.step // every > progress.began // every


def _check_judge(by: Any) -> None:
    if by not in (None, *get_args(Judge)):
        raise BadInput(f"by must be evaluation or training, got {shown(by)}.")


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise BadInput(f"{name} must be a whole number of at least 1, got {shown(value)}.")
