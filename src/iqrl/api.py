"""The Python interface; the command line calls the same functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iqrl.callbacks import Callbacks, followed, refuse_misfits
from iqrl.experiments.tuning import Tuning, default_directory, make_request
from iqrl.experiments.tuning import tune as tune_request
from iqrl.exporting.export import Exported, export_result
from iqrl.make_run import Named, resolve
from iqrl.methods.base import Choices, Span
from iqrl.model import Model, given_task, load_model, show_progress
from iqrl.settings import Run
from iqrl.tracking import Tracker
from iqrl.training.compiled import Driver
from iqrl.training.loop import Display, Progress, driver_of, train_run
from iqrl.training.loop import load as load_run
from iqrl.training.model_file import SUFFIX
from iqrl.training.results import Result
from iqrl.training.run_directory import RunStore


def train(
    task: Named,
    method: Named | None = None,
    *,
    preset: str | None = None,
    out: str | Path | None = None,
    display: Display = lambda progress: None,
    progress_bar: bool = False,
    callback: Callbacks = None,
    tracker: str | Tracker | None = None,
    **settings: Any,
) -> Result:
    """Train `method` on `task` and return curves and agents. Without a method it is the one recommended for the task.

    `settings` are the fields of `iqrl.Run`, the same as the flags of `iqrl train`. With `out`, the run
    is saved in that directory and continued from there if it was interrupted.

    `progress_bar`: show how far it is, on a terminal or in a notebook. `callback`: a function of a model and the
    progress, or a list of them (`iqrl.callbacks`), called at the end of each period. `tracker`: tensorboard, wandb,
    trackio, csv, or an object with `log(step, values)`.

    >>> result = train("CartPole-v0", "iq", buffer_size=1, steps=2000, seeds=2)
    >>> result.returns.shape
    (2, 40)
    >>> int(result.agents[0].predict([0.0, 0.0, 0.0, 0.0])) in (0, 1)
    True
    """
    run = resolve(task, method, preset, **settings)
    refuse_misfits(callback, tracker)
    driver = driver_of(run)  # says what is wrong before a directory is made
    store = None if out is None else RunStore.create(out, run)
    run = run if store is None else store.run
    with show_progress(f"{run.method} {run.task}", progress_bar) as bar:
        return _train(run, store, _both(bar, display), callback, tracker, driver)


def _train(
    run: Run, store: RunStore | None, display: Display, callback: Callbacks, tracker: Any, driver: Driver | None = None
) -> Result:
    with followed(run, Model.of, callback, tracker, store) as follow:
        return train_run(run, store, display, driver, follow=follow)


def _both(first: Display, second: Display) -> Display:
    def show(progress: Progress) -> None:
        first(progress)
        second(progress)

    return show


def tune(
    task: Named,
    method: Named | None = None,
    *,
    trials: int = 20,
    over: Mapping[str, Span | Choices] | None = None,
    by: str = "auc",
    preset: str | None = None,
    out: str | Path | None = None,
    display: Display = lambda progress: None,
    **settings: Any,
) -> Tuning:
    """Search the settings of `method` on `task`; needs Optuna (`pip install 'iqrl[tune]'`).

    `over`: what to search, such as `{"learning_rate": iqrl.Span(1e-5, 1e-2, log=True), "target_period": (10, 100)}`;
    the settings that the method names if not given. `by`: auc, final or highest, of the mean curve of the seeds. Every
    trial is a whole run in `out`; called again, it goes on there. `out` / best.toml is a file of the best settings.
    """
    request = make_request(task, method, over, by, preset, **settings)
    path = Path(out) if out is not None else default_directory(request)
    train_store = lambda store: train_run(store.run, store, display)
    return tune_request(request, path, trials, train_store, lambda tuning: None)


def load(path: str | Path, env: Named | None = None) -> Result | Model:
    """A trained run from its directory, or a model from its file.

    `env`: its environment, where that cannot be found by name. A model needs it to be evaluated or to go on learning.
    """
    is_model = Path(path).is_file() or Path(path).suffix == SUFFIX
    return load_model(path, env) if is_model else load_run(path, given_task(env))


def resume(
    path: str | Path,
    *,
    steps: int | None = None,
    display: Display = lambda progress: None,
    progress_bar: bool = False,
    callback: Callbacks = None,
    tracker: str | Tracker | None = None,
) -> Result:
    """Continue a saved run to its last step, or to `steps` if that is more. `progress_bar`, `callback` and `tracker` as
    of `train`; what `iqrl train` was told of evaluations, early stop and tracking is kept with the run."""
    refuse_misfits(callback, tracker)
    store = RunStore.open(path)
    store.warn_of_edits()
    if steps is not None:
        store.extend(steps)
    with show_progress(f"{store.run.method} {store.run.task}", progress_bar) as bar:
        return _train(store.run, store, _both(bar, display), callback, tracker)


def export(
    source: str | Path | Result | Model, path: str | Path | None = None, *, to: str = "numpy", seed: int | None = None
) -> Exported:
    """Write an agent to a file that needs no JAX: `to="numpy"`, a Python file, or `to="onnx"`.

    `source`: the directory of a run, the file of a model, or one of both in memory. `seed`: whose agent; that of the
    first seed if not given. The file is compared with the agent before it is written.
    """
    found = load(source) if isinstance(source, str | Path) else source
    return export_result(found.result if isinstance(found, Model) else found, path, to, seed)
