"""The page, one file with its style, its scripts and its data inside, and the data its charts are drawn from."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

import polars as pl

from iqrl.colours import COLOURS, DARK_COLOURS, shared_colours
from iqrl.experiments.report.arrangement import gather_studies, unique
from iqrl.experiments.report.cells import RunSummary, summarise_runs, unfinished_text, verdict_legend
from iqrl.experiments.report.charts import (
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
from iqrl.experiments.report.comparisons import Comparison, compare_page
from iqrl.experiments.report.margins import study_margins
from iqrl.experiments.report.page.parts import (
    chart_groups,
    comparison_part,
    contents_list,
    controls_part,
    facts_list,
    headline_part,
    interference_part,
    margin_part,
    returns_part,
    settings_part,
)
from iqrl.experiments.study.results import StudyResults
from iqrl.statistics.curves import steps_and_values

SCRIPTS = ("numbers", "svg", "curves", "bars", "readout", "controls", "downloads", "main")
"""in the order in which they need each other"""
TITLE = "IQRL report"


def render_page(
    studies: Sequence[StudyResults], title: str = TITLE, comparisons: Sequence[Sequence[Comparison]] | None = None
) -> str:
    """The whole page; it loads nothing from anywhere. `comparisons`: of each study, where they have been made."""
    studies = gather_studies(studies)
    compared = compare_page(studies) if comparisons is None else comparisons
    summaries = [summarise_runs(study) for study in studies]
    curves, profiles = [charts_of(study) for study in studies], [profile_charts(one) for one in compared]
    charts = [[*own, *more] for own, more in zip(curves, profiles, strict=True)]
    data = page_data(list(zip(studies, charts, strict=True)))
    sections, first = [], 0
    for i, study in enumerate(studies):
        drawn = controls_part(study, charts[i], data) + chart_groups(curves[i], first)
        margins = study_margins(study, summaries[i])
        differences = margin_part(margins, i) + comparison_part(compared[i], profiles[i], i, first + len(curves[i]))
        differences += interference_part(study, summaries[i])
        findings = headline_part(compared[i], margins, i)
        sections.append(_section(i, study, summaries[i], findings, drawn, differences))
        first += len(charts[i])
    return Template(_file("template.html")).substitute(
        title=escape(title),
        style=_palette() + _file("style.css"),
        facts=facts_list(studies),
        contents=contents_list(list(zip(studies, summaries, strict=True))),
        legend=escape(verdict_legend()),
        sections="".join(sections),
        data=to_json(data),
        script="".join(_file(f"{name}.js") for name in SCRIPTS),
    )


def _section(
    number: int, study: StudyResults, summaries: Sequence[RunSummary], headline: str, charts: str, differences: str
) -> str:
    """What was found, then the curves, then the tables; what was run comes last."""
    missing = f'<p class="missing">{unfinished_text(study)}</p>' if study.unfinished else ""
    returns = returns_part(study, summaries) if summaries and "return" in study.charts else ""
    return (
        f'<section id="study-{number}"><h2>{escape(study.title)}</h2>{headline}'
        f'<p class="about">{escape(study.about)}</p>{missing}{charts}{returns}{differences}'
        f"{settings_part(study) if study.runs else ''}</section>"
    )


def _palette() -> str:
    pairs = zip(COLOURS, DARK_COLOURS, strict=True)
    return ":root{" + "".join(f"--c{i}:light-dark({light},{dark});" for i, (light, dark) in enumerate(pairs)) + "}\n"


def _file(name: str) -> str:
    return (resources.files("iqrl.experiments.report.page") / name).read_text(encoding="utf-8")


# The data of the charts, as small as it can be written

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
        "colours": shared_colours([line_names(charts) for _, charts in studies]),
        "variants": unique(["", *[run.variant for study, _ in studies for run in study.runs]]),
        "hiddenVariants": hidden_variants(studies),
        "charts": [_chart(study, chart, steps) for study, charts in studies for chart in charts],
        "steps": steps,
        "runs": runs,
    }


def hidden_variants(studies: Sequence[StudyCharts]) -> list[str]:
    """Variants that are drawn when the reader switches them on: those that would crowd the charts of their study.

    The first variant of a study is never among them: it may be all that is drawn there.
    """
    firsts = {variant for study, _ in studies for variant in ordered_variants(study)[:1]}
    crowding = [ordered_variants(study)[1:] for study, charts in studies if is_crowded(charts)]
    return [variant for variant in unique(name for names in crowding for name in names) if variant not in firsts]


def to_json(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element: nothing in it can end the element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def compact(value: float | None) -> float | int | None:
    """Five digits, without a needless ".0"; None if not finite.

    >>> compact(1 / 3), compact(200.0), compact(float("nan"))
    (0.33333, 200, None)
    """
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e9 else short


def column_name(metric: str, line: Line) -> str:
    return metric if line.head is None else f"{metric}[{line.head}]"


def _profile_line(line: ProfileLine, steps: list[list[Any]]) -> dict[str, Any]:
    """Its values are its own: no run has them."""
    thresholds, *values = ([compact(value) for value in part.tolist()] for part in line.profile)
    named = {"name": line.name, "variant": line.variant, "steps": _step_number(thresholds, steps)}
    return named | dict(zip(("share", "low", "high"), values, strict=True))


def _step_number(own: list[Any], steps: list[list[Any]]) -> int:
    """Most runs have the same steps, which are stored once."""
    if own not in steps:
        steps.append(own)
    return steps.index(own)


def _empty_run(curves: pl.DataFrame, steps: list[list[Any]]) -> dict[str, Any]:
    own = _step_number(curves["step"].unique().sort().to_list(), steps)
    return {"steps": own, "seeds": curves["seed"].unique().sort().to_list(), "values": {}}


def _values(curves: pl.DataFrame, metric: str, line: Line) -> list[list[float | int | None]]:
    """[seeds][steps]; None where a seed has no value at a step."""
    _, values = steps_and_values(curves, metric, line.head)
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
