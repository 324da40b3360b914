"""Runs summed up beside the numbers of the paper, and the two tables of a study that show them.

The paper prints the highest point of the mean of five runs, without a spread. How far such a number varies is known
from our own seeds: from every five of them. The printed number is judged by that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from iqrl.diagnostics.text import return_text
from iqrl.experiments.report.arrangement import Place, PlacedRun, arrange, size_name, unique
from iqrl.experiments.report.table import Cell, Column, Mark, Row, Section, Table
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.printed import printed_value
from iqrl.statistics.curves import (
    COLLAPSED,
    NEVER_LEARNED,
    auc,
    fall,
    fates,
    final,
    mean_curve,
    steps_and_returns,
    summarise,
)
from iqrl.statistics.highest import highest_of_few
from iqrl.statistics.intervals import Interval, mean_interval

# A measured return beside a printed one

PAPERS_RUNS = 5
FEWEST_SEEDS = 8
"""of which five can be drawn in enough ways to see how far their highest points lie apart"""


class Scale(NamedTuple):
    """What hardly any policy stays below, what a random one gets, and what a good one reaches."""

    worst: float
    random: float
    best: float

    @property
    def range(self) -> float:
        return self.best - self.worst


SCALES = {
    "CartPole-v0": Scale(worst=9.0, random=22.0, best=200.0),
    "CartPole-v1": Scale(worst=9.0, random=22.0, best=500.0),
    "Acrobot-v1": Scale(worst=-500.0, random=-495.0, best=-80.0),
    "Pendulum-v0": Scale(worst=-1600.0, random=-1236.0, best=-130.0),
    "MountainCar-v0": Scale(worst=-200.0, random=-200.0, best=-100.0),
    "MountainCar": Scale(worst=-1000.0, random=-1000.0, best=-100.0),
}
NOT_APART, ABOVE, BELOW = "not told apart", "above", "below"
SIGNS = {NOT_APART: "≈", ABOVE: "▲", BELOW: "▼"}


class Verdict(NamedTuple):
    name: str
    """one of SIGNS"""
    expected: Interval
    """our highest return, and between which numbers five other such runs would print theirs"""


def judge(returns: np.ndarray, printed: float | None, digit: float = 0.1) -> Verdict | None:
    """Whether five runs such as ours [seeds, periods] would print this number; None where that cannot be said.

    `digit` is the last one printed: a number is rounded by up to half of it.
    """
    highest = summarise(mean_curve(returns))["highest"]
    if highest is None or printed is None or len(returns) < FEWEST_SEEDS:
        return None
    expected = Interval(highest, *_ends_of_five(returns))
    name = ABOVE if printed < expected.low - digit / 2 else BELOW if printed > expected.high + digit / 2 else NOT_APART
    return Verdict(name=name, expected=expected)


def _ends_of_five(returns: np.ndarray) -> tuple[float, float]:
    """Between which numbers the highest return of five other runs lies, 19 times of 20.

    Choices of five of our n seeds overlap: their variance is 1 - 5/n of that of five independent runs. The difference
    between five other runs and all of ours has 1 + 5/n of it. So distances from the median are stretched.
    """
    low, middle, high = np.quantile(highest_of_few(returns, PAPERS_RUNS), (0.025, 0.5, 0.975))
    stretch = ((len(returns) + PAPERS_RUNS) / (len(returns) - PAPERS_RUNS)) ** 0.5
    return float(middle - stretch * (middle - low)), float(middle + stretch * (high - middle))


def verdict_legend() -> str:
    """What the verdicts mean, in sentences."""
    return (
        f"Verdict: our highest return beside the number that the paper prints. The paper gives no spread over its "
        f"{PAPERS_RUNS} runs, so it is estimated from our seeds: from the highest returns of all choices of "
        f"{PAPERS_RUNS} of them, widened for the uncertainty of our own number. {SIGNS[NOT_APART]} {NOT_APART}: the "
        f"printed number lies in the range of 19 in 20 such prints, which can be wide. {SIGNS[ABOVE]} {ABOVE} or "
        f"{SIGNS[BELOW]} {BELOW}: our runs are above it or below it. There is no verdict for runs with other settings "
        f"or another length than the paper's, nor for fewer than {FEWEST_SEEDS} seeds."
    )


def scale_legend(tasks: Sequence[str] = tuple(SCALES)) -> str:
    """The ranges that shares are taken of, and what the words for seeds mean; empty where no task has a range."""
    if not set(tasks) & set(SCALES):
        return ""
    number = lambda value: f"{value:g}".replace("-", "−")
    scales = ", ".join(f"{task} {number(it.worst)}…{number(it.best)}" for task, it in SCALES.items() if task in tasks)
    return (
        f"Ranges of returns, from those of a very bad policy to those of a good one: {scales}. A seed never learned if "
        f"no point of its curve is a quarter of the way from a random policy to a good one. It collapsed if it learned "
        f"and its final return lost at least half of what its best point had gained."
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
    fall: Interval | None
    """mean over seeds of the best point minus the final"""
    seeds: tuple[int, ...]
    finals: tuple[float | None, ...]
    """final of each seed"""
    aucs: tuple[float | None, ...]
    """area under the curve of each seed"""
    falls: tuple[float | None, ...]
    """deterioration of each seed"""
    fates: tuple[str | None, ...]
    """what became of each seed; empty on a task without a scale"""
    verdict: Verdict | None


def summarise_runs(study: StudyResults) -> list[RunSummary]:
    """One per run, in the order of the tables."""
    by_run = study.curves.partition_by("run", as_dict=True)
    return [summarise_run(placed, by_run[(placed.run.id,)]) for placed in arrange(study)]


def summarise_run(placed: PlacedRun, curves: pl.DataFrame) -> RunSummary:
    """`curves` has the rows of this run."""
    _, returns = steps_and_returns(curves)
    printed, scale = printed_return(placed.run), SCALES.get(placed.place.task)
    finals, aucs, falls = (_known(number(returns)) for number in (final, auc, fall))
    return RunSummary(
        placed=placed,
        printed=printed,
        highest=summarise(mean_curve(returns))["highest"],
        final=_interval(finals),
        auc=_interval(aucs),
        fall=_interval(falls),
        seeds=tuple(curves["seed"].unique().sort().to_list()),
        finals=finals,
        aucs=aucs,
        falls=falls,
        fates=tuple(fates(returns, scale.random, scale.best)) if scale else (),
        verdict=judge(returns, printed),
    )


def _known(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(float(value) if np.isfinite(value) else None for value in values)


def printed_return(run: RunRecord) -> float | None:
    """The highest return that the paper prints for such a run; None if its settings or its length are others."""
    if not set(run.varied) <= AXES_OF_THE_PAPER or not _is_as_in_the_paper(run):
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


GIVEN_IN_THE_PAPER = AXES_OF_THE_PAPER | {"preset", "seed", "seeds"}


def _is_as_in_the_paper(run: RunRecord) -> bool:
    """Whether all its settings, its length among them, are those of the preset `paper`."""
    return not run.given or (run.given.get("preset") == "paper" and set(run.given) <= GIVEN_IN_THE_PAPER)


def _interval(values: Sequence[float | None]) -> Interval | None:
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
    """The paper's number stands with the runs that have its settings."""
    here = [it for it in _at_size(summaries, source.buffer_size) if it.placed.label == label]
    if source.variant is None:
        return next((it for it in here if it.printed is not None), None)
    return next((it for it in here if it.placed.variant == source.variant), None)


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
    expected = f"; five such runs would print {_ends_text(summary.verdict.expected)}" if summary.verdict else ""
    return cell._replace(mark=mark, hint=f"final of each seed: {_finals_text(summary)}{expected}")


# Finals, areas under the curve and what was lost

FINAL, AUC, FALL, FATES, FINALS = "final [95%]", "AUC [95%]", "deterioration [95%]", "seeds", "final of each seed"
MOST_FINALS = 10
"""seeds whose finals are named one by one; of more there are the quartiles"""


def detail_table(summaries: Sequence[RunSummary], for_print: bool = False) -> Table:
    """A row per run. In print the names stand on the left, and there is no room for every seed."""
    side = "left" if for_print else "right"
    names = [Column(name=name, align=side, numeric=False) for name in ("line", "variant")]
    shown = (FINAL, AUC, FALL) if for_print else (FINAL, AUC, FALL, FATES, FINALS)
    numbers = [Column(name=name, escape=False, numeric=name != FATES) for name in shown]
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
    columns = [Column(name=name) for name in (FINAL, AUC, FALL)]
    columns += [
        Column(name=FATES, align="left", numeric=False),
        Column(name=FINALS, align="left", muted=True),
    ]
    return Table(title=title, caption=caption, columns=columns, sections=sections)


def _detail_texts(summary: RunSummary) -> list[str]:
    intervals = [_interval_text(it, summary) for it in (summary.final, summary.auc, summary.fall)]
    return [*intervals, fates_text(summary.fates), _finals_text(summary)]


def fates_text(fates: Sequence[str | None]) -> str:
    """How many seeds never learned and how many collapsed; empty where all held what they had.

    >>> fates_text(["held", "collapsed", "collapsed"])
    '2 of 3 collapsed'
    """
    counts = [(name, fates.count(name)) for name in (NEVER_LEARNED, COLLAPSED)]
    return ", ".join(f"{number} of {len(fates)} {name}" for name, number in counts if number)


def _size_text(place: Place) -> str:
    return "" if place.buffer_size is None else size_name(place.buffer_size)


def _interval_text(interval: Interval | None, summary: RunSummary) -> str:
    """The value and its interval, which takes two seeds at least."""
    if interval is None:
        return NO_EPISODE
    several = sum(final is not None for final in summary.finals) > 1
    return interval_text(interval) if several else return_text(interval.value)


NO_SPREAD = "no spread"


def interval_text(interval: Interval, number: Callable[[float], str] = return_text) -> str:
    """The value and its interval. One without a width is said in words: all seeds agree, which is not certainty.

    >>> interval_text(Interval(12.0, 10.0, 14.0)), interval_text(Interval(200.0, 200.0, 200.0))
    ('12.0 [10.0, 14.0]', '200.0 (no spread)')
    >>> interval_text(Interval(199.99, 199.98, 199.995))
    '200.0 [200.0, 200.0]'
    """
    if interval.has_no_width:
        return f"{number(interval.value)} ({NO_SPREAD})"
    return f"{number(interval.value)} [{number(interval.low)}, {number(interval.high)}]"


def _ends_text(interval: Interval) -> str:
    return f"{return_text(interval.low)} to {return_text(interval.high)}"


def _finals_text(summary: RunSummary) -> str:
    if len(summary.finals) <= MOST_FINALS:
        return ", ".join(NO_EPISODE if final is None else return_text(final) for final in summary.finals)
    known = [final for final in summary.finals if final is not None]
    return quartiles_text(known) if known else NO_EPISODE


def quartiles_text(scores: Sequence[float]) -> str:
    """
    >>> quartiles_text([1.0, 2.0, 3.0, 4.0, 50.0])
    'lowest 1.00, quartiles 2.00, 3.00, 4.00, highest 50.0'
    """
    low, *quartiles, high = (return_text(float(it)) for it in np.quantile(scores, (0, 0.25, 0.5, 0.75, 1)))
    return f"lowest {low}, quartiles {', '.join(quartiles)}, highest {high}"
