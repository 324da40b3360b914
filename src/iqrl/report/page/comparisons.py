"""Which differences are real, on the page: a sentence, tables, and places for the charts of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from iqrl.report.charts import ProfileChart
from iqrl.report.comparison_tables import (
    QUESTION,
    Section,
    Sheet,
    Text,
    cell_sheet,
    headlines,
    improvement_sheet,
    notes,
    standing_sheet,
)
from iqrl.report.comparisons import Comparison
from iqrl.report.page.parts import chart_groups, scrolling

PROFILES = (
    "Profiles, of every method: for each τ, the share of runs whose final is more than τ on the scale of its task; the "
    "band is the 95% bootstrap interval stratified by cell. A line that is nowhere below another is at least as good "
    "on every part of the scale."
)


def answer_line(comparisons: Sequence[Comparison], number: int) -> str:
    """What the comparisons come to, for the head of a section; `number` is that of the study."""
    said = headlines(comparisons)
    if not said:
        return ""
    text = "<br>".join(map(escape, said))
    return f'<p class="verdicts">{text} <a href="#differences-{number}">{QUESTION}</a></p>'


def comparison_part(comparisons: Sequence[Comparison], charts: Sequence[ProfileChart], number: int, first: int) -> str:
    """`first` is the number of the first chart of profiles."""
    if not comparisons:
        return ""
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes(comparisons))
    sheets = [improvement_sheet(comparisons), standing_sheet(comparisons)]
    tables = "".join(f"<h4>{escape(sheet.title)}</h4>{_table(sheet)}" for sheet in sheets if sheet.sections)
    cells = "".join(_folded(cell_sheet(one)) for one in comparisons if one.cells)
    profiles = chart_groups(charts, first) + f'<p class="note">{escape(PROFILES)}</p>' if charts else ""
    return f'<h3 class="question" id="differences-{number}">{QUESTION}</h3>{said}{tables}{cells}{profiles}'


def _folded(sheet: Sheet) -> str:
    return f"<details><summary>{escape(sheet.title)}</summary>{_table(sheet)}</details>"


def _table(sheet: Sheet) -> str:
    body = "".join(_body(section, len(sheet.groups) * len(sheet.columns) + 1, sheet) for section in sheet.sections)
    table = scrolling(sheet.title, sheet.caption, _heads(sheet), body)
    return f'<div class="sheet">{table}</div>'


def _heads(sheet: Sheet) -> str:
    names = "".join(
        f'<th scope="col"{_edge(i, sheet)}>{escape(name)}</th>'
        for i, name in enumerate(sheet.columns * len(sheet.groups))
    )
    if len(sheet.groups) == 1:
        return f"<tr><td></td>{names}</tr>"
    width = len(sheet.columns)
    over = "".join(f'<th scope="colgroup" colspan="{width}" class="edge">{escape(it)}</th>' for it in sheet.groups)
    return f'<tr><td rowspan="2"></td>{over}</tr><tr>{names}</tr>'


def _body(section: Section, width: int, sheet: Sheet) -> str:
    head = f'<tr class="task"><th scope="rowgroup" colspan="{width}"><span>{escape(section.name)}</span></th></tr>'
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(_cell(i, text, sheet) for i, text in enumerate(texts))}</tr>'
        for name, texts in section.rows
    )
    return f"<tbody>{head}{rows}</tbody>"


def _edge(i: int, sheet: Sheet) -> str:
    """The first column of a group is set apart."""
    return ' class="edge"' if i % len(sheet.columns) == 0 else ""


def _cell(i: int, text: Text, sheet: Sheet) -> str:
    shown = escape(text.text.replace("-", "−"))
    return f"<td{_edge(i, sheet)}>{f'<b>{shown}</b>' if text.strong else shown}</td>"
