"""Interference over time, beside the returns of a run and of several methods, and among contexts as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from iqrl.colours import COLOURS, method_colour, shared_colours
from iqrl.diagnostics.analysis.context_matrix import ContextMatrix
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import MeasuredRun, panel_title, plot_labels, squared_unit, unique
from iqrl.experiments.report.figures.curves import colour_limit, drawing, percent, style_step_axis
from iqrl.methods.registry import in_words
from iqrl.settings import Run
from iqrl.statistics.curves import mean_curve, steps_and_values

INTERFERENCE, OTHER_METHODS = "#4a5560", COLOURS[4]
"""interference is grey, since a return has the colour of its method"""
FEW_POINTS = 60
MOST_SEEDS = 6
"""panels of a figure that is still read at a glance"""


def plot_interference(run: Run, metrics: pl.DataFrame, path: str | Path, seed: int | None = None) -> Path:
    """AEI and return over the same steps, of one seed or of the first six, one below the other.

    Means over seeds would hide what this shows: that a seed's return falls when its interference rises.
    """
    _refuse_unmeasured(metrics, "aei", "negative_interference")
    seeds = metrics["seed"].unique().sort().to_list()
    if seed is not None and seed not in seeds:
        raise BadInput(f"seed {seed} is not in the run; it has {', '.join(map(str, seeds))}.")
    shown = seeds[:MOST_SEEDS] if seed is None else [seed]
    colour = method_colour(run.method) or OTHER_METHODS
    with drawing(path, 8.0, 1.2 + 2.0 * len(shown) + (1.0 if len(shown) == 1 else 0.0)) as figure:
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for number, (axis, each) in enumerate(zip(panels, shown, strict=True)):
            _draw_seed(axis, metrics.filter(pl.col("seed") == each).sort("step"), colour)
            axis.set_ylabel(f"AEI, {squared_unit([run])}", color=INTERFERENCE)
            axis.set_title(f"seed {each}", loc="left", fontsize=10)
            if number < len(shown) - 1:
                axis.set_xlabel("")
        figure.suptitle(in_words(run))
        figure.align_ylabels(panels)
        handles, labels = panels[0].get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": 3, "frameon": False}
        figure.legend([*handles, Line2D([], [], color=colour)], [*labels, "return"], **place)
    return Path(path)


def _draw_seed(axis: Axes, table: pl.DataFrame, colour: str) -> None:
    steps, aei, raised = (table[name].to_numpy() for name in ("step", "aei", "negative_interference"))
    axis.plot(steps, aei, color=INTERFERENCE, linewidth=1.4, label="AEI, mean over all updates")
    raising: Any = {"color": INTERFERENCE, "alpha": 0.25, "linewidth": 0, "label": "over those that raise the error"}
    axis.fill_between(steps, 0.0, raised, **raising)
    _readable_scale(axis, aei, raised)
    axis.axhline(0.0, color=INTERFERENCE, linewidth=0.6)
    style_step_axis(axis)
    axis.tick_params(axis="y", labelcolor=INTERFERENCE)
    other = axis.twinx()
    # Periods in which no episode ended are passed over, and a point that stands alone is seen.
    ended = table.filter(pl.col("return").is_not_nan())
    marker = "." if ended.height < FEW_POINTS else ""
    other.plot(ended["step"], ended["return"], color=colour, linewidth=1.4, marker=marker)
    other.set_ylabel("return", color=colour)
    other.tick_params(axis="y", labelcolor=colour)
    other.spines[["top", "left"]].set_visible(False)


def _readable_scale(axis: Axes, *curves: np.ndarray) -> None:
    """Logarithmic on both sides of zero where a linear axis would show the largest values and nothing else."""
    sizes = np.abs(np.concatenate(curves))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if sizes.size and sizes.max() > 100 * np.median(sizes):
        # Linear up to a power of ten near the median, so that the sign of small values, which flickers, takes no room.
        threshold = 10.0 ** np.round(np.log10(np.median(sizes)))
        axis.set_yscale("symlog", linthresh=threshold)
        # Ticks at the ends and at 0: those at the threshold would stand on top of each other.
        end = 10.0 ** np.floor(np.log10(sizes.max()))
        axis.yaxis.set_major_locator(FixedLocator([-end, 0.0, end]))
        axis.yaxis.set_minor_locator(NullLocator())


def plot_negative_interference(runs: Sequence[MeasuredRun], path: str | Path) -> Path:
    """The AEI of the updates that interfere: a line for each run's mean over seeds, a band from lowest to highest.

    One panel per task and buffer size.
    """
    if not runs:
        raise BadInput("there are no runs to draw.")
    for _, metrics in runs:
        _refuse_unmeasured(metrics, "negative_interference")
    places = unique((run.task, run.buffer_size) for run, _ in runs)
    at = lambda place: [(run, metrics) for run, metrics in runs if (run.task, run.buffer_size) == place]
    labels = {place: plot_labels([run for run, _ in at(place)]) for place in places}
    # A method has the same colour in every panel.
    named = [(label, run.method) for place in places for label, (run, _) in zip(labels[place], at(place), strict=True)]
    alone = len({label for label, _ in named}) == len({method for _, method in named})
    numbers = shared_colours([unique(method if alone else label for label, method in named)])
    colour_of = {label: COLOURS[numbers[method if alone else label]] for label, method in named}
    with drawing(path, 6.0 * len(places), 4.0) as figure:
        for axis, place in zip(figure.subplots(1, len(places), squeeze=False)[0], places, strict=True):
            for (_, metrics), label in zip(at(place), labels[place], strict=True):
                _draw_run(axis, metrics, label, colour_of[label])
            axis.set_yscale("log")
            axis.set_title(panel_title([run for run, _ in at(place)]))
            axis.set_ylabel(f"negative interference, {squared_unit([run for run, _ in at(place)])}")
            style_step_axis(axis)
            axis.legend(frameon=False, title="line: mean; band: all seeds", alignment="left")
    return Path(path)


def _draw_run(axis: Axes, metrics: pl.DataFrame, label: str, colour: str) -> None:
    steps, values = steps_and_values(metrics, "negative_interference")
    # There is no place for 0 on a logarithmic axis, nor before learning starts anything to show.
    values = np.where(values > 0, values, np.nan)
    positive = np.isfinite(values).any(axis=0)
    steps, values = steps[positive], values[:, positive]
    axis.fill_between(
        steps, np.nanmin(values, axis=0), np.nanmax(values, axis=0), color=colour, alpha=0.18, linewidth=0
    )
    axis.plot(steps, mean_curve(values), color=colour, linewidth=2.0, label=label)


def _refuse_unmeasured(metrics: pl.DataFrame, *columns: str) -> None:
    missing = [name for name in columns if name not in metrics.columns]
    if missing:
        raise BadInput(f"the run did not measure interference: its metrics have no {', '.join(missing)}.")


def figure_names(paths: Sequence[Path]) -> list[str]:
    """A name for the figures of each run: its directory's, with the one above it where that is not enough."""
    paths = [path.resolve() for path in paths]
    names = [path.name for path in paths]
    return [
        name if names.count(name) == 1 else "-".join(path.parts[-2:]) for name, path in zip(names, paths, strict=True)
    ]


def plot_measured_runs(runs: Sequence[MeasuredRun], names: Sequence[str], folder: Path) -> list[Path]:
    """AEI and return of each run over the same steps; negative interference of several in one figure."""
    paths = [
        plot_interference(run, metrics, folder / f"{name}-interference.png")
        for (run, metrics), name in zip(runs, names, strict=True)
    ]
    if len(runs) > 1:
        paths.append(plot_negative_interference(runs, folder / "negative-interference.png"))
    return paths


# Among contexts


def plot_context_matrix(matrix: ContextMatrix, run: Run, path: str | Path) -> Path:
    """Mean over seeds of the change of each context's loss, and the range over seeds below it.

    Red is a loss that grew: interference. Blue is one that shrank.
    """
    mean, contexts = matrix.mean_change, matrix.counts.shape[1]
    with drawing(path, 2.8 + 1.35 * contexts, 2.3 + 1.0 * contexts) as figure:
        axis = figure.subplots()
        axis.set_facecolor("#dddddd")
        limit = colour_limit(mean)
        shown = axis.imshow(mean, cmap="RdBu_r", vmin=-limit, vmax=limit)
        for i, j in np.ndindex(mean.shape):
            _write(axis, matrix.change[:, i, j], mean[i, j], (j, i), limit)
        names = [f"context {c}" for c in range(contexts)]
        shares = [
            f"{name}\n{share:.0%} of states" for name, share in zip(names, matrix.shares.mean(axis=0), strict=True)
        ]
        axis.set_xticks(range(contexts), shares, fontsize=9)
        axis.set_yticks(range(contexts), names, fontsize=9)
        axis.set_xlabel("change of the loss on")
        axis.set_ylabel("trained on")
        axis.set_title(_title(matrix, run), fontsize=10)
        axis.spines[:].set_visible(False)
        figure.colorbar(shown, ax=axis, format="{x:+.0%}", extend="both", shrink=0.85)
    return Path(path)


def _write(axis: Axes, changes: np.ndarray, mean: float, place: tuple[int, int], limit: float) -> None:
    """The numbers of a cell, in white on dark colours."""
    if np.isnan(mean):
        axis.text(*place, "too few", ha="center", va="center", fontsize=9, color="#555555")
        return
    colour = "white" if abs(mean) > 0.6 * limit else "black"
    write = partial(axis.annotate, xy=place, textcoords="offset points", ha="center", color=colour)
    write(percent(mean), xytext=(0, 3))
    finite = changes[np.isfinite(changes)]
    if finite.size > 1:
        write(f"{percent(finite.min())} … {percent(finite.max())}", xytext=(0, -11), fontsize=7.5)


def _title(matrix: ContextMatrix, run: Run) -> str:
    seeds, left_out = len(matrix.counts), len(matrix.left_out)
    of = "the agent's own contexts" if matrix.own else "clusters of its states"
    lines = [in_words(run), f"{of}, {seeds} seed{'s' if seeds > 1 else ''}"]
    if left_out:
        lines.append(f"{left_out} of {matrix.counts.size} contexts have too few transitions and are left out")
    return "\n".join(lines)
