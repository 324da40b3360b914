"""Which differences between methods are real: one method against each other, cell by cell and over all cells.

A cell is a task with a buffer size, and with whatever else the study varies. Methods are compared within a variant,
never across two. Every number is per seed, so that seeds are what is resampled and dealt out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.report.arrangement import Placed, setting_text, size_name, unique
from iqrl.report.grid import Found, placed_cells
from iqrl.report.verdicts import SCALES
from iqrl.statistics.aggregates import interquartile_mean, normalised
from iqrl.statistics.bootstrap import Interval
from iqrl.statistics.improvement import probability_of_improvement
from iqrl.statistics.multiple import holm
from iqrl.statistics.permutation import permutation_test, smallest_p, stratified_permutation_test
from iqrl.statistics.profiles import Profile, performance_profile
from iqrl.studies.results import StudyResults

REFERENCE = "iq"
ABOVE, BELOW, APART = "above", "below", "not told apart"
LEVEL = 0.05
FEWEST_SEEDS = 2
"""on either side: a single seed says nothing of how far another would lie"""
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
    """What is known of one method in one cell, a number per seed."""

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
    """the least p that so many seeds can give"""
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
    """What one variant of a study says of its methods."""

    variant: str
    reference: str
    cells: list[CellDifference]
    overall: list[Difference]
    standings: list[Standing]
    left_out: list[str]
    """cells with too few seeds"""
    unscaled: list[str]
    """tasks of which no scale is known"""

    @property
    def none_can_hold(self) -> bool:
        """Whether no cell, however clear, could keep a p below the level once it is corrected for the others."""
        return bool(self.cells) and min(one.smallest for one in self.cells) * len(self.cells) > LEVEL


Cells = dict[CellName, Scores]


def compare(study: StudyResults) -> list[Comparison]:
    """One per variant that has several methods; none where returns are not what the study is about."""
    return comparisons_of(placed_cells(study)) if "return" in study.charts else []


def comparisons_of(found: Found) -> list[Comparison]:
    variants = sorted(unique(placed.variant for placed, _ in found), key=bool)
    by_variant = [(variant, _methods([pair for pair in found if pair[0].variant == variant])) for variant in variants]
    return [_comparison(variant, methods) for variant, methods in by_variant if len(methods) > 1]


def verdict_of(difference: Difference) -> str:
    """Where the reference stands."""
    if difference.adjusted >= LEVEL:
        return APART
    return ABOVE if difference.improvement.value > 0.5 else BELOW


def sizes_of(cells: Sequence[CellName]) -> list[int | None]:
    """All cells together, then each buffer size where there are several."""
    sizes = sorted({cell.buffer_size for cell in cells})
    return [None, *sizes] if len(sizes) > 1 else [None]


def _methods(found: Found) -> dict[str, Cells]:
    """The cells of each method, in the order of the study."""
    methods: dict[str, Cells] = {}
    for placed, cell in found:
        methods.setdefault(placed.run.config["method"], {})[_cell_name(placed)] = Scores(
            _known(cell.finals), _known(cell.aucs)
        )
    return methods


def _cell_name(placed: Placed) -> CellName:
    config, rest = placed.run.config, ("task", "method", "buffer_size")
    settings = " ".join(setting_text(name, config.get(name)) for name in placed.run.varied if name not in rest)
    return CellName(config["task"], config["buffer_size"], settings)


def _known(values: Sequence[float | None]) -> np.ndarray:
    return np.array([value for value in values if value is not None and np.isfinite(value)])


def _comparison(variant: str, methods: dict[str, Cells]) -> Comparison:
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
            cell, rival, test.difference, test.p, float(after), smallest_p(len(own), len(other)),
            probability_of_improvement([own], [other]),
        )
        for (cell, rival), (own, other), test, after in zip(pairs, sides, tests, adjusted, strict=True)
    ]  # fmt: skip


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
        Difference(size, rival, len(both[0]), probability_of_improvement(*both), before, float(after))
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
    profile = performance_profile(finals, THRESHOLDS)
    return Standing(size, method, len(here), interquartile_mean(finals), interquartile_mean(aucs), profile)


def _on_scale(cell: CellName, scores: np.ndarray) -> np.ndarray:
    """0 is what hardly any policy stays below, 1 what a good one reaches."""
    return normalised(scores, *SCALES[cell.task])
