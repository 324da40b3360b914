"""One number for all tasks: the final and the area of each run as shares of the tasks' ranges, averaged over tasks.

It is how one setting is chosen for all tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iqrl.diagnostics.text import return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import SCALES, RunSummary
from iqrl.experiments.report.margins import run_name
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table


def scores_table(summaries: Sequence[RunSummary]) -> Table:
    """A row per line and variant that has runs on all tasks with a range; the best mean is strong."""
    scaled = [it for it in summaries if it.placed.place.task in SCALES and it.final and it.auc]
    tasks = unique(it.placed.place.task for it in scaled)
    names = unique(_name(it) for it in scaled)
    lines = {name: {it.placed.place.task: it for it in scaled if _name(it) == name} for name in names}
    whole = {name: line for name, line in lines.items() if set(line) == set(tasks)}
    finals, areas = ({name: _mean(line, measure) for name, line in whole.items()} for measure in ("final", "auc"))
    rows = [
        Row(
            name=name,
            cells=[
                *[Cell(text=return_text(_value(line[task], "final"))) for task in tasks],
                *[
                    Cell(text=f"{means[name]:.1%}", strong=means[name] == max(means.values()))
                    for means in (finals, areas)
                ],
            ],
        )
        for name, line in whole.items()
    ]
    columns = [
        *[Column(name=task, group="final") for task in tasks],
        Column(name="mean final"),
        Column(name="mean AUC"),
    ]
    return Table(
        title="All tasks together",
        caption="Means are over tasks, in percent of the way from the low to the high end of each task's range",
        columns=columns,
        sections=[Section(name="", rows=rows)],
        section_header=None,
        row_header="run",
    )


def _name(summary: RunSummary) -> str:
    """Method, buffer size and variant, or the settings in place of the method where these are compared."""
    label, config = summary.placed.label, summary.placed.run.config
    size = size_name(config["buffer_size"])
    if label in (config["method"], size):
        return run_name(summary)
    varies = "buffer_size" in summary.placed.run.varied
    return ", ".join(filter(None, [label, size if varies else "", summary.placed.variant]))


def _mean(line: dict[str, RunSummary], measure: str) -> float:
    shares = [(_value(it, measure) - SCALES[task].worst) / SCALES[task].range for task, it in line.items()]
    return float(np.mean(shares))


def _value(summary: RunSummary, measure: str) -> float:
    return getattr(summary, measure).value
