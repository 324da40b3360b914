"""The parts of the page: its head, tables, charts to be drawn, controls, and comparisons. Tables need no script."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from iqrl.diagnostics.text import count
from iqrl.experiments.report.arrangement import unique
from iqrl.experiments.report.cells import (
    MEASURED,
    SIGNS,
    RunSummary,
    count_verdicts,
    folded_detail_table,
    highest_tables,
    scale_legend,
)
from iqrl.experiments.report.charts import Chart, CurveChart, ProfileChart, line_names, metric_name, ordered_variants
from iqrl.experiments.report.comparison_tables import (
    QUESTION,
    cell_table,
    headlines,
    improvement_tables,
    notes,
    standing_table,
)
from iqrl.experiments.report.comparisons import Comparison
from iqrl.experiments.report.interference_tables import interference_tables
from iqrl.experiments.report.margins import Margins
from iqrl.experiments.report.settings_table import study_settings
from iqrl.experiments.report.table import Table, html
from iqrl.experiments.study.results import RunRecord, StudyResults

# The head: what was run, with what, and what is missing


def facts_list(studies: Sequence[StudyResults]) -> str:
    """A list of terms; runs that are in several studies count once."""
    runs = list({run.id: run for study in studies for run in study.runs}.values())
    unfinished = sum(study.unfinished for study in studies)
    steps = sum(run.config.get("seeds", 1) * run.config.get("steps", 0) for run in runs)
    per_seed = _span_text([run.config.get("steps") for run in runs], "per seed")
    lines = {
        "runs": f"{len(runs):,}" + (f", and {unfinished:,} planned but not finished" if unfinished else ""),
        "seeds": _span_text([run.config.get("seeds") for run in runs], "per run"),
        "steps": f"{steps:,} environment steps in all; {per_seed}",
        "speed": _speed_text(runs),
        "versions": _count_texts([_versions_text(run.info.get("versions")) for run in runs]),
        "commit": _count_texts([run.info.get("commit") for run in runs]),
        "machine": _count_texts([_machine_text(run.info.get("machine")) for run in runs]),
    }
    return "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in lines.items() if text)


def contents_list(studies: Sequence[tuple[StudyResults, Sequence[RunSummary]]]) -> str:
    """A line per study: its title, how many runs, and how they compare."""
    rows = []
    for number, (study, summaries) in enumerate(studies):
        facts = [count(len(study.runs), "run"), _verdict_text(summaries) if "return" in study.charts else ""]
        facts += [f"{study.unfinished:,} not finished"] if study.unfinished else []
        about = "; ".join(filter(None, facts))
        rows.append(f'<li><a href="#study-{number}">{escape(study.title)}</a><span>{escape(about)}</span></li>')
    return "".join(rows)


def _span_text(values: Sequence[Any], of_what: str) -> str:
    given = sorted({value for value in values if value is not None})
    if not given:
        return ""
    text = f"{given[0]:,}" if len(given) == 1 else f"{given[0]:,} to {given[-1]:,}"
    return f"{text} {of_what}"


def _speed_text(runs: Sequence[RunRecord]) -> str:
    speeds = [(run.info.get("timing") or {}).get("steps_per_second") for run in runs]
    measured = [speed for speed in speeds if speed]
    return f"{np.median(measured):,.0f} steps per second (median of runs)" if measured else ""


def _count_texts(texts: Sequence[str | None]) -> str:
    """The text that all runs share, or each text with the number of runs that have it."""
    counts = Counter(text for text in texts if text)
    if len(counts) <= 1 and sum(counts.values()) == len(texts):
        return "".join(counts)
    return "; ".join(f"{text} ({count(number, 'run')})" for text, number in counts.most_common())


def _versions_text(versions: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {version}" for name, version in (versions or {}).items())


def _machine_text(machine: Any) -> str:
    if not isinstance(machine, dict):
        return str(machine or "")
    cores = machine.get("cores")
    parts = [machine.get("processor"), count(cores, "core") if cores else "", machine.get("system")]
    return ", ".join(str(part) for part in parts if part)


# Tables


def returns_part(study: StudyResults, summaries: Sequence[RunSummary]) -> str:
    """Highest returns beside the paper's; finals and AUC, folded."""
    return _verdict_line(summaries) + _highest_part(study, summaries) + _details_part(study, summaries)


def _verdict_text(summaries: Sequence[RunSummary]) -> str:
    """How many runs have which verdict; empty where there is nothing to compare."""
    counts = ", ".join(f"{SIGNS[name]} {number} {name}" for name, number in count_verdicts(summaries).items())
    return f"against the paper: {counts}" if counts else ""


def _verdict_line(summaries: Sequence[RunSummary]) -> str:
    text = _verdict_text(summaries)
    return f'<p class="verdicts">{text[0].upper()}{text[1:]}.</p>' if text else ""


def _highest_part(study: StudyResults, summaries: Sequence[RunSummary]) -> str:
    """Several tables, one per buffer size, stand side by side as far as there is room, and share a caption."""
    caption = "Highest return of the mean curve; the best of each task and column in bold"
    tables = highest_tables(summaries)
    if len(tables) == 1:
        return html(tables[0]._replace(title=f"highest returns, {study.title}", caption=caption))
    title = lambda table: ", ".join(filter(None, ["highest returns", table.columns[0].group, study.title]))
    shown = "".join(html(table._replace(title=title(table))) for table in tables)
    return f'<p class="note">{caption}.</p><div class="tables">{shown}</div>'


def _details_part(study: StudyResults, summaries: Sequence[RunSummary]) -> str:
    caption = (
        "Final: mean of the last tenth of the curve. AUC: mean of the whole curve. Deterioration: its best point minus "
        "the final. In brackets 95% bootstrap intervals of the mean over seeds; no spread: all seeds agree, which is "
        f"not certainty. {scale_legend(unique(summary.placed.place.task for summary in summaries))}"
    ).rstrip(". ")
    table = html(folded_detail_table(summaries, f"finals, {study.title}", caption))
    summary = "Final, AUC and deterioration, with intervals and every seed"
    return f'<details class="finals"><summary>{summary}</summary>{table}</details>'


def settings_part(study: StudyResults) -> str:
    """The settings of the runs, folded."""
    settings = study_settings(study)
    # The last column only names places.
    table = html(settings.table) if len(settings.table.columns) > 1 else ""
    shared = f'<p class="note">The same in all runs that have them: {escape(settings.shared)}.</p>'
    return f'<details class="settings"><summary>Settings</summary>{shared}{table}</details>'


# Charts

DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 4")
"""of variants, as in svg.js"""


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


def controls_part(study: StudyResults, charts: Sequence[Chart], data: dict[str, Any]) -> str:
    """A chip per line; one per variant where there are several; what the band means; the paper's numbers."""
    chips = "".join(_line_chip(name, data["colours"][name]) for name in line_names(charts))
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
        '<label class="choice">band <select data-spread><option value="deviation">standard deviation</option>'
        '<option value="interval">95% interval of the mean</option>'
        '<option value="range">min–max</option><option value="seeds">every seed</option></select></label>'
    )


def _printed() -> str:
    return '<label class="choice"><input type="checkbox" data-printed>paper’s highest</label>'


# Comparisons of methods

PROFILES = (
    "For each τ on the scale of a task: the share of a method's runs whose final return is more than τ. The band is "
    "the 95% bootstrap interval, stratified by cell. A line that is nowhere below another is at least as good on every "
    "part of the scale."
)


WHAT_P_IS = (
    "In brackets: the mean difference with its 95% interval, and P, how likely a run is better than one of the other "
    "method; 0.50 is no difference."
)


def headline_part(comparisons: Sequence[Comparison], margins: Margins, number: int) -> str:
    """What was found, for the head of a section: the margins of its reference first; `number` is that of the study."""
    sentences = headlines(comparisons)
    if not (sentences or margins.sentences):
        return ""
    items = "".join(f"<li>{_with_lead(sentence)}</li>" for sentence in [*margins.sentences, *sentences])
    legend = [f'{margins.legend} <a href="#margins-{number}">Every task</a>.'] if margins.sentences else []
    legend += [f'{WHAT_P_IS} Tables and tests: <a href="#differences-{number}">{QUESTION}</a>'] if sentences else []
    return f'<ul class="findings">{items}</ul>' + "".join(f'<p class="note">{text}</p>' for text in legend)


def _with_lead(sentence: str) -> str:
    """What was measured or set beside in bold, then what was found; with signs of minus, and no break after P."""
    signed = re.sub(r"(?<!\w)-(?=\d)", "−", sentence)
    lead = re.split(r" \(\d|:", signed, maxsplit=1)[0]
    return f"<b>{escape(lead)}</b>{escape(signed.removeprefix(lead))}".replace(" P ", " P&nbsp;")


def margin_part(margins: Margins, number: int) -> str:
    """The reference of the study beside every other run; empty where it names none."""
    return "".join(f'<h3 id="margins-{number}">{escape(table.title)}</h3>{_dense(table)}' for table in margins.tables)


def interference_part(study: StudyResults, summaries: Sequence[RunSummary]) -> str:
    """What was measured while the runs trained; empty where nothing was."""
    tables = interference_tables(study, summaries)
    captioned = lambda table: f'<p class="note">{escape(table.caption)}.</p>{_dense(table._replace(caption=""))}'
    return "".join(f"<h3>{escape(table.title)}</h3>{captioned(table)}" for table in tables)


def comparison_part(comparisons: Sequence[Comparison], charts: Sequence[ProfileChart], number: int, first: int) -> str:
    """`first` is the number of the first chart of profiles."""
    if not comparisons:
        return ""
    remarks = "".join(f'<p class="note">{escape(note)}</p>' for note in notes(comparisons))
    over_all = [*improvement_tables(comparisons), standing_table(comparisons)]
    shown = "".join(f"<h4>{escape(table.title)}</h4>{_dense(table)}" for table in over_all if table.sections)
    by_cell = [cell_table(one) for one in comparisons if one.cells]
    folded = "".join(f"<details><summary>{escape(table.title)}</summary>{_dense(table)}</details>" for table in by_cell)
    profiles = chart_groups(charts, first) + f'<p class="note">{escape(PROFILES)}</p>' if charts else ""
    return f'<h3 class="question" id="differences-{number}">{QUESTION}</h3>{remarks}{shown}{folded}{profiles}'


def _dense(table: Table) -> str:
    return f'<div class="dense">{html(table)}</div>'
