"""The page, put together: one file with its style, its scripts and its data inside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from iqrl.report.charts import charts_of, profile_charts
from iqrl.report.colours import COLOURS, DARK_COLOURS
from iqrl.report.comparisons import Comparison, compare
from iqrl.report.gather import gathered
from iqrl.report.grid import Found, placed_cells, unfinished_text
from iqrl.report.page.comparisons import answer_line, comparison_part
from iqrl.report.page.data import as_json, page_data
from iqrl.report.page.head import contents, facts
from iqrl.report.page.parts import chart_groups, controls, settings_part, tables
from iqrl.report.verdicts import legend
from iqrl.studies.results import StudyResults

SCRIPTS = ("numbers", "svg", "curves", "bars", "readout", "controls", "downloads", "main")
"""in the order in which they need each other"""
TITLE = "IQRL report"


def render_page(
    studies: Sequence[StudyResults], title: str = TITLE, comparisons: Sequence[Sequence[Comparison]] | None = None
) -> str:
    """The whole page; it asks for nothing from anywhere. `comparisons`: of each study, where they are known already."""
    studies = gathered(studies)
    compared = [compare(study) for study in studies] if comparisons is None else comparisons
    found = [placed_cells(study) for study in studies]
    curves, profiles = [charts_of(study) for study in studies], [profile_charts(one) for one in compared]
    charts = [[*own, *more] for own, more in zip(curves, profiles, strict=True)]
    data = page_data(list(zip(studies, charts, strict=True)))
    sections, first = [], 0
    for i, study in enumerate(studies):
        drawn = controls(study, charts[i], data) + chart_groups(curves[i], first)
        differences = comparison_part(compared[i], profiles[i], i, first + len(curves[i]))
        sections.append(_section(i, study, found[i], answer_line(compared[i], i), drawn + differences))
        first += len(charts[i])
    return Template(_file("template.html")).substitute(
        title=escape(title),
        style=_palette() + _file("style.css"),
        facts=facts(studies),
        contents=contents(list(zip(studies, found, strict=True))),
        legend=escape(legend()),
        sections="".join(sections),
        data=as_json(data),
        script="".join(_file(f"{name}.js") for name in SCRIPTS),
    )


def _section(number: int, study: StudyResults, found: Found, answer: str, charts: str) -> str:
    missing = f'<p class="missing">{unfinished_text(study)}</p>' if study.unfinished else ""
    returns = tables(study, found) if found and "return" in study.charts else ""
    return (
        f'<section id="study-{number}"><h2>{escape(study.title)}</h2><p class="about">{escape(study.about)}</p>'
        f"{missing}{answer}{returns}{charts}{settings_part(study) if study.runs else ''}</section>"
    )


def _palette() -> str:
    pairs = zip(COLOURS, DARK_COLOURS, strict=True)
    return ":root{" + "".join(f"--c{i}:light-dark({light},{dark});" for i, (light, dark) in enumerate(pairs)) + "}\n"


def _file(name: str) -> str:
    return (resources.files("iqrl.report.page") / name).read_text(encoding="utf-8")
