"""A report of studies in a directory: the page, the tables as Markdown and LaTeX, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import gather_studies, unique
from iqrl.experiments.report.cells import (
    NO_SPREAD,
    RunSummary,
    detail_table,
    highest_tables,
    scale_legend,
    summarise_runs,
    unfinished_text,
    verdict_legend,
)
from iqrl.experiments.report.comparison_tables import (
    QUESTION,
    cell_table,
    headlines,
    improvement_tables,
    notes,
    standing_table,
)
from iqrl.experiments.report.comparisons import Comparison, compare, compare_page
from iqrl.experiments.report.interference_tables import interference_tables
from iqrl.experiments.report.margins import study_margins
from iqrl.experiments.report.table import Table, escape_markdown, latex, markdown
from iqrl.experiments.study.results import StudyResults
from iqrl.files import make_directories, sweep, write_whole, writing


class Report(NamedTuple):
    files: list[Path]
    """the page first"""
    findings: list[str]
    """what the tests of the page say, in sentences"""


def write_report(studies: Sequence[StudyResults], directory: str | Path) -> Report:
    """report.html, tables/*.md and *.tex, figures/*.pdf and *.svg."""
    from iqrl.experiments.report.figures.curves import draw_study  # takes a second to load
    from iqrl.experiments.report.page.render import render_page

    directory = Path(directory)
    if not any(study.runs for study in studies):
        raise BadInput("there are no finished runs to report.")
    studies = gather_studies(studies)
    compared = compare_page(studies)
    page = directory / "report.html"
    tables, figures = [], []
    folders = (directory, directory / "tables", directory / "figures")
    make_directories(*folders)
    for folder in folders:
        sweep(folder)
    with writing(directory):
        write_whole(page, render_page(studies, comparisons=compared).encode())
        for study, comparisons in zip(studies, compared, strict=True):
            tables += _write_tables(study, comparisons, directory / "tables")
    for study, comparisons in zip(studies, compared, strict=True):
        figures += draw_study(study, directory / "figures", comparisons)
    several = len(studies) > 1
    findings = [
        f"{study.title}. {sentence}" if several else sentence
        for study, comparisons in zip(studies, compared, strict=True)
        for sentence in [*study_margins(study, summarise_runs(study)).sentences, *headlines(comparisons)]
    ]
    return Report(files=[page, *tables, *figures], findings=findings)


def _write_tables(study: StudyResults, comparisons: Sequence[Comparison], directory: Path) -> list[Path]:
    from iqrl.experiments.report.figures.curves import file_name

    if "return" not in study.charts:
        return []
    texts = {".md": markdown_report(study, comparisons), ".tex": latex_report(study)}
    paths = [directory / (file_name(study.name) + ending) for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, text.encode())
    return paths


# Markdown

DETAILS = (
    "Final (the last tenth of the curve), AUC (the mean return of the whole run) and deterioration (the best point of "
    "the curve minus the final), each a mean over seeds"
)


def markdown_report(study: StudyResults, comparisons: Sequence[Comparison] | None = None) -> str:
    """Highest returns beside the paper's, finals and areas with 95% intervals, and which methods differ.

    `comparisons`: those of the study, where they have been made already.
    """
    summaries = summarise_runs(study)
    tasks = unique(summary.placed.place.task for summary in summaries)
    parts = [
        f"## {escape_markdown(study.title)}",
        escape_markdown(study.about),
        unfinished_text(study),
        "Highest return of the mean curve; the best of a task and column in bold.",
        *map(markdown, highest_tables(summaries)),
        verdict_legend() if _has_printed(summaries) else "",
        f"{DETAILS}, with 95% bootstrap intervals; {NO_SPREAD}: all seeds agree, which is not certainty. "
        f"{scale_legend(tasks)}".strip(),
        markdown(detail_table(summaries)),
        *markdown_margins(study, summaries),
        *markdown_interference(study, summaries),
        *_markdown_comparisons(compare(study) if comparisons is None else comparisons),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_margins(study: StudyResults, summaries: Sequence[RunSummary]) -> list[str]:
    margins = study_margins(study, summaries)
    items = "\n".join(f"- {escape_markdown(sentence)}" for sentence in margins.sentences)
    return [items, *[part for table in margins.tables for part in titled(table)]]


def markdown_interference(study: StudyResults, summaries: Sequence[RunSummary]) -> list[str]:
    return [part for table in interference_tables(study, summaries) for part in titled(table)]


def _markdown_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return []
    tables = [*improvement_tables(comparisons), standing_table(comparisons)]
    tables += [cell_table(one) for one in comparisons if one.cells]
    sentences = [escape_markdown(line) for line in [*headlines(comparisons), *notes(comparisons)]]
    return [f"### {QUESTION}", *sentences, *[part for table in tables for part in titled(table) if table.sections]]


def titled(table: Table) -> list[str]:
    caption = [f"{escape_markdown(table.caption)}."] if table.caption else []
    return [f"#### {escape_markdown(table.title)}", *caption, markdown(table)]


def _has_printed(summaries: Sequence[RunSummary]) -> bool:
    return any(summary.printed is not None for summary in summaries)


# LaTeX


def latex_report(study: StudyResults) -> str:
    """A float per table: the highest returns, and finals and areas with their intervals."""
    summaries = summarise_runs(study)
    tables = highest_tables(summaries)
    labels = [f"tab:{study.name}", *[f"tab:{study.name}-{table.columns[0].group}" for table in tables[1:]]]
    floats = [latex(_with_caption(study, table), label) for table, label in zip(tables, labels, strict=True)]
    caption = f"{study.title}. {DETAILS}, with 95% intervals."
    details = detail_table(summaries, for_print=True)._replace(caption=caption)
    return "\n".join([*floats, latex(details, f"tab:{study.name}-intervals")])


def _with_caption(study: StudyResults, table: Table) -> Table:
    # The muted columns are the paper's.
    legend = f" {verdict_legend()}" if any(column.muted for column in table.columns) else ""
    caption = f"{study.title}. Highest return of the mean curve; the best of a task and column in bold.{legend}"
    return table._replace(caption=caption)
