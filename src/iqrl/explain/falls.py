"""Where a learning curve falls.

A *fall* goes from a running maximum of one seed's curve to the lowest point before the return has
regained half of the loss, or before the curve ends; it is deeper than a given share of the curve's
range (its highest minus its lowest return). After a recovery the running maximum starts anew.

A curve that never learned has a range too, made of noise, and noise falls all the time. So falls are
looked for only where there is something to fall from:

- the *exploring* periods are those that ended with ε ≥ 0.5, or the very first; their mean return is the
  exploring level; the *usual change* is the median absolute change from one period to the next;
- the *bar* is the exploring level plus 3 usual changes; a seed *learned* if three successive returns
  after the exploring ones have a median above the bar, and its falls begin above it, or go lower than the
  one before;
- a seed may have learned before its first period ended, and never rise above it: if the medians of
  three span more than 6 usual changes, its falls count that begin after ε has finished decaying.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from iqrl.explain.seeds import SeedMetrics

RECOVERY = 0.5
"""share of a loss that must be regained to end a fall"""
STILL_HIGH = 0.25
"""share of the loss up to which a return still counts as one before the fall"""
NEARLY_DOWN = 0.1
"""share of the loss that may be missing when a return counts as fallen: the very lowest can come much later"""
EXPLORING = 0.5
RISE, SPAN = 3, 6
"""in usual changes: what noise does not reach, above one level and from the lowest to the highest"""


class Fall(NamedTuple):
    """Indices of periods."""

    peak: int
    last_high: int
    """the last period in which no more than a quarter of the loss had happened"""
    first_low: int
    """the first period after it in which nine tenths of the loss had happened"""
    trough: int
    recovered: int | None
    """when half of the loss was regained; None if it never was"""
    depth: float

    @property
    def falling(self) -> slice:
        """The periods in which the return went down."""
        return slice(self.last_high + 1, self.first_low + 1)


class Course(NamedTuple):
    """How a seed's curve went."""

    kind: Literal["empty", "short", "unlearned", "learned"]
    exploring: float
    usual_change: float
    bar: float
    falls: list[Fall]


def course_of(seed: SeedMetrics, drop: float) -> Course:
    ended = np.isfinite(seed.returns)
    exploring = exploring_periods(seed)
    points, later = seed.returns[ended], seed.returns[ended & ~exploring]
    if len(later) < 3:
        return Course("short" if len(points) else "empty", np.nan, np.nan, np.nan, [])
    level = float(seed.returns[exploring].mean())
    change = float(np.median(np.abs(np.diff(points))))
    bar = level + RISE * change
    falls = find_falls(seed.returns, drop * float(np.ptp(points)))
    medians = np.median(np.lib.stride_tricks.sliding_window_view(later, 3), axis=1)
    if medians.max() > bar:
        return Course("learned", level, change, bar, _from_what_was_learned(seed.returns, falls, bar))
    settled = [fall for fall in falls if seed.settled[fall.peak]]
    if settled and np.ptp(medians) > SPAN * change:
        return Course("learned", level, change, bar, settled)
    return Course("unlearned", level, change, bar, [])


def _from_what_was_learned(returns: np.ndarray, falls: list[Fall], bar: float) -> list[Fall]:
    """Those that begin above the bar, and those that end below the last one's lowest point: relapses."""
    kept: list[Fall] = []
    for fall in falls:
        if returns[fall.peak] > bar or (kept and returns[fall.trough] < returns[kept[-1].trough]):
            kept.append(fall)
    return kept


def exploring_periods(seed: SeedMetrics) -> np.ndarray:
    """[P]: in which most actions were random and an episode ended; the first with an episode if there is none."""
    ended = np.isfinite(seed.returns)
    early = ended & (seed.columns["epsilon"] >= EXPLORING)
    return early if early.any() else ended & (np.cumsum(ended) == 1)


def find_falls(returns: np.ndarray, depth: float) -> list[Fall]:
    """All falls deeper than `depth`, in order of time."""
    points = np.flatnonzero(np.isfinite(returns))
    found: list[Fall] = []
    peak = trough = points[0]
    for now in points[1:]:
        loss = returns[peak] - returns[trough]
        if loss > depth and returns[now] >= returns[trough] + RECOVERY * loss:
            found.append(_fall(returns, peak, trough, now))
            peak = trough = now
        elif returns[now] >= returns[peak]:
            peak = trough = now
        elif returns[now] < returns[trough]:
            trough = now
    if returns[peak] - returns[trough] > depth:
        found.append(_fall(returns, peak, trough, None))
    return found


def _fall(returns: np.ndarray, peak: int, trough: int, recovered: int | None) -> Fall:
    depth = float(returns[peak] - returns[trough])
    down = np.flatnonzero(returns[peak : trough + 1] <= returns[trough] + NEARLY_DOWN * depth)
    first_low = int(peak + down[0])
    high = np.flatnonzero(returns[peak:first_low] >= returns[peak] - STILL_HIGH * depth)
    recovered = None if recovered is None else int(recovered)
    return Fall(int(peak), int(peak + high[-1]), first_low, int(trough), recovered, depth)
