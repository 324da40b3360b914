"""Which differences between methods are real: one method against each other, cell by cell and over all cells.

A cell is a task with a buffer size, and with whatever else the study varies. Methods are compared within a variant,
never across two. They are compared by three measures, since a method may lead by one and trail by another: the final
return, the area under the curve, and what was lost from the best point to the final. Every number is per seed:
bootstraps resample seeds, and permutation tests permute them.

Tests are of all cells together and of all cells with one buffer size, and all tests of a page are corrected together.
Single cells have intervals and no tests: there are hundreds of them on a page, with five or ten seeds each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from iqrl.experiments.report.arrangement import PlacedRun, setting_text, size_name, unique
from iqrl.experiments.report.cells import SCALES, RunSummary, summarise_runs
from iqrl.experiments.study.results import StudyResults
from iqrl.statistics.intervals import (
    Interval,
    Profile,
    difference_interval,
    interquartile_mean,
    normalise,
    performance_profile,
)
from iqrl.statistics.significance import (
    Sides,
    holm,
    mean_difference_tests,
    probability_of_improvement,
    smallest_stratified_p,
)

REFERENCE = "iq"
"""where a study names none"""
BETTER, WORSE, SUGGESTED, APART, TOO_FEW = (
    "better", "worse", "differs, not confirmed", "no clear difference", "too few seeds to test",
)  # fmt: skip
LEVEL = 0.05
FEWEST_SEEDS = 2
"""on either side: a single seed has no spread"""
RESAMPLES = 4000
THRESHOLDS = np.linspace(0, 1, 41)


class Measure(NamedTuple):
    """A number per seed by which methods are compared."""

    name: str
    """in a sentence"""
    column: str
    """over a column"""
    better: str
    worse: str
    """in a sentence, before the other method"""
    more_is_better: bool = True


MEASURES = {
    "final": Measure("final return", "final", "ends higher than", "ends lower than"),
    "auc": Measure("AUC", "AUC", "has a larger AUC than", "has a smaller AUC than"),
    "fall": Measure("deterioration", "deterioration", "loses less than", "loses more than", more_is_better=False),
}


class CellName(NamedTuple):
    task: str
    buffer_size: int
    settings: str = ""
    """what else the study varies"""

    @property
    def text(self) -> str:
        return ", ".join(filter(None, [self.task, size_name(self.buffer_size), self.settings]))


Scores = dict[str, np.ndarray]
"""the finite scores of one method in one cell, a number per seed, by measure"""
Cells = dict[CellName, Scores]


class CellDifference(NamedTuple):
    """The reference against a rival in one cell, by one measure."""

    cell: CellName
    rival: str
    measure: str
    effect: Interval
    """mean of the reference minus mean of the rival"""
    share: Interval | None
    """the same as a share of the task's range; None where no range is known"""
    improvement: float
    """how likely a run of the reference is the better one"""


class Difference(NamedTuple):
    """The reference against a rival over all cells, or over those of one buffer size, by one measure."""

    buffer_size: int | None
    rival: str
    measure: str
    cells: int
    improvement: Interval
    share: Interval | None
    """mean difference as a share of the tasks' ranges, over the cells that have one"""
    effect: Interval | None
    """mean difference of returns, where all cells are of one task that has no range"""
    p: float
    """of the mean difference"""
    adjusted: float
    """p corrected for all tests of the page"""
    smallest: float
    """the smallest p that so many seeds can give"""


class Standing(NamedTuple):
    """A method's normalised scores over all cells with a scale, or over those of one buffer size."""

    buffer_size: int | None
    method: str
    cells: int
    final: Interval
    auc: Interval
    fall: Interval
    profile: Profile
    """of the finals"""


class Comparison(NamedTuple):
    """The methods of one variant of a study, compared."""

    variant: str
    reference: str
    cells: list[CellDifference]
    overall: list[Difference]
    standings: list[Standing]
    left_out: list[str]
    """cells with too few seeds"""
    unscaled: list[str]
    """tasks without a scale of returns"""
    tests: int = 0
    """that the page has, and p is corrected for"""


def compare(study: StudyResults) -> list[Comparison]:
    """One comparison per variant that has several methods; the study is a page of its own."""
    return compare_page([study])[0]


def compare_page(studies: Sequence[StudyResults]) -> list[list[Comparison]]:
    """The comparisons of each study of a page. Their tests are corrected together, for as many as there are."""
    found = [_compare_study(study) for study in studies]
    p = [test.p for comparisons in found for one in comparisons for test in one.overall]
    adjusted = iter(holm(p).tolist())
    return [[_corrected(one, adjusted, len(p)) for one in comparisons] for comparisons in found]


def _corrected(comparison: Comparison, adjusted: Iterator[float], tests: int) -> Comparison:
    overall = [one._replace(adjusted=next(adjusted)) for one in comparison.overall]
    return comparison._replace(overall=overall, tests=tests)


def _compare_study(study: StudyResults) -> list[Comparison]:
    """None where the study has no chart of returns."""
    summaries = summarise_runs(study) if "return" in study.charts else []
    variants = sorted(unique(summary.placed.variant for summary in summaries), key=bool)
    by_variant = {variant: _scores([it for it in summaries if it.placed.variant == variant]) for variant in variants}
    reference = study.content.get("reference", REFERENCE)
    several = {variant: methods for variant, methods in by_variant.items() if len(methods) > 1}
    return [_compare_methods(variant, methods, reference) for variant, methods in several.items()]


def rank(difference: Difference, tests: int) -> str:
    """Where the reference stands: better than the rival, worse, or with no clear difference; or no test could tell.

    The intervals are not corrected for their number: one that leaves out 0 beside a test that does not confirm it
    suggests a difference.
    """
    if difference.adjusted < LEVEL:
        return BETTER if is_ahead(difference) else WORSE
    apart = difference.share or difference.effect
    if apart and (apart.low > 0 or apart.high < 0):
        return SUGGESTED
    return TOO_FEW if difference.smallest * tests > LEVEL else APART


def is_ahead(difference: Difference) -> bool:
    """Whether the reference has the better mean; by wins, where there is no mean over the cells."""
    apart = difference.share or difference.effect
    if apart is None:
        return difference.improvement.value > 0.5
    return (apart.value > 0) == MEASURES[difference.measure].more_is_better


def sizes_of(cells: Sequence[CellName]) -> list[int | None]:
    """All cells together, then each buffer size where there are several."""
    sizes = sorted({cell.buffer_size for cell in cells})
    return [None, *sizes] if len(sizes) > 1 else [None]


def _scores(summaries: Sequence[RunSummary]) -> dict[str, Cells]:
    """The cells of each method, in the order of the study."""
    methods: dict[str, Cells] = {}
    for summary in summaries:
        cells = methods.setdefault(summary.placed.run.config["method"], {})
        by_measure = {"final": summary.finals, "auc": summary.aucs, "fall": summary.falls}
        cells[_cell_name(summary.placed)] = {name: _finite(values) for name, values in by_measure.items()}
    return methods


def _cell_name(placed: PlacedRun) -> CellName:
    config, rest = placed.run.config, ("task", "method", "buffer_size")
    settings = " ".join(setting_text(name, config.get(name)) for name in placed.run.varied if name not in rest)
    return CellName(task=config["task"], buffer_size=config["buffer_size"], settings=settings)


def _finite(values: Sequence[float | None]) -> np.ndarray:
    return np.array([value for value in values if value is not None and np.isfinite(value)])


def _compare_methods(variant: str, methods: dict[str, Cells], reference: str) -> Comparison:
    reference = reference if reference in methods else list(methods)[-1]
    enough = {method: _with_enough_seeds(cells) for method, cells in methods.items()}
    rivals = {method: enough[method] for method in methods if method != reference}
    return Comparison(
        variant=variant,
        reference=reference,
        cells=_cell_differences(enough[reference], rivals),
        overall=_differences(enough[reference], rivals),
        standings=_standings(enough),
        left_out=[
            f"{method} on {cell.text}"
            for cell in _all_cells(methods)
            for method in methods
            if cell in methods[method] and cell not in enough[method]
        ],
        unscaled=unique(cell.task for cell in _all_cells(methods) if cell.task not in SCALES),
    )


def _with_enough_seeds(cells: Cells) -> Cells:
    return {cell: scores for cell, scores in cells.items() if min(map(len, scores.values())) >= FEWEST_SEEDS}


def _all_cells(methods: dict[str, Cells]) -> list[CellName]:
    return unique(cell for cells in methods.values() for cell in cells)


# One method against another


def _cell_differences(reference: Cells, rivals: dict[str, Cells]) -> list[CellDifference]:
    return [
        _cell_difference(cell, rival, measure, reference[cell][measure], rivals[rival][cell][measure])
        for cell in reference
        for rival in rivals
        if cell in rivals[rival]
        for measure in MEASURES
    ]


def _cell_difference(cell: CellName, rival: str, measure: str, own: np.ndarray, other: np.ndarray) -> CellDifference:
    effect, scale = difference_interval([own], [other], resamples=RESAMPLES), SCALES.get(cell.task)
    return CellDifference(
        cell=cell,
        rival=rival,
        measure=measure,
        effect=effect,
        share=Interval(*[end / scale.range for end in effect]) if scale else None,
        improvement=_wins(measure, own, other),
    )


def _wins(measure: str, own: np.ndarray, other: np.ndarray) -> float:
    """How likely a run of the first is the better one; a tie counts one half."""
    ahead = np.heaviside(own[:, None] - other[None, :], 0.5).mean()
    return float(ahead if MEASURES[measure].more_is_better else 1 - ahead)


def _differences(reference: Cells, rivals: dict[str, Cells]) -> list[Difference]:
    return [one for size in sizes_of(list(reference)) for one in _differences_at(size, reference, rivals)]


def _differences_at(size: int | None, reference: Cells, rivals: dict[str, Cells]) -> list[Difference]:
    pairs = [(rival, measure) for rival in rivals for measure in MEASURES if _shared(size, reference, rivals[rival])]
    sides, tested = [], []
    for rival, measure in pairs:
        shared = _shared(size, reference, rivals[rival])
        # A run with less deterioration is the better one.
        sign = 1 if MEASURES[measure].more_is_better else -1
        scores = lambda cells, sign=sign, name=measure, shared=shared: [sign * cells[it][name] for it in shared]
        sides.append((scores(reference), scores(rivals[rival])))
        tested.append(_on_one_scale(shared, *sides[-1]))
    return [
        Difference(
            buffer_size=size,
            rival=rival,
            measure=measure,
            cells=len(both[0]),
            improvement=probability_of_improvement(*both, resamples=RESAMPLES),
            share=_mean_share(measure, _shared(size, reference, rivals[rival]), *both),
            effect=_mean_effect(measure, _shared(size, reference, rivals[rival]), *both),
            p=test.p,
            adjusted=test.p,
            smallest=smallest_stratified_p(*[[len(scores) for scores in side] for side in scaled]),
        )
        for (rival, measure), both, scaled, test in zip(
            pairs, sides, tested, mean_difference_tests(tested), strict=True
        )
    ]


def _on_one_scale(cells: list[CellName], own: list[np.ndarray], other: list[np.ndarray]) -> Sides:
    """What can be averaged over cells: shares of the ranges, of those that have one; else in units of the spread."""
    ranges = [SCALES[cell.task].range if cell.task in SCALES else None for cell in cells]
    if not any(ranges):
        ranges = [float(np.std(np.concatenate(both))) or 1.0 for both in zip(own, other, strict=True)]
    scaled = [(x / it, y / it) for x, y, it in zip(own, other, ranges, strict=True) if it]
    return [x for x, _ in scaled], [y for _, y in scaled]


def _mean_share(measure: str, cells: list[CellName], own: list[np.ndarray], other: list[np.ndarray]) -> Interval | None:
    """The mean difference on the tasks' scales; None where no task has one. Deterioration has its own sign again."""
    scales = [SCALES.get(cell.task) for cell in cells]
    sign = 1 if MEASURES[measure].more_is_better else -1
    on_scale = lambda scores: [sign * it / scale.range for it, scale in zip(scores, scales, strict=True) if scale]
    return difference_interval(on_scale(own), on_scale(other), resamples=RESAMPLES) if any(scales) else None


def _mean_effect(
    measure: str, cells: list[CellName], own: list[np.ndarray], other: list[np.ndarray]
) -> Interval | None:
    """In returns: tasks without a range have no common scale, so it takes a single one."""
    tasks = {cell.task for cell in cells}
    if len(tasks) > 1 or tasks & set(SCALES):
        return None
    found = difference_interval(own, other, resamples=RESAMPLES)
    return found if MEASURES[measure].more_is_better else Interval(-found.value, -found.high, -found.low)


def _shared(size: int | None, cells: Cells, others: Cells) -> list[CellName]:
    return [cell for cell in cells if cell in others and size in (None, cell.buffer_size)]


# Each method on one scale


def _standings(methods: dict[str, Cells]) -> list[Standing]:
    scaled = {
        method: {cell: it for cell, it in cells.items() if cell.task in SCALES} for method, cells in methods.items()
    }
    return [
        _standing(size, method, cells)
        for size in sizes_of(_all_cells(scaled))
        for method, cells in scaled.items()
        if _shared(size, cells, cells)
    ]


def _standing(size: int | None, method: str, cells: Cells) -> Standing:
    here = _shared(size, cells, cells)
    finals, aucs = ([_on_scale(cell, cells[cell][name]) for cell in here] for name in ("final", "auc"))
    falls = [cells[cell]["fall"] / SCALES[cell.task].range for cell in here]
    return Standing(
        buffer_size=size,
        method=method,
        cells=len(here),
        final=interquartile_mean(finals, resamples=RESAMPLES),
        auc=interquartile_mean(aucs, resamples=RESAMPLES),
        fall=interquartile_mean(falls, resamples=RESAMPLES),
        profile=performance_profile(finals, THRESHOLDS),
    )


def _on_scale(cell: CellName, scores: np.ndarray) -> np.ndarray:
    """0 is what hardly any policy stays below, 1 what a good one reaches."""
    scale = SCALES[cell.task]
    return normalise(scores, scale.worst, scale.best)
