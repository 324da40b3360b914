"""The two-sample Kolmogorov–Smirnov test, as the paper's numbers use it and as its words describe it."""

from __future__ import annotations

import warnings

from numpy.typing import ArrayLike
from scipy.stats import ks_2samp

from iqrl.statistics.curves import checked_curves
from iqrl.statistics.known import known_scores


def pooled_ks(curves: ArrayLike, others: ArrayLike) -> float:
    """The p-value that takes every point of every seed for an observation of its own.

    It is here because the paper's table was made with it, not to be used: points of one run resemble each
    other, so there is much less in them than their number says, and p comes out far too small.
    """
    return ks(checked_curves(curves).ravel(), checked_curves(others).ravel())


def ks(scores: ArrayLike, others: ArrayLike) -> float:
    """The p-value of one score per seed. With five seeds against five it can be .0079 at the least."""
    with warnings.catch_warnings():
        # Where SciPy cannot find the exact p-value it takes the asymptotic one, which is what is wanted.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        return float(ks_2samp(known_scores(scores), known_scores(others, "others")).pvalue)
