"""The progress of a study on the terminal: how many runs are done, which are running, the time left."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Sequence

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from iqrl.errors import BadInput, PackagesMissing
from iqrl.experiments.study.directory import StudyDirectory, WorkUnit
from iqrl.experiments.study.estimate import seconds_of, total_seconds
from iqrl.experiments.study.run_study import StudyProgress, Watcher
from iqrl.experiments.study.study import Study
from iqrl.experiments.study.work import read_progress
from iqrl.plugins import Untrusted


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
def show_study() -> Generator[Watcher]:
    """A live display on a terminal, a line per run elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainWatcher()
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield LiveWatcher(live)


class PlainWatcher(Watcher):
    def __init__(self) -> None:
        self.progress: StudyProgress | None = None

    def on_start(self, runs: int, finished: int, workers: int) -> None:
        done = f", {finished} of them finished before" if finished else ""
        print(f"{runs} runs{done}; {workers} at a time", file=sys.stderr, flush=True)

    def on_progress(self, progress: StudyProgress) -> None:
        self.progress = progress

    def on_end(self, unit: WorkUnit, error: str | None, retry: bool) -> None:
        seconds = self.progress.seconds_left if self.progress else 0.0
        left = f"; about {duration(seconds)} left" if seconds else ""
        print(f"{outcome_text(unit, error, retry)}{left}", file=sys.stderr, flush=True)


class LiveWatcher(Watcher):
    def __init__(self, live: Live):
        self.live = live

    def on_start(self, runs: int, finished: int, workers: int) -> None:
        if finished:
            self.live.console.print(f"{finished} of {runs} runs were finished before")

    def on_progress(self, progress: StudyProgress) -> None:
        self.live.update(render_progress(progress))

    def on_end(self, unit: WorkUnit, error: str | None, retry: bool) -> None:
        self.live.console.print(outcome_text(unit, error, retry), highlight=False)


def outcome_text(unit: WorkUnit, error: str | None, retry: bool) -> str:
    if error is None:
        return f"finished {unit.name}"
    return f"{'will try again' if retry else 'failed'}: {unit.name}: {error}"


def render_progress(progress: StudyProgress) -> Group:
    failed = f", {progress.failed} failed" if progress.failed else ""
    left = f"about {duration(progress.seconds_left)} left"
    head = Text(f"{progress.finished} of {progress.runs} runs finished{failed}; {left}")
    table = Table.grid(padding=(0, 2))
    for run in progress.running:
        speed = f"{run.steps_per_second:,.0f} steps/s" if run.steps_per_second else "starting"
        table.add_row(run.name, ProgressBar(total=run.steps, completed=run.step, width=30), f"{run.step:,}", speed)
    return Group(head, table)


def print_studies(studies: Sequence[Study], cores: int, console: Console) -> None:
    """A table of studies: runs, steps, and the time that they take on so many cores; a list where it is narrow."""
    (_print_table if console.width >= WIDE else _print_list)(studies, cores, console)
    print(f"times are estimates for the {cores} core{'s' * (cores > 1)} of this machine", file=console.file)


WIDE = 110
"""columns in which titles of studies are one or two lines"""


def _print_table(studies: Sequence[Study], cores: int, console: Console) -> None:
    table = Table("study", "what", "runs × seeds", "steps", "time here", box=box.SIMPLE)
    table.columns[0].no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    for study in studies:
        table.add_row(study.name, study.title, *_size_of(study, cores))
    console.print(table)


def _print_list(studies: Sequence[Study], cores: int, console: Console) -> None:
    for study in studies:
        size = _size_of(study, cores)
        if len(size) > 1:
            runs, steps, time = size
            size = f"{runs.replace(' ×', ' runs ×')} seeds", f"{steps} steps", time
        console.print(Text(study.name, "bold"))
        console.print(Padding(Text(f"{study.title}. {', '.join(size)}"), (0, 0, 0, 4)))


def _size_of(study: Study, cores: int) -> tuple[str, ...]:
    """Runs × seeds, steps and time, as far as the packages that the study needs are installed."""
    try:
        runs = list(study.runs.values())
    except PackagesMissing as missing:
        return (f"needs {missing.extra}",)
    except Untrusted as untrusted:
        return (f"needs --trust {untrusted.module}",)
    steps = sum(run.steps * run.seeds for run in runs)
    seeds = sorted({min(run.seeds for run in runs), max(run.seeds for run in runs)})
    return (
        f"{len(runs)} × {'–'.join(map(str, seeds))}",
        f"{steps / 1e6:,.1f} M" if steps >= 1e6 else f"{steps:,}",
        duration(total_seconds(map(seconds_of, runs), cores)),
    )


def status_lines(directory: StudyDirectory) -> list[str]:
    """How many runs of a study are finished, the step of each that is running, the error of each that failed."""
    runs = directory.study.runs.values()
    damaged: dict[str, str] = {}
    finished = 0
    for run in runs:
        try:
            finished += directory.is_finished(run)
        except BadInput as error:
            damaged[directory.path_of(run).name] = str(error)
    stopped = finished < len(runs) and not directory.is_running
    note = "; nothing is running, and iqrl study run continues it" if stopped else ""
    lines = [f"{directory.path}: {directory.study.title}; {finished} of {len(runs)} runs finished{note}"]
    for run in runs:
        unit = directory.work_unit(run)
        if at := read_progress(unit):
            speed = f"{at.steps_per_second:,.0f} steps/s"
            lines.append(f"  running {unit.name}: step {at.step:,} of {run.steps:,}, {speed}")
    lines += [f"  damaged {name}: {error}" for name, error in damaged.items()]
    return lines + [f"  failed {name}: {error}" for name, error in directory.failures().items()]
