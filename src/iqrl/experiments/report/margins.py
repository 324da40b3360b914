"""Is one method as good as the others, up to a margin? Its runs beside every other run of the same task.

A study whose file says `reference = "local-q"` and `margin = 0.02` asks this question. A test of differences cannot
answer it: that two methods are not told apart may be due to few seeds. Here the 95% interval of the difference is set
beside 0 and beside a margin on both sides of it, in shares of the task's range. Unlike comparisons, this is done across
variants and buffer sizes, since it asks what one agent is worth beside all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.diagnostics.text import listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import SCALES, RunSummary, interval_text
from iqrl.experiments.report.comparison_tables import p_text
from iqrl.experiments.report.comparisons import LEVEL as TEST_LEVEL
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.experiments.study.results import StudyResults
from iqrl.experiments.study.study import MARGIN
from iqrl.methods.registry import METHOD_NAMES
from iqrl.statistics.intervals import Interval, difference_interval
from iqrl.statistics.significance import holm, permutation_test

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
    p: float
    """permutation test of the seeds, corrected for all of a table"""

    @property
    def is_confirmed(self) -> bool:
        return self.verdict in (ABOVE, BELOW) and self.p < TEST_LEVEL


def judge(difference: Interval, margin: float) -> str:
    """What the interval of a difference says; both are in the same unit.

    >>> judge(Interval(0.03, 0.01, 0.05), 0.02), judge(Interval(-0.005, -0.008, -0.002), 0.02)
    ('above', 'below')
    >>> judge(Interval(0.0, -0.01, 0.01), 0.02), judge(Interval(0.0, -0.05, 0.01), 0.02)
    ('level', 'open')
    """
    if difference.low > 0:
        return ABOVE
    if difference.high < 0:
        return BELOW
    return LEVEL if difference.low > -margin and difference.high < margin else OPEN


def compare_to_reference(study: StudyResults, summaries: Sequence[RunSummary]) -> list[Beside]:
    """Every other run of each task that the reference has; empty where the study names no reference."""
    method, margin = study.content.get("reference"), margin_of(study)
    own = {it.placed.place.task: it for it in summaries if _method(it) == method and not it.placed.variant}
    pairs = [(own[task], it) for it in summaries if (task := it.placed.place.task) in own and it is not own[task]]
    each = [_compare(reference, other, measure, margin) for reference, other in pairs for measure in MEASURES]
    found = [one for one in each if one is not None]
    corrected = holm([one.p for one in found]).tolist() if found else []
    return [one._replace(p=p) for one, p in zip(found, corrected, strict=True)]


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
        p=permutation_test(own, rival).p,
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


def margin_sentences(found: Sequence[Beside], reference: str, margin: float) -> list[str]:
    """A sentence per rival: on how many tasks the reference is above it, level with it, below it. Then the tests."""
    sentences = []
    for rival in unique(one.rival for one in found):
        by_measure = {name: [one for one in found if (one.rival, one.measure) == (rival, name)] for name in MEASURES}
        parts = [f"{MEASURES[name]} {_counts(of, margin)}" for name, of in by_measure.items()]
        sentences.append(f"{reference} beside {rival}: {'; '.join(parts)}.")
    return [*sentences, *_confirmed(found)]


def _counts(found: Sequence[Beside], margin: float) -> str:
    """Like "above on 4 (by more than 2% on 1) and level on 2 of 6, not below by more than 2% on 6"."""
    percent = f"{100 * margin:g}%"
    counts = []
    for verdict in (ABOVE, LEVEL, BELOW, OPEN):
        of = [one for one in found if one.verdict == verdict]
        far = sum(_is_beyond(one.share, margin) for one in of if one.share)
        clear = (
            f" (by more than {percent} on {far or 'none'})"
            if verdict in (ABOVE, BELOW) and any(one.share for one in of)
            else ""
        )
        counts += [f"{verdict} on {len(of)}{clear}"] if of else []
    shares = [one.share for one in found if one.share]
    near = sum(share.low > -margin for share in shares)
    not_below = f", not below by more than {percent} on {near}" if shares else ""
    return f"{listing(counts)} of {len(found)}{not_below}"


def _is_beyond(share: Interval, margin: float) -> bool:
    return share.low > margin or share.high < -margin


def _confirmed(found: Sequence[Beside]) -> list[str]:
    """Which differences a test confirms that is corrected for all of them; those that it does not are named."""
    apart = [one for one in found if one.verdict in (ABOVE, BELOW)]
    unsure = [f"{one.rival} on {one.task} ({MEASURES[one.measure]})" for one in apart if not one.is_confirmed]
    if len(found) == 1 or not apart:
        return []
    text = (
        f"Corrected for all {len(found)} tests of the table (Holm): {len(apart) - len(unsure)} of the {len(apart)} "
        f"differences that are {ABOVE} or {BELOW} are confirmed"
    )
    return [f"{text}, not those beside {'; '.join(unsure)}." if unsure else f"{text}."]


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
    sentences = margin_sentences(found, name, margin)
    return Margins(sentences, margin_legend(margin), [margin_table(found, name, margin)])


def margin_legend(margin: float) -> str:
    """
    >>> margin_legend(0.02).partition(".")[0]
    'Above: the whole 95% interval of the difference lies above 0'
    """
    percent = f"{100 * margin:g}%"
    return (
        f"{ABOVE.capitalize()}: the whole 95% interval of the difference lies above 0. {BELOW.capitalize()}: it lies "
        f"below 0. {LEVEL.capitalize()}: it contains 0 and lies within ±{percent} of the task's range. "
        f"{OPEN.capitalize()}: none of these. By more than {percent}: the whole interval lies beyond {percent}. Not "
        f"below by more than {percent}: its lower end is above −{percent}."
    )


def margin_table(found: Sequence[Beside], reference: str, margin: float) -> Table:
    """A section per task, a row per rival."""
    columns = []
    for name in MEASURES.values():
        columns += [
            Column(name="other", group=name),
            Column(name=reference, group=name),
            Column(name="difference [95%]", group=name, escape=False),
            Column(name="p", group=name),
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
            f"range is known. {margin_legend(margin)} The intervals are not corrected for their number. p: two-sided "
            f"permutation test of the seeds, corrected (Holm) for all {len(found)} tests of this table. In bold: "
            f"above, with p below {TEST_LEVEL:g}"
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
        Cell(text=p_text(one.p)),
        Cell(text=one.verdict, strong=one.verdict == ABOVE and one.is_confirmed),
    ]


def _percent(value: float) -> str:
    return f"{100 * value:+.1f}%".replace("-", "−")


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{return_text(value)}"
