"""The learning curve of each seed, and where it falls.

A *fall* goes from the highest return so far to the lowest return before half of the loss is regained, or before the
curve ends. It is deeper than a given share of the curve's range (its highest minus its lowest return). After a recovery
the search for the highest return starts again.

A curve that never learned has a range too, made of noise, and noise falls all the time. So falls are looked for only
where there is something to fall from:

- The *exploring* periods are those that ended with ε ≥ 0.5, or the first one. Their mean return is the exploring level.
  The *usual change* is the median absolute change from one period to the next.
- The *bar* is the exploring level plus 3 usual changes. Where Gymnasium says at which return a task counts as solved,
  it is at least a tenth of the way from the exploring level to there, and at most half of it: 44 of 500 points are
  nothing learned, and most of the way is something, however much the returns change. A seed *learned* if three
  successive returns after the exploring ones have a median above the bar. Its falls begin above the bar, or go lower
  than the fall before.
- A seed may have learned before its first period ended, and never rise above it. If the medians of three returns span
  more than 6 usual changes, and a quarter of the way from the lowest to a solved task, the falls that begin after ε
  has finished decaying count.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import gymnasium
import numpy as np
import polars as pl

from iqrl.settings import Run

RECOVERY = 0.5
"""share of a loss that must be regained to end a fall"""
STILL_HIGH = 0.25
"""share of the loss up to which a return still counts as one before the fall"""
NEARLY_DOWN = 0.1
"""share of the loss that may be missing when a return counts as fallen: the very lowest can come much later"""
EXPLORING = 0.5
"""ε from which on a period counts as exploring"""
RISE, SPAN = 3, 6
"""in usual changes: what noise does not reach, above one level and from the lowest to the highest"""
CLEAR = 3.0
"""in standard errors: what the mean of noise does not reach"""
LEAST_WAY, MOST_WAY, QUARTER = 0.1, 0.5, 0.25
"""of the way to a solved task: less is nothing learned, more is something; and what a first period must have learned"""


class SeedMetrics(NamedTuple):
    """The metrics of one seed as arrays, with one entry per period."""

    seed: int
    steps: np.ndarray
    """[P]: the step at which each period ended"""
    returns: np.ndarray
    """[P]: NaN where no episode ended"""
    settled: np.ndarray
    """[P]: whether the whole period came after learning had started and ε had finished decaying"""
    columns: dict[str, np.ndarray]
    """every column as [P], [P, k] or [P, C, C]"""

    @property
    def heads(self) -> int:
        """How many contexts the agent itself has."""
        return self.columns["occupancy"].shape[1] if "occupancy" in self.columns else 1


class Fall(NamedTuple):
    """A fall of the return, by indices of periods."""

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


class History(NamedTuple):
    """The curve of one seed: whether it learned, and its falls."""

    seed: SeedMetrics
    kind: Literal["empty", "short", "unlearned", "learned"]
    exploring_level: float = np.nan
    usual_change: float = np.nan
    bar: float = np.nan
    falls: tuple[Fall, ...] = ()


def split_by_seed(run: Run, metrics: pl.DataFrame) -> list[SeedMetrics]:
    """The rows of each seed, in order of time."""
    tables = metrics.sort("seed", "step").partition_by("seed", maintain_order=True)
    return [_read_seed(run, rows) for rows in tables]


def _read_seed(run: Run, rows: pl.DataFrame) -> SeedMetrics:
    columns = {name: _to_array(rows[name]) for name in rows.columns}
    steps = rows["step"].to_numpy()
    starts = np.concatenate([[0], steps[:-1]])
    return SeedMetrics(
        seed=int(rows["seed"][0]),
        steps=steps,
        returns=columns["return"],
        settled=starts >= max(run.learning_starts, run.epsilon_begin + run.epsilon_decay),
        columns=columns,
    )


def _to_array(series: pl.Series) -> np.ndarray:
    """Numbers or lists of numbers as floats; NaN where an entry is missing."""
    rows = series.to_list()
    present = next((np.asarray(row, np.float64) for row in rows if row is not None), np.float64(np.nan))
    missing = np.full(present.shape, np.nan)
    return np.stack([missing if row is None else np.asarray(row, np.float64) for row in rows])


def take_last(values: np.ndarray, share: float) -> np.ndarray:
    """The last share of the periods, at least one of them."""
    return values[-max(int(len(values) * share), 1) :]


def solved_at(task: str) -> float:
    """The return at which Gymnasium counts a task as solved; NaN where it does not say."""
    spec = gymnasium.registry.get(task) or gymnasium.registry.get(f"{task}-v0")
    found = None if spec is None else spec.reward_threshold
    return float("nan") if found is None else float(found)


def trace_history(seed: SeedMetrics, drop: float, solved: float = float("nan")) -> History:
    """Judge a seed's curve; a fall is deeper than the share `drop` of the curve's range.

    `solved`: the return at which the task counts as solved; NaN where nobody says."""
    ended = np.isfinite(seed.returns)
    exploring = find_exploring(seed)
    points, later = seed.returns[ended], seed.returns[ended & ~exploring]
    if len(later) < 3:
        return History(seed=seed, kind="short" if len(points) else "empty")
    level = float(seed.returns[exploring].mean())
    change = float(np.median(np.abs(np.diff(points))))
    way = max(solved - level, 0.0) if np.isfinite(solved) else 0.0
    bar = level + (float(np.clip(RISE * change, LEAST_WAY * way, MOST_WAY * way)) if way else RISE * change)
    history = History(seed=seed, kind="learned", exploring_level=level, usual_change=change, bar=bar)
    falls = find_falls(seed.returns, drop * float(np.ptp(points)))
    medians = np.median(np.lib.stride_tricks.sliding_window_view(later, 3), axis=1)
    if medians.max() > history.bar:
        return history._replace(falls=_keep_falls_from_learned(seed.returns, falls, history.bar))
    # Where nobody says what solves the task, a mean that is clearly above that of exploring is enough.
    clear = level + CLEAR * float(later.std()) * np.sqrt(1 / len(later) + 1 / max(int(exploring.sum()), 1))
    if not way and later.mean() > clear:
        return history._replace(bar=clear, falls=_keep_falls_from_learned(seed.returns, falls, clear))
    settled = tuple(fall for fall in falls if seed.settled[fall.peak])
    lowest_way = QUARTER * max(solved - medians.min(), 0.0) if np.isfinite(solved) else 0.0
    if settled and np.ptp(medians) > max(SPAN * change, lowest_way):
        return history._replace(falls=settled)
    return history._replace(kind="unlearned")


def find_exploring(seed: SeedMetrics) -> np.ndarray:
    """[P]: in which most actions were random and an episode ended; the first with an episode if there is none."""
    ended = np.isfinite(seed.returns)
    early = ended & (seed.columns["epsilon"] >= EXPLORING)
    return early if early.any() else ended & (np.cumsum(ended) == 1)


def _keep_falls_from_learned(returns: np.ndarray, falls: list[Fall], bar: float) -> tuple[Fall, ...]:
    """Those that begin above the bar, and relapses, which end below the lowest point of the fall before."""
    kept: list[Fall] = []
    for fall in falls:
        if returns[fall.peak] > bar or (kept and returns[fall.trough] < returns[kept[-1].trough]):
            kept.append(fall)
    return tuple(kept)


def find_falls(returns: np.ndarray, depth: float) -> list[Fall]:
    """All falls deeper than `depth`, in order of time."""
    points = np.flatnonzero(np.isfinite(returns))
    found: list[Fall] = []
    peak = trough = points[0]
    for now in points[1:]:
        loss = returns[peak] - returns[trough]
        if loss > depth and returns[now] >= returns[trough] + RECOVERY * loss:
            found.append(_locate_fall(returns, peak, trough, now))
            peak = trough = now
        elif returns[now] >= returns[peak]:
            peak = trough = now
        elif returns[now] < returns[trough]:
            trough = now
    if returns[peak] - returns[trough] > depth:
        found.append(_locate_fall(returns, peak, trough, None))
    return found


def _locate_fall(returns: np.ndarray, peak: int, trough: int, recovered: int | None) -> Fall:
    depth = float(returns[peak] - returns[trough])
    down = np.flatnonzero(returns[peak : trough + 1] <= returns[trough] + NEARLY_DOWN * depth)
    first_low = int(peak + down[0])
    high = np.flatnonzero(returns[peak:first_low] >= returns[peak] - STILL_HIGH * depth)
    return Fall(
        peak=int(peak),
        last_high=int(peak + high[-1]),
        first_low=first_low,
        trough=int(trough),
        recovered=None if recovered is None else int(recovered),
        depth=depth,
    )
