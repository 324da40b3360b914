"""The parts of the page that are there without any drawing: tables, controls and places for charts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import Any

from iqrl.report.arrangement import unique
from iqrl.report.charts import Chart, CurveChart, ProfileChart, metric_name, ordered_variants
from iqrl.report.grid import (
    MEASURED,
    Column,
    Entry,
    Found,
    Grid,
    Row,
    details,
    grids,
    seeds_text,
    verdict_counts,
)
from iqrl.report.page.data import names_of
from iqrl.report.settings_table import settings_table
from iqrl.report.verdicts import SIGNS
from iqrl.studies.results import StudyResults

DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 4")
"""of variants, as in svg.js"""


# Tables


def tables(study: StudyResults, found: Found) -> str:
    return _verdict_line(found) + _highest_tables(study, grids(found)) + _detail_table(study, found)


def verdict_text(found: Found) -> str:
    """How many cells have which verdict, in words; empty where there is nothing to compare."""
    counts = verdict_counts(found)
    return ", ".join(f"{SIGNS[word]} {count} {word}" for word, count in counts.items())


def _verdict_line(found: Found) -> str:
    text = verdict_text(found)
    return f'<p class="verdicts">Compared with the paper: {text}.</p>' if text else ""


def _highest_tables(study: StudyResults, found: Sequence[Grid]) -> str:
    """Several, one per buffer size, stand side by side as far as there is room, and share what is said of them."""
    caption = "Highest return of the mean curve; the best of each task and column in bold"
    if len(found) == 1:
        return _highest_table(study, found[0], caption)
    shown = "".join(_highest_table(study, grid) for grid in found)
    return f'<p class="note">{caption}.</p><div class="tables">{shown}</div>'


def _highest_table(study: StudyResults, grid: Grid, caption: str = "") -> str:
    body = "".join(
        _task_rows(task, list(rows), grid.columns)
        for task, rows in itertools.groupby(grid.rows, key=lambda row: row.task)
    )
    label = ", ".join(filter(None, ["highest returns", "" if caption else grid.columns[0].group, study.title]))
    return scrolling(label, caption, _heads(grid.columns), body)


def scrolling(label: str, caption: str, head: str, body: str) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"{f'<caption>{escape(caption)}</caption>' if caption else ''}<thead>{head}</thead>{body}</table></div>"
    )


def _heads(columns: Sequence[Column]) -> str:
    groups = [(group, len(list(members))) for group, members in itertools.groupby(columns, key=lambda it: it.group)]
    edge = lambda i: ' class="edge"' if _is_edge(columns, i) else ""
    names = "".join(f'<th scope="col"{edge(i)}>{escape(it.name)}</th>' for i, it in enumerate(columns))
    if not any(group for group, _ in groups):
        return f"<tr><td></td>{names}</tr>"
    over = "".join(f'<th scope="colgroup" colspan="{width}" class="edge">{group}</th>' for group, width in groups)
    return f'<tr><td rowspan="2"></td>{over}</tr><tr>{names}</tr>'


def _is_edge(columns: Sequence[Column], i: int) -> bool:
    """The first column of a buffer size is set apart."""
    return i == 0 or columns[i].group != columns[i - 1].group


def _task_rows(task: str, rows: Sequence[Row], columns: Sequence[Column]) -> str:
    head = f'<tr class="task"><th scope="rowgroup" colspan="{len(columns) + 1}"><span>{escape(task)}</span></th></tr>'
    edges = [_is_edge(columns, i) for i in range(len(columns))]
    lines = []
    for row in rows:
        cells = "".join(map(_entry, row.entries, columns, edges))
        lines.append(f'<tr><th scope="row">{escape(row.label)}</th>{cells}</tr>')
    return f"<tbody>{head}{''.join(lines)}</tbody>"


def _entry(entry: Entry, column: Column, edge: bool) -> str:
    text = escape(entry.text.replace("-", "−"))
    text = f"<b>{text}</b>" if entry.best else text
    kinds = " ".join(["paper"] * (column.variant is None) + ["edge"] * edge)
    hint = f"final of each seed: {seeds_text(entry.cell)}".replace("-", "−") if entry.cell else ""
    return f'<td class="{kinds}" title="{escape(hint)}">{text}{_mark(entry)}</td>'


def _mark(entry: Entry) -> str:
    verdict = entry.cell.verdict if entry.cell else None
    if verdict is None:
        return ""
    kind = verdict.word.replace(" ", "-")
    return f' <span class="verdict {kind}" role="img" aria-label="{verdict.word}">{SIGNS[verdict.word]}</span>'


def _detail_table(study: StudyResults, found: Found) -> str:
    rows = details(found)
    names = ("final [95%]", "AUC [95%]", "final of each seed")
    head = "<tr><td></td>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr>"
    body = ""
    for task, members in itertools.groupby(rows, key=lambda row: row.task):
        body += f'<tbody><tr class="task"><th scope="rowgroup" colspan="4"><span>{escape(task)}</span></th></tr>'
        for row in members:
            named = ", ".join(filter(None, [row.label, row.group, row.variant]))
            numbers = "".join(f"<td>{escape(text).replace('-', '−')}</td>" for text in (row.final, row.auc, row.seeds))
            body += f'<tr><th scope="row">{escape(named)}</th>{numbers}</tr>'
        body += "</tbody>"
    caption = (
        "Final: mean of the last tenth of the curve. AUC: mean of the whole curve. "
        "In brackets 95% bootstrap intervals of the mean over seeds"
    )
    table = scrolling(f"finals, {study.title}", caption, head, body)
    summary = "Final and area under the curve, with intervals and every seed"
    return f'<details class="finals"><summary>{summary}</summary>{table}</details>'


def settings_part(study: StudyResults) -> str:
    """With which settings the runs were made."""
    table = settings_table(study)
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in (*table.columns, "where"))
    body = "<tbody>"
    for row in table.rows:
        named = ", ".join(filter(None, [row.label, row.variant]))
        values = "".join(f"<td>{escape(value)}</td>" for value in (*row.values, row.where))
        body += f'<tr><th scope="row">{escape(named)}</th>{values}</tr>'
    shown = (
        scrolling(f"settings, {study.title}", "", f"<tr><td></td>{names}</tr>", f"{body}</tbody>")
        if table.columns
        else ""
    )
    common = f'<p class="note">The same in all runs that have them: {escape(table.common)}.</p>'
    return f'<details class="settings"><summary>Settings</summary>{common}{shown}</details>'


# Charts


def chart_groups(charts: Sequence[Chart], first: int) -> str:
    """A heading per metric, and a place for each of its charts; `first` is the number of the study's first chart."""
    numbered = list(enumerate(charts, first))
    groups = []
    for metric, members in itertools.groupby(numbered, key=lambda pair: pair[1].metric):
        shown = list(members)
        places = "".join(_place(number, chart) for number, chart in shown)
        columns = _columns([chart for _, chart in shown])
        grid = f'<div class="charts" style="--columns:{columns}">{places}</div>'
        kind = "group single" if len(shown) == 1 else "group"
        groups.append(f'<div class="{kind}"><h3>{escape(_heading(metric))}</h3>{grid}</div>')
    return f'<div class="groups">{"".join(groups)}</div>'


def _heading(metric: str) -> str:
    if metric == "context_matrix":
        return "What training on one context does to the loss on the others"
    name = metric_name(metric)
    return name[0].upper() + name[1:]


def _columns(charts: Sequence[Chart]) -> int:
    """A column per buffer size where there are several, so that a row is a task; otherwise as many as look well."""
    sizes = len(unique(chart.place.buffer_size for chart in charts))
    full = sizes * len(unique(chart.place.task for chart in charts)) == len(charts)
    return sizes if full and 2 <= sizes <= 4 else min(len(charts), 2 if len(charts) == 4 else 3)


def _place(number: int, chart: Chart) -> str:
    kind = "curves" if isinstance(chart, CurveChart | ProfileChart) else "flat"
    title = escape(chart.title)
    save = lambda what: (
        f'<button type="button" data-save="{what}" aria-label="save {title} as {what.upper()}">{what.upper()}</button>'
    )
    return (
        f'<figure data-chart="{number}"><figcaption><span>{title}</span>{save("csv")}{save("svg")}</figcaption>'
        f'<div class="plot {kind}"></div></figure>'
    )


# Controls


def controls(study: StudyResults, charts: Sequence[Chart], data: dict[str, Any]) -> str:
    """A chip per line; one per variant where there are several; what the band means; the paper's numbers."""
    chips = "".join(_line_chip(name, data["colours"][name]) for name in names_of(charts))
    own = ordered_variants(study)
    if len(own) > 1:
        chips += '<span class="divider"></span>' + "".join(_variant_chip(name, data) for name in own)
    curves = [chart for chart in charts if isinstance(chart, CurveChart)]
    if not chips:
        return ""
    printed = any(line.printed is not None for chart in curves for line in chart.lines)
    more = (_spread() if curves else "") + (_printed() if printed else "")
    return f'<div class="controls" role="group" aria-label="what the charts show">{chips}{more}</div>'


def _line_chip(name: str, colour: int) -> str:
    sample = f'<i class="swatch" style="background:var(--c{colour})"></i>'
    return (
        f'<label class="chip"><input type="checkbox" checked data-line="{escape(name)}">{sample}{escape(name)}</label>'
    )


def _variant_chip(variant: str, data: dict[str, Any]) -> str:
    dash = DASHES[data["variants"].index(variant) % len(DASHES)]
    sample = (
        f'<svg width="26" height="8" aria-hidden="true"><path d="M1 4h24" stroke="currentColor" stroke-width="2" '
        f'stroke-dasharray="{dash}"/></svg>'
    )
    checked = "" if variant in data["hiddenVariants"] else " checked"
    box = f'<input type="checkbox"{checked} data-variant-choice="{escape(variant)}">'
    return f'<label class="chip">{box}{sample}{escape(variant or MEASURED)}</label>'


def _spread() -> str:
    return (
        '<label class="choice">spread <select data-spread><option value="deviation">standard deviation</option>'
        '<option value="range">min–max</option><option value="seeds">every seed</option></select></label>'
    )


def _printed() -> str:
    return '<label class="choice"><input type="checkbox" data-printed>paper’s highest</label>'
