"""What a set of learning curves comes to: the paper's numbers, and one score per seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput
from iqrl.statistics.known import mean_known


def checked_curves(curves: ArrayLike) -> np.ndarray:
    """As floats [seeds, points]."""
    array = np.asarray(curves, float)
    if array.ndim != 2 or 0 in array.shape:
        raise BadInput(f"curves must have the shape [seeds, points], got {array.shape}.")
    return array


def smoothed(curves: ArrayLike, width: int = 4) -> np.ndarray:
    """Means of `width` consecutive points, which do not overlap: the paper draws 200 points as 50."""
    array = checked_curves(curves)
    points = array.shape[1]
    if width < 1 or points % width:
        raise BadInput(f"curves of {points} points cannot be cut into groups of {width}; take a width that divides it.")
    return mean_known(array.reshape(len(array), points // width, width), axis=2)


def highest(curves: ArrayLike) -> float:
    """The maximum over points of the mean over seeds; NaN if nothing is known.

    Optimistic: the maximum of a noisy curve lies above what the agent can do. See `final` and `auc`.
    """
    points = _mean_curve(curves)
    return float(points.max()) if points.size else float("nan")


def deterioration(curves: ArrayLike) -> float:
    """The largest drop of the mean curve below its maximum so far, as a share of its range.

    The maximum so far counts from the second point on, the range from the first: the words of the paper do
    not say so, its printed numbers do. 0 for a curve that is flat, NaN for one of fewer than two points.
    """
    points = _mean_curve(curves)
    if len(points) < 2:
        return float("nan")
    later = points[1:]
    drop, span = np.max(np.maximum.accumulate(later) - later), np.ptp(points)
    return float(drop / span) if span > 0 else 0.0


def final(curves: ArrayLike) -> np.ndarray:
    """[seeds]: the mean of the last tenth of the points, at least of one."""
    array = checked_curves(curves)
    return mean_known(array[:, -max(array.shape[1] // 10, 1) :], axis=1)


def auc(curves: ArrayLike) -> np.ndarray:
    """[seeds]: the mean of all points, which is the area under the curve per point."""
    return mean_known(checked_curves(curves), axis=1)


def _mean_curve(curves: ArrayLike) -> np.ndarray:
    """The mean over seeds at the points at which any seed is known."""
    mean = mean_known(checked_curves(curves), axis=0)
    return mean[np.isfinite(mean)]
