"""A run's directory: run.json, metrics.parquet, checkpoint.safetensors.

run.json is written first and names the run; the metrics are written before the checkpoint they
belong to, so that a crash in between leaves at most rows that the checkpoint does not know, and
those are dropped on loading.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import json
import os
import platform
import subprocess
from collections.abc import Generator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.config import Run, check_names
from iqrl.errors import BadInput
from iqrl.training.checkpoint import load_state, save_state, write_whole

RUN_FILE, METRICS_FILE, CHECKPOINT_FILE = "run.json", "metrics.parquet", "checkpoint.safetensors"


class Saved(NamedTuple):
    state: Any
    metrics: pl.DataFrame
    outside: dict[str, np.ndarray]
    """what is not in the state, of environments that are not in the program"""


class RunStore:
    """One directory that holds one run."""

    def __init__(self, path: Path, run: Run, info: dict[str, Any]):
        self.path, self.run, self.info = path, run, info

    @classmethod
    def open(cls, path: str | Path) -> RunStore:
        """An existing run."""
        path = Path(path)
        try:
            content = json.loads((path / RUN_FILE).read_text())
            settings = content["config"]
            check_names(settings)
            return cls(path, Run(**settings), content)
        except (FileNotFoundError, NotADirectoryError):
            raise BadInput(f"{path} holds no run: there is no {RUN_FILE} in it.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path / RUN_FILE} cannot be read as a run, and was left alone ({error}).") from error

    @classmethod
    def create(cls, path: str | Path, run: Run) -> RunStore:
        """A directory for this run: a new one, or the one that holds this very run already."""
        path = Path(path)
        if (path / RUN_FILE).exists():
            existing = cls.open(path)
            # Two versions with different defaults may have the same name for different runs.
            if existing.info.get("id") != run.identity or dataclasses.replace(existing.run, steps=run.steps) != run:
                raise BadInput(f"{path} holds another run ({describe(existing.run)}); choose another directory.")
            existing.extend(max(run.steps, existing.run.steps))
            return existing
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            raise BadInput(f"{path} exists and is not a run; choose another directory.")
        store = cls(path, run, {"config": run.to_dict(), "id": run.identity} | provenance())
        try:
            path.mkdir(parents=True, exist_ok=True)
            store.write_info()
        except OSError as error:
            raise BadInput(f"cannot write to {path}: {error.strerror}.") from error
        return store

    def write_info(self) -> None:
        write_whole(self.path / RUN_FILE, (json.dumps(self.info, indent=2) + "\n").encode())

    def extend(self, steps: int) -> None:
        """Let the run go on to more steps, its schedules as they were; written when it has gone on."""
        if steps < self.run.steps:
            raise BadInput(f"{self.path} is a run of {self.run.steps} steps; it cannot be shortened to {steps}.")
        self.run = dataclasses.replace(self.run, steps=steps)
        self.info["config"] = self.run.to_dict()

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Only one process trains a run at a time; the lock is the operating system's and dies with its holder."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise BadInput(f"{self.path} is being trained by another process; wait for it or stop it.") from None
        finally:
            os.close(directory)

    @property
    def has_checkpoint(self) -> bool:
        return (self.path / CHECKPOINT_FILE).exists()

    def save(self, state: Any, metrics: pl.DataFrame, outside: Mapping[str, np.ndarray]) -> None:
        """`outside`: what is not in the state, of environments that are not in the program."""
        self.write_info()
        buffer = io.BytesIO()
        metrics.write_parquet(buffer)
        write_whole(self.path / METRICS_FILE, buffer.getvalue())
        save_state(self.path / CHECKPOINT_FILE, state, self.info["id"], outside)

    def load(self, like: Any) -> Saved:
        """The last checkpoint and the metrics up to it."""
        state, outside = load_state(self.path / CHECKPOINT_FILE, like, self.info["id"])
        try:
            metrics = pl.read_parquet(self.path / METRICS_FILE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BadInput(f"{self.path / METRICS_FILE} cannot be read, and was left alone ({error}).") from error
        # Within the first period there are no rows yet, nor columns.
        return Saved(state, metrics.filter(pl.col("step") <= int(state.step)) if metrics.height else metrics, outside)

    @property
    def progress(self) -> str:
        """How far it is, in words."""
        if not (self.path / METRICS_FILE).exists():
            return "not begun"
        step = int(self.metrics()["step"].max())  # ty: ignore[invalid-argument-type]
        return "finished" if step >= self.run.steps else f"stopped at {step:,}"

    def metrics(self) -> pl.DataFrame:
        """The curves saved so far."""
        try:
            return pl.read_parquet(self.path / METRICS_FILE)
        except FileNotFoundError:
            raise BadInput(f"{self.path} has no results yet; continue it with: iqrl resume {self.path}") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BadInput(f"{self.path / METRICS_FILE} cannot be read ({error}).") from error


def describe(run: Run) -> str:
    seeds = "1 seed" if run.seeds == 1 else f"{run.seeds} seeds"
    return f"{run.method} on {run.task}, N={run.buffer_size:,}, {seeds}, {run.steps:,} steps"


def default_directory(run: Run) -> Path:
    name = f"{run.task}-{run.method}-N{run.buffer_size}-{run.identity}".replace(":", "_").replace("/", "_")
    return Path("runs") / name


def provenance() -> dict[str, Any]:
    """Where and with what a run was made."""
    packages = ("iqrl", "jax", "jaxlib", "numpy", "optax", "gymnasium")
    return {
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in packages},
        "commit": _commit(),
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of the source tree, when the package is used from one."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True, text=True, timeout=5,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
