"""Do two methods differ? Permutation tests, the probability of improvement, and corrections for many tests.

The permutation tests assume only that the seeds of two equal methods could be exchanged. They are valid with few
seeds. The probability of improvement (Agarwal et al. 2021) says how large a difference is.

The two-sample Kolmogorov–Smirnov tests are here to compute the paper's numbers again: `ks` is the test that its text
describes, `pooled_ks` the test that gives its printed p-values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ks_2samp, rankdata

from iqrl.errors import BadInput
from iqrl.statistics.curves import check_curves, finite_scores, finite_scores_by_task
from iqrl.statistics.intervals import RESAMPLES, Interval, percentile_interval, resample

MOST_SPLITS = 200_000
"""up to which every split is counted; ten seeds against ten have 184,756"""
DRAWS = 100_000
"""random splits where there are more"""
SAME = 1e-9
"""share of the largest deviation up to which two differences are equal: the order of a sum changes its last digits"""


# Permutation tests


class Permutation(NamedTuple):
    p: float
    difference: float
    """mean of the first minus mean of the second; over tasks, the probability of improvement minus one half"""
    splits: int
    """how many splits of the seeds into two sides were counted"""
    exact: bool
    """whether these were all splits"""


def permutation_test(scores: ArrayLike, others: ArrayLike, *, seed: int = 0) -> Permutation:
    """Two-sided: the share of splits of all seeds whose means differ by at least as much as those of the true split.

    All splits are counted if there are at most 200,000. Otherwise 100,000 are drawn at random, and the true one is
    added, so that p is never 0. Five seeds against five have 252 splits, and no p below 2/252 = .0079.
    """
    x, y = finite_scores(scores), finite_scores(others, "others")
    together = np.concatenate([x, y])
    centred = together - together.mean()
    # With the mean at zero, the difference of the means is proportional to the sum of the first side.
    least = abs(centred[: len(x)].sum()) - SAME * np.abs(centred).max()
    difference = float(x.mean() - y.mean())
    splits = math.comb(len(together), len(x))
    if splits <= MOST_SPLITS:
        as_far = np.abs(_all_sums(centred, len(x))) >= least
        return Permutation(p=float(as_far.mean()), difference=difference, splits=splits, exact=True)
    as_far = np.abs(_random_sums(centred, len(x), np.random.default_rng(seed))) >= least
    return Permutation(p=float((as_far.sum() + 1) / (DRAWS + 1)), difference=difference, splits=DRAWS, exact=False)


def stratified_permutation_test(
    tasks: Sequence[ArrayLike], others: Sequence[ArrayLike], *, seed: int = 0
) -> Permutation:
    """Two-sided, over several tasks at once: is the probability of improvement one half?

    The seeds are split at random within each task, 100,000 times. One test of many tasks with few seeds each can
    find what no test of a single task can.
    """
    sides = _pair_tasks(tasks, others)
    generator = np.random.default_rng(seed)
    true, drawn = 0.0, np.zeros(DRAWS)
    for x, y in sides:
        # The sum of the centred ranks of x is its number of wins minus half of all pairs.
        ranks = rankdata(np.concatenate([x, y]))
        share = (ranks - ranks.mean()) / (len(x) * len(y) * len(sides))
        true += share[: len(x)].sum()
        drawn += _random_sums(share, len(x), generator)
    as_far = np.abs(drawn) >= abs(true) - SAME
    return Permutation(p=float((as_far.sum() + 1) / (DRAWS + 1)), difference=float(true), splits=DRAWS, exact=False)


def smallest_p(seeds: int, others: int) -> float:
    """The smallest p that `permutation_test` can give for these numbers of seeds.

    It is reached if no other split is as far apart as the true one. With as many seeds on both sides, the split with
    the sides exchanged is as far apart too.

    >>> round(smallest_p(5, 5), 4), round(smallest_p(2, 3), 2)
    (0.0079, 0.1)
    """
    splits = math.comb(seeds + others, seeds)
    return (1 + (seeds == others)) / splits if splits <= MOST_SPLITS else 1 / (DRAWS + 1)


def _all_sums(values: np.ndarray, size: int) -> np.ndarray:
    """[choices]: the sum of every choice of `size` values."""
    return values[_all_choices(len(values), size)].sum(axis=1)


@lru_cache(maxsize=2)
def _all_choices(n: int, size: int) -> np.ndarray:
    """[choices, size]. Cached: tests in a row have the same numbers of seeds, and this list is the slow part."""
    return np.fromiter(chain.from_iterable(combinations(range(n), size)), int).reshape(-1, size)


def _random_sums(values: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """[draws]: the sums of random choices of `size` values."""
    if math.comb(len(values), size) <= MOST_SPLITS:
        return generator.choice(_all_sums(values, size), DRAWS)
    # In batches: all at once would need draws × seeds of memory.
    batches = [DRAWS // 10] * 10
    shuffled = (generator.permuted(np.tile(values, (n, 1)), axis=1) for n in batches)
    return np.concatenate([rows[:, :size].sum(axis=1) for rows in shuffled])


# Probability of improvement


def probability_of_improvement(
    tasks: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """P(X > Y) for a run X of a task in `tasks` and a run Y of the same task in `others`, averaged over tasks.

    A tie counts one half, as in the Mann–Whitney statistic. The runs of both sides are resampled within each task.
    If every X is above every Y in every task, the interval has no width. That is not certainty.
    """
    generator = np.random.default_rng(seed)
    wins = [_wins(x, y) for x, y in _pair_tasks(tasks, others)]
    drawn = np.mean([_resample_mean(table, resamples, generator) for table in wins], axis=0)
    return percentile_interval(float(np.mean([table.mean() for table in wins])), drawn, level)


def _pair_tasks(tasks: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The finite scores of both sides, task by task."""
    finite, finite_others = finite_scores_by_task(tasks), finite_scores_by_task(others, "others")
    if len(finite) != len(finite_others):
        raise BadInput(f"both sides must have the same tasks, got {len(finite)} and {len(finite_others)}.")
    return list(zip(finite, finite_others, strict=True))


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[x, y]: 1 where x is more than y, ½ where they tie."""
    return np.heaviside(x[:, None] - y[None, :], 0.5)


def _resample_mean(wins: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """[resamples]: the mean of the table with its rows and columns resampled. Only how often each is drawn counts."""
    rows, columns = (_resample_counts(n, resamples, generator) for n in wins.shape)
    return ((rows @ wins) * columns).sum(axis=1) / wins.size


def _resample_counts(n: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """[resamples, n]: how often each of n is drawn in n draws."""
    drawn = resample(np.arange(n), resamples, generator) + n * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * resamples).reshape(resamples, n)


# Many tests at once


def holm(p_values: ArrayLike) -> np.ndarray:
    """[n]: adjusted p-values (Holm 1979). The chance of even one false alarm among them is at most the level.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise BadInput(f"p-values must be a list of numbers between 0 and 1, got {p_values}.")
    order = np.argsort(p, kind="stable")
    raised = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted = np.empty_like(p)
    adjusted[order] = raised
    return adjusted


# Kolmogorov–Smirnov tests


def ks(scores: ArrayLike, others: ArrayLike) -> float:
    """The p-value for one score per seed. With five seeds against five it is .0079 at the least."""
    with warnings.catch_warnings():
        # If SciPy cannot compute the exact p-value it falls back to the asymptotic one, which is fine here.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        return float(ks_2samp(finite_scores(scores), finite_scores(others, "others")).pvalue)


def pooled_ks(curves: ArrayLike, others: ArrayLike) -> float:
    """The p-value if every point of every seed is taken as an independent observation.

    The paper's table was made with it. Do not use it otherwise: the points of one run resemble each other, so p comes
    out far too small.
    """
    return ks(check_curves(curves).ravel(), check_curves(others).ravel())
