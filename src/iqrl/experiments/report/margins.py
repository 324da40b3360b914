"""Is one method as good as the others, up to a margin? Its runs beside every other run of the same task.

A study whose file says `reference = "local-q"` and `margin = 0.02` asks this question. A test of differences cannot
answer it: that two methods are not told apart may be due to few seeds. Here the whole 95% interval of the difference
must lie above minus the margin, in shares of the task's range. Unlike comparisons, this is done across variants and
buffer sizes, since it asks what one agent is worth beside all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.diagnostics.text import listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import SCALES, RunSummary, interval_text
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.experiments.study.results import StudyResults
from iqrl.experiments.study.study import MARGIN
from iqrl.methods.registry import METHOD_NAMES
from iqrl.statistics.intervals import Interval, difference_interval

ABOVE, LEVEL, BELOW, OPEN = "above", "level", "below", "open"
MEASURES = {"final": "final", "auc": "AUC"}
FEWEST_SEEDS = 2


class Beside(NamedTuple):
    """The reference beside another run of the same task, by one measure."""

    task: str
    rival: str
    measure: str
    own: float
    other: float
    """means over seeds"""
    effect: Interval
    """the reference minus the other"""
    share: Interval | None
    """the same as a share of the task's range; None where no range is known"""
    verdict: str


def judge(difference: Interval, margin: float) -> str:
    """What the interval of a difference says; both are in the same unit.

    >>> judge(Interval(0.03, 0.01, 0.05), 0.02), judge(Interval(0.0, -0.01, 0.01), 0.02)
    ('above', 'level')
    >>> judge(Interval(-0.05, -0.07, -0.03), 0.02), judge(Interval(0.0, -0.05, 0.05), 0.02)
    ('below', 'open')
    """
    if difference.low > 0:
        return ABOVE
    if difference.low > -margin:
        return LEVEL
    return BELOW if difference.high < 0 else OPEN


def compare_to_reference(study: StudyResults, summaries: Sequence[RunSummary]) -> list[Beside]:
    """Every other run of each task that the reference has; empty where the study names no reference."""
    method, margin = study.content.get("reference"), margin_of(study)
    own = {it.placed.place.task: it for it in summaries if _method(it) == method and not it.placed.variant}
    pairs = [(own[task], it) for it in summaries if (task := it.placed.place.task) in own and it is not own[task]]
    found = [_compare(reference, other, measure, margin) for reference, other in pairs for measure in MEASURES]
    return [one for one in found if one is not None]


def margin_of(study: StudyResults) -> float:
    return study.content.get("margin", MARGIN)


def _compare(reference: RunSummary, other: RunSummary, measure: str, margin: float) -> Beside | None:
    """None where a side has too few seeds with a known return."""
    sides = [_known(it.finals if measure == "final" else it.aucs) for it in (reference, other)]
    if min(map(len, sides)) < FEWEST_SEEDS:
        return None
    task, (own, rival) = reference.placed.place.task, sides
    effect, scale = difference_interval([own], [rival]), SCALES.get(task)
    share = Interval(*[end / scale.range for end in effect]) if scale else None
    return Beside(
        task=task,
        rival=run_name(other),
        measure=measure,
        own=float(own.mean()),
        other=float(rival.mean()),
        effect=effect,
        share=share,
        verdict=judge(share, margin) if share else judge(effect, 0.0),
    )


def _known(values: Sequence[float | None]) -> np.ndarray:
    return np.array([value for value in values if value is not None])


def _method(summary: RunSummary) -> str:
    return summary.placed.run.config["method"]


def run_name(summary: RunSummary) -> str:
    """Method, buffer size and variant: "DQN, N=50,000, tuned". Methods that store nothing have no size."""
    config, varied = summary.placed.run.config, summary.placed.run.varied
    size = (
        size_name(config["buffer_size"]) if "buffer_size" in varied or "buffer_size" in summary.placed.run.given else ""
    )
    return ", ".join(filter(None, [METHOD_NAMES.get(config["method"], config["method"]), size, summary.placed.variant]))


# Sentences and a table


def margin_sentences(found: Sequence[Beside], reference: str) -> list[str]:
    """A sentence per rival and measure: on how many tasks the reference is above it, level with it, below it."""
    sentences = []
    for rival in unique(one.rival for one in found):
        parts = []
        for measure, name in MEASURES.items():
            verdicts = [one.verdict for one in found if (one.rival, one.measure) == (rival, measure)]
            counts = [
                f"{verdict} on {verdicts.count(verdict)}"
                for verdict in (ABOVE, LEVEL, BELOW, OPEN)
                if verdict in verdicts
            ]
            parts.append(f"{name} {listing(counts)} of {len(verdicts)}")
        sentences.append(f"{reference} beside {rival}: {'; '.join(parts)}.")
    return sentences


class Margins(NamedTuple):
    """What a study says about its reference; all of it empty where the study names none."""

    sentences: Sequence[str] = ()
    legend: str = ""
    """what their verdicts mean"""
    tables: Sequence[Table] = ()


def study_margins(study: StudyResults, summaries: Sequence[RunSummary]) -> Margins:
    found = compare_to_reference(study, summaries)
    if not found:
        return Margins()
    name = METHOD_NAMES.get(reference := study.content["reference"], reference)
    margin = margin_of(study)
    return Margins(margin_sentences(found, name), margin_legend(margin), [margin_table(found, name, margin)])


def margin_legend(margin: float) -> str:
    """
    >>> margin_legend(0.02).partition(".")[0]
    'Above: the 95% interval of the difference lies above 0'
    """
    return (
        f"{ABOVE.capitalize()}: the 95% interval of the difference lies above 0. {LEVEL.capitalize()}: above "
        f"−{100 * margin:g}% of the task's range. {BELOW.capitalize()}: below 0. {OPEN.capitalize()}: none of these. "
        "The first that holds counts."
    )


def margin_table(found: Sequence[Beside], reference: str, margin: float) -> Table:
    """A section per task, a row per rival."""
    columns = []
    for name in MEASURES.values():
        columns += [
            Column(name="other", group=name),
            Column(name=reference, group=name),
            Column(name="difference [95%]", group=name, escape=False),
            Column(name="verdict", group=name, align="left", numeric=False),
        ]
    sections = [
        Section(name=task, rows=_rows([one for one in found if one.task == task]))
        for task in unique(one.task for one in found)
    ]
    return Table(
        title=f"{reference} beside every other run",
        caption=(
            f"Differences are {reference} minus the other run, in percent of the task's range, or in returns where no "
            f"range is known. {ABOVE}: the 95% interval lies above 0. {LEVEL}: it lies above −{100 * margin:g}%. "
            f"{BELOW}: it lies below 0. {OPEN}: none of these. The first that holds counts"
        ),
        columns=columns,
        sections=sections,
        section_header="task",
        row_header="beside",
    )


def _rows(found: Sequence[Beside]) -> list[Row]:
    rows = []
    for rival in unique(one.rival for one in found):
        by_measure = {one.measure: one for one in found if one.rival == rival}
        rows.append(Row(name=rival, cells=[cell for name in MEASURES for cell in _cells(by_measure[name])]))
    return rows


def _cells(one: Beside) -> list[Cell]:
    difference = interval_text(one.share, _percent) if one.share else interval_text(one.effect, _signed)
    return [
        Cell(text=return_text(one.other)),
        Cell(text=return_text(one.own)),
        Cell(text=difference),
        Cell(text=one.verdict, strong=one.verdict == ABOVE),
    ]


def _percent(value: float) -> str:
    return f"{100 * value:+.1f}%".replace("-", "−")


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{return_text(value)}"
