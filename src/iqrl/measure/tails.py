"""The bad end of a distribution: an average hides the few iterations that do the damage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def upper_tail_mean(values: np.ndarray | Sequence[float], share: float = 0.9) -> float:
    """E[X | X ≥ percentile_share(X)], as Liu et al. 2023 sum up interference over iterations.

    Values that are not numbers are left out; NaN if none is left.

    >>> upper_tail_mean([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])  # the 0.9 percentile is 10
    10.5
    """
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    if not known.size:
        return float("nan")
    return float(known[known >= np.quantile(known, share)].mean())


def across_iterations(update_interference: np.ndarray) -> float:
    """Liu et al.'s interference across iterations, from each iteration's: the upper tail over the last half of them.

    >>> across_iterations(np.array([np.nan, 100.0, 100.0, 1.0, 3.0]))
    3.0
    """
    known = update_interference[np.isfinite(update_interference)]
    return upper_tail_mean(known[len(known) // 2 :])
