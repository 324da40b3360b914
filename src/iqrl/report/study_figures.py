"""The charts of a study as figures for print: small multiples, mean and standard deviation as in the paper."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iqrl.report.arrangement import unique
from iqrl.report.axes import LOG, axis_kind
from iqrl.report.charts import (
    BarChart,
    Chart,
    CurveChart,
    Line,
    MatrixChart,
    ProfileChart,
    ProfileLine,
    charts_of,
    is_crowded,
    metric_name,
    ordered_variants,
    profile_charts,
)
from iqrl.report.colours import COLOURS, shared_colours
from iqrl.report.comparisons import Comparison
from iqrl.report.figures import draw_curve, drawing, over_steps
from iqrl.report.matrices import colour_limit, percent
from iqrl.report.page.data import names_of
from iqrl.report.values import values_of
from iqrl.studies.results import StudyResults

FORMATS = (".pdf", ".svg")
DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (6, 2, 1, 2)))
"""one per variant"""


def draw_study(study: StudyResults, directory: str | Path, comparisons: Sequence[Comparison] = ()) -> list[Path]:
    """A figure per metric of the study, each as PDF and as SVG; their paths. `comparisons` have profiles to draw."""
    charts = [*charts_of(study), *profile_charts(comparisons)]
    colours = {name: COLOURS[number] for name, number in shared_colours([names_of(charts)]).items()}
    paths = []
    for metric, members in itertools.groupby(charts, key=lambda chart: chart.metric):
        for variant, drawn in _uncrowded(study, list(members)):
            name = file_name("-".join(filter(None, [study.name, metric, variant])))
            files = [Path(directory) / f"{name}{ending}" for ending in FORMATS]
            _draw_charts(study, drawn, colours, files)
            paths += files
    return paths


def _uncrowded(study: StudyResults, charts: Sequence[Chart]) -> list[tuple[str, Sequence[Chart]]]:
    """All in one figure, or a figure per variant where one would have too many lines, with the name of the variant."""
    if not is_crowded(charts):
        return [("", charts)]
    split = [(variant, _only(charts, variant)) for variant in ordered_variants(study)]
    return [(variant, some) for variant, some in split if some]


def _only(charts: Sequence[Chart], variant: str) -> list[Chart]:
    """The lines of one variant."""
    of_lines = [chart for chart in charts if isinstance(chart, CurveChart | ProfileChart)]
    kept: list[Any] = [[line for line in chart.lines if line.variant == variant] for chart in of_lines]
    return [chart._replace(lines=lines) for chart, lines in zip(of_lines, kept, strict=True) if lines]


def file_name(name: str) -> str:
    """A name that is safe as that of a file.

    >>> file_name("my_module:x<y>")
    'my_module-x-y-'
    """
    return re.sub(r"[^\w.=-]+", "-", name)


def _draw_charts(study: StudyResults, charts: Sequence[Chart], colours: dict[str, str], files: list[Path]) -> None:
    columns = _columns(charts)
    rows = math.ceil(len(charts) / columns)
    # Names of methods and settings are text: a dollar sign in one does not begin a formula.
    size = (4.0 * columns, 2.7 * rows + 0.7)
    with matplotlib.rc_context({"text.parse_math": False}), drawing(files[0], *size, also=files[1:]) as figure:
        axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
        for axis, chart in zip(axes, charts, strict=False):
            _draw_chart(axis, study, chart, colours)
            axis.set_title(chart.title, fontsize=10)
        for axis in axes[len(charts) :]:
            axis.set_visible(False)
        figure.supylabel("" if isinstance(charts[0], MatrixChart) else metric_name(charts[0].metric), fontsize=10)
        _legend(figure, axes)


def _columns(charts: Sequence[Chart]) -> int:
    """A column per buffer size where there are several, so that a row is a task."""
    sizes = len(unique(chart.place.buffer_size for chart in charts))
    return sizes if 2 <= sizes <= 4 else min(len(charts), 2)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Each line once, below all panels."""
    named = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if named:
        place = {"loc": "outside lower center", "ncols": min(len(named), 5), "frameon": False}
        figure.legend(list(named.values()), list(named), **place)


def _draw_chart(axis: Axes, study: StudyResults, chart: Chart, colours: dict[str, str]) -> None:
    if isinstance(chart, CurveChart):
        _draw_curves(axis, study, chart, colours)
    elif isinstance(chart, BarChart):
        _draw_bars(axis, chart, colours)
    elif isinstance(chart, ProfileChart):
        _draw_profiles(axis, study, chart, colours)
    else:
        _draw_matrix(axis, chart)


def _draw_curves(axis: Axes, study: StudyResults, chart: CurveChart, colours: dict[str, str]) -> None:
    for line in chart.lines:
        steps, values = values_of(study.curves.filter(pl.col("run") == line.run), chart.metric, line.head)
        if np.isfinite(values).any():
            draw_curve(axis, steps, values, _name(line), colours[line.name], seeds=False, linestyle=_dash(study, line))
    over_steps(axis)
    if axis_kind(chart.metric, study.curves[chart.metric]) == LOG:
        axis.set_yscale("log")
    axis.set_xlabel("environment steps", fontsize=9)


def _draw_profiles(axis: Axes, study: StudyResults, chart: ProfileChart, colours: dict[str, str]) -> None:
    for line in chart.lines:
        thresholds, share, low, high = line.profile
        colour = colours[line.name]
        axis.plot(thresholds, share, label=_name(line), color=colour, linestyle=_dash(study, line), linewidth=1.6)
        axis.fill_between(thresholds, low, high, color=colour, alpha=0.15, linewidth=0)
    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("normalised final τ", fontsize=9)


def _name(line: Line | ProfileLine) -> str:
    return f"{line.name} ({line.variant})" if line.variant else line.name


def _dash(study: StudyResults, line: Line | ProfileLine) -> Any:
    variants = unique(["", *[run.variant for run in study.runs]])
    return DASHES[variants.index(line.variant) % len(DASHES)]


def _draw_bars(axis: Axes, chart: BarChart, colours: dict[str, str]) -> None:
    names = [f"{bar.name} ({bar.variant})" if bar.variant else bar.name for bar in chart.bars]
    values = [bar.value for bar in chart.bars]
    drawn = axis.barh(names, values, color=[colours[bar.name] for bar in chart.bars])
    axis.bar_label(drawn, [f"{value:.3g}" for value in values], padding=3, fontsize=9)
    axis.margins(x=0.18)
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)


def _draw_matrix(axis: Axes, chart: MatrixChart) -> None:
    """Red is a loss that grew, blue one that shrank."""
    matrix = np.array([[np.nan if change is None else change for change in row] for row in chart.matrix], float)
    limit = colour_limit(matrix)
    axis.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    for i, j in np.ndindex(matrix.shape):
        text = percent(matrix[i, j]) if np.isfinite(matrix[i, j]) else "too few"
        colour = "white" if abs(matrix[i, j]) > 0.6 * limit else "black"
        axis.text(j, i, text, ha="center", va="center", fontsize=9, color=colour)
    numbers = range(len(matrix))
    axis.set_xticks(numbers)
    axis.set_yticks(numbers)
    axis.set_xlabel("change of the loss on context", fontsize=9)
    axis.set_ylabel("trained on context", fontsize=9)
    axis.spines[:].set_visible(False)
