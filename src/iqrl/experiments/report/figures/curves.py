"""Figures for print: the curves of runs, and the charts of a study as small multiples.

Lines are means over seeds. Bands are one standard deviation as in the paper, or the 95% interval of the mean.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import textwrap
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import EngFormatter
from scipy.stats import t as student_t

from iqrl.colours import COLOURS, METHODS, cycle_colours, shared_colours
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import panel_title, plot_labels, unique
from iqrl.experiments.report.charts import (
    LOG,
    BarChart,
    Chart,
    CurveChart,
    Line,
    MatrixChart,
    ProfileChart,
    ProfileLine,
    axis_kind,
    charts_of,
    is_crowded,
    line_names,
    metric_name,
    ordered_variants,
    profile_charts,
)
from iqrl.experiments.report.comparisons import Comparison
from iqrl.experiments.study.results import StudyResults
from iqrl.files import write_whole, writing
from iqrl.settings import Run
from iqrl.statistics.curves import mean_curve, steps_and_values

# What every figure is drawn with

FORMATS = (".png", ".svg", ".pdf")
DATE_OF = {"svg": "Date", "pdf": "CreationDate"}
"""what a format calls the date of drawing, which would make every file another one"""


@contextmanager
def drawing(path: str | Path, width: float, height: float, also: Sequence[Path] = ()) -> Generator[Figure]:
    """An empty figure of that size in inches, to be drawn on; it is written to `path`, and `also` there, at the end."""
    paths = [Path(path), *also]
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise BadInput(f"cannot draw {path.name}; end the name in {', '.join(FORMATS)}.")
    # The salt: what is drawn twice is the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "iqrl", "font.size": 11}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for path in paths:
            _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    buffer, form = io.BytesIO(), path.suffix.lower()[1:]
    figure.savefig(buffer, format=form, dpi=150, metadata={DATE_OF[form]: None} if form in DATE_OF else None)
    with writing(path):
        write_whole(path, buffer.getvalue())


def style_step_axis(axis: Axes) -> None:
    """Style an axis whose x are environment steps."""
    axis.set_xlabel("environment steps")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)


def colour_limit(mean: np.ndarray) -> float:
    """Where colours end: a few cells may go beyond it, so that one large number does not leave the others pale."""
    finite = np.abs(mean[np.isfinite(mean)])
    return max(float(np.quantile(finite, 0.8)), 1e-3) if finite.size else 1.0


def percent(change: float) -> str:
    """With a decimal where it would be one digit, and without a sign where it would be none."""
    text = f"{change:+.1%}" if abs(change) < 0.0995 else f"{change:+.0%}"
    return "0%" if text in ("+0.0%", "-0.0%") else text.replace("-", "−")


# Curves of runs

Curve = tuple[Run, np.ndarray, np.ndarray]
"""a run, its steps [P] and its returns [S, P]"""


def plot_curves(
    curves: Sequence[Curve],
    path: str | Path,
    notes: Sequence[str] = (),
    dashed: int = 0,
    spread: str = "deviation",
) -> Path:
    """One panel per task: a thick line for the mean, a band (one of SPREADS), with deviations a thin line per seed.

    `notes`: what is added to the label of each. `dashed`: how many, the last ones, are drawn as dashed means alone.
    A method has the same colour in every panel; several runs of one method differ in their shade and their dashes.
    """
    if all(np.isnan(returns).all() for _, _, returns in curves):
        raise BadInput("no episode has ended yet in what is to be drawn, so there is no return.")
    tasks = unique(run.task for run, _, _ in curves)
    labels = plot_labels([run for run, _, _ in curves])
    labels = [", ".join(both) for both in zip(labels, notes, strict=True)] if notes else labels
    styles, solid = _line_styles([run for run, _, _ in curves], labels), len(curves) - dashed
    with drawing(path, 6.4 * len(tasks), 4.4) as figure:
        for axis, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
            for number, (run, steps, returns) in enumerate(curves):
                colour, dash = styles[number]
                line = dash if number < solid else "--"
                if run.task == task:
                    shown = {"seeds": number < solid and spread == "deviation", "spread": spread, "linestyle": line}
                    draw_curve(axis, steps, returns, labels[number], colour, **shown)
            axis.set_title(panel_title([run for run, _, _ in curves if run.task == task]), fontsize=10)
            style_step_axis(axis)
        figure.axes[0].set_ylabel(f"return of training episodes\n(band: {SPREADS[spread]})", fontsize=10)
        # Below the panels, each once: inside they would cover the curves.
        _legend(figure, figure.axes, columns=2 if notes else 4)
    return Path(path)


def _line_styles(runs: Sequence[Run], labels: Sequence[str]) -> list[tuple[str, Any]]:
    """Colour and dash of each run: the method's colour, in shades and dashes where it is drawn in several ways."""
    methods = unique(run.method for run in runs)
    if (len(methods) == 1 and methods[0] not in METHODS) or len(set(labels)) > len(DASHES) * len(methods):
        own = dict(zip(unique(labels), cycle_colours(len(set(labels))), strict=True))
        return [(own[label], "-") for label in labels]
    colours = shared_colours([methods])
    ways = {method: unique(label for run, label in zip(runs, labels, strict=True) if run.method == method)
            for method in methods}  # fmt: skip
    places = [ways[run.method].index(label) % len(DASHES) for run, label in zip(runs, labels, strict=True)]
    return [
        (shade(COLOURS[colours[run.method]], SHADES[place]), DASHES[place])
        for run, place in zip(runs, places, strict=True)
    ]


def shade(colour: str, towards_white: float) -> str:
    """A colour mixed with white; with black where the share is negative.

    >>> shade("#204060", 0.0), shade("#204060", 0.5), shade("#204060", -0.5)
    ('#204060', '#90a0b0', '#102030')
    """
    other = 255 if towards_white > 0 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + abs(towards_white) * (other - part)):02x}" for part in parts)


SPREADS = {
    "deviation": "one standard deviation",
    "interval": "95% interval of the mean, Student's t",
    "range": "lowest to highest seed",
}


def draw_curve(
    axis: Axes,
    steps: np.ndarray,
    returns: np.ndarray,
    label: str,
    colour: str,
    seeds: bool = True,
    spread: str = "deviation",
    **style: Any,
) -> None:
    """The mean over seeds, a band around it, and a thin line per seed if wanted."""
    mean = mean_curve(returns)
    low, high = _band(returns, mean, spread)
    for seed in returns if seeds else ():
        axis.plot(steps, seed, color=colour, alpha=0.25, linewidth=0.7)
    axis.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.plot(steps, mean, color=colour, linewidth=2.2 if seeds else 1.6, label=label, **style)


def _band(returns: np.ndarray, mean: np.ndarray, spread: str) -> tuple[np.ndarray, np.ndarray]:
    """Both ends [periods]. It stays within what the seeds did: beyond that are returns that no episode can have."""
    lowest = np.min(np.where(np.isnan(returns), np.inf, returns), axis=0)
    highest = np.max(np.where(np.isnan(returns), -np.inf, returns), axis=0)
    if spread == "range":
        return lowest, highest
    width = np.sqrt(mean_curve((returns - mean) ** 2))
    known = np.isfinite(returns).sum(axis=0)
    if spread == "interval":
        # The deviation of the sample, not of the seeds alone; with one seed there is no interval.
        width = np.where(known > 1, width * student_t.ppf(0.975, np.maximum(known - 1, 1)) / np.sqrt(known - 1), np.nan)
    return np.fmax(mean - width, lowest), np.fmin(mean + width, highest)


# Charts of a study

STUDY_FORMATS = (".pdf", ".svg")
LEGEND_WIDTH, LEGEND_LINE, HANDLE_WIDTH = 0.96, 0.4, 60.0
"""share of the figure's width that a legend may take, height of one line in inches, width of a handle in pixels"""
TITLE_WIDTH = 44
"""characters that fit over a panel: a longer title is broken and does not touch the next"""
DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (6, 2, 1, 2)))
"""one per variant"""
SHADES = (0.0, 0.45, -0.5, 0.25)
"""of a method's colour, for each dash"""


def draw_study(
    study: StudyResults,
    directory: str | Path,
    comparisons: Sequence[Comparison] = (),
    formats: Sequence[str] = STUDY_FORMATS,
    spread: str = "deviation",
) -> list[Path]:
    """A figure per metric of the study in each format; their paths. `comparisons` have profiles to draw.

    `spread`: what the bands of curves are, one of SPREADS.
    """
    charts = [*charts_of(study), *profile_charts(comparisons)]
    colours = {name: COLOURS[number] for name, number in shared_colours([line_names(charts)]).items()}
    paths = []
    for metric, members in itertools.groupby(charts, key=lambda chart: chart.metric):
        for variant, drawn in _split_if_crowded(study, list(members)):
            name = file_name("-".join(filter(None, [study.name, metric, variant])))
            files = [Path(directory) / f"{name}{ending}" for ending in formats]
            _draw_charts(study, drawn, colours, files, spread)
            paths += files
    return paths


def _split_if_crowded(study: StudyResults, charts: Sequence[Chart]) -> list[tuple[str, Sequence[Chart]]]:
    """All in one figure, or a figure per variant where one would have too many lines, with the name of the variant."""
    if not is_crowded(charts):
        return [("", charts)]
    split = [(variant, _keep_variant(charts, variant)) for variant in ordered_variants(study)]
    return [(variant, some) for variant, some in split if some]


def _keep_variant(charts: Sequence[Chart], variant: str) -> list[Chart]:
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


def _draw_charts(
    study: StudyResults, charts: Sequence[Chart], colours: dict[str, str], files: list[Path], spread: str
) -> None:
    columns = _columns(charts)
    rows = math.ceil(len(charts) / columns)
    # Names of methods and settings are text: a dollar sign in one does not begin a formula.
    size = (4.0 * columns, 2.7 * rows + 0.7)
    with matplotlib.rc_context({"text.parse_math": False}), drawing(files[0], *size, also=files[1:]) as figure:
        axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
        for axis, chart in zip(axes, charts, strict=False):
            _draw_chart(axis, study, chart, colours, spread)
            axis.set_title(textwrap.fill(chart.title, TITLE_WIDTH), fontsize=10)
        for axis in axes[len(charts) :]:
            axis.set_visible(False)
        figure.supylabel("" if isinstance(charts[0], MatrixChart) else metric_name(charts[0].metric), fontsize=10)
        _legend(figure, axes)


def _columns(charts: Sequence[Chart]) -> int:
    """A column per buffer size where there are several, so that a row is a task."""
    sizes = len(unique(chart.place.buffer_size for chart in charts))
    return sizes if 2 <= sizes <= 4 else min(len(charts), 2)


def _legend(figure: Figure, axes: Sequence[Axes], columns: int = 5) -> None:
    """Each line once, below all panels: in as many columns as fit, and in broken lines where one is too wide.

    The figure grows by what the legend needs beyond one line, so the panels keep their height.
    """
    named = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if not named:
        return
    renderer, room = FigureCanvasAgg(figure).get_renderer(), LEGEND_WIDTH * figure.bbox.width
    place: Any = {"loc": "outside lower center", "frameon": False, "handlelength": 3.0}

    def draw(labels: Sequence[str], columns: int) -> tuple[Legend, float]:
        legend = figure.legend(list(named.values()), labels, ncols=columns, **place)
        return legend, legend.get_window_extent(renderer).width

    labels = list(named)
    for count in range(min(len(named), columns), 0, -1):
        legend, width = draw(labels, count)
        if width <= room:
            break
        legend.remove()
    else:
        longest = max(map(len, labels))
        characters = max(int(longest * (room - HANDLE_WIDTH) / (width - HANDLE_WIDTH)), 1)
        legend, _ = draw([textwrap.fill(label, characters) for label in labels], 1)
    needed = legend.get_window_extent(renderer).height / figure.dpi
    figure.set_figheight(figure.get_figheight() + max(needed - LEGEND_LINE, 0.0))


def _draw_chart(axis: Axes, study: StudyResults, chart: Chart, colours: dict[str, str], spread: str) -> None:
    if isinstance(chart, CurveChart):
        _draw_curves(axis, study, chart, colours, spread)
    elif isinstance(chart, BarChart):
        _draw_bars(axis, chart, colours)
    elif isinstance(chart, ProfileChart):
        _draw_profiles(axis, study, chart, colours)
    else:
        _draw_matrix(axis, chart)


def _draw_curves(axis: Axes, study: StudyResults, chart: CurveChart, colours: dict[str, str], spread: str) -> None:
    for line in chart.lines:
        steps, values = steps_and_values(study.curves.filter(pl.col("run") == line.run), chart.metric, line.head)
        if np.isfinite(values).any():
            style: dict[str, Any] = {"seeds": False, "spread": spread, "linestyle": _dash(study, line)}
            draw_curve(axis, steps, values, _name(line), colours[line.name], **style)
    style_step_axis(axis)
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
