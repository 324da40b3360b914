"""What the page's charts are drawn from, as small as it can be written."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from iqrl.report.arrangement import unique
from iqrl.report.axes import axis_kind
from iqrl.report.charts import (
    BarChart,
    Chart,
    CurveChart,
    Line,
    MatrixChart,
    ProfileChart,
    ProfileLine,
    is_crowded,
    metric_name,
    ordered_variants,
)
from iqrl.report.colours import shared_colours
from iqrl.report.values import values_of
from iqrl.studies.results import StudyResults

DIGITS = 5
"""of each number: more than a chart shows, and half the size of all of them"""

StudyCharts = tuple[StudyResults, list[Chart]]


def page_data(studies: Sequence[StudyCharts]) -> dict[str, Any]:
    """Charts name runs; a run that is in several charts or studies is stored once."""
    steps: list[list[Any]] = []
    runs: dict[str, dict[str, Any]] = {}
    for study, charts in studies:
        by_run = study.curves.partition_by("run", as_dict=True)
        for chart in charts:
            for line in chart.lines if isinstance(chart, CurveChart) else ():
                run = runs.setdefault(line.run, _empty_run(by_run[(line.run,)], steps))
                if column_name(chart.metric, line) not in run["values"]:
                    run["values"][column_name(chart.metric, line)] = _values(by_run[(line.run,)], chart.metric, line)
    return {
        "colours": shared_colours([names_of(charts) for _, charts in studies]),
        "variants": unique(["", *[run.variant for study, _ in studies for run in study.runs]]),
        "hiddenVariants": hidden_variants(studies),
        "charts": [_chart(study, chart, steps) for study, charts in studies for chart in charts],
        "steps": steps,
        "runs": runs,
    }


def hidden_variants(studies: Sequence[StudyCharts]) -> list[str]:
    """Those that are drawn when they are asked for: all but the first of a study whose charts they would crowd.

    What is the first of any study is never among them: it may be all that is drawn there.
    """
    firsts = {variant for study, _ in studies for variant in ordered_variants(study)[:1]}
    crowding = [ordered_variants(study)[1:] for study, charts in studies if is_crowded(charts)]
    return [variant for variant in unique(name for names in crowding for name in names) if variant not in firsts]


def names_of(charts: Sequence[Chart]) -> list[str]:
    """The names of the lines and bars, each once."""
    parts = [part for chart in charts for part in _parts(chart)]
    return unique(part.name for part in parts)


def as_json(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element: nothing in it can end the element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def compact(value: float | None) -> float | int | None:
    """Five digits, without a needless ".0"; None if not known.

    >>> compact(1 / 3), compact(200.0), compact(float("nan"))
    (0.33333, 200, None)
    """
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e9 else short


def column_name(metric: str, line: Line) -> str:
    return metric if line.head is None else f"{metric}[{line.head}]"


def _parts(chart: Chart) -> Sequence[Any]:
    if isinstance(chart, CurveChart | ProfileChart):
        return chart.lines
    return chart.bars if isinstance(chart, BarChart) else ()


def _profile_line(line: ProfileLine, steps: list[list[Any]]) -> dict[str, Any]:
    """Its values are its own: no run has them."""
    thresholds, *values = ([compact(value) for value in part.tolist()] for part in line.profile)
    named = {"name": line.name, "variant": line.variant, "steps": _number_of(thresholds, steps)}
    return named | dict(zip(("share", "low", "high"), values, strict=True))


def _number_of(own: list[Any], steps: list[list[Any]]) -> int:
    """Most runs have the same steps, which are stored once."""
    if own not in steps:
        steps.append(own)
    return steps.index(own)


def _empty_run(curves: pl.DataFrame, steps: list[list[Any]]) -> dict[str, Any]:
    own = _number_of(curves["step"].unique().sort().to_list(), steps)
    return {"steps": own, "seeds": curves["seed"].unique().sort().to_list(), "values": {}}


def _values(curves: pl.DataFrame, metric: str, line: Line) -> list[list[float | int | None]]:
    """[seeds][steps]; None where a seed has no value at a step."""
    _, values = values_of(curves, metric, line.head)
    return [[compact(value) for value in seed] for seed in values.tolist()]


def _chart(study: StudyResults, chart: Chart, steps: list[list[Any]]) -> dict[str, Any]:
    named = {"study": study.name, "metric": chart.metric, "metricName": metric_name(chart.metric), "title": chart.title}
    if isinstance(chart, MatrixChart):
        return named | {
            "kind": "matrix",
            "run": chart.run,
            "matrix": [[compact(c) for c in row] for row in chart.matrix],
        }
    if isinstance(chart, BarChart):
        return named | {"kind": "bars", "bars": [bar._asdict() | {"value": compact(bar.value)} for bar in chart.bars]}
    if isinstance(chart, ProfileChart):
        lines = [_profile_line(line, steps) for line in chart.lines]
        return named | {"kind": "curves", "group": None, "axis": "share", "xName": "normalised final τ", "lines": lines}
    # Returns of a task are on one scale whatever the buffer; other quantities differ by orders of magnitude.
    group = f"{study.name} {chart.place.task}" if chart.metric == "return" else None
    lines = [
        {
            "run": line.run,
            "column": column_name(chart.metric, line),
            "name": line.name,
            "variant": line.variant,
            "printed": line.printed,
        }
        for line in chart.lines
    ]
    axis = axis_kind(chart.metric, study.curves[chart.metric])
    return named | {"kind": "curves", "group": group, "axis": axis, "lines": lines}
