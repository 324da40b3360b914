"""Did runs hold what they reached? How far each seed ended below the best point of its own curve."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.diagnostics.text import return_text
from iqrl.experiments.report.cells import SCALES, RunSummary
from iqrl.experiments.report.margins import run_name
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table

LOST = 0.1
"""share of the task's range below its best from which a seed has lost what it had"""


def held_table(summaries: Sequence[RunSummary]) -> Table:
    """A row per run of a task that has a range; the best point is that of a period, and so is a little lucky."""
    names = ("steps", "seeds", "final", "lowest seed", "mean loss", "largest loss", f"seeds that lost {LOST:.0%}")
    tasks = dict.fromkeys(it.placed.place.task for it in summaries if it.placed.place.task in SCALES)
    sections = [
        Section(name=task, rows=[_row(it) for it in summaries if it.placed.place.task == task and _known(it.falls)])
        for task in tasks
    ]
    return Table(
        title="What was held to the end",
        caption=(
            "Loss: the best point of a seed's curve minus its final, in percent of the task's range. Final: the last "
            "tenth of the curve"
        ),
        columns=[Column(name=name) for name in names],
        sections=sections,
        section_header="task",
        row_header="run",
    )


def _row(summary: RunSummary) -> Row:
    scale, config = SCALES[summary.placed.place.task], summary.placed.run.config
    finals, losses = _known(summary.finals), [fall / scale.range for fall in _known(summary.falls)]
    texts = [
        f"{config['steps']:,}",
        str(len(losses)),
        return_text(sum(finals) / len(finals)),
        return_text(min(finals)),
        f"{sum(losses) / len(losses):.1%}",
        f"{max(losses):.1%}",
        str(sum(loss > LOST for loss in losses)),
    ]
    return Row(name=run_name(summary), cells=[Cell(text=text) for text in texts])


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
