"""How likely is a run of one method to score more than a run of another? After Agarwal et al. (2021)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput
from iqrl.statistics.bootstrap import RESAMPLES, Interval, percentile_interval, resampled
from iqrl.statistics.known import known_tasks


def probability_of_improvement(
    tasks: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """P(X > Y) of a run X of a task in `tasks` and a run Y of the same task in `others`, averaged over tasks.

    A tie counts one half, as in the Mann–Whitney statistic. The runs of either side are resampled within
    each task. Where every X is above every Y in every task, so is every resample, and the interval
    has no width: that is not certainty.
    """
    known, known_others = known_tasks(tasks, "scores"), known_tasks(others, "others")
    if len(known) != len(known_others):
        raise BadInput(f"both sides must have the same tasks, got {len(known)} and {len(known_others)}.")
    generator = np.random.default_rng(seed)
    wins = [_wins(x, y) for x, y in zip(known, known_others, strict=True)]
    drawn = np.mean([_resampled_mean(table, resamples, generator) for table in wins], axis=0)
    return percentile_interval(float(np.mean([table.mean() for table in wins])), drawn, level)


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[x, y]: 1 where x is more than y, ½ where they tie."""
    return np.heaviside(x[:, None] - y[None, :], 0.5)


def _resampled_mean(wins: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """[resamples]: the mean of a table whose rows and columns are drawn anew; only how often each is drawn counts."""
    rows, columns = (_counts(n, resamples, generator) for n in wins.shape)
    return ((rows @ wins) * columns).sum(axis=1) / wins.size


def _counts(n: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """[resamples, n]: how often each of n is drawn in n draws."""
    drawn = resampled(np.arange(n), resamples, generator) + n * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * resamples).reshape(resamples, n)
