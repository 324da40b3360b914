"""What became of a run, in a word: of each seed, and of all of them.

    diverged         the value loss or the values are no numbers any more, or far beyond what the returns can give
    collapsed        it learned, a fall lasted, and it ended far below: by more than a share `drop` of its range, or by
                     half of what it had learned
    never learned    it never rose clearly above its exploring periods (`history.py` has the bar)
    stuck            it learned, and ended less than half of the way from exploring to a solved task (where known)
    still learning   the run is not finished, its ε still decayed at the end, or the return still rose there
    declined         a fall lasted, and it ended not as far below
    unsteady         none of these, but it fell at least three times after ε had decayed, and rose again each time
    fine             none of these
    uneven           of a run alone: no seed is worse than fine, and their final levels are further apart than `drop` of
                     the range of all returns
    too short        fewer than three returns after the exploring ones

The best level is the highest median of three successive returns: one lucky period is no level. The final level is the
mean of the last tenth of the periods.

A fall lasted if the seed ended low after it. The level from which it fell is its first return, or the best level where
that return was a single higher one. The final level is below that level

- by more than a share `drop` of the range of the returns, or by half of what had been learned above exploring;
- or, where no return after the fall regained half of it, by half of the fall.

Where the seed rose about as high again and then fell once more, only the later fall lasted. Headline, page and picture
all ask `find_lasting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from iqrl.diagnostics.explain.history import MOST_WAY, Fall, History, SeedMetrics, take_last
from iqrl.settings import Run
from iqrl.statistics.curves import mean_finite

Fate = Literal[
    "diverged",
    "collapsed",
    "never learned",
    "stuck",
    "declined",
    "still learning",
    "unsteady",
    "fine",
    "uneven",
    "too short",
]
BAD: tuple[Fate, ...] = ("diverged", "collapsed", "never learned", "stuck", "declined")
"""the worst first"""
BEYOND = 1000.0
"""times the largest plausible value at which values have diverged"""
MOST_LOST = 0.5
"""of a fall, and of what was learned above exploring: a seed that ends with less has lost it"""
OFTEN = 3
"""falls that make a seed unsteady"""
STILL_RISING = 0.05
"""of the range: a final level that is so much above the best one before the last fifth is still a rise"""


class SeedFate(NamedTuple):
    history: History
    fate: Fate
    best: float
    final: float
    earlier: float = np.nan
    """the best level before the last fifth of the run: what the end is compared with"""
    broken: tuple[str, int] | None = None
    """the metric that diverged, and the index of the first period in which it had"""
    lasting: tuple[Fall, ...] = ()
    """the falls that lasted to the end"""

    @property
    def seed(self) -> SeedMetrics:
        return self.history.seed


class RunFate(NamedTuple):
    """One word for all seeds: of the bad ones the most frequent; else whether most are still learning, unsteady, fine,
    or fine and uneven."""

    fate: Fate
    seeds: tuple[SeedFate, ...]
    unfinished: bool
    apart: tuple[SeedFate, SeedFate] | None = None
    """the seeds with the lowest and the highest final level, where these are far apart"""

    @property
    def those(self) -> list[SeedFate]:
        """The seeds of this fate; those that are fine where the run is uneven."""
        return [seed for seed in self.seeds if seed.fate == self._of_seeds]

    @property
    def others(self) -> Counter[Fate]:
        return Counter(seed.fate for seed in self.seeds if seed.fate != self._of_seeds)

    @property
    def _of_seeds(self) -> Fate:
        return "fine" if self.fate == "uneven" else self.fate


def judge(
    run: Run, histories: Sequence[History], drop: float, solved: float = np.nan, stopped: bool = False
) -> RunFate:
    """`solved`: the return at which the task counts as solved; NaN where nobody says. `stopped`: whether the run's own
    rules ended it before its last step, which is an end like another."""
    unfinished = not stopped and max(int(history.seed.steps[-1]) for history in histories) < run.steps
    seeds = tuple(judge_seed(run, history, drop, solved, unfinished) for history in histories)
    counts = Counter(seed.fate for seed in seeds)
    bad = [fate for fate in BAD if counts[fate]]
    rest: tuple[Fate, ...] = ("still learning", "unsteady", "fine", "too short")
    most, apart = max(bad or rest, key=lambda fate: counts[fate]), find_apart(seeds, drop)
    return RunFate("uneven" if apart and most == "fine" else most, seeds, unfinished, apart)


def find_apart(seeds: Sequence[SeedFate], drop: float) -> tuple[SeedFate, SeedFate] | None:
    """The seeds that ended lowest and highest, if by more than the share `drop` of the range of all returns."""
    ended = sorted((seed for seed in seeds if np.isfinite(seed.final)), key=lambda seed: seed.final)
    if len(ended) < 2:
        return None
    returns = np.concatenate([seed.seed.returns for seed in ended])
    low, high = ended[0], ended[-1]
    return (low, high) if high.final - low.final > drop * float(np.nanmax(returns) - np.nanmin(returns)) else None


def judge_seed(run: Run, history: History, drop: float, solved: float, unfinished: bool) -> SeedFate:
    seed = history.seed
    points = seed.returns[np.isfinite(seed.returns)]
    best, final = best_level(points), float(mean_finite(take_last(seed.returns, 0.1)))
    earlier = best_level(points[: max(int(0.8 * len(points)), 1)])
    judged = SeedFate(history, "fine", best, final, earlier, lasting=find_lasting(history, best, final, drop))
    if broken := find_divergence(run, seed):
        return judged._replace(fate="diverged", broken=broken)
    if history.kind in ("empty", "short"):
        return judged._replace(fate="still learning" if unfinished else "too short")
    if history.kind == "unlearned":
        early = (unfinished and seed.steps[-1] < run.steps / 2) or not seed.settled.any()
        return judged._replace(fate="still learning" if early else "never learned")
    if judged.lasting and best - final > _far_below(history, best, drop):
        return judged._replace(fate="collapsed")
    rising = final - earlier > max(STILL_RISING * float(np.ptp(points)), history.usual_change)
    goes_on = unfinished or rising or not seed.settled.any()
    if goes_on:
        return judged._replace(fate="still learning")
    halfway = history.exploring_level + MOST_WAY * (solved - history.exploring_level)
    if final < halfway:
        return judged._replace(fate="stuck")
    if judged.lasting:
        return judged._replace(fate="declined")
    settled_falls = sum(bool(seed.settled[fall.peak]) for fall in history.falls)
    return judged._replace(fate="unsteady" if settled_falls >= OFTEN else "fine")


def find_lasting(history: History, best: float, final: float, drop: float) -> tuple[Fall, ...]:
    """The falls after which the seed ended low; the rule is at the top of this file."""
    returns, lasting = history.seed.returns, list[Fall]()
    highest_later = -np.inf
    for fall in reversed(history.falls):
        level = min(float(returns[fall.peak]), best)
        far = _far_below(history, level, drop)
        half = MOST_LOST * (level - float(returns[fall.trough])) if fall.recovered is None else far
        if level - final > min(far, half) and level - highest_later > far:
            lasting.append(fall)
            highest_later = level
    return tuple(reversed(lasting))


def _far_below(history: History, level: float, drop: float) -> float:
    """How far below this level a seed has collapsed."""
    returns, learned = history.seed.returns, level - history.exploring_level
    far = drop * float(np.nanmax(returns) - np.nanmin(returns))
    return min(far, MOST_LOST * learned) if learned > 0 else far


def best_level(points: np.ndarray) -> float:
    if len(points) < 3:
        return float(points.max()) if len(points) else np.nan
    return float(np.median(np.lib.stride_tricks.sliding_window_view(points, 3), axis=1).max())


def find_divergence(run: Run, seed: SeedMetrics) -> tuple[str, int] | None:
    """The first metric that is no number up to the end, or whose values left all bounds, and since when.

    A loss is NaN before learning starts too, where there is nothing to take the mean of.
    """
    begun = np.concatenate([[0], seed.steps[:-1]]) >= run.learning_starts
    for name in ("value_loss", "max_q"):
        values = seed.columns.get(name)
        if values is None or not begun.any():
            continue
        broken = begun & ~np.isfinite(values)
        if np.isinf(values).any() or (broken[-1] and len(values) > 1):
            return name, int(np.argmax(np.isinf(values) | broken))
    bound = bound_value(run, seed)
    values = np.abs(seed.columns["max_q"]) if "max_q" in seed.columns else np.zeros(1)
    if bound and np.nan_to_num(values[-1]) > BEYOND * bound:
        return "max_q", int(np.argmax(np.nan_to_num(values) > BEYOND * bound))
    return None


def bound_value(run: Run, seed: SeedMetrics) -> float | None:
    """The largest value that the returns make plausible; None if values have no bound.

    An episode's return bounds it where a time limit is an end. Where it is not, the rewards go on after the limit,
    at the rate at which they came, up to rate / (1 - γ).
    """
    if not np.isfinite(seed.returns).any():
        return None
    largest = float(np.nanmax(np.abs(seed.returns)))
    if not run.bootstrap_time_limit:
        return largest
    if run.gamma == 1:
        return None
    rates = np.abs(seed.returns) * seed.columns["episodes"] / np.diff(seed.steps, prepend=0)
    return max(largest, float(np.nanmax(rates)) / (1 - run.gamma))
