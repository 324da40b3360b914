"""Learning curves as arrays [seeds, periods], and the numbers that sum them up.

Two numbers are of the mean curve over seeds, and three are of each seed:

    highest         the maximum of the mean curve: the paper's number
    deterioration   the largest drop of the mean curve, as a share of its range: the paper's number for Atari
    final           the mean of the last tenth of a seed's periods
    auc             the mean of all of a seed's periods
    fall            the best period of a seed minus its final: what it had and did not keep

A curve is NaN in a period in which no episode ended. Values that are not finite are left out of every number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from iqrl.errors import BadInput


def steps_and_returns(metrics: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Steps [periods] and returns [seeds, periods] of the metrics of a run."""
    return steps_and_values(metrics, "return")


def steps_and_values(metrics: pl.DataFrame, name: str, head: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Steps [periods] and values [seeds, periods] of one metric; NaN where a seed has no value.

    A metric may be a list with one number per head. `head` says which of them to take.
    """
    value = pl.col(name)
    if head is not None:
        value = value.cast(pl.List(pl.Float64)).list.get(head, null_on_oob=True)
    rows = metrics.sort("seed", "step").select("seed", "step", value=value.cast(pl.Float64))
    table = rows.pivot("seed", index="step", values="value").sort("step")
    return table["step"].to_numpy(), table.drop("step").fill_null(float("nan")).to_numpy().T


def mean_finite(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The mean of the finite values. NaN where there is none, without a warning."""
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=axis)
    return np.where(finite.any(axis=axis), total / np.maximum(finite.sum(axis=axis), 1), np.nan)


def mean_curve(curves: np.ndarray) -> np.ndarray:
    """[periods]: the mean over seeds. A seed counts in the periods in which it finished an episode."""
    return mean_finite(curves, axis=0)


def check_curves(curves: ArrayLike) -> np.ndarray:
    """The curves as floats [seeds, periods], at least one of each."""
    array = np.asarray(curves, float)
    if array.ndim != 2 or 0 in array.shape:
        raise BadInput(f"curves must have the shape [seeds, periods], got {array.shape}.")
    return array


def smooth(curves: ArrayLike, width: int = 4) -> np.ndarray:
    """[seeds, periods / width]: means of groups of `width` consecutive periods. The paper draws 200 points as 50."""
    array = check_curves(curves)
    periods = array.shape[1]
    if width < 1 or periods % width:
        raise BadInput(
            f"curves of {periods} periods cannot be cut into groups of {width}; take a width that divides it."
        )
    return mean_finite(array.reshape(len(array), periods // width, width), axis=2)


def highest(curves: ArrayLike) -> float:
    """The maximum over periods of the mean over seeds. NaN if no value is finite.

    It is optimistic: the maximum of a noisy curve lies above what the agent can do.
    """
    points = _finite_mean_curve(curves)
    return float(points.max()) if points.size else float("nan")


def deterioration(curves: ArrayLike) -> float:
    """The largest drop of the mean curve below its maximum so far, as a share of its range.

    The maximum so far counts from the second point on, the range from the first. The text of the paper does not
    say so, but its printed numbers come out only in this way. 0 if the curve is flat, NaN if it has fewer than two
    points.
    """
    points = _finite_mean_curve(curves)
    if len(points) < 2:
        return float("nan")
    later = points[1:]
    drop, span = np.max(np.maximum.accumulate(later) - later), np.ptp(points)
    return float(drop / span) if span > 0 else 0.0


def final(curves: ArrayLike) -> np.ndarray:
    """[seeds]: the mean of the last tenth of the periods, at least of one."""
    array = check_curves(curves)
    return mean_finite(array[:, -max(array.shape[1] // 10, 1) :], axis=1)


def auc(curves: ArrayLike) -> np.ndarray:
    """[seeds]: the mean of all periods, which is the area under the curve per period."""
    return mean_finite(check_curves(curves), axis=1)


def fall(curves: ArrayLike) -> np.ndarray:
    """[seeds]: the best period minus the final, in units of the return. Never below 0.

    A curve that wavers has some, even if it does not sink: the best of noisy periods lies above their mean.

    >>> fall([[10.0, 200.0, 150.0], [10.0, 20.0, 30.0]]).tolist()
    [50.0, 0.0]
    """
    array = check_curves(curves)
    best = np.max(np.where(np.isfinite(array), array, -np.inf), axis=1)
    return np.where(np.isfinite(best), best, np.nan) - final(array)


NEVER_LEARNED, COLLAPSED, HELD = "never learned", "collapsed", "held"
LEARNED_SHARE, LOST_SHARE = 0.25, 0.5


def fates(curves: ArrayLike, random: float, good: float, lost: float = LOST_SHARE) -> list[str | None]:
    """What became of each seed, given the returns of a random policy and of a good one; None if not known.

    `never learned`: no period came a quarter of the way from random to good. `collapsed`: one did, and the final has
    lost at least half (`lost`) of what the best period had gained over random. `held`: all else.

    >>> fates([[20, 40, 30], [20, 180, 60], [20, 180, 170]], random=20, good=200)
    ['never learned', 'collapsed', 'held']
    """
    last, downs = final(curves), fall(curves)
    gained = last + downs - random
    return [
        None if not np.isfinite(one) else NEVER_LEARNED if one < LEARNED_SHARE * (good - random)
        else COLLAPSED if down >= lost * one else HELD
        for one, down in zip(gained, downs, strict=True)
    ]  # fmt: skip


def summarise(curve: ArrayLike) -> dict[str, float | None]:
    """`highest`, `final`, `auc` and `fall` of one curve [periods]. None where it has no finite value."""
    numbers = {"highest": highest([curve])}
    numbers |= {name: float(number([curve])[0]) for name, number in (("final", final), ("auc", auc), ("fall", fall))}
    return {name: value if np.isfinite(value) else None for name, value in numbers.items()}


def _finite_mean_curve(curves: ArrayLike) -> np.ndarray:
    """The mean curve, without the periods in which no seed has a value."""
    mean = mean_curve(check_curves(curves))
    return mean[np.isfinite(mean)]


def upper_tail_mean(values: ArrayLike, share: float = 0.9) -> float:
    """E[X | X ≥ percentile_share(X)] of the finite values: the average over the worst of them. NaN if there is none.

    >>> upper_tail_mean([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])  # the 0.9 percentile is 10
    10.5
    """
    array = np.asarray(values, np.float64)
    finite = array[np.isfinite(array)]
    if not finite.size:
        return float("nan")
    return float(finite[finite >= np.quantile(finite, share)].mean())


def across_iterations(update_interference: np.ndarray) -> float:
    """Interference across iterations (Liu et al. 2023): the upper tail mean over the last half of the iterations.

    >>> across_iterations(np.array([np.nan, 100.0, 100.0, 1.0, 3.0]))
    3.0
    """
    finite = update_interference[np.isfinite(update_interference)]
    return upper_tail_mean(finite[len(finite) // 2 :])


def finite_scores(scores: ArrayLike, name: str = "scores") -> np.ndarray:
    """[n]: the finite ones of one score per seed, at least one."""
    array = np.asarray(scores, float)
    if array.ndim != 1:
        raise BadInput(f"{name} must be one number per seed, got an array of shape {array.shape}.")
    finite = array[np.isfinite(array)]
    if not finite.size:
        raise BadInput(f"{name} must hold at least one finite number, got {array.size} of which none is finite.")
    return finite


def finite_scores_by_task(tasks: Sequence[ArrayLike], name: str = "scores") -> list[np.ndarray]:
    """The finite scores of each task. Tasks may differ in their number of runs."""
    if not len(tasks):
        raise BadInput(f"{name} must hold at least one task, got none.")
    return [finite_scores(scores, f"{name} of task {i}") for i, scores in enumerate(tasks)]
