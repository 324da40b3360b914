"""One number over runs × tasks, after Agarwal et al. (2021), with intervals stratified by task.

Scores must be normalised to one scale before tasks are thrown together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput
from iqrl.statistics.bootstrap import RESAMPLES, Interval, stratified_interval


def normalised(scores: ArrayLike, low: float, high: float) -> np.ndarray:
    """0 at `low`, such as a random policy's score, and 1 at `high`, such as a perfect one's."""
    if not low < high:
        raise BadInput(f"low must be less than high, got {low} and {high}.")
    return (np.asarray(scores, float) - low) / (high - low)


def interquartile_mean(
    tasks: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of the middle half of all scores. A fraction of a score at either end counts as inside."""
    return stratified_interval(iqm, tasks, level=level, resamples=resamples, seed=seed)


def optimality_gap(
    tasks: Sequence[ArrayLike], target: float = 1.0, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """By how much scores miss the target, on average; a score above it misses it by nothing."""
    missed = lambda scores: target - np.minimum(scores, target).mean(axis=-1)
    return stratified_interval(missed, tasks, level=level, resamples=resamples, seed=seed)


def iqm(scores: np.ndarray) -> np.ndarray:
    """The interquartile mean over the last axis; ⌊n/4⌋ scores are cut from either end."""
    cut = scores.shape[-1] // 4
    return np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut].mean(axis=-1)
