"""The directory of a study: study.json, the runs, and the logs of its workers.

STUDY/study.json          the study, the version and the machine it was started with
STUDY/runs/RUN/           a run's directory, as `iqrl train` makes it, and ANALYSIS.json for each analysis
STUDY/progress/RUN        the step and the speed of a run in training
STUDY/logs/               stderr of the workers, with tracebacks
STUDY/failures.json       runs that failed twice, with the reason
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from iqrl.errors import BadInput, shown
from iqrl.experiments.study.study import Study, check_content, read_plan, record_plan
from iqrl.files import (
    SCRATCH,
    Damaged,
    make_directories,
    new_directory,
    read_json,
    read_table,
    sweep,
    why,
    write_json,
    writing,
)
from iqrl.locks import is_locked
from iqrl.make_run import read_run
from iqrl.plugins import mark_of, trust_marked
from iqrl.settings import Run
from iqrl.training.run_directory import METRICS_FILE, RUN_FILE, default_directory, locked_directory, provenance

STUDY_FILE, FAILURES_FILE = "study.json", "failures.json"
FOLDERS = ("runs", "progress", "logs")


class WorkUnit(NamedTuple):
    """One run to train and analyse, as a worker gets it, here or elsewhere. Made of text and numbers."""

    path: str
    progress: str
    config: dict[str, Any]
    analyses: tuple[str, ...]

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def run(self) -> Run:
        return read_run(self.config)

    @property
    def steps(self) -> int:
        """Over all seeds."""
        return self.config["steps"] * self.config["seeds"]


class StudyDirectory:
    """One directory that holds one study."""

    def __init__(self, path: Path, study: Study, info: dict[str, Any]):
        self.path, self.study, self.info = path, study, info

    @classmethod
    def open(cls, path: str | Path) -> StudyDirectory:
        path = Path(path)
        try:
            info = read_json(path / STUDY_FILE, "study")
            study = _read_study(info)
            sweep_all(path)
            trust_marked(info.get("mark"), *study.plugins)
            return cls(path, study, info)
        except (FileNotFoundError, NotADirectoryError):
            why = f"there is no {STUDY_FILE} in it" if path.is_dir() else "there is no such directory"
            elsewhere = path.parent / "studies" / path.name
            hint = f"; did you mean {elsewhere}?" if (elsewhere / STUDY_FILE).exists() else "."
            raise BadInput(f"{path} holds no study: {why}{hint}") from None
        except KeyError as error:
            raise BadInput(
                f"{path / STUDY_FILE} is not that of a study, and was left alone: {error} is missing."
            ) from error
        except Damaged:
            raise
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise BadInput(f"{path / STUDY_FILE} cannot be read as a study, and was left alone ({error}).") from error

    @classmethod
    def create(cls, path: str | Path, study: Study) -> StudyDirectory:
        """A directory for this study: a new one, or the one it was started in.

        A study may have changed since. A run's directory is named by its settings, so runs that the study still has
        are kept, and the others are no longer part of it.
        """
        path, runs = Path(path), len(study.runs)  # planning the runs raises their errors now
        info: dict[str, Any] = {"name": study.name, "content": study.content, "digest": study.digest, "runs": runs}
        if study.plugins or study.needs_packages:  # whoever reads it need not have them
            info |= {"plan": record_plan(study)}
        if study.plugins:
            info |= {"mark": mark_of(*study.plugins)}
        info |= provenance()
        if (path / STUDY_FILE).exists():
            existing = cls.open(path)
            if existing.study.name != study.name:
                raise BadInput(f"{path} holds the study {existing.study.name!r}; choose another directory.")
        elif path.is_file() or (path.is_dir() and any(map(_is_foreign, path.iterdir()))):
            raise BadInput(f"{path} exists and is not a study; choose another directory.")
        return cls(path, study, info)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Only one process runs a study at a time. The lock is the operating system's and ends with its process.

        No file is written before the lock is taken.
        """
        make_directories(self.path, *[self.path / folder for folder in FOLDERS])
        with locked_directory(self.path, "is being run by another process; wait for it or stop it"):
            sweep_all(self.path)
            with writing(self.path / STUDY_FILE):
                write_json(self.path / STUDY_FILE, "study", self.info)
            yield

    @property
    def is_running(self) -> bool:
        """Whether a process has it locked."""
        return is_locked(self.path)

    # The runs

    def path_of(self, run: Run) -> Path:
        return self.path / "runs" / default_directory(run).name

    def work_unit(self, run: Run) -> WorkUnit:
        path = self.path_of(run).resolve()
        progress = self.path.resolve() / "progress" / path.name
        return WorkUnit(path=str(path), progress=str(progress), config=run.to_dict(), analyses=self.study.analyses)

    def is_finished(self, run: Run) -> bool:
        """Raises Damaged where the curves of the run are not what was written."""
        path = self.path_of(run)
        return steps_done(path) >= run.steps and all((path / f"{name}.json").exists() for name in self.study.analyses)

    def is_done(self, run: Run) -> bool:
        """Whether nothing is left to do; a damaged run is left to its worker, which says what is wrong."""
        try:
            return self.is_finished(run)
        except BadInput:
            return False

    def copy_finished(self, runs: Iterable[Run], others: Iterable[Path]) -> None:
        """Copy the runs that are finished in directories of other studies, each whole or not at all."""
        missing = [run for run in runs if not _reaches(self.path_of(run), run.steps)]
        for other in map(StudyDirectory.open, others):
            for run in [run for run in missing if _reaches(other.path_of(run), run.steps)]:
                target = self.path_of(run)
                with writing(target), new_directory(target) as scratch:
                    ignored = lambda folder, names: [name for name in names if SCRATCH.fullmatch(name)]
                    shutil.copytree(other.path_of(run), scratch, dirs_exist_ok=True, ignore=ignored)
                    shutil.rmtree(target, ignore_errors=True)  # unfinished here, finished there
                missing.remove(run)

    # Failures

    def failures(self) -> dict[str, str]:
        """The reason by the name of the run's directory."""
        try:
            failures = read_json(self.path / FAILURES_FILE, "failures")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BadInput(f"{self.path / FAILURES_FILE} cannot be read: {why(error)}.") from error
        return {name: str(reason) for name, reason in failures.items()}

    def write_failures(self, failures: dict[str, str]) -> None:
        file = self.path / FAILURES_FILE
        if failures:
            write_json(file, "failures", failures)
        else:
            file.unlink(missing_ok=True)


def _read_study(info: dict[str, Any]) -> Study:
    check_content(info["content"])
    name = info["name"]
    if not isinstance(name, str) or not name or "/" in name:
        raise BadInput(f"{shown(name)} is not the name of a study.")
    return Study(name, info["content"], read_plan(info.get("plan", ())))


def _is_foreign(path: Path) -> bool:
    """Whether a file is not one that a study leaves behind when it is killed at its start."""
    return path.name not in FOLDERS and not SCRATCH.fullmatch(path.name)


def steps_done(path: Path) -> int:
    """The last step of the saved curves of a run; 0 where there are none yet. Raises Damaged."""
    if not (path / RUN_FILE).exists():
        return 0
    try:
        table = read_table(path / METRICS_FILE, "metrics").table
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise BadInput(f"{path / METRICS_FILE} cannot be read: {why(error)}.") from error
    if not table.height:
        return 0
    if "step" not in table.columns or not table.schema["step"].is_integer():
        raise Damaged(f"{path / METRICS_FILE} has no steps, and was left alone.")
    return int(table["step"].max() or 0)  # ty: ignore[invalid-argument-type]


def _reaches(path: Path, steps: int) -> bool:
    try:
        return steps_done(path) >= steps
    except BadInput:
        return False


def sweep_all(path: Path) -> None:
    """Remove what killed processes left half-written in the directory of a study."""
    for folder in (path, path / "progress", path / "runs", *(path / "runs").glob("*/")):
        sweep(folder)
