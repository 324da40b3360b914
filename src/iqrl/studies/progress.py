"""What a study in progress shows: how many runs are done, what is running, the time left."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from iqrl.studies.conduct import Progress, Watcher
from iqrl.studies.directory import Unit


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(170), duration(9000), duration(200_000)
    ('42 s', '3 min', '2 h 30 min', '2 d 8 h')
    """
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


@contextlib.contextmanager
def display() -> Generator[Watcher]:
    """A live picture on a terminal, a line per run elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield Picture(live)


class Lines(Watcher):
    def __init__(self) -> None:
        self.progress: Progress | None = None

    def begun(self, runs: int, finished: int, workers: int) -> None:
        done = f", {finished} of them finished before" if finished else ""
        print(f"{runs} runs{done}; {workers} at a time", file=sys.stderr, flush=True)

    def moved(self, progress: Progress) -> None:
        self.progress = progress

    def ended(self, unit: Unit, error: str | None, again: bool) -> None:
        known = self.progress
        left = f"; about {duration(known.seconds_left)} left" if known and known.seconds_left else ""
        print(f"{told(unit, error, again)}{left}", file=sys.stderr, flush=True)


class Picture(Watcher):
    def __init__(self, live: Live):
        self.live = live

    def begun(self, runs: int, finished: int, workers: int) -> None:
        if finished:
            self.live.console.print(f"{finished} of {runs} runs were finished before")

    def moved(self, progress: Progress) -> None:
        self.live.update(picture_of(progress))

    def ended(self, unit: Unit, error: str | None, again: bool) -> None:
        self.live.console.print(told(unit, error, again), highlight=False)


def told(unit: Unit, error: str | None, again: bool) -> str:
    if error is None:
        return f"finished {unit.name}"
    return f"{'will try again' if again else 'failed'}: {unit.name}: {error}"


def picture_of(progress: Progress) -> Group:
    failed = f", {progress.failed} failed" if progress.failed else ""
    left = f"about {duration(progress.seconds_left)} left"
    head = Text(f"{progress.finished} of {progress.runs} runs finished{failed}; {left}")
    table = Table.grid(padding=(0, 2))
    for run in progress.running:
        speed = f"{run.steps_per_second:,.0f} steps/s" if run.steps_per_second else "starting"
        table.add_row(run.name, ProgressBar(total=run.steps, completed=run.step, width=30), f"{run.step:,}", speed)
    return Group(head, table)
