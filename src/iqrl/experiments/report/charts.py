"""The charts of a study, as data: which runs, under which names, of which quantity, in which colours.

The page and the figures for print are drawn from this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.diagnostics.metrics import label_of
from iqrl.experiments.report.arrangement import Place, PlacedRun, arrange, size_name, unique
from iqrl.experiments.report.cells import printed_return
from iqrl.experiments.report.comparisons import Comparison
from iqrl.experiments.study.results import StudyResults
from iqrl.statistics.intervals import Profile

NAMES = {
    "seconds_per_million_steps": "seconds per million steps",
    "profile": "share of runs that score more than τ",
}
"""of what is drawn and is no metric of a run"""


class Line(NamedTuple):
    run: str
    name: str
    variant: str
    head: int | None = None
    """which of the values, where a metric has several"""
    printed: float | None = None


class CurveChart(NamedTuple):
    metric: str
    place: Place
    title: str
    lines: list[Line]


class Bar(NamedTuple):
    run: str
    name: str
    variant: str
    value: float


class BarChart(NamedTuple):
    metric: str
    place: Place
    title: str
    bars: list[Bar]


class MatrixChart(NamedTuple):
    metric: str
    place: Place
    title: str
    run: str
    matrix: list[list[float | None]]
    """row: the context trained on; column: the one whose loss changed"""


class ProfileLine(NamedTuple):
    name: str
    variant: str
    profile: Profile


class ProfileChart(NamedTuple):
    """Not over steps but over τ, a normalised score."""

    metric: str
    place: Place
    title: str
    lines: list[ProfileLine]


Chart = CurveChart | BarChart | MatrixChart | ProfileChart
CROWDED = 10
"""most lines in a chart that shows all variants; with more, variants are drawn apart, or switched on one by one"""


def metric_name(metric: str) -> str:
    return NAMES.get(metric) or label_of(metric)


def charts_of(study: StudyResults) -> list[Chart]:
    """Curves of every metric of the study, then the results of analyses of its runs."""
    placed = arrange(study)
    curves = [chart for metric in study.charts for chart in _curve_charts(study.curves, placed, metric)]
    return [*curves, *_cost_charts(placed), *_matrix_charts(placed)]


def profile_charts(comparisons: Sequence[Comparison]) -> list[ProfileChart]:
    """One over all cells, and one per buffer size where there are several."""
    standings = [(comparison.variant, one) for comparison in comparisons for one in comparison.standings]
    charts, sizes = [], unique(one.buffer_size for _, one in standings)
    for size in sizes:
        here = [(variant, one) for variant, one in standings if one.buffer_size == size]
        lines = [ProfileLine(name=one.method, variant=variant, profile=one.profile) for variant, one in here]
        title = "all tasks" + (f", {size_name(size)}" if size is not None else " and sizes" * (len(sizes) > 1))
        place = Place(task="all tasks", buffer_size=size)
        charts.append(ProfileChart(metric="profile", place=place, title=title, lines=lines))
    return charts


def is_crowded(charts: Sequence[Chart]) -> bool:
    return any(len(chart.lines) > CROWDED for chart in charts if isinstance(chart, CurveChart | ProfileChart))


def ordered_variants(study: StudyResults) -> list[str]:
    """The runs without a variant first."""
    return sorted(unique(run.variant for run in study.runs), key=bool)


def line_names(charts: Sequence[Chart]) -> list[str]:
    """The names of the lines and bars, each once."""
    parts = [part for chart in charts for part in _named_parts(chart)]
    return unique(part.name for part in parts)


def _named_parts(chart: Chart) -> Sequence[Line | ProfileLine | Bar]:
    if isinstance(chart, CurveChart | ProfileChart):
        return chart.lines
    return chart.bars if isinstance(chart, BarChart) else ()


def _curve_charts(curves: pl.DataFrame, placed: list[PlacedRun], metric: str) -> list[CurveChart]:
    if metric not in curves.columns:
        return []
    if curves.schema[metric].is_nested():
        return _head_charts(curves, placed, metric)
    measured = set(curves.filter(pl.col(metric).is_not_null())["run"].unique())
    charts = []
    for place in unique(one.place for one in placed):
        here = [one for one in placed if one.place == place and one.run.id in measured]
        lines = [_run_line(one, metric) for one in here]
        charts += [CurveChart(metric=metric, place=place, title=place.title, lines=lines)] if lines else []
    return charts


def _run_line(one: PlacedRun, metric: str) -> Line:
    printed = printed_return(one.run) if metric == "return" else None
    return Line(run=one.run.id, name=one.label, variant=one.variant, printed=printed)


def _head_charts(curves: pl.DataFrame, placed: list[PlacedRun], metric: str) -> list[CurveChart]:
    """A chart per run that has several heads, a line per head."""
    charts = []
    for one in placed:
        heads = _heads(curves.filter(pl.col("run") == one.run.id)[metric])
        lines = [Line(run=one.run.id, name=f"head {head}", variant="", head=head) for head in range(heads)]
        charts += [CurveChart(metric=metric, place=one.place, title=_title(one), lines=lines)] if heads > 1 else []
    return charts


def _heads(values: pl.Series) -> int:
    """How many values a list of numbers has; 0 for lists of lists, which are no lines."""
    first = next((value for value in values.to_list() if value is not None), [])
    return len(first) if np.ndim(first) == 1 else 0


def _cost_charts(placed: list[PlacedRun]) -> list[BarChart]:
    costs = {one.run.id: _quantities(one.run.analyses.get("cost") or {}) for one in placed}
    charts = []
    for quantity in unique(name for cost in costs.values() for name in cost):
        for place in unique(one.place for one in placed):
            here = [one for one in placed if one.place == place and quantity in costs[one.run.id]]
            bars = [_bar(one, costs[one.run.id][quantity]) for one in here]
            charts += [BarChart(metric=quantity, place=place, title=place.title, bars=bars)] if bars else []
    return charts


def _bar(one: PlacedRun, value: float) -> Bar:
    return Bar(run=one.run.id, name=one.label, variant=one.variant, value=value)


def _quantities(cost: dict[str, Any]) -> dict[str, float]:
    """The numbers of an analysis of cost, by name."""
    flops = cost.get("flops") or {}
    flops = flops if isinstance(flops, dict) else {"": flops}
    named = {f"floating-point operations, {name}".removesuffix(", "): value for name, value in flops.items()}
    named |= {"seconds_per_million_steps": cost.get("seconds_per_million_steps")}
    is_number = lambda value: isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return {name: float(value) for name, value in named.items() if is_number(value)}


def _matrix_charts(placed: list[PlacedRun]) -> list[MatrixChart]:
    found = [(one, (one.run.analyses.get("context_matrix") or {}).get("matrix")) for one in placed]
    return [
        MatrixChart(metric="context_matrix", place=one.place, title=_title(one), run=one.run.id, matrix=matrix)
        for one, matrix in found
        if matrix
    ]


def _title(one: PlacedRun) -> str:
    return f"{one.label}{f' ({one.variant})' if one.variant else ''} on {one.place.title}"


# Axes

LINEAR, LOG, SIGNED_LOG = "linear", "log", "signed log"
MANY_SIZES = 50
"""how many times the median the largest value is, where a linear axis would show it and nothing else"""


def axis_kind(metric: str, values: pl.Series) -> str:
    """The same for all charts of a metric in a study, so that they can be compared."""
    while values.dtype.is_nested():
        values = values.explode()
    finite = values.cast(pl.Float64).to_numpy()
    finite = finite[np.isfinite(finite)]
    sizes = np.abs(finite[finite != 0])
    if metric == "return" or not sizes.size or sizes.max() <= MANY_SIZES * np.median(sizes):
        return LINEAR
    return LOG if finite.min() >= 0 else SIGNED_LOG
