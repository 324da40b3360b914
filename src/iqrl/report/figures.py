"""Learning curves: mean and spread per method."""

from __future__ import annotations

import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.report.colours import COLOURS
from iqrl.report.labels import common_settings, distinct_labels
from iqrl.results import mean_curve
from iqrl.training.checkpoint import write_whole

FORMATS = (".png", ".svg", ".pdf")

Curve = tuple[Run, np.ndarray, np.ndarray]
"""a run, its steps [P] and its returns [S, P]"""


@contextmanager
def drawing(path: str | Path, width: float, height: float, also: Sequence[Path] = ()) -> Generator[Figure]:
    """An empty figure of that size in inches, to be drawn on; it is written to `path`, and `also` there, at the end."""
    paths = [Path(path), *also]
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise BadInput(f"cannot draw {path.name}; end the name in {', '.join(FORMATS)}.")
    with matplotlib.rc_context({"svg.fonttype": "none", "font.size": 11}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for path in paths:
            _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lower()[1:], dpi=150)
    try:
        write_whole(path, buffer.getvalue())
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}.") from error


def over_steps(axis: Axes) -> None:
    """The look of an axis whose x are environment steps."""
    axis.set_xlabel("environment steps")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)


def colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def plot_curves(curves: Sequence[Curve], path: str | Path) -> Path:
    """One panel per task: a thick line for the mean, a band of one standard deviation, a thin line per seed."""
    if all(np.isnan(returns).all() for _, _, returns in curves):
        raise BadInput("no episode has ended yet in what is to be drawn, so there is no return.")
    tasks = list(dict.fromkeys(run.task for run, _, _ in curves))
    labels = distinct_labels([run for run, _, _ in curves])
    with drawing(path, 6.4 * len(tasks), 4.0) as figure:
        for axis, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
            for (run, steps, returns), label, colour in zip(curves, labels, colours(len(curves)), strict=True):
                if run.task == task:
                    draw_curve(axis, steps, returns, label, colour)
            axis.set_title(common_settings([run for run, _, _ in curves if run.task == task]))
            axis.set_ylabel("return of training episodes")
            over_steps(axis)
            axis.legend(frameon=False)
    return Path(path)


def draw_curve(
    axis: Axes, steps: np.ndarray, returns: np.ndarray, label: str, colour: str, seeds: bool = True, **style: Any
) -> None:
    """The mean over seeds, a band of one standard deviation, and a thin line per seed if wanted."""
    mean = mean_curve(returns)
    spread = np.sqrt(mean_curve((returns - mean) ** 2))
    # The band stays within what the seeds did: a mean plus a deviation can be a return that no episode can have.
    low = np.fmax(mean - spread, np.nanmin(np.where(np.isnan(returns), np.inf, returns), axis=0))
    high = np.fmin(mean + spread, np.nanmax(np.where(np.isnan(returns), -np.inf, returns), axis=0))
    for seed in returns if seeds else ():
        axis.plot(steps, seed, color=colour, alpha=0.25, linewidth=0.7)
    axis.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.plot(steps, mean, color=colour, linewidth=2.2 if seeds else 1.6, label=label, **style)
