"""IQ-RE against its baselines: the paper's p-values, how they come about, and what the runs themselves show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from iqrl.paper.printed import PrintedP, printed_p
from iqrl.paper.settings import BUFFER_SIZES, FAMILIES, SMOOTHING, Pair, Setting, every_pair
from iqrl.statistics.bootstrap import Interval
from iqrl.statistics.curves import auc, smoothed
from iqrl.statistics.improvement import probability_of_improvement
from iqrl.statistics.kolmogorov import ks, pooled_ks
from iqrl.statistics.multiple import holm
from iqrl.statistics.permutation import Permutation, permutation_test, stratified_permutation_test

Points = Literal["smoothed", "raw", "both", "neither"]


class Comparison(NamedTuple):
    pair: Pair
    printed: PrintedP
    smoothed_p: float
    """pooled points of the drawn curves, 5 × 50 a side"""
    raw_p: float
    """pooled points of the raw curves, 5 × 200 a side"""
    described_p: float
    """the test that the paper's words describe: Kolmogorov–Smirnov on one AUC per run"""
    permutation: Permutation
    """of one AUC per run"""
    holm_p: float
    """the permutation test's p-value, adjusted for the number of comparisons"""
    improvement: Interval
    """probability that a run of IQ-RE has the larger AUC"""

    @property
    def printed_from(self) -> Points:
        """Which pooled points give the printed p-value."""
        fits = (self.printed.cell.agrees(self.smoothed_p), self.printed.cell.agrees(self.raw_p))
        names: dict[tuple[bool, bool], Points] = {(True, True): "both", (True, False): "smoothed", (False, True): "raw"}
        return names.get(fits, "neither")

    @property
    def pooled_p(self) -> float:
        """As the paper has it: from raw points where only these give its number."""
        return self.raw_p if self.printed_from == "raw" else self.smoothed_p

    @property
    def better(self) -> bool:
        """Whether IQ-RE's mean AUC is the larger one."""
        return self.permutation.difference > 0


class Overall(NamedTuple):
    """Over the games, and over the capacities if `buffer_size` is None."""

    method: str
    baseline: str
    buffer_size: int | None
    improvement: Interval
    permutation: Permutation
    """of the probability of improvement, stratified by game and capacity"""


def compare(runs: Mapping[Setting, np.ndarray]) -> list[Comparison]:
    pairs = [(pair, printed) for pair in every_pair() if (printed := printed_p(*_names(pair)))]
    tests = [permutation_test(*_aucs(runs, pair)) for pair, _ in pairs]
    adjusted = holm([test.p for test in tests])
    return [
        _compare(runs, pair, printed, test, float(p))
        for (pair, printed), test, p in zip(pairs, tests, adjusted, strict=True)
    ]


def _compare(
    runs: Mapping[Setting, np.ndarray], pair: Pair, printed: PrintedP, test: Permutation, holm_p: float
) -> Comparison:
    curves, others = (runs[setting] for setting in pair.settings)
    mine, theirs = auc(curves), auc(others)
    drawn = pooled_ks(smoothed(curves, SMOOTHING), smoothed(others, SMOOTHING))
    improvement = probability_of_improvement([mine], [theirs])
    return Comparison(
        pair, printed, drawn, pooled_ks(curves, others), ks(mine, theirs), test, holm_p, improvement
    )  # fmt: skip


def overall(runs: Mapping[Setting, np.ndarray]) -> list[Overall]:
    """The question each column of the paper's table asks, asked once: is IQ-RE better than this baseline?"""
    return [
        _overall(runs, f"{family}+IQ-RE", family + part, size)
        for family in FAMILIES
        for part in ("", "+SRNN")
        for size in (None, *BUFFER_SIZES)
    ]


def _overall(runs: Mapping[Setting, np.ndarray], method: str, baseline: str, size: int | None) -> Overall:
    pairs = [pair for pair in every_pair() if (pair.method, pair.baseline) == (method, baseline)]
    sides = [_aucs(runs, pair) for pair in pairs if size in (None, pair.buffer_size)]
    mine, theirs = zip(*sides, strict=True)
    improvement, test = probability_of_improvement(mine, theirs), stratified_permutation_test(mine, theirs)
    return Overall(method, baseline, size, improvement, test)


def _aucs(runs: Mapping[Setting, np.ndarray], pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    mine, theirs = (auc(runs[setting]) for setting in pair.settings)
    return mine, theirs


def _names(pair: Pair) -> tuple[str, str, str, int]:
    return pair.game, pair.method, pair.baseline, pair.buffer_size
