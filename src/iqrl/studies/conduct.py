"""Running a study: longest runs first, each failed one once more, whatever is finished left alone."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from iqrl.config import Run
from iqrl.studies.directory import StudyDirectory, Unit
from iqrl.studies.estimate import seconds_of, total_seconds
from iqrl.studies.executor import Executor, Outcome
from iqrl.studies.work import reported
from iqrl.training.interruption import Interruption

POLL_SECONDS = 0.5
ATTEMPTS = 2


class Running(NamedTuple):
    """A run that is being worked on, as it says itself."""

    name: str
    step: int
    steps: int
    steps_per_second: float


class Progress(NamedTuple):
    """What a display is told, over and over."""

    runs: int
    finished: int
    failed: int
    running: list[Running]
    seconds_left: float


class Watcher:
    """A display of nothing; the methods of one that shows something."""

    def begun(self, runs: int, finished: int, workers: int) -> None: ...
    def moved(self, progress: Progress) -> None: ...
    def ended(self, unit: Unit, error: str | None, again: bool) -> None: ...


def conduct(
    directory: StudyDirectory, executor: Executor, watcher: Watcher, chosen: Sequence[Run], others: Sequence[Path] = ()
) -> dict[str, str]:
    """Run these runs of the study, but for those that the directories of other studies have; returns the failures of
    all its runs. Raises KeyboardInterrupt when stopped."""
    with directory.locked(), Interruption() as interruption:
        directory.adopt(chosen, others)
        todo = [run for run in chosen if not directory.is_finished(run)]
        watcher.begun(len(chosen), len(chosen) - len(todo), executor.size)
        conductor = _Conductor(directory, executor, watcher, len(chosen), todo)
        while conductor.busy and not interruption.asked:
            conductor.fill()
            conductor.settle(executor.wait(POLL_SECONDS))
            watcher.moved(conductor.progress())
        if interruption.asked:
            conductor.settle(executor.stop(), stopping=True)
            left = sum(not directory.is_finished(run) for run in chosen)
            raise KeyboardInterrupt(f"stopped with {left} of {len(chosen)} runs unfinished; the same command goes on")
    return directory.failures()


class _Conductor:
    def __init__(self, directory: StudyDirectory, executor: Executor, watcher: Watcher, runs: int, todo: Sequence[Run]):
        self.directory, self.executor, self.watcher, self.runs = directory, executor, watcher, runs
        self.estimates = {directory.unit_of(run).name: seconds_of(run) for run in todo}
        units = [directory.unit_of(run) for run in todo]
        self.queue = deque(sorted(units, key=lambda unit: -self.estimates[unit.name]))
        self.started: dict[str, float] = {}
        self.running: dict[str, Unit] = {}
        self.attempts: dict[str, int] = {}
        self.taken, self.expected = 0.0, 0.0  # seconds of the runs that ended, and what was estimated for them
        self.finished, self.failed = runs - len(todo), 0
        # What failed before is tried again, and no longer a failure until it fails again.
        self.failures = {name: why for name, why in directory.failures().items() if name not in self.estimates}
        directory.write_failures(self.failures)

    @property
    def busy(self) -> bool:
        return bool(self.queue or self.running)

    def fill(self) -> None:
        while self.queue and self.executor.free:
            unit = self.queue.popleft()
            self.started[unit.name] = time.monotonic()
            self.attempts[unit.name] = self.attempts.get(unit.name, 0) + 1
            self.running[unit.name] = unit
            self.executor.submit(unit)

    def settle(self, outcomes: Sequence[Outcome], stopping: bool = False) -> None:
        for unit, error in outcomes:
            del self.running[unit.name]
            if error is None:
                self.finished += 1
                self.taken += time.monotonic() - self.started[unit.name]
                self.expected += self.estimates[unit.name]
            elif stopping:
                continue
            elif self.attempts[unit.name] < ATTEMPTS:
                self.queue.append(unit)
            else:
                self.failed += 1
                self.failures[unit.name] = error
                self.directory.write_failures(self.failures)
            self.watcher.ended(unit, error, again=error is not None and self.attempts[unit.name] < ATTEMPTS)

    def progress(self) -> Progress:
        running = []
        for name, unit in self.running.items():
            step, speed = reported(unit) or (0, 0.0)
            running.append(Running(name, step, unit.config["steps"], speed))
        return Progress(self.runs, self.finished, self.failed, running, self.seconds_left(running))

    def seconds_left(self, running: Sequence[Running]) -> float:
        correction = self.taken / self.expected if self.expected else 1.0
        waiting = [self.estimates[unit.name] * correction for unit in self.queue]
        rest = [self._rest(run, correction) for run in running]
        return total_seconds([*waiting, *rest], self.executor.size)

    def _rest(self, run: Running, correction: float) -> float:
        if run.steps_per_second:
            unit = self.running[run.name]
            return (run.steps - run.step) * unit.config["seeds"] / run.steps_per_second
        spent = time.monotonic() - self.started[run.name]
        return max(self.estimates[run.name] * correction - spent, 0.0)
