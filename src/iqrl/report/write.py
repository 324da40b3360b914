"""A report of studies in a directory: the page, the tables and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iqrl.errors import BadInput
from iqrl.report.comparisons import Comparison, compare
from iqrl.report.gather import gathered
from iqrl.report.page.render import render_page
from iqrl.report.paper_tables import latex_table, markdown_table
from iqrl.report.study_figures import draw_study, file_name
from iqrl.studies.results import StudyResults
from iqrl.training.checkpoint import write_whole


def write_report(studies: Sequence[StudyResults], directory: str | Path) -> list[Path]:
    """report.html, tables/*.md and *.tex, figures/*.pdf and *.svg; the paths of all that was written."""
    directory = Path(directory)
    if not any(study.runs for study in studies):
        raise BadInput("there are no finished runs to report.")
    studies = gathered(studies)
    compared = [compare(study) for study in studies]
    page = directory / "report.html"
    try:
        for part in (directory, directory / "tables", directory / "figures"):
            part.mkdir(parents=True, exist_ok=True)
        write_whole(page, render_page(studies, comparisons=compared).encode())
        tables = [
            path
            for study, comparisons in zip(studies, compared, strict=True)
            for path in _write_tables(study, comparisons, directory / "tables")
        ]
    except OSError as error:
        raise BadInput(f"cannot write to {directory}: {error.strerror}.") from error
    figures = [
        path
        for study, comparisons in zip(studies, compared, strict=True)
        for path in draw_study(study, directory / "figures", comparisons)
    ]
    return [page, *tables, *figures]


def _write_tables(study: StudyResults, comparisons: Sequence[Comparison], directory: Path) -> list[Path]:
    if "return" not in study.charts:
        return []
    tables = {".md": markdown_table(study, comparisons), ".tex": latex_table(study)}
    paths = [directory / (file_name(study.name) + ending) for ending in tables]
    for path, text in zip(paths, tables.values(), strict=True):
        write_whole(path, text.encode())
    return paths
