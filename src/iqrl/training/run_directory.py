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

from iqrl.errors import BadInput
from iqrl.make_run import read_run
from iqrl.settings import Run
from iqrl.training.checkpoint import load_state, save_state, write_whole

RUN_FILE, METRICS_FILE, CHECKPOINT_FILE = "run.json", "metrics.parquet", "checkpoint.safetensors"


class Saved(NamedTuple):
    state: Any
    metrics: pl.DataFrame
    environments: dict[str, np.ndarray]
    """snapshot of external environments"""


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
            return cls(path, read_run(content["config"]), content)
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
            same = existing.run.to_dict() | {"steps": run.steps} == run.to_dict()
            if existing.info.get("id") != run.identity or not same:
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

    def save(self, state: Any, metrics: pl.DataFrame, environments: Mapping[str, np.ndarray]) -> None:
        """`environments`: snapshot of external environments."""
        self.write_info()
        buffer = io.BytesIO()
        metrics.write_parquet(buffer)
        write_whole(self.path / METRICS_FILE, buffer.getvalue())
        save_state(self.path / CHECKPOINT_FILE, state, self.info["id"], environments)

    def load(self, like: Any) -> Saved:
        """The last checkpoint and the metrics up to it."""
        state, environments = load_state(self.path / CHECKPOINT_FILE, like, self.info["id"])
        try:
            metrics = pl.read_parquet(self.path / METRICS_FILE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BadInput(f"{self.path / METRICS_FILE} cannot be read, and was left alone ({error}).") from error
        # Within the first period there are no rows yet, nor columns.
        metrics = metrics.filter(pl.col("step") <= int(state.step)) if metrics.height else metrics
        return Saved(state=state, metrics=metrics, environments=environments)

    @property
    def progress(self) -> str:
        """How far it is, in words."""
        if not (self.path / METRICS_FILE).exists():
            return "not begun"
        step = self.last_step
        return "finished" if step >= self.run.steps else f"stopped at {step:,}"

    @property
    def last_step(self) -> int:
        """The end of the last whole period; 0 within the first."""
        metrics = self.metrics()
        return int(metrics["step"].max()) if metrics.height else 0  # ty: ignore[invalid-argument-type]

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


def describe_runs(directory: Path) -> dict[Path, str]:
    """One line for each run in a directory of runs."""
    return {file.parent: _describe_saved(file.parent) for file in sorted(directory.glob(f"*/{RUN_FILE}"))}


def _describe_saved(path: Path) -> str:
    try:
        store = RunStore.open(path)
        return f"{describe(store.run)}, {store.progress}"
    except BadInput as error:
        return f"damaged; {error}"
