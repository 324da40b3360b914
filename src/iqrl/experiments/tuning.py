"""Tuning: Optuna proposes settings, each proposal is a whole run of several seeds, and the best become a file.

A trial is a run directory like any other, so an interrupted trial goes on where it stopped. The proposals follow from
the finished trials alone: the same command, stopped and started again, makes the same trials.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from iqrl.errors import BadInput, RunFailed, shown, unknown
from iqrl.experiments.study.choose import MEASURES, measure_curves, toml
from iqrl.files import make_directories, read_json, write_json, write_whole, writing
from iqrl.make_run import Named, groups_for, recommended_method, resolve
from iqrl.methods.base import Choices, Span
from iqrl.methods.registry import find_method
from iqrl.plugins import name_of
from iqrl.settings import Run, settings_of, types_of
from iqrl.training.run_directory import RunStore, locked_directory

TUNING_FILE, BEST_FILE, RUNS_FOLDER = "tuning.json", "best.toml", "runs"
FIRST_SEED = 1000
"""tuning has seeds that results are not reported on"""
Train = Callable[[RunStore], Any]
"""trains the run of a store to its end"""


class Request(NamedTuple):
    """What is tuned."""

    task: str
    method: str
    settings: dict[str, Any]
    """the same in all trials"""
    space: dict[str, Span | Choices]
    by: str


class Trial(NamedTuple):
    settings: dict[str, Any]
    value: float | None
    """None: the run failed, or no episode ended"""
    run: str
    """name of its directory"""


class Tuning(NamedTuple):
    path: Path
    request: Request
    trials: list[Trial]

    @property
    def best(self) -> Trial:
        finished = [trial for trial in self.trials if trial.value is not None]
        if not finished:
            raise BadInput(f"{self.path} has no finished trial.")
        return max(finished, key=lambda trial: trial.value or 0.0)


def make_request(
    task: Named,
    method: Named | None,
    over: Mapping[str, Span | Choices] | None = None,
    by: str = "auc",
    preset: str | None = None,
    **settings: Any,
) -> Request:
    """What is to be tuned, checked. `over`: settings and where to search them; those of the method if not given."""
    if by not in MEASURES:
        raise unknown("measure", by, MEASURES)
    method = method or recommended_method(task, settings)
    found = find_method(name_of(method))
    space = dict(over or {name: span for name, span in found.search.items() if name not in found.fixed})
    if not space:
        raise BadInput(f"{found.name} names no settings to search; name them, such as learning_rate=1e-5:1e-2:log.")
    for name in space:
        if name in settings:
            raise BadInput(f"{name} is both given and searched; leave one of them out.")
    settings = {"seed": FIRST_SEED} | settings
    run = resolve(task, method, preset, **settings)
    _check_space(run, space)
    given = {name: getattr(run, name) for name in (*settings, *_preset_names(task, method, preset, settings))}
    return Request(task=run.task, method=run.method, settings=given, space=space, by=by)


def _preset_names(task: Named, method: Named, preset: str | None, settings: Mapping[str, Any]) -> list[str]:
    """What a preset changes: a file of settings has values, and no preset that may change."""
    if preset is None:
        return []
    plain, run = (resolve(task, method, each, **settings) for each in (None, preset))
    return [name for name, value in run.to_dict().items() if plain.to_dict().get(name, None) != value]


def _check_space(run: Run, space: Mapping[str, Span | Choices]) -> None:
    """Every value that can be proposed must be one that the setting may have; the ends say it for a span."""
    groups = groups_for(run.task, run.method)
    types = types_of(groups)
    for name, values in space.items():
        if name not in settings_of(groups):
            raise unknown("setting", name, settings_of(groups))
        if isinstance(values, Span):
            if types[name] not in (int, float):
                raise BadInput(f"{name} is no number; name its values, such as {name}=a,b.")
            if not values.low < values.high or (values.log and values.low <= 0):
                positive = " from above 0" if values.log else ""
                raise BadInput(f"{name} is searched from {values.low} to {values.high}; it must rise{positive}.")
        elif len(set(map(_scalar, values))) < 2:
            raise BadInput(f"{name} has one value to choose from; a search needs two, such as {name}=a,b.")
        for value in values[:2] if isinstance(values, Span) else values:
            one: dict[str, Any] = {name: int(value) if types[name] is int else value}
            resolve(run.task, run.method, **one)


def tune(request: Request, path: Path, trials: int, train: Train, tell: Callable[[Tuning], None]) -> Tuning:
    """Go on until there are so many trials. `tell` is called after each."""
    optuna = _optuna()
    make_directories(path)
    with locked_directory(path, "is being tuned by another process"):
        tuning = open_tuning(path, request)
        while len(tuning.trials) < trials:
            proposed = _propose(optuna, tuning)
            trial = _try(request, path, proposed, train)
            tuning = tuning._replace(trials=[*tuning.trials, trial])
            _write(tuning)
            tell(tuning)
    return tuning


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise BadInput("tuning needs Optuna; install it with: pip install 'iqrl[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _propose(optuna: Any, tuning: Tuning) -> dict[str, Any]:
    """Settings of the next trial: the defaults first, then what Optuna's TPE makes of the trials so far."""
    request, number = tuning.request, len(tuning.trials)
    types = types_of(groups_for(request.task, request.method))
    space = {name: _distribution(optuna, values, types[name]) for name, values in request.space.items()}
    if number == 0 and (defaults := _defaults(request)) is not None:
        return defaults
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=number))
    states = optuna.trial.TrialState
    for trial in tuning.trials:
        state = states.FAIL if trial.value is None else states.COMPLETE
        study.add_trial(
            optuna.trial.create_trial(
                params=_scalars(trial.settings), distributions=space, value=trial.value, state=state
            )
        )
    proposed = study.ask(space).params
    return {name: _as_given(request.space[name], proposed[name]) for name in space}


def _distribution(optuna: Any, values: Span | Choices, kind: Any) -> Any:
    made = optuna.distributions
    if not isinstance(values, Span):
        return made.CategoricalDistribution([_scalar(value) for value in values])
    if kind is int:
        return made.IntDistribution(int(values.low), int(values.high), log=values.log)
    return made.FloatDistribution(values.low, values.high, log=values.log)


def _scalar(value: Any) -> Any:
    """Optuna's choices are scalars; lists, such as hidden layers, are given to it as text."""
    return repr(tuple(value)) if isinstance(value, (list, tuple)) else value


def _scalars(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _scalar(value) for name, value in settings.items()}


def _as_given(values: Span | Choices, proposed: Any) -> Any:
    return proposed if isinstance(values, Span) else next(each for each in values if _scalar(each) == proposed)


def _defaults(request: Request) -> dict[str, Any] | None:
    """The settings that a run has anyway, if the search could propose them."""
    run = resolve(request.task, request.method, **request.settings)
    defaults = {name: getattr(run, name) for name in request.space}
    for name, values in request.space.items():
        low_to_high = isinstance(values, Span) and values.low <= defaults[name] <= values.high
        if not low_to_high and (isinstance(values, Span) or _scalar(defaults[name]) not in map(_scalar, values)):
            return None
    return defaults


def _try(request: Request, path: Path, proposed: dict[str, Any], train: Train) -> Trial:
    run = resolve(request.task, request.method, **request.settings | proposed)
    store = RunStore.create(path / RUNS_FOLDER / run.identity, run)
    try:
        train(store)
    except RunFailed:  # such as parameters that became infinite: settings to stay away from
        return Trial(settings=proposed, value=None, run=store.path.name)
    value = measure_run(store, request.by)
    return Trial(settings=proposed, value=value if math.isfinite(value) else None, run=store.path.name)


def measure_run(store: RunStore, by: str) -> float:
    return measure_curves(store.metrics(), by)


# Files


def default_directory(request: Request) -> Path:
    plain = lambda name: "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return Path("tuning") / f"{plain(request.task)}-{plain(request.method)}"


def open_tuning(path: Path, request: Request) -> Tuning:
    """What the directory holds of this request."""
    file = path / TUNING_FILE
    if not file.exists():
        if any(each.name != RUNS_FOLDER for each in path.iterdir()):
            raise BadInput(f"{path} exists and is not a tuning; choose another directory.")
        return Tuning(path=path, request=request, trials=[])
    content = read_json(file, "tuning")
    if content.get("request") != _plain(request):
        raise BadInput(f"{path} holds another tuning; choose another directory.")
    with _readable(file):
        trials = [_read_trial(request, row) for row in content["trials"]]
    return Tuning(path=path, request=request, trials=trials)


@contextmanager
def _readable(file: Path) -> Generator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise BadInput(f"{file} cannot be read as a tuning, and was left alone ({shown(error)}).") from error


def _read_trial(request: Request, row: Mapping[str, Any]) -> Trial:
    settings = {name: _as_given(values, _scalar(row["settings"][name])) for name, values in request.space.items()}
    value = None if row["value"] is None else float(row["value"])
    return Trial(settings=settings, value=value, run=str(row["run"]))


def _write(tuning: Tuning) -> None:
    rows = [trial._asdict() for trial in tuning.trials]
    with writing(tuning.path):
        write_json(tuning.path / TUNING_FILE, "tuning", {"request": _plain(tuning.request), "trials": rows})
        if any(trial.value is not None for trial in tuning.trials):
            write_whole(tuning.path / BEST_FILE, best_file(tuning).encode())


def _plain(request: Request) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(request._asdict()))


def best_file(tuning: Tuning) -> str:
    """The best settings, as a file for `iqrl train --config`. It reports on seeds of its own."""
    request, best = tuning.request, tuning.best
    seeds = resolve(request.task, request.method, **request.settings).seeds
    last = request.settings["seed"] + seeds - 1
    kept = {name: value for name, value in request.settings.items() if name not in ("seed", "seeds")} | best.settings
    names = [f"task = {toml(request.task)}", f"method = {toml(request.method)}"]
    return "\n".join(
        [
            f"# The best of {len(tuning.trials)} trials by the {request.by} of the mean curve ({best.value:.4g}),",
            f"# on seeds {request.settings['seed']} to {last}: report on others.",
            *names,
            *(f"{name} = {toml(value)}" for name, value in kept.items()),
            "",
        ]
    )
