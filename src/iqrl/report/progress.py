"""Progress while training: a live line on a terminal, plain lines elsewhere. Both go to stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from iqrl.results import mean_curve
from iqrl.training.loop import Progress as Report

PLAIN_SECONDS = 5.0


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def returns_text(returns: np.ndarray) -> str:
    """Mean over the seeds and the range between them."""
    if not np.isfinite(returns).any():
        return "no episode ended"
    mean, low, high = mean_curve(returns[:, None])[0], np.nanmin(returns), np.nanmax(returns)
    digits = 0 if max(abs(low), abs(high)) >= 10 else 1
    spread = f" ({low:.{digits}f}…{high:.{digits}f})" if len(returns) > 1 else ""
    return f"return {mean:.{digits + 1}f}{spread}"


class LiveDisplay:
    """A bar that says return, ε, speed and time left."""

    def __init__(self, console: Console, label: str):
        text = TextColumn("{task.fields[text]}", markup=False)
        columns = (TextColumn("[bold]{task.description}"), BarColumn(8), text)
        self._progress = Progress(*columns, console=console)
        self._task = self._progress.add_task(label, total=None, text="compiling…")

    def __enter__(self) -> LiveDisplay:
        self._progress.start()
        return self

    def __call__(self, report: Report) -> None:
        # The most important first: a narrow terminal cuts the end.
        text = (
            f"{clock(report.seconds_left)} left  {returns_text(report.returns)}  ε {report.epsilon:.2f}  "
            f"{report.steps_per_second / 1000:,.0f}k steps/s"
        )
        self._progress.update(self._task, total=report.steps, completed=report.step, text=text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class PlainDisplay:
    """A line every few seconds, and one at the end."""

    def __init__(self, console: Console, label: str):
        self._console, self._label, self._last = console, label, 0.0

    def __enter__(self) -> PlainDisplay:
        self._say("compiling…")
        return self

    def __call__(self, report: Report) -> None:
        if report.step < report.steps and time.monotonic() - self._last < PLAIN_SECONDS:
            return
        self._last = time.monotonic()
        self._say(
            f"{report.step:,} of {report.steps:,} steps, {returns_text(report.returns)}, epsilon {report.epsilon:.2f}, "
            f"{report.steps_per_second:,.0f} steps/s, {clock(report.seconds_left)} left"
        )

    def _say(self, text: str) -> None:
        self._console.print(f"{self._label}: {text}", highlight=False, markup=False, soft_wrap=True)

    def __exit__(self, *error: object) -> None:
        pass


@contextlib.contextmanager
def counting(label: str, what: str) -> Generator[Callable[[int, int], None]]:
    """(done, of) -> a bar on a terminal, elsewhere a line every few seconds; nothing is left of the bar."""
    console, last = Console(stderr=True), time.monotonic()
    if console.is_terminal:
        with Progress(*Progress.get_default_columns(), console=console, transient=True) as bar:
            task = bar.add_task(f"{label} {what}", total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)
        return

    def say(done: int, of: int) -> None:
        nonlocal last
        if done < of and time.monotonic() - last > PLAIN_SECONDS:
            last = time.monotonic()
            console.print(f"{label}: {done} of {of} {what}", highlight=False, markup=False)

    yield say


def display(label: str) -> LiveDisplay | PlainDisplay:
    console = Console(stderr=True)
    return (LiveDisplay if console.is_terminal else PlainDisplay)(console, label)
