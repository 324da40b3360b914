"""What commands print: tables of results and of interference, and progress while training.

Progress goes to stderr: a live line on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from iqrl.colours import method_colour
from iqrl.diagnostics.metrics import heading_of
from iqrl.experiments.report.arrangement import MeasuredRun, common_settings, distinct_labels, size_text, squared_unit
from iqrl.experiments.report.interference_tables import interference_text, is_measured, summarise_interference
from iqrl.experiments.report.notebook import NotebookDisplay, in_notebook
from iqrl.experiments.report.terminal_table import print_table
from iqrl.experiments.tuning import Tuning
from iqrl.methods.registry import memory_text
from iqrl.settings import Run
from iqrl.statistics.curves import mean_curve
from iqrl.training.compiled import Driver
from iqrl.training.loop import Follow, driver_of, load, load_result, train_run
from iqrl.training.loop import Progress as TrainingProgress
from iqrl.training.results import Result
from iqrl.training.run_directory import BEST_FILE, RunStore, Saved

# Results


def print_results(results: Sequence[Result], console: Console) -> None:
    """Highest, final and AUC of the mean curve, with the range over the seeds where there are several."""
    several = any(result.run.seeds > 1 for result in results)
    title = f"return of training episodes: {common_settings([result.run for result in results])}"
    rows = []
    for result, label in zip(results, distinct_labels([result.run for result in results]), strict=True):
        summary = result.summary()
        spread = lambda name, summary=summary: [_range_text([seed[name] for seed in summary["seeds"]])] * several
        final, auc = ([_text(summary[name]), *spread(name)] for name in ("final", "auc"))
        speed = result.timing.get("steps_per_second")
        speed_and_memory = (f"{speed:,.0f}" if speed else "", size_text(result.memory))
        rows.append([label, _text(summary["highest"]), *final, *auc, *speed_and_memory])
    seeds = ["(seeds)"] * several
    names = ("method", "highest", "final", *seeds, "AUC", *seeds, "steps/s", "memory")
    print_table(console, title, names, rows, [method_colour(result.run.method) or "" for result in results])
    together = "; (seeds): lowest…highest; steps/s: of all seeds together" * several
    console.print(Text(f"final: mean of the last tenth; AUC: mean of the whole run{together}", "dim"))


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _range_text(values: list[float | None]) -> str:
    measured = [value for value in values if value is not None]
    digits = 0 if max(map(abs, measured), default=0) >= 10 else 2
    return f"{min(measured):.{digits}f}…{max(measured):.{digits}f}" if len(measured) > 1 else ""


SHOWN_TRIALS = 5


def print_trials(tuning: Tuning, file: TextIO) -> None:
    """The best trials, and the first one, which has the defaults."""
    request, first = tuning.request, tuning.trials[0]
    finished = [trial for trial in tuning.trials if trial.value is not None]
    best = sorted(finished, key=lambda trial: -(trial.value or 0.0))[:SHOWN_TRIALS]
    rows = []
    for trial in best if first in best else [*best, first]:
        settings = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in trial.settings.values()]
        rows.append([str(tuning.trials.index(trial) + 1), _text(trial.value), *settings])
    title, names = f"{request.method} on {request.task}", ("trial", request.by, *request.space)
    print_table(Console(file=file), title, names, rows)


# Interference

COLUMNS = (
    "negative_interference", "relative_interference", "raised_share", "aei_largest", "interference_across_iterations",
    "lowest_gradient_cosine", "dormant_units",
)  # fmt: skip


def print_interference(runs: Sequence[MeasuredRun], console: Console) -> None:
    """Means over seeds, one row per run."""
    several_tasks = len({run.task for run, _ in runs}) > 1
    title = "interference" + ("" if several_tasks else f": {common_settings([run for run, _ in runs])}")
    rows = []
    for (run, metrics), label in zip(runs, distinct_labels([run for run, _ in runs]), strict=True):
        seeds = summarise_interference(metrics)
        numbers = [_interference_text(name, [seed[name] for seed in seeds]) for name in COLUMNS]
        rows.append([f"{label} {run.task}" if several_tasks else label, *numbers])
    print_table(console, title, ["method", *map(heading_of, COLUMNS)], rows)
    for line in _interference_legend([run for run, _ in runs]):
        console.print(Text(line, "dim"))


def _interference_legend(runs: Sequence[Run]) -> list[str]:
    """What the heads of the columns stand for; docs/interference.md says it at length."""
    return [
        "negative: mean AEI of the updates that raise the TD error; relative: as a share of the squared TD error; "
        "raising: share of such updates; largest: the largest AEI; tail: interference across iterations, 0.9 tail; "
        "cosine: lowest of two contexts' gradients; dormant: share of dormant units",
        f"unit of negative, largest and tail: {squared_unit(runs)}",
    ]


def _interference_text(name: str, values: list[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return interference_text(name, float(np.mean(measured))) if measured else "none"


# Progress

BAR = 12
"""width of the bar"""
PLAIN_SECONDS = 5.0
"""between two plain lines"""


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def report_text(progress: TrainingProgress) -> str:
    """The first number that the agent reports."""
    return ", ".join(f"{name} {value:.2f}" for name, value in list(progress.report.items())[:1])


def evaluation_text(progress: TrainingProgress) -> str:
    """The mean return of the last evaluation; nothing where there is none."""
    value = progress.evaluation
    return f"evaluation {value:.{1 if abs(value) >= 10 else 2}f}" if np.isfinite(value) else ""


def returns_text(returns: np.ndarray) -> str:
    """Mean over the seeds and the range between them."""
    if not np.isfinite(returns).any():
        return "no episode ended"
    mean, low, high = mean_curve(returns[:, None])[0], np.nanmin(returns), np.nanmax(returns)
    digits = 1 if max(abs(low), abs(high)) >= 10 else 2
    spread = f" ({low:.{digits}f}…{high:.{digits}f})" if len(returns) > 1 else ""
    return f"return {mean:.{digits}f}{spread}"


def speed_text(progress: TrainingProgress) -> str:
    """Steps are counted per seed, and so is the speed: "3 × 416 steps/s"."""
    seeds = len(progress.returns)
    return f"{seeds} × " * (seeds > 1) + f"{progress.steps_per_second / seeds:,.0f} steps/s"


def parts_text(progress: TrainingProgress) -> list[str]:
    """Return, evaluation, what the agent reports and speed; what is not known is left out."""
    returns = returns_text(progress.returns) if progress.known else ""
    parts = (returns, evaluation_text(progress), report_text(progress), speed_text(progress))
    return [part for part in parts if part]


def live_text(progress: TrainingProgress, width: int | None = None) -> str:
    """The most important first; what does not fit into so many characters is left out whole."""
    text = f"{clock(progress.seconds_left)} left"
    for part in parts_text(progress):
        longer = f"{text}  {part}"
        text = longer if width is None or len(longer) <= width else text
    return text


class LiveDisplay:
    """What is trained in a line of its own; below it a bar with time left, return, ε and speed."""

    def __init__(self, console: Console, label: str):
        self._label, self._room = label, console.width - BAR - 1
        self._bar = Progress(BarColumn(BAR), TextColumn("{task.fields[text]}", markup=False), console=console)
        self._task = self._bar.add_task(label, total=None, text="compiling…")

    def __enter__(self) -> LiveDisplay:
        self._bar.console.print(Text(self._label, "bold"))
        self._bar.start()
        return self

    def __call__(self, progress: TrainingProgress) -> None:
        text = live_text(progress, self._room)
        self._bar.update(self._task, total=progress.steps, completed=progress.step, text=text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class PlainDisplay:
    """A line every few seconds, and one at the end."""

    def __init__(self, console: Console, label: str):
        self._console, self._label, self._last = console, label, 0.0

    def __enter__(self) -> PlainDisplay:
        self._print("compiling…")
        return self

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.step < progress.steps and time.monotonic() - self._last < PLAIN_SECONDS:
            return
        self._last = time.monotonic()
        steps = f"{progress.step:,} of {progress.steps:,} steps"
        self._print(", ".join([steps, *parts_text(progress), f"{clock(progress.seconds_left)} left"]))

    def _print(self, text: str) -> None:
        self._console.print(f"{self._label}: {text}", highlight=False, markup=False, soft_wrap=True)

    def __exit__(self, *error: object) -> None:
        pass


@contextlib.contextmanager
def show_count(label: str, what: str) -> Generator[Callable[[int, int], None]]:
    """Gives a function of (done, of): a bar on a terminal, which vanishes, elsewhere a line every few seconds."""
    console, last = Console(stderr=True), time.monotonic()
    if console.is_terminal:
        with Progress(*Progress.get_default_columns(), console=console, transient=True) as bar:
            task = bar.add_task(f"{label} {what}", total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)
        return

    def print_line(done: int, of: int) -> None:
        nonlocal last
        if done < of and time.monotonic() - last > PLAIN_SECONDS:
            last = time.monotonic()
            console.print(f"{label}: {done} of {of} {what}", highlight=False, markup=False)

    yield print_line


def show_training(label: str) -> LiveDisplay | PlainDisplay | NotebookDisplay:
    if in_notebook():
        return NotebookDisplay(label, live_text)
    console = Console(stderr=True)
    return (LiveDisplay if console.is_terminal else PlainDisplay)(console, label)


def train_with_display(store: RunStore, driver: Driver | None = None, follow: Follow | None = None) -> Result:
    """Train the run of a store to its end, and show its progress. `driver`: the run's, where it was built before.

    A run that its own rules stopped is at its end, until it gets other rules."""
    if driver is None or driver.run != store.run:
        driver = driver_of(store.run)
    if store.has_checkpoint and store.last_step >= store.run.steps:
        result = load_result(store, driver)
        print(f"{store.path} holds this run, finished.", file=sys.stderr)
        return result
    if store.has_checkpoint and store.stopped:
        result = load_result(store, driver)
        print(f"{store.path} holds this run; {stop_text(store, result)}.", file=sys.stderr)
        return result
    display = show_training(f"{store.run.method} {store.run.task}, {memory_text(store.run)}")
    with contextlib.ExitStack() as shown:

        def begin(saved: Saved | None) -> None:
            """Nothing is said of a checkpoint that is refused but why."""
            if saved is not None:
                print(f"{store.path} holds this run up to step {int(saved.state.step):,}; continuing.", file=sys.stderr)
            shown.enter_context(display)

        result = train_run(store.run, store, display, driver, begin, follow)
    if store.stopped:
        print(f"{store.path}: {stop_text(store, result)}.", file=sys.stderr)
    return result


def stop_text(store: RunStore, result: Result) -> str:
    return f"stopped at step {result.step:,} of {result.run.steps:,}: {store.stopped}"


def print_best(store: RunStore, file: TextIO) -> None:
    """Which evaluation was the best, and where its model is."""
    means = store.evaluations().group_by("step", maintain_order=True).agg(pl.col("return").mean())
    if means.height:
        step, value = means.row(int(means["return"].arg_max() or 0))
        kept = store.path / BEST_FILE
        where = f": {kept}" if kept.exists() else ""
        print(f"best evaluation: {value:.1f} at step {step:,}{where}", file=file)


def print_returns(by_seed: Mapping[int, np.ndarray], greedy: bool, file: TextIO) -> None:
    """Mean, worst and best return of the episodes of each seed, the mean of all, and the range of the seeds' means."""
    for seed, row in by_seed.items():
        print(f"seed {seed}: mean {_text(row.mean())}, worst {_text(row.min())}, best {_text(row.max())}", file=file)
    returns = np.concatenate(list(by_seed.values()))
    episodes = f"{'greedy ' if greedy else ''}episode{'s' if returns.size > 1 else ''}"
    means = [row.mean() for row in by_seed.values()]
    starts = f"{len(returns) // len(means)} start{'s' if len(returns) > len(means) else ''}"
    spread = f": {len(means)} agents on the same {starts}; means of the seeds: {_text(min(means))}…{_text(max(means))}"
    together = f"{returns.size} {episodes}{spread if len(means) > 1 else ''}"
    print(f"all: mean {_text(returns.mean())} over {together}", file=file)


def report_measured(stores: Sequence[RunStore], directory: Path, console: Console) -> dict[str, Any]:
    """Print and draw the interference of the runs that were measured. The result has the numbers by directory."""
    from iqrl.experiments.report.figures.interference import figure_names, plot_measured_runs

    names = figure_names([store.path for store in stores])
    rows = [(store, store.metrics(), name) for store, name in zip(stores, names, strict=True)]
    measured = [row for row in rows if is_measured(row[1])]
    if measured:
        runs = [(store.run, metrics) for store, metrics, _ in measured]
        print_interference(runs, console)
        print(*plot_measured_runs(runs, [name for *_, name in measured], directory), sep="\n", file=console.file)
    return {str(store.path): summarise_interference(metrics) for store, metrics, _ in measured}


def report_matrices(
    stores: Sequence[RunStore], training: Mapping[str, int], directory: Path, console: Console
) -> dict[str, Any]:
    """Print and draw the context matrix of each run. The result has the numbers by directory."""
    from iqrl.diagnostics.analysis.context_matrix import context_matrix
    from iqrl.experiments.report.figures.interference import figure_names, plot_context_matrix

    numbers = {}
    for store, name in zip(stores, figure_names([store.path for store in stores]), strict=True):
        print(f"{store.path}: training on one context after another…", file=sys.stderr)
        matrix = context_matrix(load(store.path), **training)
        drawn = plot_context_matrix(matrix, store.run, directory / f"{name}-matrix.png")
        title = f"{store.path}: change of each context's loss, mean over seeds"
        print(title, matrix, drawn, sep="\n", file=console.file)
        change = matrix.change.astype(object)
        change[~np.isfinite(matrix.change)] = None  # JSON has no NaN
        numbers[str(store.path)] = {"change": change.tolist(), "counts": matrix.counts.tolist()}
    return numbers


def report_map(stores: Sequence[RunStore], directory: Path, console: Console) -> None:
    """Draw the states of the runs side by side, coloured by context."""
    from iqrl.experiments.report.figures.interference import figure_names
    from iqrl.experiments.report.figures.maps import plot_context_maps

    print("collecting states and computing their t-SNE…", file=sys.stderr)
    path = directory / f"{'-'.join(figure_names([store.path for store in stores]))}-map.png"
    print(plot_context_maps([load(store.path) for store in stores], path), file=console.file)
