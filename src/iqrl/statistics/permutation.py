"""Do two methods differ? Tests that need no assumption but that seeds could be exchanged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from iqrl.errors import BadInput
from iqrl.statistics.known import known_scores, known_tasks

MOST_SPLITS = 200_000
"""up to which every split is looked at; ten seeds against ten have 184,756"""
DRAWS = 100_000
SAME = 1e-9
"""share of the largest deviation up to which two differences count as equal: sums in another order differ a little"""


class Permutation(NamedTuple):
    p: float
    difference: float
    """mean of the first minus mean of the second; over tasks, the probability of improvement minus one half"""
    splits: int
    """how many ways of dealing out the seeds were looked at"""
    exact: bool
    """whether these were all there are"""


def permutation_test(scores: ArrayLike, others: ArrayLike, *, seed: int = 0) -> Permutation:
    """Two-sided: the share of splits of all seeds whose means differ by at least as much as the true split's.

    All splits are looked at where there are at most 200,000, otherwise 100,000 random ones, the true one counted
    among them so that p is never 0. Five seeds against five have 252 splits, and no p below 2/252 = .0079.
    """
    x, y = known_scores(scores), known_scores(others, "others")
    together = np.concatenate([x, y])
    centred = together - together.mean()
    # With the mean at zero, the difference of the means is proportional to the sum of the first group.
    least = abs(centred[: len(x)].sum()) - SAME * np.abs(centred).max()
    difference = float(x.mean() - y.mean())
    splits = math.comb(len(together), len(x))
    if splits <= MOST_SPLITS:
        as_far = np.abs(_all_sums(centred, len(x))) >= least
        return Permutation(float(as_far.mean()), difference, splits, exact=True)
    as_far = np.abs(_random_sums(centred, len(x), np.random.default_rng(seed))) >= least
    return Permutation(float((as_far.sum() + 1) / (DRAWS + 1)), difference, DRAWS, exact=False)


def stratified_permutation_test(
    tasks: Sequence[ArrayLike], others: Sequence[ArrayLike], *, seed: int = 0
) -> Permutation:
    """Two-sided, over several tasks at once: is the probability of improvement one half?

    Seeds are dealt out anew within each task, 100,000 times at random. One test of many tasks with few seeds each
    can see what no test of a single one can.
    """
    sides = list(zip(known_tasks(tasks), known_tasks(others, "others"), strict=False))
    if len(tasks) != len(others):
        raise BadInput(f"both sides must have the same tasks, got {len(tasks)} and {len(others)}.")
    generator = np.random.default_rng(seed)
    true, drawn = 0.0, np.zeros(DRAWS)
    for x, y in sides:
        # The sum of the centred ranks of x is its number of wins minus half of all pairs.
        ranks = rankdata(np.concatenate([x, y]))
        share = (ranks - ranks.mean()) / (len(x) * len(y) * len(sides))
        true += share[: len(x)].sum()
        drawn += _random_sums(share, len(x), generator)
    as_far = np.abs(drawn) >= abs(true) - SAME
    return Permutation(float((as_far.sum() + 1) / (DRAWS + 1)), float(true), DRAWS, exact=False)


def smallest_p(seeds: int, others: int) -> float:
    """The least p that `permutation_test` can give so many seeds: where no other split is as far apart as the true one.

    Sides of one size can also change places, which is a second split that is as far.

    >>> round(smallest_p(5, 5), 4), round(smallest_p(2, 3), 2)
    (0.0079, 0.1)
    """
    splits = math.comb(seeds + others, seeds)
    return (1 + (seeds == others)) / splits if splits <= MOST_SPLITS else 1 / (DRAWS + 1)


def _all_sums(values: np.ndarray, size: int) -> np.ndarray:
    """The sum of every choice of `size` values."""
    return values[_all_choices(len(values), size)].sum(axis=1)


@lru_cache(maxsize=2)
def _all_choices(n: int, size: int) -> np.ndarray:
    """[choices, size]; many tests in a row have the same number of seeds, and listing is the slow part of a test."""
    return np.fromiter(chain.from_iterable(combinations(range(n), size)), int).reshape(-1, size)


def _random_sums(values: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """[draws]: the sums of random choices."""
    if math.comb(len(values), size) <= MOST_SPLITS:
        return generator.choice(_all_sums(values, size), DRAWS)
    # A few at a time: many seeds would fill the memory.
    batches = [DRAWS // 10] * 10
    shuffled = (generator.permuted(np.tile(values, (n, 1)), axis=1) for n in batches)
    return np.concatenate([rows[:, :size].sum(axis=1) for rows in shuffled])
