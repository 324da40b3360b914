"""The Python interface; the command line calls the same functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iqrl.make_run import Named, resolve
from iqrl.model import Model, load_model
from iqrl.training.loop import Display, driver_of, train_run
from iqrl.training.loop import load as load_run
from iqrl.training.results import Result
from iqrl.training.run_directory import RunStore


def train(
    task: Named,
    method: Named = "iq",
    *,
    preset: str | None = None,
    out: str | Path | None = None,
    display: Display = lambda progress: None,
    **settings: Any,
) -> Result:
    """Train `method` on `task` and return curves and agents.

    `settings` are the fields of `iqrl.Run`, the same as the flags of `iqrl train`. With `out`, the run
    is saved in that directory and continued from there if it was interrupted.

    >>> result = train("CartPole-v0", "iq", buffer_size=1, steps=2000, seeds=2)
    >>> result.returns.shape
    (2, 40)
    >>> int(result.agents[0].predict([0.0, 0.0, 0.0, 0.0])) in (0, 1)
    True
    """
    run = resolve(task, method, preset, **settings)
    if out is None:
        return train_run(run, None, display)
    driver = driver_of(run)  # says what is wrong before a directory is made
    store = RunStore.create(out, run)
    return train_run(store.run, store, display, driver)


def load(path: str | Path, env: Named | None = None) -> Result | Model:
    """A trained run from its directory, or a model from its file.

    `env`: for a model, its environment, where it is to be evaluated or to go on learning and cannot be found by name.
    """
    return load_model(path, env) if Path(path).is_file() or Path(path).suffix == ".iqrl" else load_run(path)


def resume(path: str | Path, *, steps: int | None = None, display: Display = lambda progress: None) -> Result:
    """Continue a saved run to its last step, or to `steps` if that is more."""
    store = RunStore.open(path)
    if steps is not None:
        store.extend(steps)
    return train_run(store.run, store, display)
