"""Trackers: where the metrics of a run go beside its own files.

A tracker has `log(step, values)` and `close()`. The packages of the ready-made ones are imported when one is asked for.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sys
import time
from collections.abc import Callable, Generator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from iqrl.errors import BadInput, PackagesMissing, RunFailed, unknown
from iqrl.files import make_directories, read_text, write_whole, writing
from iqrl.plugins import in_a_sentence

PROJECT = "iqrl"
"""what the runs are filed under by Weights & Biases and trackio"""
SECONDS = 2.0
"""between two writings of a CSV file"""
PACKAGES = {"csv": "csv", "tensorboard": "tensorboardX", "trackio": "trackio", "wandb": "wandb"}
"""what each tracker imports"""


class Tracker(Protocol):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers with names, at a step."""

    def close(self) -> None:
        """Nothing follows."""


class CsvTracker:
    """One row per step, one column per name. A run that goes on continues the file."""

    def __init__(self, path: Path):
        self.path, self._written = path, 0.0
        self._rows: list[dict[str, Any]] | None = None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self._rows is None:  # what a killed process logged after its checkpoint is logged again
            self._rows = [row for row in _read_rows(self.path) if int(row["step"]) < step]
        self._rows.append({"step": step, **values})
        if time.monotonic() - self._written > SECONDS:
            self._write()

    def _write(self) -> None:
        names = list(dict.fromkeys(name for row in self._rows or () for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows or ())
        with writing(self.path):
            write_whole(self.path, text.getvalue().encode())
        self._written = time.monotonic()

    def close(self) -> None:
        if self._rows:
            self._write()


def _read_rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    rows = list(csv.DictReader(io.StringIO(read_text(path))))
    if not all((row.get("step") or "").isdigit() for row in rows):
        raise BadInput(f"{path} is not a file of iqrl's tracker, and was left alone.")
    return rows


class TensorBoardTracker:
    """Event files that `tensorboard --logdir` shows."""

    def __init__(self, folder: Path, package: Any):
        self._folder, self._package, self._writer = folder, package, None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is None:  # from this step on, events of files before this one do not count
            self._writer = self._package.SummaryWriter(logdir=str(self._folder), purge_step=step)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class ProjectTracker:
    """Weights & Biases, or trackio, which has the same functions."""

    def __init__(self, package: Any, name: str, config: Mapping[str, Any], **options: Any):
        self._package = package
        with contextlib.redirect_stdout(sys.stderr):  # the standard output is the command's own
            package.init(project=PROJECT, name=name, config=dict(config), **options)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._package.log(dict(values), step=step)

    def close(self) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self._package.finish()


class Deferred:
    """A tracker that is made when there is something to log: a run that is finished already makes none. What goes wrong
    in its package is a sentence."""

    def __init__(self, kind: str, make: Callable[[], Tracker]):
        self._kind, self._make, self._tracker = kind, make, None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        with self._in_a_sentence():
            if self._tracker is None:
                self._tracker = self._make()
            self._tracker.log(step, values)

    def close(self) -> None:
        if self._tracker is not None:
            with self._in_a_sentence():
                self._tracker.close()

    @contextlib.contextmanager
    def _in_a_sentence(self) -> Generator[None]:
        try:
            yield
        except (BadInput, RunFailed):
            raise
        except Exception as error:
            raise RunFailed(f"tracking by {self._kind} failed with {in_a_sentence(error)}.") from error


def make_tracker(kind: str, folder: Path, name: str, config: Mapping[str, Any]) -> Deferred:
    """A ready-made tracker. `folder`: where its files go; `name` and `config`: of the run. Raises BadInput where its
    package is not installed."""
    package = package_of(kind)
    makers: dict[str, Callable[[], Tracker]] = {
        "csv": lambda: CsvTracker(folder / "tracking.csv"),
        "tensorboard": lambda: TensorBoardTracker(folder / "tensorboard", package),
        "trackio": lambda: ProjectTracker(package, name, config),
        "wandb": lambda: ProjectTracker(package, name, config, dir=str(folder)),
    }

    def make() -> Tracker:
        make_directories(folder)
        return makers[kind]()

    return Deferred(kind, make)


def package_of(kind: str) -> Any:
    """The package of a tracker, imported."""
    if kind not in PACKAGES:
        raise unknown("tracker", kind, PACKAGES)
    try:
        return import_module(PACKAGES[kind])
    except ImportError as error:
        raise PackagesMissing(
            f"tracking by {kind} needs another package ({error}): pip install {PACKAGES[kind]}.", f"the extra {kind}"
        ) from error
