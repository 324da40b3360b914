"""Bootstrap intervals: of a mean over seeds, and of aggregates over runs × tasks (Agarwal et al. 2021).

The seeds are drawn again with replacement, many times. The interval holds the middle 95% of the results.

Five seeds hardly show how far a sixth could lie. The nominal 95% interval of their mean holds the true mean in about
83% of all samples (92% with 20 seeds), and it never reaches beyond the best and the worst seed. With few seeds, read
it as a lower bound of the uncertainty.

Where all seeds have the same score the interval has no width. That is a limit of the method and not certainty:
`Interval.has_no_width` tells, and tables say it in words.

Aggregates resample the runs within each task; the tasks stay as they are. Scores of different tasks must be brought
to one scale before they are put together: see `normalise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput
from iqrl.statistics.curves import finite_scores, finite_scores_by_task

RESAMPLES = 10_000
"""enough to fix the ends of a 95% interval to about a hundredth of its width"""


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    @property
    def has_no_width(self) -> bool:
        """Whether all resamples gave one number, up to rounding."""
        return self.high - self.low <= 1e-9 * max(abs(self.low), abs(self.high), 1e-9)


class Profile(NamedTuple):
    """All [thresholds]."""

    thresholds: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


def mean_interval(scores: ArrayLike, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean of one score per seed, such as `final` or `auc`, with its percentile interval."""
    finite = finite_scores(scores)
    means = resample(finite, resamples, np.random.default_rng(seed)).mean(axis=1)
    return percentile_interval(float(finite.mean()), means, level)


def stratified_interval(
    statistic: Callable[[np.ndarray], np.ndarray],
    tasks: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic over runs × tasks, with its percentile interval.

    `tasks` holds the scores of one task each. `statistic` reduces the last axis: a mean, an interquartile mean, …
    """
    finite, generator = finite_scores_by_task(tasks), np.random.default_rng(seed)
    drawn = np.concatenate([resample(scores, resamples, generator) for scores in finite], axis=1)
    return percentile_interval(float(statistic(np.concatenate(finite))), statistic(drawn), level)


def difference_interval(
    tasks: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The mean of `tasks` minus the mean of `others`, averaged over tasks: an effect size, with its interval.

    The runs of both sides are resampled within each task. Tasks on different scales must be normalised before.
    """
    sides = pair_tasks(tasks, others)
    drawn = np.zeros(resamples)
    for number, (x, y) in enumerate(sides):
        own, other = (draw_shares(len(it), resamples, seed, 2 * number + i) for i, it in enumerate((x, y)))
        drawn += (own @ x - other @ y) / len(sides)
    value = np.mean([x.mean() - y.mean() for x, y in sides])
    return percentile_interval(float(value), drawn, level)


def interquartile_mean(
    tasks: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of the middle half of the scores of all runs × tasks."""
    return stratified_interval(iqm, tasks, level=level, resamples=resamples, seed=seed)


def iqm(scores: np.ndarray) -> np.ndarray:
    """The interquartile mean over the last axis: ⌊n/4⌋ scores are cut from either end."""
    cut = scores.shape[-1] // 4
    return np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut].mean(axis=-1)


def performance_profile(
    tasks: Sequence[ArrayLike], thresholds: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Profile:
    """F(τ), the share of the scores of all runs × tasks above τ, with an interval for each τ."""
    finite, generator = finite_scores_by_task(tasks), np.random.default_rng(seed)
    taus = np.asarray(thresholds, float)
    if taus.ndim != 1 or not taus.size:
        raise BadInput(f"thresholds must be a list of at least one number, got an array of shape {taus.shape}.")
    drawn = np.concatenate([resample(scores, resamples, generator) for scores in finite], axis=1)
    # One threshold at a time: all at once would need resamples × runs × thresholds of memory.
    low, high = np.transpose([_ends((drawn > tau).mean(axis=1), level) for tau in taus])
    share = (np.concatenate(finite)[:, None] > taus).mean(axis=0)
    return Profile(thresholds=taus, share=share, low=low, high=high)


def normalise(scores: ArrayLike, low: float, high: float) -> np.ndarray:
    """0 at `low`, such as a random policy's score, and 1 at `high`, such as a perfect policy's."""
    if not low < high:
        raise BadInput(f"low must be less than high, got {low} and {high}.")
    return (np.asarray(scores, float) - low) / (high - low)


def resample(scores: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """[resamples, n]: n scores drawn with replacement, `resamples` times."""
    if resamples < 1:
        raise BadInput(f"resamples must be at least 1, got {resamples}.")
    return scores[generator.integers(0, len(scores), (resamples, len(scores)))]


@lru_cache(maxsize=64)
def draw_shares(n: int, resamples: int, seed: int, stream: int, size: int | None = None) -> np.ndarray:
    """[resamples, n]: the share of each of n scores in a resample of `size` of them, or of n. A mean is then a product.

    Cached: the comparisons of a report draw from the same few numbers of seeds hundreds of times. Samples that must
    be independent of each other take different streams.
    """
    if resamples < 1:
        raise BadInput(f"resamples must be at least 1, got {resamples}.")
    size = size or n
    drawn = np.random.default_rng((seed, stream)).integers(0, n, (resamples, size)) + n * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * resamples).reshape(resamples, n) / size


def pair_tasks(tasks: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The finite scores of both sides, task by task."""
    finite, finite_others = finite_scores_by_task(tasks), finite_scores_by_task(others, "others")
    if len(finite) != len(finite_others):
        raise BadInput(f"both sides must have the same tasks, got {len(finite)} and {len(finite_others)}.")
    return list(zip(finite, finite_others, strict=True))


def percentile_interval(value: float, drawn: np.ndarray, level: float) -> Interval:
    """The interval of a statistic, from its value on the scores [] and on the resamples [resamples]."""
    low, high = _ends(drawn, level)
    return Interval(value=value, low=float(low), high=float(high))


def _ends(drawn: np.ndarray, level: float) -> np.ndarray:
    """[2]: the ends of the middle `level` of the resampled values."""
    if not 0 < level < 1:
        raise BadInput(f"level must lie between 0 and 1, such as 0.95, got {level}.")
    tail = (1 - level) / 2
    return np.quantile(drawn, (tail, 1 - tail), axis=0)
