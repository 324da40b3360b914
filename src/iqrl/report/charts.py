"""The charts of a study, as data: which runs, under which names, and of which quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.report.arrangement import Place, Placed, arranged, size_name, unique
from iqrl.report.cells import printed_of
from iqrl.report.comparisons import Comparison
from iqrl.statistics.profiles import Profile
from iqrl.studies.results import StudyResults

NAMES = {
    "return": "return of training episodes",
    "max_q": "max-Q on the batches",
    "held_out_max_q": "max-Q on held-out states",
    "held_out_max_q_heads": "max-Q of each head on held-out states",
    "aei": "AEI",
    "seconds_per_million_steps": "seconds per million steps",
    "profile": "share of runs that score more than τ",
}


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
"""lines in a chart from which on variants are no longer drawn over each other, unless asked for"""


def metric_name(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_", " "))


def charts_of(study: StudyResults) -> list[Chart]:
    """Curves of every metric of the study, then what analyses of its runs have found."""
    placed = arranged(study)
    curves = [chart for metric in study.charts for chart in _curve_charts(study.curves, placed, metric)]
    return [*curves, *_cost_charts(placed), *_matrix_charts(placed)]


def profile_charts(comparisons: Sequence[Comparison]) -> list[ProfileChart]:
    """One over all cells, and one per buffer size where there are several."""
    standings = [(comparison.variant, one) for comparison in comparisons for one in comparison.standings]
    charts, sizes = [], unique(one.buffer_size for _, one in standings)
    for size in sizes:
        here = [(variant, one) for variant, one in standings if one.buffer_size == size]
        lines = [ProfileLine(one.method, variant, one.profile) for variant, one in here]
        title = "all tasks" + (f", {size_name(size)}" if size is not None else " and sizes" * (len(sizes) > 1))
        charts.append(ProfileChart("profile", Place("all tasks", size), title, lines))
    return charts


def is_crowded(charts: Sequence[Chart]) -> bool:
    return any(len(chart.lines) > CROWDED for chart in charts if isinstance(chart, CurveChart | ProfileChart))


def ordered_variants(study: StudyResults) -> list[str]:
    """The runs without a variant first."""
    return sorted(unique(run.variant for run in study.runs), key=bool)


def _curve_charts(curves: pl.DataFrame, placed: list[Placed], metric: str) -> list[CurveChart]:
    if metric not in curves.columns:
        return []
    if curves.schema[metric].is_nested():
        return _head_charts(curves, placed, metric)
    measured = set(curves.filter(pl.col(metric).is_not_null())["run"].unique())
    charts = []
    for place in unique(one.place for one in placed):
        here = [one for one in placed if one.place == place and one.run.id in measured]
        lines = [Line(one.run.id, one.label, one.variant, None, _printed(one, metric)) for one in here]
        charts += [CurveChart(metric, place, place.title, lines)] if lines else []
    return charts


def _printed(one: Placed, metric: str) -> float | None:
    return printed_of(one.run) if metric == "return" else None


def _head_charts(curves: pl.DataFrame, placed: list[Placed], metric: str) -> list[CurveChart]:
    """A chart per run that has several heads, a line per head."""
    charts = []
    for one in placed:
        heads = _heads(curves.filter(pl.col("run") == one.run.id)[metric])
        lines = [Line(one.run.id, f"head {head}", "", head) for head in range(heads)]
        charts += [CurveChart(metric, one.place, _title(one), lines)] if heads > 1 else []
    return charts


def _heads(values: pl.Series) -> int:
    """How many values a list of numbers has; 0 for lists of lists, which are no lines."""
    first = next((value for value in values.to_list() if value is not None), [])
    return len(first) if np.ndim(first) == 1 else 0


def _cost_charts(placed: list[Placed]) -> list[BarChart]:
    costs = {one.run.id: _quantities(one.run.analyses.get("cost") or {}) for one in placed}
    charts = []
    for quantity in unique(name for cost in costs.values() for name in cost):
        for place in unique(one.place for one in placed):
            here = [one for one in placed if one.place == place and quantity in costs[one.run.id]]
            bars = [Bar(one.run.id, one.label, one.variant, costs[one.run.id][quantity]) for one in here]
            charts += [BarChart(quantity, place, place.title, bars)] if bars else []
    return charts


def _quantities(cost: dict[str, Any]) -> dict[str, float]:
    """The numbers of an analysis of cost, by name."""
    flops = cost.get("flops") or {}
    flops = flops if isinstance(flops, dict) else {"": flops}
    named = {f"floating-point operations, {name}".removesuffix(", "): value for name, value in flops.items()}
    named |= {"seconds_per_million_steps": cost.get("seconds_per_million_steps")}
    is_number = lambda value: isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return {name: float(value) for name, value in named.items() if is_number(value)}


def _matrix_charts(placed: list[Placed]) -> list[MatrixChart]:
    found = [(one, (one.run.analyses.get("context_matrix") or {}).get("matrix")) for one in placed]
    return [
        MatrixChart("context_matrix", one.place, _title(one), one.run.id, matrix) for one, matrix in found if matrix
    ]


def _title(one: Placed) -> str:
    return f"{one.label}{f' ({one.variant})' if one.variant else ''} on {one.place.title}"
