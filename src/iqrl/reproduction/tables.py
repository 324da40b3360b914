"""The paper's three Atari tables, computed again from its authors' curves, beside what five runs can show.

Highest return and maximum deterioration have one number per setting. The third table tests IQ-RE against its
baselines. The paper's tables are made of its drawn curves: means of four iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from iqrl.reproduction.printed import (
    ATARI_METHODS,
    ATARI_PAIRS,
    BASELINES,
    BUFFER_SIZES,
    FAMILIES,
    GAMES,
    RUNS,
    SMOOTHING,
    Pair,
    PrintedNumber,
    PrintedP,
    Setting,
    printed_deterioration,
    printed_highest,
    printed_p,
)
from iqrl.statistics.curves import auc, deterioration, final, highest, smooth
from iqrl.statistics.intervals import Interval, mean_interval
from iqrl.statistics.significance import (
    Permutation,
    holm,
    ks,
    permutation_test,
    pooled_ks,
    probability_of_improvement,
    stratified_permutation_test,
)

Runs = Mapping[Setting, np.ndarray]
"""[runs, iterations] of each setting"""


# Highest return and maximum deterioration


class RecomputedNumber(NamedTuple):
    setting: Setting
    printed: PrintedNumber
    computed: float

    @property
    def matches(self) -> bool:
        return self.printed.agrees(self.computed)


class Scores(NamedTuple):
    """What the paper does not report: means over runs with 95% intervals."""

    setting: Setting
    final: Interval
    auc: Interval


def recompute_highest(runs: Runs) -> list[RecomputedNumber]:
    return _recompute(runs, printed_highest, highest)


def recompute_deterioration(runs: Runs) -> list[RecomputedNumber]:
    return _recompute(runs, printed_deterioration, deterioration)


def recompute_averages(deteriorations: list[RecomputedNumber]) -> list[RecomputedNumber]:
    """The last row of the table of deterioration: the mean over the games."""
    settings = [Setting("Average", size, method) for size in BUFFER_SIZES for method in ATARI_METHODS]
    return [
        RecomputedNumber(setting, printed, average_over_games(deteriorations, setting.method, setting.buffer_size))
        for setting in settings
        if (printed := printed_deterioration(setting))
    ]


def average_over_games(numbers: list[RecomputedNumber], method: str, buffer_size: int) -> float:
    chosen = [one.computed for one in numbers if one.setting[1:] == (buffer_size, method)]
    assert len(chosen) == len(GAMES)
    return float(np.mean(chosen))


def score_runs(runs: Runs) -> list[Scores]:
    return [
        Scores(setting=setting, final=mean_interval(final(curves)), auc=mean_interval(auc(curves)))
        for setting, curves in runs.items()
    ]


def _recompute(
    runs: Runs, printed_of: Callable[[Setting], PrintedNumber | None], number: Callable[[np.ndarray], float]
) -> list[RecomputedNumber]:
    return [
        RecomputedNumber(setting=setting, printed=printed, computed=number(smooth(curves, SMOOTHING)))
        for setting, curves in runs.items()
        if (printed := printed_of(setting))
    ]


# IQ-RE against its baselines


class Comparison(NamedTuple):
    """One cell of the paper's table of tests, and the tests that it could have been."""

    pair: Pair
    printed: PrintedP
    smoothed_p: float
    """pooled points of the drawn curves, 5 × 50 a side"""
    raw_p: float
    """pooled points of the raw curves, 5 × 200 a side"""
    described_p: float
    """the test that the text of the paper describes: Kolmogorov–Smirnov on one AUC per run"""
    permutation: Permutation
    """of one AUC per run"""
    holm_p: float
    """the permutation test's p-value, adjusted for the number of comparisons"""
    improvement: Interval
    """probability that a run of IQ-RE has the larger AUC"""

    @property
    def printed_from(self) -> Literal["smoothed", "raw", "both", "neither"]:
        """Which pooled points give the printed p-value."""
        by_smoothed, by_raw = (self.printed.cell.agrees(p) for p in (self.smoothed_p, self.raw_p))
        if by_smoothed:
            return "both" if by_raw else "smoothed"
        return "raw" if by_raw else "neither"

    @property
    def pooled_p(self) -> float:
        """The paper's p-value: from raw points if only these give its number."""
        return self.raw_p if self.printed_from == "raw" else self.smoothed_p

    @property
    def better(self) -> bool:
        """Whether IQ-RE's mean AUC is the larger one."""
        return self.permutation.difference > 0


class OverallComparison(NamedTuple):
    """Over all games, and over both replay capacities if `buffer_size` is None."""

    method: str
    baseline: str
    buffer_size: int | None
    improvement: Interval
    permutation: Permutation
    """of the probability of improvement, stratified by game and capacity"""


def compare_with_baselines(runs: Runs) -> list[Comparison]:
    pairs = [(pair, printed) for pair in ATARI_PAIRS if (printed := printed_p(pair))]
    tests = [permutation_test(*_aucs(runs, pair)) for pair, _ in pairs]
    adjusted = holm([test.p for test in tests])
    return [
        _compare(runs, pair, printed, test, float(p))
        for (pair, printed), test, p in zip(pairs, tests, adjusted, strict=True)
    ]


def _compare(runs: Runs, pair: Pair, printed: PrintedP, permutation: Permutation, holm_p: float) -> Comparison:
    curves, baseline = (runs[setting] for setting in pair.settings)
    return Comparison(
        pair=pair,
        printed=printed,
        smoothed_p=pooled_ks(smooth(curves, SMOOTHING), smooth(baseline, SMOOTHING)),
        raw_p=pooled_ks(curves, baseline),
        described_p=ks(auc(curves), auc(baseline)),
        permutation=permutation,
        holm_p=holm_p,
        improvement=probability_of_improvement([auc(curves)], [auc(baseline)]),
    )


def compare_over_games(runs: Runs) -> list[OverallComparison]:
    """One answer for each column of the paper's table of tests: is IQ-RE better than this baseline?"""
    return [
        _compare_over_games(runs, f"{family}+IQ-RE", family + part, size)
        for family in FAMILIES
        for part in BASELINES
        for size in (None, *BUFFER_SIZES)
    ]


def compare_srnn_over_games(runs: Runs) -> list[OverallComparison]:
    """What SRNN adds to the method below it, which the paper says is little."""
    return [
        _compare_over_games(runs, f"{family}+SRNN", family, size)
        for family in FAMILIES
        for size in (None, *BUFFER_SIZES)
    ]


def _compare_over_games(runs: Runs, method: str, baseline: str, buffer_size: int | None) -> OverallComparison:
    sizes = BUFFER_SIZES if buffer_size is None else (buffer_size,)
    pairs = [Pair(game, size, method, baseline) for game in GAMES for size in sizes]
    scores, others = zip(*[_aucs(runs, pair) for pair in pairs], strict=True)
    return OverallComparison(
        method=method,
        baseline=baseline,
        buffer_size=buffer_size,
        improvement=probability_of_improvement(scores, others),
        permutation=stratified_permutation_test(scores, others),
    )


def _aucs(runs: Runs, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    method, baseline = pair.settings
    return auc(runs[method]), auc(runs[baseline])


# How often the paper's test finds a difference between runs of one and the same method


class FalseAlarms(NamedTuple):
    tests: int
    at_one_percent: int
    """tests with p < .01; one in a hundred is expected"""

    @property
    def share(self) -> float:
        return self.at_one_percent / self.tests


def count_false_alarms(runs: Runs) -> FalseAlarms:
    """The pooled test on drawn points: two runs of a setting against its other three, for every choice of two.

    Settings in which a run occurs twice or never scored are left out: their runs are equal for other reasons.
    """
    p_values = [
        pooled_ks(drawn[list(two)], np.delete(drawn, two, axis=0))
        for curves in runs.values()
        if len(np.unique(curves, axis=0)) == RUNS and curves.any(axis=1).all()
        for drawn in [smooth(curves, SMOOTHING)]
        for two in combinations(range(RUNS), 2)
    ]
    return FalseAlarms(tests=len(p_values), at_one_percent=sum(p < 0.01 for p in p_values))
