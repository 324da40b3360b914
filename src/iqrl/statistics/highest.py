"""The highest point of the mean curve over seeds: the paper's number, which no single seed has.

So it is resampled and permuted with whole curves: of each resample and each split the mean curve is made anew.
Curves are [seeds, periods]. The maximum of a noisy curve is too high, and the more so the fewer seeds there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from iqrl.statistics.curves import check_curves, highest
from iqrl.statistics.intervals import Interval, draw_shares, percentile_interval

DRAWS = 29_999
Pairs = Sequence[tuple[np.ndarray, np.ndarray]]
"""the curves of both sides in each task, on one scale"""


def highest_of_few(curves: ArrayLike, seeds: int, *, most: int = 2000, seed: int = 0) -> np.ndarray:
    """[choices]: the highest point of every choice of `seeds` of the seeds; of `most` random ones if there are more.

    Drawn without replacement: a seed that is there twice would make the mean noisier, and its maximum higher.
    """
    array = check_curves(curves)
    n = len(array)
    chosen = list(combinations(range(n), seeds)) if comb(n, seeds) <= most else []
    marks = np.zeros((len(chosen) or most, n))
    random = np.argsort(np.random.default_rng(seed).random(marks.shape), axis=1)[:, :seeds]
    np.put_along_axis(marks, np.array(chosen, int).reshape(-1, seeds) if chosen else random, 1.0, axis=1)
    best = _highest_of_means(marks, array)
    return best[np.isfinite(best)]


def highest_difference(pairs: Pairs, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Interval:
    """The highest point of the first minus that of the second, averaged over tasks, with its bootstrap interval.

    A resample's highest point is too high by more than the sample's own. Where both sides are alike this cancels. The
    mean of fewer seeds has a higher maximum, so of both sides as many are taken as the side with fewer has.
    """
    drawn, values = np.zeros(resamples), []
    for number, sides in enumerate(pairs):
        few = min(map(len, sides))
        own, other = (
            _highest_of_means(draw_shares(len(curves), resamples, seed, 2 * number + i, few), curves)
            for i, curves in enumerate(sides)
        )
        drawn += (own - other) / len(pairs)
        own, other = (_highest_of(curves, few) for curves in sides)
        values.append(own - other)
    return percentile_interval(float(np.mean(values)), drawn, level)


def _highest_of(curves: np.ndarray, few: int) -> float:
    return highest(curves) if few == len(curves) else float(highest_of_few(curves, few).mean())


def highest_test(pairs: Pairs, *, seed: int = 0) -> float:
    """p, two-sided: how often seeds exchanged at random within tasks differ as far as the methods do.

    Its null is that both sides have the same curves, noise included: the noisier of two has the higher maximum.
    """
    # The splits are drawn once; each task takes them from another place on, independent of the others.
    places = np.random.default_rng(seed).choice(DRAWS, len(pairs), replace=len(pairs) > DRAWS)
    true, drawn = 0.0, np.zeros(DRAWS)
    for place, (own, other) in zip(places, pairs, strict=True):
        together, marks = np.concatenate([own, other]), _random_marks(len(own) + len(other), len(own))
        apart = _highest_of_means(marks, together) - _highest_of_means(1.0 - marks, together)
        drawn += np.roll(apart, place)
        true += highest(own) - highest(other)
    as_far = np.abs(drawn) >= abs(true) - 1e-9
    return float((as_far.sum() + 1) / (DRAWS + 1))


@lru_cache(maxsize=4)
def _random_marks(n: int, size: int) -> np.ndarray:
    """[draws, n]: 1 for the seeds that are taken as those of the first side."""
    order = np.argsort(np.random.default_rng(0).random((DRAWS, n), np.float32), axis=1)
    return (order < size).astype(float)


def _highest_of_means(weights: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """[draws]: of each row of weights over seeds, the maximum of the weighted mean curve. NaN where all is unknown."""
    finite = np.isfinite(curves)
    if finite.all():
        return (weights @ curves).max(axis=1) / weights.sum(axis=1)
    total, known = weights @ np.where(finite, curves, 0.0), weights @ finite
    best = np.where(known > 0, total / np.where(known > 0, known, 1), -np.inf).max(axis=1)
    return np.where(np.isfinite(best), best, np.nan)
