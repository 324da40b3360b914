"""Runs summed up beside the numbers of the paper, and the two tables of a study that show them.

The paper gives no spread, so a verdict describes a difference and does not test it: a difference counts if it is more
than a twentieth of the task's range of returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from iqrl.diagnostics.text import return_text
from iqrl.experiments.report.arrangement import Place, PlacedRun, arrange, size_name, unique
from iqrl.experiments.report.table import Cell, Column, Mark, Row, Section, Table
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.printed import printed_value
from iqrl.statistics.curves import mean_curve, steps_and_returns, summarise
from iqrl.statistics.intervals import Interval, mean_interval

# A measured return beside a printed one

TOLERANCE = 0.05
"""share of a task's range within which a measured return counts as the printed one"""


class Scale(NamedTuple):
    """What hardly any policy stays below, and what a good one reaches."""

    worst: float
    best: float


SCALES = {
    "CartPole-v0": Scale(worst=9.0, best=200.0),
    "CartPole-v1": Scale(worst=9.0, best=500.0),
    "Acrobot-v1": Scale(worst=-500.0, best=-80.0),
    "Pendulum-v0": Scale(worst=-1600.0, best=-130.0),
    "MountainCar": Scale(worst=-1000.0, best=-100.0),
}
AS_PRINTED, ABOVE, BELOW = "as printed", "above", "below"
SIGNS = {AS_PRINTED: "≈", ABOVE: "▲", BELOW: "▼"}


class Verdict(NamedTuple):
    name: str
    """one of SIGNS"""
    difference: float
    """measured minus printed, as a share of the task's range"""


def judge(task: str, measured: float | None, printed: float | None) -> Verdict | None:
    """None where there is nothing to compare, or no scale to compare on.

    >>> judge("CartPole-v0", 195.0, 200.0).name, judge("CartPole-v0", 150.0, 200.0).name
    ('as printed', 'below')
    """
    if measured is None or printed is None or task not in SCALES:
        return None
    scale = SCALES[task]
    difference = (measured - printed) / (scale.best - scale.worst)
    name = AS_PRINTED if abs(difference) <= TOLERANCE else ABOVE if difference > 0 else BELOW
    return Verdict(name=name, difference=difference)


def verdict_legend() -> str:
    """What the verdicts mean, in sentences."""
    number = lambda value: f"{value:g}".replace("-", "−")
    scales = ", ".join(f"{task} {number(scale.worst)}…{number(scale.best)}" for task, scale in SCALES.items())
    return (
        f"Verdict: the highest point of the mean curve, compared with the number the paper prints. "
        f"{SIGNS[AS_PRINTED]} {AS_PRINTED}: the difference is at most {TOLERANCE:.0%} of the task's range of returns; "
        f"{SIGNS[ABOVE]} {ABOVE} or {SIGNS[BELOW]} {BELOW}: it is more. Ranges, from what hardly any policy stays "
        f"below to what a good one reaches: {scales}. The paper gives no spread over its five runs, so a verdict "
        f"describes the difference and does not test it. Runs with other settings, or of another length, "
        f"than the paper's have none."
    )


# Runs summed up

AXES_OF_THE_PAPER = {"task", "method", "buffer_size"}
"""what the paper's table varies; of a study that varies more, it prints nothing"""


class RunSummary(NamedTuple):
    placed: PlacedRun
    printed: float | None
    """highest return in the paper's table"""
    highest: float | None
    """highest point of the mean curve; None if no episode ended"""
    final: Interval | None
    """mean over seeds of the last tenth of the curve"""
    auc: Interval | None
    """mean over seeds of the whole curve"""
    seeds: tuple[int, ...]
    finals: tuple[float | None, ...]
    """final of each seed"""
    aucs: tuple[float | None, ...]
    """area under the curve of each seed"""
    verdict: Verdict | None


def summarise_runs(study: StudyResults) -> list[RunSummary]:
    """One per run, in the order of the tables."""
    by_run = study.curves.partition_by("run", as_dict=True)
    return [summarise_run(placed, by_run[(placed.run.id,)]) for placed in arrange(study)]


def summarise_run(placed: PlacedRun, curves: pl.DataFrame) -> RunSummary:
    """`curves` has the rows of this run."""
    _, returns = steps_and_returns(curves)
    per_seed = [summarise(curve) for curve in returns]
    highest, printed = summarise(mean_curve(returns))["highest"], printed_return(placed.run)
    return RunSummary(
        placed=placed,
        printed=printed,
        highest=highest,
        final=_interval([seed["final"] for seed in per_seed]),
        auc=_interval([seed["auc"] for seed in per_seed]),
        seeds=tuple(curves["seed"].unique().sort().to_list()),
        finals=tuple(seed["final"] for seed in per_seed),
        aucs=tuple(seed["auc"] for seed in per_seed),
        verdict=judge(placed.place.task, highest, printed) if _is_as_in_the_paper(placed.run) else None,
    )


def printed_return(run: RunRecord) -> float | None:
    """The highest return that the paper prints for such a run."""
    if not set(run.varied) <= AXES_OF_THE_PAPER:
        return None
    printed = printed_value(run.config["task"], run.config["method"], run.config["buffer_size"])
    return printed and printed.value


def count_verdicts(summaries: Sequence[RunSummary]) -> dict[str, int]:
    """How many runs have which verdict, variants apart if they are not all there is; empty without printed numbers."""
    plain = [summary for summary in summaries if not summary.placed.variant] or summaries
    names = [summary.verdict.name for summary in plain if summary.verdict]
    return {name: names.count(name) for name in SIGNS} if names else {}


def unfinished_text(study: StudyResults) -> str:
    """How many runs are missing, in a sentence; empty where none is."""
    are = "runs are" if study.unfinished > 1 else "run is"
    return f"{study.unfinished:,} planned {are} not finished and left out." if study.unfinished else ""


def _is_as_in_the_paper(run: RunRecord) -> bool:
    """Whether its settings and its length are the paper's, but for what a variant changes."""
    return not run.given or (run.given.get("preset") == "paper" and "steps" not in run.given)


def _interval(values: list[float | None]) -> Interval | None:
    measured = [value for value in values if value is not None]
    return mean_interval(measured) if measured else None


# The highest returns beside the paper's

PAPER, MEASURED = "paper", "measured"
NO_EPISODE = "none"


class _Source(NamedTuple):
    """Where the numbers of a column come from."""

    buffer_size: int | None
    variant: str | None
    """None: from the paper"""

    def column(self) -> Column:
        group = "" if self.buffer_size is None else size_name(self.buffer_size)
        if self.variant is None:
            return Column(name=PAPER, group=group, muted=True)
        return Column(name=self.variant or MEASURED, group=group)


def highest_tables(summaries: Sequence[RunSummary], title: str = "") -> list[Table]:
    """One table; where there are variants, one per buffer size, so that the columns of each can be read at once."""
    if len(unique(summary.placed.variant for summary in summaries)) < 2:
        return [highest_table(summaries, title)]
    return [highest_table(_at_size(summaries, size), title) for size in _sizes(summaries)]


def highest_table(summaries: Sequence[RunSummary], title: str = "") -> Table:
    """A row per task and line; per buffer size a column for the paper, the runs and each variant of them."""
    sources = _sources(summaries)
    sections = [
        Section(name=task, rows=_highest_rows([it for it in summaries if it.placed.place.task == task], sources))
        for task in unique(summary.placed.place.task for summary in summaries)
    ]
    columns = [source.column() for source in sources]
    return Table(title=title, section_header="task", columns=columns, sections=sections)


def _sizes(summaries: Sequence[RunSummary]) -> list[int | None]:
    return sorted({summary.placed.place.buffer_size for summary in summaries}, key=lambda size: size or 0)


def _at_size(summaries: Sequence[RunSummary], size: int | None) -> list[RunSummary]:
    return [summary for summary in summaries if summary.placed.place.buffer_size == size]


def _sources(summaries: Sequence[RunSummary]) -> list[_Source]:
    """The paper first, the runs without a variant before those with one."""
    sources = []
    for size in _sizes(summaries):
        here = _at_size(summaries, size)
        if any(summary.printed is not None for summary in here):
            sources.append(_Source(buffer_size=size, variant=None))
        variants = sorted(unique(summary.placed.variant for summary in here), key=bool)
        sources += [_Source(buffer_size=size, variant=variant) for variant in variants]
    return sources


def _highest_rows(summaries: Sequence[RunSummary], sources: Sequence[_Source]) -> list[Row]:
    """The rows of one task."""
    labels = unique(summary.placed.label for summary in summaries)
    columns = [_highest_cells([_find(summaries, source, label) for label in labels], source) for source in sources]
    return [Row(name=label, cells=[column[i] for column in columns]) for i, label in enumerate(labels)]


def _find(summaries: Sequence[RunSummary], source: _Source, label: str) -> RunSummary | None:
    """The paper's number is that of any variant: they share task, method and buffer size."""
    here = [it for it in _at_size(summaries, source.buffer_size) if it.placed.label == label]
    return next((it for it in here if source.variant in (None, it.placed.variant)), None)


def _highest_cells(summaries: Sequence[RunSummary | None], source: _Source) -> list[Cell]:
    """A column of one task; its highest numbers are strong, ties as they are written."""
    from_paper = source.variant is None
    values = [it and (it.printed if from_paper else it.highest) for it in summaries]
    written = [round(value, 1) for value in values if value is not None]
    cells = []
    for summary, value in zip(summaries, values, strict=True):
        if summary is None or (from_paper and value is None):
            cells.append(Cell())
            continue
        cell = Cell(
            text=NO_EPISODE if value is None else return_text(value),
            strong=value is not None and len(written) > 1 and round(value, 1) == max(written),
        )
        cells.append(cell if from_paper else _with_verdict(cell, summary))
    return cells


def _with_verdict(cell: Cell, summary: RunSummary) -> Cell:
    name = summary.verdict.name if summary.verdict else None
    mark = Mark(sign=SIGNS[name], meaning=name) if name else None
    return cell._replace(mark=mark, hint=f"final of each seed: {_finals_text(summary)}")


# Finals and areas under the curve

FINAL, AUC, FINALS = "final [95%]", "AUC [95%]", "final of each seed"


def detail_table(summaries: Sequence[RunSummary], for_print: bool = False) -> Table:
    """A row per run. In print the names stand on the left, and there is no room for every seed."""
    side = "left" if for_print else "right"
    names = [Column(name=name, align=side, numeric=False) for name in ("line", "variant")]
    numbers = [Column(name=name, escape=False) for name in ((FINAL, AUC) if for_print else (FINAL, AUC, FINALS))]
    rows = []
    for summary in summaries:
        placed = summary.placed
        texts = [_size_text(placed.place), placed.label, placed.variant, *_detail_texts(summary)]
        rows.append(Row(name=placed.place.task, cells=[Cell(text=text) for text in texts[: 3 + len(numbers)]]))
    columns = [Column(name="buffer", align="left", numeric=False), *names, *numbers]
    return Table(section_header=None, row_header="task", columns=columns, sections=[Section(name="", rows=rows)])


def folded_detail_table(summaries: Sequence[RunSummary], title: str, caption: str) -> Table:
    """The same with a section per task, and one name for line, buffer size and variant."""
    sections = []
    for task, members in itertools.groupby(summaries, key=lambda summary: summary.placed.place.task):
        rows = []
        for summary in members:
            placed = summary.placed
            name = ", ".join(filter(None, [placed.label, _size_text(placed.place), placed.variant]))
            rows.append(Row(name=name, cells=[Cell(text=text) for text in _detail_texts(summary)]))
        sections.append(Section(name=task, rows=rows))
    columns = [Column(name=FINAL), Column(name=AUC), Column(name=FINALS, align="left", muted=True)]
    return Table(title=title, caption=caption, columns=columns, sections=sections)


def _detail_texts(summary: RunSummary) -> list[str]:
    return [_interval_text(summary.final, summary), _interval_text(summary.auc, summary), _finals_text(summary)]


def _size_text(place: Place) -> str:
    return "" if place.buffer_size is None else size_name(place.buffer_size)


def _interval_text(interval: Interval | None, summary: RunSummary) -> str:
    """The value and its interval, which takes two seeds at least."""
    if interval is None:
        return NO_EPISODE
    value, low, high = map(return_text, interval)
    several = sum(final is not None for final in summary.finals) > 1
    return f"{value} [{low}, {high}]" if several else value


def _finals_text(summary: RunSummary) -> str:
    return ", ".join(NO_EPISODE if final is None else return_text(final) for final in summary.finals)
