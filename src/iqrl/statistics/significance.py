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
from iqrl.statistics.curves import check_curves, finite_scores
from iqrl.statistics.intervals import RESAMPLES, Interval, draw_shares, pair_tasks, percentile_interval

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
    """mean of the first minus mean of the second; by the probability of improvement, that minus one half"""
    splits: int
    """how many splits of the seeds into two sides were counted"""
    exact: bool
    """whether these were all splits"""


def permutation_test(scores: ArrayLike, others: ArrayLike) -> Permutation:
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
    as_far = np.abs(_random_choices(len(together), len(x)) @ centred) >= least
    return Permutation(p=float((as_far.sum() + 1) / (DRAWS + 1)), difference=difference, splits=DRAWS, exact=False)


def stratified_permutation_test(
    tasks: Sequence[ArrayLike], others: Sequence[ArrayLike], *, seed: int = 0
) -> Permutation:
    """Two-sided, over tasks that have no common scale, by the probability of improvement: is it one half?

    The seeds are split at random within each task, 100,000 times. One test of many tasks with few seeds each can
    find what no test of a single task can. Its null is that the sides are the same in every task: where one wins some
    tasks and loses others, the splits spread more than the seeds do, and p is large.
    """
    sides = pair_tasks(tasks, others)
    true, drawn = 0.0, np.zeros(DRAWS)
    for (x, y), place in zip(sides, _places(len(sides), seed), strict=True):
        ranks, share = _centred_ranks(x, y), 1 / (len(x) * len(y) * len(sides))
        # The sum of the centred ranks of x is its number of wins minus half of all pairs.
        true += share * ranks[: len(x)].sum()
        drawn += np.roll(share * (_random_choices(len(ranks), len(x)) @ ranks), place)
    as_far = np.abs(drawn) >= abs(true) - SAME
    return Permutation(p=_share(as_far), difference=float(true), splits=DRAWS, exact=False)


Sides = tuple[Sequence[ArrayLike], Sequence[ArrayLike]]


def mean_difference_tests(tests: Sequence[Sides], *, seed: int = 0) -> list[Permutation]:
    """Several two-sided tests at once, each over tasks on one scale: is the difference of means, over all tasks, 0?

    The seeds are split at random within each task, 100,000 times. The difference of a split is divided by its own
    standard error (Janssen 1997), so that sides that differ in their spread alone are seldom called different. Together
    the tests take little longer than one: they share the random splits.
    """
    sides = [pair_tasks(*both) for both in tests]
    # Differences and squared standard errors, [tests, splits]; the true split is the first.
    apart, spread = np.zeros((len(tests), 1 + DRAWS)), np.zeros((len(tests), 1 + DRAWS))
    for task, place in enumerate(_places(max(map(len, sides), default=0), seed)):
        for members in _of_one_size(sides, task):
            values = np.stack([np.concatenate(sides[test][task]) for test in members], axis=1)
            found = _split_means(values - values.mean(axis=0), len(sides[members[0]][task][0]))
            for total, splits in zip((apart, spread), found, strict=True):
                total[members, :1] += splits[:1].T
                total[members, 1:] += np.roll(splits[1:], place, axis=0).T
    scores = _studentised(apart, spread)
    differences = [float(np.mean([x.mean() - y.mean() for x, y in tasks])) for tasks in sides]
    return [
        Permutation(p=_share(own[1:] >= own[0] * (1 - SAME)), difference=difference, splits=DRAWS, exact=False)
        for own, difference in zip(scores, differences, strict=True)
    ]


def _split_means(values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """[splits, tests] of values [n, tests]: the difference of the means of both sides, and its squared error."""
    marks = _random_choices(len(values), size)
    moments = np.concatenate([values, values**2], axis=1)
    first = np.concatenate([moments[:size].sum(axis=0, keepdims=True), marks @ moments])
    (sums, squares), (others, other_squares) = (np.split(it, 2, axis=1) for it in (first, moments.sum(axis=0) - first))
    errors = [
        np.maximum(square - total**2 / n, 0) / (n * max(n - 1, 1))
        for total, square, n in ((sums, squares, size), (others, other_squares, len(values) - size))
    ]
    return sums / size - others / (len(values) - size), errors[0] + errors[1]


def _studentised(apart: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """|difference| / error. Where no side has any spread, a difference is beyond all bounds."""
    none = SAME * np.abs(apart).max(axis=1, keepdims=True, initial=0)
    distance, error = np.where(np.abs(apart) <= none, 0.0, np.abs(apart)), np.sqrt(spread)
    return np.where(error > none, distance / np.where(error > none, error, 1.0), np.where(distance > 0, np.inf, 0.0))


def _places(tasks: int, seed: int) -> np.ndarray:
    """Where each task takes the shared splits from, so that they are independent of those of the other tasks."""
    return np.random.default_rng(seed).choice(DRAWS, tasks, replace=tasks > DRAWS)


def _share(as_far: np.ndarray) -> float:
    """Of the splits and the true one."""
    return float((as_far.sum() + 1) / (len(as_far) + 1))


def _of_one_size(sides: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]], task: int) -> list[list[int]]:
    """The tests that have this task, those with the same numbers of seeds together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for test, tasks in enumerate(sides):
        if task < len(tasks):
            groups.setdefault((len(tasks[task][0]), len(tasks[task][1])), []).append(test)
    return list(groups.values())


def _centred_ranks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    ranks = rankdata(np.concatenate([x, y]))
    return ranks - ranks.mean()


def smallest_p(seeds: int, others: int) -> float:
    """The smallest p that `permutation_test` can give for these numbers of seeds.

    It is reached if no other split is as far apart as the true one. With as many seeds on both sides, the split with
    the sides exchanged is as far apart too.

    >>> round(smallest_p(5, 5), 4), round(smallest_p(2, 3), 2)
    (0.0079, 0.1)
    """
    splits = math.comb(seeds + others, seeds)
    return (1 + (seeds == others)) / splits if splits <= MOST_SPLITS else 1 / (DRAWS + 1)


def smallest_stratified_p(seeds: Sequence[int], others: Sequence[int]) -> float:
    """The smallest p that `stratified_permutation_test` can give for these numbers of seeds in each task.

    >>> round(smallest_stratified_p([5], [5]), 4), round(smallest_stratified_p([5, 5], [5, 5]), 5)
    (0.0079, 3e-05)
    """
    same = all(own == other for own, other in zip(seeds, others, strict=True))
    splits = math.prod(math.comb(own + other, own) for own, other in zip(seeds, others, strict=True))
    return max((1 + same) / splits, 1 / (DRAWS + 1))


def _all_sums(values: np.ndarray, size: int) -> np.ndarray:
    """[choices]: the sum of every choice of `size` values."""
    return _all_choices(len(values), size) @ values


@lru_cache(maxsize=2)
def _all_choices(n: int, size: int) -> np.ndarray:
    """[choices, n]: 1 where a value is chosen. Cached: tests in a row have the same numbers of seeds."""
    chosen = np.fromiter(chain.from_iterable(combinations(range(n), size)), int).reshape(-1, size)
    return _as_marks(chosen, n)


@lru_cache(maxsize=4)
def _random_choices(n: int, size: int) -> np.ndarray:
    """[draws, n]: 1 where a value is chosen at random."""
    chosen = np.argpartition(np.random.default_rng(0).random((DRAWS, n), np.float32), size - 1, axis=1)[:, :size]
    return _as_marks(chosen, n)


def _as_marks(chosen: np.ndarray, n: int) -> np.ndarray:
    marks = np.zeros((len(chosen), n))
    np.put_along_axis(marks, chosen, 1.0, axis=1)
    return marks


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
    If every X is above every Y in every task, no resample differs; then the interval is an exact one (`separated`).
    """
    wins = [_wins(x, y) for x, y in pair_tasks(tasks, others)]
    value = float(np.mean([table.mean() for table in wins]))
    drawn = np.mean([_resample_mean(table, resamples, seed, i) for i, table in enumerate(wins)], axis=0)
    interval = percentile_interval(value, drawn, level)
    return separated(value, [table.shape for table in wins], level) if value in (0.0, 1.0) else interval


def separated(value: float, shapes: Sequence[tuple[int, int]], level: float = 0.95) -> Interval:
    """The interval of a probability of improvement of 0 or 1, by Clopper and Pearson (1934).

    `shapes` has the number of runs of both sides in each task. As many pairs as the smaller side has runs share no run,
    so they are independent trials, all of them won. An average over tasks is bounded by the same number: of all
    probabilities with one mean, equal ones make it likeliest that every trial is won.

    >>> separated(1.0, [(5, 5)]).low.__round__(2), separated(0.0, [(10, 10)] * 4).high.__round__(2)
    (0.48, 0.09)
    """
    trials = sum(map(min, shapes))
    bound = ((1 - level) / 2) ** (1 / trials)
    return Interval(value, bound, 1.0) if value == 1 else Interval(value, 0.0, 1 - bound)


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[x, y]: 1 where x is more than y, ½ where they tie."""
    return np.heaviside(x[:, None] - y[None, :], 0.5)


def _resample_mean(wins: np.ndarray, resamples: int, seed: int, task: int) -> np.ndarray:
    """[resamples]: the mean of the table with its rows and columns resampled. Only how often each is drawn counts."""
    rows, columns = (draw_shares(n, resamples, seed, 2 * task + i) for i, n in enumerate(wins.shape))
    return np.einsum("ij,ij->i", rows @ wins, columns)


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
