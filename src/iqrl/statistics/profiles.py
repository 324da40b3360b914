"""Performance profiles: what share of runs scores more than τ, for every τ. After Agarwal et al. (2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput
from iqrl.statistics.bootstrap import band, resampled
from iqrl.statistics.known import known_tasks


class Profile(NamedTuple):
    """All [thresholds]."""

    thresholds: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


def performance_profile(
    tasks: Sequence[ArrayLike], thresholds: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Profile:
    """F(τ), the share of the scores of all runs × tasks above τ, with a pointwise band stratified by task."""
    known, generator = known_tasks(tasks), np.random.default_rng(seed)
    taus = np.asarray(thresholds, float)
    if taus.ndim != 1 or not taus.size:
        raise BadInput(f"thresholds must be a list of at least one number, got an array of shape {taus.shape}.")
    drawn = np.concatenate([resampled(scores, resamples, generator) for scores in known], axis=1)
    # One threshold at a time: all at once would need resamples × runs × thresholds of memory.
    low, high = np.transpose([band((drawn > tau).mean(axis=1), level) for tau in taus])
    share = (np.concatenate(known)[:, None] > taus).mean(axis=0)
    return Profile(taus, share, low, high)
