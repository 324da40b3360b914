"""Run a study: longest runs first, a failed run once more, finished runs left alone."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from iqrl.experiments.executors.base import Executor, Outcome
from iqrl.experiments.study.directory import StudyDirectory, WorkUnit
from iqrl.experiments.study.estimate import seconds_of, total_seconds
from iqrl.experiments.study.work import read_progress
from iqrl.settings import Run
from iqrl.training.interruption import Interruption

POLL_SECONDS = 0.5
ATTEMPTS = 2


class RunProgress(NamedTuple):
    """A run in training."""

    name: str
    step: int
    steps: int
    steps_per_second: float


class StudyProgress(NamedTuple):
    runs: int
    finished: int
    failed: int
    running: list[RunProgress]
    seconds_left: float


class Watcher:
    """Follows a study and shows nothing. A display overrides the methods."""

    def on_start(self, runs: int, finished: int, workers: int) -> None: ...
    def on_progress(self, progress: StudyProgress) -> None: ...
    def on_end(self, unit: WorkUnit, error: str | None, retry: bool) -> None: ...


def run_study(
    directory: StudyDirectory, executor: Executor, watcher: Watcher, chosen: Sequence[Run], others: Sequence[Path] = ()
) -> dict[str, str]:
    """Run these runs of the study, and copy those that the directories of other studies have finished.

    Returns the failures of all runs of the study. Raises KeyboardInterrupt when stopped.
    """
    with directory.locked(), Interruption() as interruption:
        directory.copy_finished(chosen, others)
        todo = [run for run in chosen if not directory.is_done(run)]
        watcher.on_start(runs=len(chosen), finished=len(chosen) - len(todo), workers=executor.size)
        scheduler = _Scheduler(directory, executor, watcher, len(chosen), todo)
        while scheduler.busy and not interruption.asked:
            scheduler.submit_units()
            scheduler.record_outcomes(executor.wait(POLL_SECONDS))
            watcher.on_progress(scheduler.progress())
        if interruption.asked:
            scheduler.record_outcomes(executor.stop(), stopping=True)
            left = sum(not directory.is_done(run) for run in chosen)
            raise KeyboardInterrupt(f"stopped with {left} of {len(chosen)} runs unfinished; the same command goes on")
    return directory.failures()


class _Scheduler:
    """The queue of work units, and what became of those that left it."""

    def __init__(self, directory: StudyDirectory, executor: Executor, watcher: Watcher, runs: int, todo: Sequence[Run]):
        self.directory, self.executor, self.watcher, self.runs = directory, executor, watcher, runs
        units = [directory.work_unit(run) for run in todo]
        self.estimates = {unit.name: seconds_of(run) for unit, run in zip(units, todo, strict=True)}
        self.queue = deque(sorted(units, key=lambda unit: -self.estimates[unit.name]))
        self.started: dict[str, float] = {}
        self.running: dict[str, WorkUnit] = {}
        self.attempts: dict[str, int] = {}
        # Seconds of the runs that finished, measured and estimated.
        self.measured_seconds, self.estimated_seconds = 0.0, 0.0
        self.finished, self.failed = runs - len(todo), 0
        # Runs that failed in an earlier call are tried again. One whose worker died after the last save is finished.
        over = {directory.path_of(run).name for run in directory.study.runs.values() if directory.is_done(run)}
        over |= self.estimates.keys()
        self.failures = {name: why for name, why in directory.failures().items() if name not in over}
        directory.write_failures(self.failures)

    @property
    def busy(self) -> bool:
        return bool(self.queue or self.running)

    def submit_units(self) -> None:
        while self.queue and self.executor.free:
            unit = self.queue.popleft()
            self.started[unit.name] = time.monotonic()
            self.attempts[unit.name] = self.attempts.get(unit.name, 0) + 1
            self.running[unit.name] = unit
            self.executor.submit(unit)

    def record_outcomes(self, outcomes: Sequence[Outcome], stopping: bool = False) -> None:
        for unit, error in outcomes:
            del self.running[unit.name]
            if error is not None and self.directory.is_done(unit.run):
                error = None  # the worker died after the last save
            if error is None:
                self.finished += 1
                self.measured_seconds += time.monotonic() - self.started[unit.name]
                self.estimated_seconds += self.estimates[unit.name]
            elif stopping:
                continue
            elif self.attempts[unit.name] < ATTEMPTS:
                self.queue.append(unit)
            else:
                self.failed += 1
                self.failures[unit.name] = error
                self.directory.write_failures(self.failures)
            self.watcher.on_end(unit, error, retry=error is not None and self.attempts[unit.name] < ATTEMPTS)

    def progress(self) -> StudyProgress:
        running = []
        for name, unit in self.running.items():
            step, speed = read_progress(unit) or (0, 0.0)
            steps = unit.config["steps"]
            running.append(RunProgress(name=name, step=step, steps=steps, steps_per_second=speed))
        return StudyProgress(
            runs=self.runs,
            finished=self.finished,
            failed=self.failed,
            running=running,
            seconds_left=self.seconds_left(running),
        )

    def seconds_left(self, running: Sequence[RunProgress]) -> float:
        correction = self.measured_seconds / self.estimated_seconds if self.estimated_seconds else 1.0
        waiting = [self.estimates[unit.name] * correction for unit in self.queue]
        rest = [self._seconds_left_of(run, correction) for run in running]
        return total_seconds([*waiting, *rest], self.executor.size)

    def _seconds_left_of(self, run: RunProgress, correction: float) -> float:
        if run.steps_per_second:
            unit = self.running[run.name]
            return (run.steps - run.step) * unit.config["seeds"] / run.steps_per_second
        spent = time.monotonic() - self.started[run.name]
        return max(self.estimates[run.name] * correction - spent, 0.0)
