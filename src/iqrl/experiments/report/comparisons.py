"""Which differences between methods are real: one method against each other, cell by cell and over all cells.

A cell is a task with a buffer size, and with whatever else the study varies. Methods are compared within a variant,
never across two. Every number is per seed: bootstraps resample seeds, and permutation tests permute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.experiments.report.arrangement import PlacedRun, setting_text, size_name, unique
from iqrl.experiments.report.cells import SCALES, RunSummary, summarise_runs
from iqrl.experiments.study.results import StudyResults
from iqrl.statistics.intervals import Interval, Profile, interquartile_mean, normalise, performance_profile
from iqrl.statistics.significance import (
    holm,
    permutation_test,
    probability_of_improvement,
    smallest_p,
    stratified_permutation_test,
)

REFERENCE = "iq"
ABOVE, BELOW, APART = "above", "below", "not told apart"
LEVEL = 0.05
FEWEST_SEEDS = 2
"""on either side: a single seed has no spread"""
THRESHOLDS = np.linspace(0, 1, 41)


class CellName(NamedTuple):
    task: str
    buffer_size: int
    settings: str = ""
    """what else the study varies"""

    @property
    def text(self) -> str:
        return ", ".join(filter(None, [self.task, size_name(self.buffer_size), self.settings]))


class Scores(NamedTuple):
    """The finite scores of one method in one cell, a number per seed."""

    finals: np.ndarray
    aucs: np.ndarray


class CellDifference(NamedTuple):
    """The reference against a rival in one cell, by their areas under the curve."""

    cell: CellName
    rival: str
    difference: float
    """mean of the reference minus mean of the rival"""
    p: float
    adjusted: float
    """p corrected for all cells and rivals of the variant"""
    smallest: float
    """the smallest p that so many seeds can give"""
    improvement: Interval


class Difference(NamedTuple):
    """The reference against a rival over all cells, or over those of one buffer size."""

    buffer_size: int | None
    rival: str
    cells: int
    improvement: Interval
    p: float
    adjusted: float
    """p corrected for the rivals"""


class Standing(NamedTuple):
    """A method's normalised scores over all cells with a scale, or over those of one buffer size."""

    buffer_size: int | None
    method: str
    cells: int
    final: Interval
    auc: Interval
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

    @property
    def too_few_seeds(self) -> bool:
        """Whether no cell, however clear, could have a corrected p below the level."""
        return bool(self.cells) and min(one.smallest for one in self.cells) * len(self.cells) > LEVEL


Cells = dict[CellName, Scores]


def compare(study: StudyResults) -> list[Comparison]:
    """One comparison per variant that has several methods; none where the study has no chart of returns."""
    summaries = summarise_runs(study) if "return" in study.charts else []
    variants = sorted(unique(summary.placed.variant for summary in summaries), key=bool)
    by_variant = {variant: _scores([it for it in summaries if it.placed.variant == variant]) for variant in variants}
    return [_compare_methods(variant, methods) for variant, methods in by_variant.items() if len(methods) > 1]


def rank(difference: Difference) -> str:
    """Where the reference stands: above the rival, below it, or not told apart from it."""
    if difference.adjusted >= LEVEL:
        return APART
    return ABOVE if difference.improvement.value > 0.5 else BELOW


def sizes_of(cells: Sequence[CellName]) -> list[int | None]:
    """All cells together, then each buffer size where there are several."""
    sizes = sorted({cell.buffer_size for cell in cells})
    return [None, *sizes] if len(sizes) > 1 else [None]


def _scores(summaries: Sequence[RunSummary]) -> dict[str, Cells]:
    """The cells of each method, in the order of the study."""
    methods: dict[str, Cells] = {}
    for summary in summaries:
        cells = methods.setdefault(summary.placed.run.config["method"], {})
        cells[_cell_name(summary.placed)] = Scores(finals=_finite(summary.finals), aucs=_finite(summary.aucs))
    return methods


def _cell_name(placed: PlacedRun) -> CellName:
    config, rest = placed.run.config, ("task", "method", "buffer_size")
    settings = " ".join(setting_text(name, config.get(name)) for name in placed.run.varied if name not in rest)
    return CellName(task=config["task"], buffer_size=config["buffer_size"], settings=settings)


def _finite(values: Sequence[float | None]) -> np.ndarray:
    return np.array([value for value in values if value is not None and np.isfinite(value)])


def _compare_methods(variant: str, methods: dict[str, Cells]) -> Comparison:
    reference = REFERENCE if REFERENCE in methods else list(methods)[-1]
    enough = {method: _with_enough_seeds(cells) for method, cells in methods.items()}
    rivals = [method for method in methods if method != reference]
    return Comparison(
        variant=variant,
        reference=reference,
        cells=_cell_differences(enough[reference], {rival: enough[rival] for rival in rivals}),
        overall=_differences(enough[reference], {rival: enough[rival] for rival in rivals}),
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
    return {cell: scores for cell, scores in cells.items() if min(map(len, scores)) >= FEWEST_SEEDS}


def _all_cells(methods: dict[str, Cells]) -> list[CellName]:
    return unique(cell for cells in methods.values() for cell in cells)


# One method against another


def _cell_differences(reference: Cells, rivals: dict[str, Cells]) -> list[CellDifference]:
    pairs = [(cell, rival) for cell in reference for rival in rivals if cell in rivals[rival]]
    sides = [(reference[cell].aucs, rivals[rival][cell].aucs) for cell, rival in pairs]
    tests = [permutation_test(own, other) for own, other in sides]
    adjusted = holm([test.p for test in tests])
    return [
        CellDifference(
            cell=cell,
            rival=rival,
            difference=test.difference,
            p=test.p,
            adjusted=float(after),
            smallest=smallest_p(len(own), len(other)),
            improvement=probability_of_improvement([own], [other]),
        )
        for (cell, rival), (own, other), test, after in zip(pairs, sides, tests, adjusted, strict=True)
    ]


def _differences(reference: Cells, rivals: dict[str, Cells]) -> list[Difference]:
    return [difference for size in sizes_of(list(reference)) for difference in _differences_at(size, reference, rivals)]


def _differences_at(size: int | None, reference: Cells, rivals: dict[str, Cells]) -> list[Difference]:
    """Corrected for the rivals that can be compared at this buffer size."""
    shared = {rival: _shared(size, reference, cells) for rival, cells in rivals.items()}
    sides = {
        rival: ([reference[cell].aucs for cell in cells], [rivals[rival][cell].aucs for cell in cells])
        for rival, cells in shared.items()
        if cells
    }
    p = [stratified_permutation_test(*both).p for both in sides.values()]
    return [
        Difference(
            buffer_size=size,
            rival=rival,
            cells=len(both[0]),
            improvement=probability_of_improvement(*both),
            p=before,
            adjusted=float(after),
        )
        for (rival, both), before, after in zip(sides.items(), p, holm(p), strict=True)
    ]


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
    finals = [_on_scale(cell, cells[cell].finals) for cell in here]
    aucs = [_on_scale(cell, cells[cell].aucs) for cell in here]
    return Standing(
        buffer_size=size,
        method=method,
        cells=len(here),
        final=interquartile_mean(finals),
        auc=interquartile_mean(aucs),
        profile=performance_profile(finals, THRESHOLDS),
    )


def _on_scale(cell: CellName, scores: np.ndarray) -> np.ndarray:
    """0 is what hardly any policy stays below, 1 what a good one reaches."""
    return normalise(scores, *SCALES[cell.task])
