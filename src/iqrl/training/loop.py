"""Training a run from start, or from its checkpoint, to its last step."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl

from iqrl import accelerator
from iqrl.core.fused_update import FusedUpdate
from iqrl.diagnostics.interference.meter import build_meter
from iqrl.diagnostics.metrics import sort_columns
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput, RunFailed
from iqrl.files import why
from iqrl.methods.registry import build_agent
from iqrl.plugins import in_a_sentence
from iqrl.settings import Run
from iqrl.training.compilation import Program, compile_driver
from iqrl.training.compiled import Driver
from iqrl.training.cores import compute_in_threads, count_groups
from iqrl.training.devices import compute_in_the_calling_thread, make_devices
from iqrl.training.interruption import Interruption
from iqrl.training.results import Result
from iqrl.training.rounds import hosted_driver
from iqrl.training.run_directory import NO_EVALUATIONS, NO_ROWS, RunStore, Saved, curves_text, last_step
from iqrl.training.states import Period, TrainState, all_finite

CHECKPOINT_SECONDS = float(os.environ.get("IQRL_CHECKPOINT_SECONDS", "20"))
"""how much work a killed process may lose"""
SAVING_SHARE = 0.05
"""of the time, at most; a killed process may lose more where the buffer is large"""


class Progress(NamedTuple):
    """What displays and callbacks are told after each period."""

    step: int
    steps: int
    returns: np.ndarray
    """one per seed, of this period; within a period those of the one before. NaN where no episode ended"""
    report: dict[str, float]
    """what the agent reports at this step, such as ε"""
    steps_per_second: float
    """over all seeds"""
    seconds_left: float
    began: int = 0
    """the step before the first of this period"""
    metrics: pl.DataFrame = NO_ROWS
    """of this period, one row per seed; for callbacks"""
    evaluation: float = math.nan
    """mean over the seeds, of the last evaluation; for displays"""
    known: bool = True
    """whether a period has ended: before that nothing is known of returns"""


Display = Callable[[Progress], None]
Follow = Callable[["Session", Progress], str]
"""called at the end of each period; gives a reason to stop, or nothing"""
Report = dict[str, float]
"""what an agent reports at a step"""


def driver_of(run: Run) -> Driver:
    """The run's driver. Whatever is wrong with the run is reported here, before anything is compiled or written."""
    compute_in_the_calling_thread()
    make_devices()
    task = make_task(run)
    if not (task.external and task.image):  # whose products are large enough to be shared by all cores
        compute_in_threads(1 if task.external else count_groups(run.seeds, one_by_one=task.image is not None))
    agent = build_agent(run, task)
    kind = hosted_driver(run) if task.external else Driver
    driver = kind(run=run, task=task, agent=agent, meter=build_meter(run, task, agent))
    _refuse_too_large(driver)
    if ":" in run.method:
        _try_abstractly(driver)
    return driver


def _try_abstractly(driver: Driver) -> None:
    """A method of the user's own is traced once, so that a mistake in it is reported in a sentence."""
    try:
        jax.eval_shape(driver.advance, jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), np.int32))
    except BadInput as error:
        raise BadInput(f"{driver.run.method}: {error}") from error
    except Exception as error:
        raise BadInput(f"{driver.run.method}: learning failed with {in_a_sentence(error)}.") from error


def _refuse_too_large(driver: Driver) -> None:
    try:
        leaves = jax.tree.leaves(jax.eval_shape(driver.init))
    except (OverflowError, MemoryError) as error:
        raise BadInput(
            "the run's state is larger than any memory; take fewer seeds or smaller hidden layers."
        ) from error
    needed = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) + batch_bytes(driver)
    available = physical_memory()
    if available and 2 * needed > available:  # the state, and room to work on it
        gigabytes = lambda size: f"{size / 1e9:,.1f} GB"
        raise BadInput(
            f"the run's state takes {gigabytes(needed)} and this machine has {gigabytes(available)} of memory; "
            f"fewer seeds, a smaller buffer_size or batch_size, or smaller hidden layers take less."
        )


def physical_memory() -> int:
    """Bytes; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def batch_bytes(driver: Driver) -> int:
    """What the batches of an update take at least: both states of each transition and the layers computed of them."""
    run = driver.run
    size = run.buffer_size if run.sampling == "whole" else run.batch_size
    state = driver.task.obs_size * np.dtype(driver.task.obs_dtype).itemsize
    return run.seeds * size * (2 * state + 4 * sum(run.hidden)) if size > 1 else 0


def train_run(
    run: Run,
    store: RunStore | None = None,
    display: Display = lambda progress: None,
    driver: Driver | None = None,
    begin: Callable[[Saved | None], None] = lambda saved: None,
    follow: Follow | None = None,
) -> Result:
    """Train to `run.steps`, or until `follow` stops it. With a store, start from its checkpoint if it has one, and save
    there.

    `driver`: the run's, where it was built before, so that task, agent and meter are built once. `begin`: called when
    the checkpoint is loaded, if there is one.
    """
    if driver is None or driver.run != run:
        driver = driver_of(run)
    with store.locked() if store else contextlib.nullcontext(), Interruption() as interruption:
        resuming = store is not None and store.has_checkpoint
        saved = store.load(jax.eval_shape(driver.init)) if resuming else None
        begin(saved)
        session = Session(driver, saved, store)
        with contextlib.closing(session):
            session.train(interruption, display, follow)
    return session.result()


class Session:
    """A run that is trained, further and further; with a store, it is saved there on the way."""

    def __init__(self, driver: Driver, saved: Saved | None = None, store: RunStore | None = None):
        self.driver, self.store = driver, store
        self._saved = saved
        self.evaluations = saved.evaluations if saved else NO_EVALUATIONS
        """one row per seed and evaluation"""
        self._loop: _Loop | None = None
        self._training = False

    def train_to(self, steps: int, display: Display = lambda progress: None, follow: Follow | None = None) -> None:
        """Whatever ends it, what was learned until then is kept."""
        self.driver = dataclasses.replace(self.driver, run=dataclasses.replace(self.driver.run, steps=steps))
        with Interruption() as interruption:
            self.train(interruption, display, follow)

    def train(self, interruption: Interruption, display: Display, follow: Follow | None) -> None:
        self._loop = self._continued(display, follow)
        self._training = True
        try:
            self._loop.run_to_end(interruption)
        finally:
            self._training = False

    def close(self) -> None:
        """End the processes of environments; what was learned stays."""
        if self._loop is not None:
            self._loop.program.close()

    def _continued(self, display: Display, follow: Follow | None) -> _Loop:
        metrics = self.metrics
        if self._loop is not None:
            program, held = self._loop.program, self._loop.held
        else:
            program, saved = compile_driver(self.driver), self._saved
            held = program.restore(saved.state, saved.environments) if saved else program.init()
            self._saved = None
        return _Loop(self, metrics, held, display, program, follow)

    def change(self, run: Run) -> None:
        """Go on with other settings, which leave the state its form; raises BadInput where they do not."""
        if self._training:
            raise BadInput("settings change between two calls of learn; a callback cannot change them.")
        driver = driver_of(run)
        before, after = (jax.eval_shape(each.init) for each in (self.driver, driver))
        if jax.tree.flatten(before) != jax.tree.flatten(after):
            raise BadInput("the agent's state would have another form; make a new model.")
        state = self.state
        if state is not None:
            self._saved = Saved(state, self.metrics, dict(self.snapshot()), self.evaluations)
        self.driver, self._loop = driver, None

    @property
    def state(self) -> TrainState | None:
        """As it is now, also while it is trained; None before the first step."""
        if self._loop is not None:
            return self._loop.state
        return self._saved.state if self._saved else None

    @property
    def metrics(self) -> pl.DataFrame:
        if self._loop is not None:
            return self._loop.metrics
        return self._saved.metrics if self._saved else NO_ROWS

    @property
    def stopped(self) -> str:
        """Why it was stopped early; empty where it was not."""
        return "" if self._loop is None else self._loop.stopped

    def add_evaluation(self, returns: np.ndarray) -> None:
        """[seeds, episodes]: the returns of greedy episodes at this step."""
        rows = evaluation_rows(self.driver.run, self.step, returns)
        self.evaluations = pl.concat([self.evaluations, rows])

    @property
    def step(self) -> int:
        if self._loop is not None:
            return self._loop.step
        return int(self._saved.state.step) if self._saved else 0

    def snapshot(self) -> Mapping[str, np.ndarray]:
        """The state of external environments."""
        if self._loop is not None:
            return self._loop.program.snapshot()
        return self._saved.environments if self._saved else {}

    def result(self) -> Result:
        if self.state is None:
            raise BadInput("nothing has been learned yet.")
        timing = {} if self._loop is None else self._loop.timing
        return _result(self.driver, self.store, self.state, self.metrics, timing)


class _Loop:
    """The host's side of training: one call per period, what it says written down."""

    def __init__(
        self,
        session: Session,
        metrics: pl.DataFrame,
        held: Any,
        display: Display,
        program: Program,
        follow: Follow | None,
    ):
        self.session, self.run, self.agent = session, session.driver.run, session.driver.agent
        self.store, self.display, self.program, self.follow = session.store, display, program, follow
        self.began = int(metrics["step"][-1]) if metrics.height else 0
        self.returns = last_returns(metrics)
        self.stopped = ""
        self._metrics, self._periods = metrics, list[tuple[int, Period, Report]]()
        self.held, self._whole, self.step = held, None, program.step(held)
        self.trained, self.seconds = 0, 0.0
        self.saved_at, self.saved_step, self.saving = time.monotonic(), self.step, 0.0

    @property
    def state(self) -> TrainState:
        """Of all seeds, from what the program holds."""
        if self._whole is None:
            self._whole = self.program.whole(self.held)
        return self._whole

    def finite_seeds(self) -> np.ndarray:
        return jax.device_get(all_finite(self.agent.parameters(self.state.agent)))

    @property
    def steps_per_second(self) -> float:
        return self.trained * self.run.seeds / self.seconds if self.seconds else float("nan")

    @property
    def metrics(self) -> pl.DataFrame:
        """One row per seed and period. Periods become rows when the rows are asked for: one by one they would take
        longer than a short period does."""
        if self._periods:
            rows = period_rows(self.run, self._periods)
            self._metrics = pl.concat([self._metrics, rows], rechunk=True) if self._metrics.height else rows
            self._periods = []
        return self._metrics

    @property
    def timing(self) -> dict[str, float]:
        return {"steps_per_second": self.steps_per_second, "compile_seconds": self.program.seconds}

    def run_to_end(self, interruption: Interruption) -> None:
        self.note_accelerator()
        if self.store is not None:
            self.store.info.pop("stopped", None)
        while self.step < self.run.steps and not interruption.asked and not self.stopped:
            stop = min((self.step // self.run.period + 1) * self.run.period, self.run.steps)
            self.go_on(stop, interruption)
            if self.due:
                self.save()
        self.save()
        if self.step < self.run.steps and not self.stopped:
            saved = "saved; " if self.step else ""
            where = f"{saved}continue with: iqrl resume {self.store.path}" if self.store else "nothing was saved"
            curves = curves_text(self.step, last_step(self.metrics), "; ")
            raise KeyboardInterrupt(f"stopped at step {self.step:,} of {self.run.steps:,}{curves}; {where}")

    def note_accelerator(self) -> None:
        """Whether the run that asks for it has the fused update goes into run.json; where it has not, or went on
        without what it began with, that is said."""
        if self.run.accelerator == "none":
            return
        fused, info = isinstance(self.agent, FusedUpdate), {} if self.store is None else self.store.info
        why = accelerator.missing() or f"it does not know all that an update of this {self.run.method} consists of"
        differs = "; the run began otherwise, so its last bits differ from here on" * (
            info.get("fused", fused) != fused
        )
        if not fused:
            warnings.warn(f"accelerator fused is not used: {why}{differs}.", stacklevel=2)
        elif differs:
            warnings.warn(f"accelerator fused is used{differs}.", stacklevel=2)
        info["fused"] = fused

    @property
    def due(self) -> bool:
        """Whether to save: a large buffer takes long, and no more than a share of the time goes into that."""
        if self.store is None:
            return False
        return time.monotonic() - self.saved_at > max(CHECKPOINT_SECONDS, self.saving / SAVING_SHARE)

    def go_on(self, stop: int, interruption: Interruption) -> None:
        """To the end of a period, or until it is time to save or to stop, where the driver can pause within one."""
        started = time.perf_counter()
        try:
            paused = lambda: interruption.asked or self.due
            held, period = self.program.advance(self.held, np.int32(stop), paused)
            held, period = jax.block_until_ready(held), jax.device_get(period)
        except jax.errors.JaxRuntimeError as error:  # out of memory, above all
            raise RunFailed(f"the compiled program failed: {str(error).splitlines()[0].rstrip('.')}.") from error
        except RunFailed as error:  # in an environment
            raise RunFailed(f"{str(error).rstrip('.')}; {self.kept}.") from error
        self.seconds += time.perf_counter() - started
        # From here on `self.held` is the new one: the old one's memory was given to it.
        previous, self.step = self.step, self.program.step(held)
        self.held, self._whole = held, None
        self.trained += self.step - previous
        self.refuse_infinities(self.finite_seeds() if period is None else period.finite)
        report = self.agent.report(self.step)
        if period is not None:
            self._periods.append((stop, period, report))
        try:
            self.show(period, report)
        except BaseException:  # of whoever follows the run: what was computed is not lost by it
            self.save()
            raise
        if self.stopped and self.store is not None:
            self.store.info["stopped"] = self.stopped

    def show(self, period: Period | None, report: Report) -> None:
        """Within a period nothing is known of its returns yet, and callbacks are not called."""
        left = (self.run.steps - self.step) * self.run.seeds / self.steps_per_second
        self.returns = self.returns if period is None else np.asarray(period.returns)
        progress = Progress(
            step=self.step,
            steps=self.run.steps,
            returns=np.full(self.run.seeds, np.nan) if self.returns is None else self.returns,
            report=report,
            steps_per_second=self.steps_per_second,
            seconds_left=left,
            began=self.began,
            known=self.returns is not None,
        )
        if period is not None and self.follow is not None:
            rows = period_rows(self.run, [(self.step, period, report)])
            self.stopped = self.follow(self.session, progress._replace(metrics=rows))
        self.began = self.began if period is None else self.step
        self.display(progress._replace(evaluation=last_evaluation(self.session.evaluations)))

    def refuse_infinities(self, finite_seeds: np.ndarray) -> None:
        """Parameters that are not numbers are never saved."""
        lost = [self.run.seed + i for i, finite in enumerate(finite_seeds) if not finite]
        if lost:
            raise RunFailed(
                f"the parameters of seed {', '.join(map(str, lost))} became infinite or NaN before step "
                f"{self.step:,}; a smaller learning_rate or a gradient_clip may help; {self.kept}."
            )

    @property
    def kept(self) -> str:
        kept = self.store is not None and self.saved_step > 0
        return f"{self.store.path} keeps step {self.saved_step:,}" if kept else "nothing was saved"

    def save(self) -> None:
        if self.store is None or self.saved_step == self.step:
            return
        self.store.info["timing"] = self.timing
        started = time.monotonic()
        try:
            snapshot, evaluations = self.program.snapshot(), self.session.evaluations
            self.store.save(jax.device_get(self.state), self.metrics, snapshot, evaluations)
        except OSError as error:
            raise RunFailed(
                f"cannot save to {self.store.path}: {why(error)}; what was saved before is still there."
            ) from error
        self.saved_at, self.saved_step = time.monotonic(), self.step
        self.saving = self.saved_at - started


def period_rows(run: Run, ended: Sequence[tuple[int, Period, Report]]) -> pl.DataFrame:
    """One row per seed of each period that ended: at which step, what it gave, what the agent reports then."""
    steps, periods, reports = zip(*ended, strict=True)
    seeds = np.arange(run.seed, run.seed + run.seeds)
    keys = {"seed": np.tile(seeds, len(steps)), "step": np.repeat(steps, run.seeds)}
    joined = lambda values: np.concatenate([np.asarray(value) for value in values])
    metrics: dict[str, Any] = {
        "return": joined(period.returns for period in periods).astype(np.float64),
        "episodes": joined(period.episodes for period in periods),
        **{name: np.repeat([report[name] for report in reports], run.seeds) for name in reports[0]},
        **{name: joined(period.metrics[name] for period in periods) for name in periods[0].metrics},
    }
    columns = keys | {name: metrics[name] for name in sort_columns(metrics)}
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def last_returns(metrics: pl.DataFrame) -> np.ndarray | None:
    """Of the last period, one per seed; None where none has ended."""
    if not metrics.height:
        return None
    return metrics.filter(pl.col("step") == metrics["step"][-1])["return"].to_numpy()


def evaluation_rows(run: Run, step: int, returns: np.ndarray) -> pl.DataFrame:
    """One row per seed: of its greedy episodes [seeds, episodes], the mean, the lowest and the highest return."""
    columns = {
        "seed": np.arange(run.seed, run.seed + run.seeds),
        "step": np.full(run.seeds, step),
        "return": returns.mean(axis=1),
        "lowest": returns.min(axis=1),
        "highest": returns.max(axis=1),
        "episodes": np.full(run.seeds, returns.shape[1]),
    }
    return pl.DataFrame(columns, schema=NO_EVALUATIONS.schema)


def last_evaluation(evaluations: pl.DataFrame) -> float:
    """Its mean over the seeds; NaN where there is none."""
    if not evaluations.height:
        return math.nan
    return float(evaluations.filter(pl.col("step") == evaluations["step"][-1])["return"].mean())  # ty: ignore[invalid-argument-type]


def _series(name: str, values: np.ndarray) -> pl.Series:
    """One entry per seed: a number, a list, or a list of lists."""
    if values.ndim == 1:
        return pl.Series(name, values)
    kind: Any = pl.Float64
    for _ in values.shape[1:]:
        kind = pl.List(kind)
    return pl.Series(name, values.astype(np.float64).tolist(), dtype=kind)


def load(path: str | Path, task: str | None = None) -> Result:
    """A trained run from its directory. `task`: the name of the environment here, where it has another than it had."""
    store = RunStore.open(path)
    if not store.has_checkpoint:
        store.metrics()  # raises: there are no results yet
    run = store.run if task is None else dataclasses.replace(store.run, task=task)
    return load_result(store, driver_of(run))


def load_result(store: RunStore, driver: Driver) -> Result:
    """What a store holds of its run."""
    saved = store.load(jax.eval_shape(driver.init))
    return _result(driver, store, saved.state, saved.metrics, {})


def _result(
    driver: Driver, store: RunStore | None, state: TrainState, metrics: pl.DataFrame, timing: dict[str, float]
) -> Result:
    if store is not None:
        timing = store.info.get("timing", timing)
    path, agent_state = store.path if store else None, jax.device_get(state.agent)
    return Result(
        run=driver.run,
        metrics=metrics,
        agent_state=agent_state,
        task=driver.task,
        agent=driver.agent,
        timing=timing,
        path=path,
        step=int(state.step),
    )
