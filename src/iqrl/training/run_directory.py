"""A run's directory: run.json, metrics.parquet, checkpoint.safetensors, and the checkpoint before that. Where the run
is evaluated on the way, also evaluations.parquet, and best.iqrl, the best model.

run.json is written first and names the run; metrics and evaluations are written before the checkpoint they
belong to, so that a crash in between leaves at most rows that the checkpoint does not know, and
those are dropped on loading. All are sealed, and name the run that they belong to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Generator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.errors import BadInput
from iqrl.files import (
    Damaged,
    Sealed,
    make_directories,
    read_json,
    read_table,
    sweep,
    table_bytes,
    why,
    write_json,
    write_whole,
    writing,
)
from iqrl.locks import locked
from iqrl.make_run import read_run
from iqrl.methods.registry import memory_text
from iqrl.plugins import mark_of, trust_marked, warn_of_edits
from iqrl.settings import Following, Run
from iqrl.statistics.curves import mean_curve, steps_and_returns, summarise
from iqrl.training.checkpoint import load_state, save_state, step_in

RUN_FILE, METRICS_FILE, CHECKPOINT_FILE = "run.json", "metrics.parquet", "checkpoint.safetensors"
PREVIOUS_FILE, DAMAGED_FILE = "checkpoint.previous.safetensors", "checkpoint.damaged.safetensors"
NO_ROWS = pl.DataFrame(schema={"seed": pl.Int64, "step": pl.Int64, "return": pl.Float64})
"""the metrics within the first period"""
EVALUATIONS_FILE, BEST_FILE = "evaluations.parquet", "best.iqrl"
NO_EVALUATIONS = pl.DataFrame(
    schema={
        "seed": pl.Int64, "step": pl.Int64, "return": pl.Float64, "lowest": pl.Float64, "highest": pl.Float64,
        "episodes": pl.Int64,
    }
)  # fmt: skip


class Saved(NamedTuple):
    state: Any
    metrics: pl.DataFrame
    environments: dict[str, np.ndarray]
    """snapshot of external environments"""
    evaluations: pl.DataFrame = NO_EVALUATIONS
    """one row per seed and evaluation"""


class RunStore:
    """One directory that holds one run."""

    def __init__(self, path: Path, run: Run, info: dict[str, Any]):
        self.path, self.run, self.info = path, run, info
        self.newest_is_damaged = False

    @classmethod
    def open(cls, path: str | Path) -> RunStore:
        """An existing run."""
        path = Path(path)
        file = path / RUN_FILE
        try:
            content = read_json(file, "run")
            run = read_run(content["config"])
            identity, _ = content["id"], Following(**content.get("following", {}))
        except (FileNotFoundError, NotADirectoryError):
            if path.is_file():
                model = "; iqrl.load of Python gives what is in a model" if path.suffix == ".iqrl" else ""
                raise BadInput(f"{path} is a file; a run is a directory with a {RUN_FILE}{model}.") from None
            missing = f"there is no {RUN_FILE} in it" if path.is_dir() else "there is no such directory"
            raise BadInput(f"{path} holds no run: {missing}.") from None
        except Damaged:
            raise
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {why(error)}.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{file} cannot be read as a run, and was left alone ({error}).") from error
        texts = isinstance(identity, str) and isinstance(content.get("stopped", ""), str)
        if not texts or not is_provenance(content):
            raise BadInput(f"{file} cannot be read as a run, and was left alone (its id, versions or timing are none).")
        sweep(path)
        trust_marked(content.get("mark"), *run.names)
        return cls(path, run, content)

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
        sweep(path)
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            raise BadInput(f"{path} exists and is not a run; choose another directory.")
        mark = mark_of(*run.names)
        info = {"config": run.to_dict(), "id": run.identity} | ({"mark": mark} if mark else {}) | provenance()
        store = cls(path, run, info)
        make_directories(path)
        with writing(path):
            store.write_info()
        return store

    def warn_of_edits(self) -> None:
        """Where the run goes on with other code of the user's own than it began with."""
        warn_of_edits(self.info.get("mark"), *self.run.names)

    def write_info(self) -> None:
        write_json(self.path / RUN_FILE, "run", self.info)

    def extend(self, steps: int) -> None:
        """Let the run go on to more steps, its schedules as they were; written when it has gone on."""
        if steps < self.run.steps:
            raise BadInput(f"{self.path} is a run of {self.run.steps} steps; it cannot be shortened to {steps}.")
        self.run = dataclasses.replace(self.run, steps=steps)
        self.info["config"] = self.run.to_dict()

    @property
    def following(self) -> Following:
        """How the run is evaluated, stopped and tracked."""
        return Following(**self.info.get("following", {}))

    def follow(self, following: Following) -> None:
        """From now on so; a run that its old rules stopped may go on."""
        if following == self.following:
            return
        with self.locked(), writing(self.path):
            self.info["following"] = dataclasses.asdict(following)
            self.info.pop("stopped", None)
            self.write_info()

    @property
    def stopped(self) -> str:
        """Why its own rules stopped it; empty where they did not."""
        return self.info.get("stopped", "") if self.following.stops else ""

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Only one process trains a run at a time; the lock is the operating system's and dies with its holder."""
        with locked_directory(self.path, "is being trained by another process; wait for it or stop it"):
            yield

    @property
    def has_checkpoint(self) -> bool:
        return any((self.path / name).exists() for name in (CHECKPOINT_FILE, PREVIOUS_FILE))

    def save(
        self,
        state: Any,
        metrics: pl.DataFrame,
        environments: Mapping[str, np.ndarray],
        evaluations: pl.DataFrame = NO_EVALUATIONS,
    ) -> None:
        """`environments`: snapshot of external environments."""
        self.write_info()
        names = {"run": self.info["id"]}
        write_whole(self.path / METRICS_FILE, *table_bytes("metrics", metrics, names))
        if evaluations.height:
            write_whole(self.path / EVALUATIONS_FILE, *table_bytes("evaluations", evaluations, names))
        # The newest checkpoint becomes the one before, unless it is known to be damaged.
        keep = self.path / (DAMAGED_FILE if self.newest_is_damaged else PREVIOUS_FILE)
        save_state(self.path / CHECKPOINT_FILE, state, self.info["id"], environments, keep)
        self.newest_is_damaged = False

    def load(self, like: Any) -> Saved:
        """The last checkpoint that is intact, and the metrics up to it."""
        state, environments = self._load_newest(like)
        step, metrics = int(state.step), self.metrics()
        metrics = metrics.filter(pl.col("step") <= step)
        needed = step // self.run.period * self.run.period
        if needed and not (metrics["step"] == needed).any():
            file = self.path / METRICS_FILE
            raise Damaged(f"{file} does not fit the checkpoint and was left alone: step {needed:,} is missing.")
        evaluations = self.evaluations().filter(pl.col("step") <= step)
        return Saved(state=state, metrics=metrics, environments=environments, evaluations=evaluations)

    def _load_newest(self, like: Any) -> tuple[Any, dict[str, np.ndarray]]:
        newest, before = (self.path / name for name in (CHECKPOINT_FILE, PREVIOUS_FILE))
        identity = self.info["id"]
        try:
            return load_state(newest, like, identity)
        except FileNotFoundError:  # killed between the names of the old one and of the new one
            return load_state(before, like, identity)
        except Damaged as error:
            if not before.exists():
                raise
            loaded = load_state(before, like, identity)
            self.newest_is_damaged = True
            warnings.warn(f"{error} The checkpoint before it, of step {int(loaded[0].step):,}, is used.", stacklevel=4)
            return loaded

    @property
    def progress(self) -> str:
        """How far it is, in words."""
        if not (self.path / METRICS_FILE).exists():
            return "not begun"
        curves, step = self.last_step, self.trained_step
        if curves >= self.run.steps:
            return "finished"
        if not curves:
            return "stopped in its first period" + (f", at {step:,}" if step else "")
        return f"stopped at {step:,}{curves_text(step, curves)}" + (f": {self.stopped}" if self.stopped else "")

    @property
    def last_step(self) -> int:
        """The end of the last whole period; 0 within the first."""
        return last_step(self.metrics())

    @property
    def trained_step(self) -> int:
        """The step of the checkpoint, which may lie within a period."""
        files = [self.path / name for name in (CHECKPOINT_FILE, PREVIOUS_FILE)]
        return next((step for step in map(step_in, files) if step is not None), self.last_step)

    def metrics(self) -> pl.DataFrame:
        """The curves saved so far; they have the run's seeds and periods."""
        return self.read_metrics().table

    def curves(self) -> pl.DataFrame:
        """The same; refused where no period has ended."""
        metrics = self.metrics()
        if not metrics.height:
            raise BadInput(
                f"{self.path} has no results yet: {self.progress}; continue it with: iqrl resume {self.path}"
            )
        return metrics

    def evaluations(self) -> pl.DataFrame:
        """The evaluations saved so far: one row per seed and evaluation."""
        try:
            return self.read_evaluations().table
        except FileNotFoundError:
            return NO_EVALUATIONS

    def read_evaluations(self) -> Sealed:
        """Raises FileNotFoundError where there are none."""
        path = self.path / EVALUATIONS_FILE
        read = self._read_table(path, "evaluations")
        if read.table.schema != NO_EVALUATIONS.schema or any(read.table.null_count().row(0)):
            raise Damaged(f"{path} does not fit its run and was left alone: it has other columns than an evaluation.")
        return read

    def read_metrics(self) -> Sealed:
        path = self.path / METRICS_FILE
        try:
            read = self._read_table(path, "metrics")
        except FileNotFoundError:
            raise BadInput(f"{self.path} has no results yet; continue it with: iqrl resume {self.path}") from None
        return read._replace(table=check_rows(path, self.run, read.table))

    def _read_table(self, path: Path, kind: str) -> Sealed:
        try:
            read = read_table(path, kind)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {why(error)}.") from error
        if read.names.get("run", self.info["id"]) != self.info["id"]:
            raise Damaged(f"{path} belongs to another run ({read.names['run']}), and was left alone.")
        return read


def last_step(metrics: pl.DataFrame) -> int:
    """The end of the last period of these curves; 0 where none has ended."""
    return int(metrics["step"].max()) if metrics.height else 0  # ty: ignore[invalid-argument-type]


def curves_text(step: int, curves: int, before: str = ", ") -> str:
    """How far the curves go, where the run went on within a period.

    >>> curves_text(33_825, 32_500), curves_text(32_500, 32_500), curves_text(30, 0)
    (', curves to 32,500', '', '')
    """
    return f"{before}curves to {curves:,}" if 0 < curves < step else ""


def check_rows(path: Path, run: Run, table: pl.DataFrame) -> pl.DataFrame:
    """The metrics of a run: one row for each seed and period up to the last. Raises Damaged."""
    if not table.height:
        return table if table.width else NO_ROWS
    wrong = _wrong_columns(table) or _missing_rows(run, table)
    if wrong:
        raise Damaged(f"{path} does not fit its run and was left alone: {wrong}.")
    return table


def _wrong_columns(table: pl.DataFrame) -> str:
    for name in ("seed", "step", "return"):
        kind = table.schema.get(name)
        if kind is None or not (kind.is_integer() or (name == "return" and kind.is_float())):
            return f"it has no column of numbers {name}"
    if table["seed"].null_count() or table["step"].null_count():
        return "a seed or a step is missing"
    return ""


def _missing_rows(run: Run, table: pl.DataFrame) -> str:
    """What is missing or too much. A run that was extended has points between those of its periods."""
    steps, seeds = table["step"].unique().sort().to_list(), table["seed"].unique().sort().to_list()
    last = run.seed + run.seeds - 1
    if (len(seeds), seeds[0], seeds[-1]) != (run.seeds, run.seed, last):
        return f"it has the seeds {_few(seeds)}, and the run has {run.seed} to {last}"
    if table.height != len(steps) * len(seeds) or table.select("seed", "step").is_duplicated().any():
        return "it does not have every seed once in every period"
    ends = [step for step in steps if step % run.period == 0]
    if steps[0] < 1 or len(ends) != steps[-1] // run.period:
        return "a period is missing"
    return ""


def _few(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:5]))
    return f"{shown}, …" if len(values) > 5 else shown


@contextlib.contextmanager
def locked_directory(path: Path, otherwise: str) -> Generator[None]:
    """The lock of a directory; a sentence where another process has it."""
    with contextlib.ExitStack() as stack:
        try:
            with writing(path):
                stack.enter_context(locked(path))
        except BadInput as error:
            if isinstance(error.__cause__, BlockingIOError):
                raise BadInput(f"{path} {otherwise}.") from None
            raise
        yield


def describe(run: Run) -> str:
    seeds = "1 seed" if run.seeds == 1 else f"{run.seeds} seeds"
    return f"{run.method} on {run.task}, {memory_text(run)}, {seeds}, {run.steps:,} steps"


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


def is_provenance(info: Any) -> bool:
    """Whether what a file says of its making has the form of `provenance`, and a timing numbers."""
    tables = [info.get(name, {}) for name in ("versions", "machine", "timing")]
    if not all(isinstance(table, dict) for table in tables) or not isinstance(info.get("commit", ""), str | None):
        return False
    plain = all(isinstance(value, str | int | float | None) for table in tables for value in table.values())
    return plain and all(isinstance(value, int | float) for value in tables[2].values())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of the source tree that the package is used from, or that pip installed it from."""
    file = Path(__file__)
    # An environment may lie in the tree of another project, which does not track what is installed there.
    if _git(file.parent, "ls-files", "--error-unmatch", file.name):
        return _git(file.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    try:
        origin = json.loads(metadata.distribution("iqrl").read_text("direct_url.json") or "{}")
        return origin["vcs_info"]["commit_id"]
    except (metadata.PackageNotFoundError, OSError, ValueError, KeyError, TypeError):
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _final_text(store: RunStore) -> str:
    """The return over the last tenth, so that runs of one task can be told apart."""
    metrics = store.metrics() if (store.path / METRICS_FILE).exists() else NO_ROWS
    value = summarise(mean_curve(steps_and_returns(metrics)[1]))["final"] if metrics.height else None
    return "" if value is None else f", final return {value:,.{1 if abs(value) >= 10 else 2}f}"


def describe_runs(directory: Path) -> dict[Path, str]:
    """One line for each run in a directory of runs."""
    return {file.parent: _describe_saved(file.parent) for file in sorted(directory.glob(f"*/{RUN_FILE}"))}


def _describe_saved(path: Path) -> str:
    try:
        store = RunStore.open(path)
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime((path / RUN_FILE).stat().st_mtime))
        return f"{describe(store.run)}, {store.progress}{_final_text(store)}, {date}"
    except BadInput as error:
        return f"damaged; {error}"
