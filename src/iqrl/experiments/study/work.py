"""What a worker does with a work unit: train one run to its end and analyse it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

from iqrl.errors import BadInput
from iqrl.experiments.study.analyses import ANALYSES
from iqrl.experiments.study.directory import WorkUnit, steps_done
from iqrl.files import read_bytes, write_json, write_whole, writing
from iqrl.plugins import trust
from iqrl.training.loop import Progress, train_run
from iqrl.training.run_directory import RunStore

LOCK_PATIENCE = 30.0
"""seconds to wait for a run's lock: a worker whose study was killed may still be on its way out"""
REPORT_SECONDS = 0.5


def run_unit(unit: WorkUnit) -> None:
    """Training continues from the last checkpoint; what is finished is not done again."""
    path, progress = Path(unit.path), Path(unit.progress)
    if not path.parent.is_dir():
        raise BadInput(f"{path.parent} is not there; a study's directory must be one that every worker sees.")
    trust([unit.config["task"], unit.config["method"]])  # the study names them, and the user names the study
    store = RunStore.create(path, unit.run)
    try:
        if steps_done(path) < unit.run.steps:
            _wait_for_lock(store)
            train_run(store.run, store, _ProgressFile(progress))
        for name in unit.analyses:
            _analyse(path, name)
    finally:
        progress.unlink(missing_ok=True)


def _wait_for_lock(store: RunStore) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            with store.locked():
                return
        except BadInput:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _analyse(path: Path, name: str) -> None:
    file = path / f"{name}.json"
    if not file.exists():
        with writing(file):
            write_json(file, "analysis", ANALYSES[name](path), indent=None)


class _ProgressFile:
    """Step and speed of a run in a file, for any process on any machine that sees the directory."""

    def __init__(self, path: Path):
        self.path, self.last = path, 0.0

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self.last < REPORT_SECONDS:
            return
        self.last = time.monotonic()
        with contextlib.suppress(OSError):  # a display; whether the run can be saved is another matter
            write_whole(self.path, f"{progress.step} {progress.steps_per_second:.0f}".encode())


class UnitProgress(NamedTuple):
    step: int
    steps_per_second: float
    """environment steps of all seeds"""


def read_progress(unit: WorkUnit) -> UnitProgress | None:
    """None if the unit is not in training."""
    try:
        step, speed = read_bytes(Path(unit.progress)).split()
        return UnitProgress(step=int(step), steps_per_second=float(speed))
    except (OSError, ValueError):
        return None
