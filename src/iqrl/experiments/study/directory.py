"""The directory of a study: study.json, the runs, and the logs of its workers.

STUDY/study.json          the study, the version and the machine it was started with
STUDY/runs/RUN/           a run's directory, as `iqrl train` makes it, and ANALYSIS.json for each analysis
STUDY/progress/RUN        the step and the speed of a run in training
STUDY/logs/               stderr of the workers, with tracebacks
STUDY/failures.json       runs that failed twice, with the reason
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from iqrl.errors import BadInput
from iqrl.experiments.study.study import Study, check_content
from iqrl.make_run import read_run
from iqrl.settings import Run
from iqrl.training.checkpoint import write_whole
from iqrl.training.run_directory import METRICS_FILE, RUN_FILE, default_directory, provenance

STUDY_FILE, FAILURES_FILE = "study.json", "failures.json"
SCRATCH = re.compile(r"\..+\.\d+")
"""files of `write_whole` that a killed process left behind"""


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
            info = json.loads((path / STUDY_FILE).read_text())
            check_content(info["content"])
            return cls(path, Study(info["name"], info["content"]), info)
        except (FileNotFoundError, NotADirectoryError):
            why = f"there is no {STUDY_FILE} in it" if path.is_dir() else "there is no such directory"
            elsewhere = path.parent / "studies" / path.name
            hint = f"; did you mean {elsewhere}?" if (elsewhere / STUDY_FILE).exists() else "."
            raise BadInput(f"{path} holds no study: {why}{hint}") from None
        except KeyError as error:
            raise BadInput(
                f"{path / STUDY_FILE} is not that of a study, and was left alone: {error} is missing."
            ) from error
        except (OSError, ValueError, TypeError) as error:
            raise BadInput(f"{path / STUDY_FILE} cannot be read as a study, and was left alone ({error}).") from error

    @classmethod
    def create(cls, path: str | Path, study: Study) -> StudyDirectory:
        """A directory for this study: a new one, or the one it was started in.

        A study may have changed since. A run's directory is named by its settings, so runs that the study still has
        are kept, and the others are no longer part of it.
        """
        path, runs = Path(path), len(study.runs)  # planning the runs raises their errors now
        info = {"name": study.name, "content": study.content, "digest": study.digest, "runs": runs} | provenance()
        if (path / STUDY_FILE).exists():
            existing = cls.open(path)
            if existing.study.name != study.name:
                raise BadInput(f"{path} holds the study {existing.study.name!r}; choose another directory.")
        elif path.is_file() or (path.is_dir() and any(path.iterdir())):
            raise BadInput(f"{path} exists and is not a study; choose another directory.")
        return cls(path, study, info)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Only one process runs a study at a time. The lock is the operating system's and ends with its process.

        No file is written before the lock is taken.
        """
        try:
            for folder in (self.path, self.path / "runs", self.path / "progress", self.path / "logs"):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write to {self.path}: {error.strerror}.") from error
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_whole(self.path / STUDY_FILE, (json.dumps(self.info, indent=2) + "\n").encode())
            yield
        except BlockingIOError:
            raise BadInput(f"{self.path} is being run by another process; wait for it or stop it.") from None
        finally:
            os.close(descriptor)

    @property
    def is_running(self) -> bool:
        """Whether a process has it locked."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    # The runs

    def path_of(self, run: Run) -> Path:
        return self.path / "runs" / default_directory(run).name

    def work_unit(self, run: Run) -> WorkUnit:
        path = self.path_of(run).resolve()
        progress = self.path.resolve() / "progress" / path.name
        return WorkUnit(path=str(path), progress=str(progress), config=run.to_dict(), analyses=self.study.analyses)

    def is_finished(self, run: Run) -> bool:
        path = self.path_of(run)
        return steps_done(path) >= run.steps and all((path / f"{name}.json").exists() for name in self.study.analyses)

    def copy_finished(self, runs: Iterable[Run], others: Iterable[Path]) -> None:
        """Copy the runs that are finished in directories of other studies, each whole or not at all."""
        missing = [run for run in runs if steps_done(self.path_of(run)) < run.steps]
        remove_scratch(self.path / "runs")
        for other in map(StudyDirectory.open, others):
            for run in [run for run in missing if steps_done(other.path_of(run)) >= run.steps]:
                target = self.path_of(run)
                shutil.rmtree(target, ignore_errors=True)  # unfinished here, finished there
                scratch = target.with_name(f".{target.name}.{os.getpid()}")
                shutil.copytree(other.path_of(run), scratch)
                scratch.rename(target)
                missing.remove(run)

    # Failures

    def failures(self) -> dict[str, str]:
        """The reason by the name of the run's directory."""
        try:
            return json.loads((self.path / FAILURES_FILE).read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path / FAILURES_FILE} cannot be read, and was left alone ({error}).") from error

    def write_failures(self, failures: dict[str, str]) -> None:
        file = self.path / FAILURES_FILE
        if failures:
            write_whole(file, (json.dumps(failures, indent=2) + "\n").encode())
        else:
            file.unlink(missing_ok=True)


def steps_done(path: Path) -> int:
    """The last step of the saved curves of a run; 0 where there are none, or none that can be read."""
    if not (path / RUN_FILE).exists():
        return 0
    try:
        last = pl.scan_parquet(path / METRICS_FILE).select(pl.col("step").max()).collect().item()
    except (OSError, pl.exceptions.PolarsError):
        return 0
    return int(last or 0)


def remove_scratch(path: Path) -> None:
    """Remove the half-written files of a killed process. Only for a directory that no other process writes to."""
    if path.is_dir():
        for file in path.iterdir():
            if SCRATCH.fullmatch(file.name):
                shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
