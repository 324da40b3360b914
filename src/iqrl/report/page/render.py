"""The page, put together: one file with its style, its scripts and its data inside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from iqrl.report.charts import charts_of
from iqrl.report.colours import COLOURS, DARK_COLOURS
from iqrl.report.grid import Found, placed_cells, unfinished_text
from iqrl.report.page.data import as_json, page_data
from iqrl.report.page.head import contents, facts
from iqrl.report.page.parts import chart_groups, controls, tables
from iqrl.report.verdicts import legend
from iqrl.studies.results import StudyResults

SCRIPTS = ("numbers", "svg", "curves", "bars", "readout", "controls", "downloads", "main")
"""in the order in which they need each other"""
TITLE = "IQRL report"


def render_page(studies: Sequence[StudyResults], title: str = TITLE) -> str:
    """The whole page; it asks for nothing from anywhere."""
    with_charts = [(study, charts_of(study)) for study in studies]
    data = page_data(with_charts)
    found = [placed_cells(study) for study in studies]
    sections, first = [], 0
    for number, (study, charts) in enumerate(with_charts):
        bar = controls(study, charts, data["colours"], data["variants"])
        sections.append(_section(number, study, found[number], bar + chart_groups(charts, first)))
        first += len(charts)
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


def _section(number: int, study: StudyResults, found: Found, charts: str) -> str:
    missing = f'<p class="missing">{unfinished_text(study)}</p>' if study.unfinished else ""
    returns = tables(study, found) if found and "return" in study.charts else ""
    return (
        f'<section id="study-{number}"><h2>{escape(study.title)}</h2><p class="about">{escape(study.about)}</p>'
        f"{missing}{returns}{charts}</section>"
    )


def _palette() -> str:
    pairs = zip(COLOURS, DARK_COLOURS, strict=True)
    return ":root{" + "".join(f"--c{i}:light-dark({light},{dark});" for i, (light, dark) in enumerate(pairs)) + "}\n"


def _file(name: str) -> str:
    return (resources.files("iqrl.report.page") / name).read_text(encoding="utf-8")
