"""What moved with the falls, in four kinds of evidence.

*Movements* compare a fall with the seed's own past: its last 20 periods before the last high one, after learning had
started and ε had finished decaying. Older periods do not count, because much drifts as values grow. A metric moved if
it lies further than 3 spreads from its median there. The spread is the median absolute deviation, scaled to a standard
deviation. A metric that never varied in the past has no spread, and is not compared.

*Coincidence* asks whether interference is high where the return falls, over all periods of a run. A period's negative
interference is *raised* if it lies further than 3 spreads above its median in the last 20 periods of that seed. Raised
periods are counted where the return fell and elsewhere, since what is often raised is raised in falls too.

*Association* asks whether the return falls after interference. Each period's interference is paired with the change of
the return to the next period, and one rank correlation is taken over all seeds. Ranks are within each seed, so that
seeds that differ in level make no correlation. A high return has further to fall than a low one; if interference is
higher where the return is high, the two correlate without one preceding the other. So the correlation is also given
with the rank of the period's own return taken out of both.

p-values come from shifting one of the two series in a circle within each seed, which keeps both as smooth as they are.

*Contexts*: whose TD error rose, which ones states left, and whose gradients disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from iqrl.diagnostics.explain.history import Fall, History, SeedMetrics
from iqrl.diagnostics.metrics import REGULARISER, find_metric, label_of
from iqrl.diagnostics.text import p_value
from iqrl.statistics.curves import mean_finite

PAST, PAST_NEEDED = 20, 5
"""periods of the past that are compared with, at most and at least"""
MOVED = 3.0
"""spreads from the median at which a metric moved"""
SMALLEST_SPREAD = 0.01
"""of the median: less is no movement, however still the past was"""
COMPARED = (
    "negative_interference", "aei", "aei_largest", "raised_share", "update_interference", "squared_td_error",
    "value_loss", "max_q", "held_out_max_q", "action_gap", "dormant_units", "centroid_movement", f"{REGULARISER}_loss",
)  # fmt: skip
"""the metrics that are compared with their past"""
PRECURSORS = ("negative_interference", "update_interference")
"""what may precede a change of the return: the first of them that was measured"""
PERMUTATIONS = 2000
PAIRS_NEEDED = 20


# What moved before a fall and during it


class Movement(NamedTuple):
    """A metric that lies far from its past."""

    metric: str
    usual: float
    now: float
    spreads: float
    """how many usual spreads above (below, if negative) its median it lies"""

    @property
    def label(self) -> str:
        entry = find_metric(self.metric)
        several = entry is not None and entry.shape != "number"
        return f"largest {label_of(self.metric)}" if several else label_of(self.metric)


class FallEvidence(NamedTuple):
    """One fall, and what moved with it."""

    seed: SeedMetrics
    fall: Fall
    past: np.ndarray
    """[P]: which periods it is compared with"""
    compared: int
    """how many metrics had enough of a past"""
    before: list[Movement]
    """in the last period before the return fell, furthest first"""
    during: list[Movement]
    """in the mean of the periods in which it fell"""


def examine_fall(seed: SeedMetrics, fall: Fall) -> FallEvidence:
    """Compare the period before a fall, and the periods of the fall, with the seed's past."""
    past = select_past(seed, fall.last_high)
    series = select_compared(seed)
    before = {name: float(values[fall.last_high]) for name, values in series.items()}
    during = {name: float(mean_finite(values[fall.falling])) for name, values in series.items()}
    pasts = {name: values[past] for name, values in series.items() if is_comparable(values[past])}
    return FallEvidence(
        seed=seed,
        fall=fall,
        past=past,
        compared=len(pasts),
        before=_find_movements(pasts, before),
        during=_find_movements(pasts, during),
    )


def select_past(seed: SeedMetrics, before: int) -> np.ndarray:
    """[P]: the last settled periods before that one."""
    earlier = seed.settled & (np.arange(len(seed.steps)) < before)
    return earlier & (np.cumsum(earlier[::-1])[::-1] <= PAST)


def select_compared(seed: SeedMetrics) -> dict[str, np.ndarray]:
    """The metrics that are compared as one number per period [P]; the largest where there are several."""
    return {
        name: values.max(axis=1) if values.ndim == 2 else values
        for name, values in seed.columns.items()
        if name in COMPARED or (name.endswith("_loss") and f"{REGULARISER}_loss" in COMPARED)
    }


def is_comparable(past: np.ndarray) -> bool:
    """Whether the past is long enough, and varied."""
    finite = past[np.isfinite(past)]
    return len(finite) >= PAST_NEEDED and bool(np.ptp(finite) > 0)


def _find_movements(pasts: dict[str, np.ndarray], now: dict[str, float]) -> list[Movement]:
    compared = [compare(name, past, now[name]) for name, past in pasts.items()]
    moved = [movement for movement in compared if abs(movement.spreads) > MOVED]
    return sorted(moved, key=lambda movement: -abs(movement.spreads))


def compare(metric: str, past: np.ndarray, now: float) -> Movement:
    """How many spreads lie between the median of the past and the value now."""
    finite = past[np.isfinite(past)]
    usual = float(np.median(finite))
    distances = np.abs(finite - usual)
    # Where most values are the same, the median distance is 0 and the mean one is not.
    spread = max(1.4826 * float(np.median(distances)), 1.2533 * float(np.mean(distances)))
    spreads = (now - usual) / max(spread, SMALLEST_SPREAD * abs(usual))
    return Movement(metric=metric, usual=usual, now=now, spreads=spreads)


# Whether interference is high where the return falls


class Coincidence(NamedTuple):
    """Periods with raised interference, where the return fell and elsewhere."""

    falling: int
    """periods of falls that could be compared with a past"""
    raised_falling: int
    elsewhere: int
    raised_elsewhere: int
    p: float

    @property
    def stands_out(self) -> bool:
        more = self.raised_falling * self.elsewhere > self.raised_elsewhere * self.falling
        return more and self.p < 0.05

    @property
    def in_words(self) -> str:
        return (
            f"negative interference was raised in {self.raised_falling} of {self.falling} periods in which the return "
            f"fell, and in {self.raised_elsewhere} of {self.elsewhere} others, {p_value(self.p)}"
        )


def find_coincidence(histories: Sequence[History]) -> Coincidence | None:
    """None if there is no fall, or nothing to compare it with."""
    if not all("negative_interference" in history.seed.columns for history in histories):
        return None
    flags = [pair for history in histories if len((pair := _flag_periods(history))[0])]
    if not flags or not sum(fell.sum() for _, fell in flags):
        return None
    raised, fell = (np.concatenate(parts) for parts in zip(*flags, strict=True))
    # Means are over all seeds, not within each: a seed that falls often and has much interference is evidence too.
    correlation = correlate([(x - raised.mean(), y - fell.mean()) for x, y in flags])
    return Coincidence(
        falling=int(fell.sum()),
        raised_falling=int((raised & fell).sum()),
        elsewhere=int((~fell).sum()),
        raised_elsewhere=int((raised & ~fell).sum()),
        p=correlation.p if correlation else 1.0,
    )


def _flag_periods(history: History) -> tuple[np.ndarray, np.ndarray]:
    """For each period that can be compared: whether interference was raised, and whether the return fell."""
    seed, values = history.seed, history.seed.columns["negative_interference"]
    fell, raised, usable = np.zeros((3, len(values)), bool)
    for fall in history.falls:
        fell[fall.falling] = True
    for now in np.flatnonzero(seed.settled & np.isfinite(values)):
        past = values[select_past(seed, int(now))]
        usable[now] = is_comparable(past)
        raised[now] = usable[now] and compare("negative_interference", past, float(values[now])).spreads > MOVED
    return raised[usable], fell[usable]


# Whether the return falls after interference


class Correlation(NamedTuple):
    rho: float
    p: float
    """two-sided"""


class Association(NamedTuple):
    """Correlation of interference with the change of the return to the next period."""

    metric: str
    pairs: int
    plain: Correlation
    given_return: Correlation
    """with the return of the same period taken out"""

    @property
    def follows(self) -> bool:
        """Whether the return falls after interference more than by chance, and more than a high return falls anyway."""
        return all(found.rho < 0 and found.p < 0.05 for found in (self.plain, self.given_return))


def find_association(seeds: Sequence[SeedMetrics]) -> Association | None:
    """None if interference was not measured, or too few periods follow one another."""
    metric = next((name for name in PRECURSORS if name in seeds[0].columns), None)
    if metric is None:
        return None
    ranked = [ranks for seed in seeds if (ranks := _rank_periods(seed, metric)) is not None]
    pairs = sum(len(x) for x, _, _ in ranked)
    if pairs < PAIRS_NEEDED:
        return None
    plain = correlate([(x, y) for x, y, _ in ranked])
    given_return = correlate([(_take_out(x, level), _take_out(y, level)) for x, y, level in ranked])
    if plain is None or given_return is None:
        return None
    return Association(metric=metric, pairs=pairs, plain=plain, given_return=given_return)


def _rank_periods(seed: SeedMetrics, metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Ranks of interference, of the change to the next period and of the return, each with mean 0."""
    interference, level, change = seed.columns[metric][:-1], seed.returns[:-1], np.diff(seed.returns)
    usable = seed.settled[:-1] & np.isfinite(interference) & np.isfinite(change)
    if usable.sum() < 3:
        return None
    rank = lambda values: rankdata(values[usable]) - (usable.sum() + 1) / 2
    return rank(interference), rank(change), rank(level)


def _take_out(values: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The values without their linear part in `other`."""
    size = float(other @ other)
    return values - other * (float(values @ other) / size) if size else values


def correlate(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Correlation | None:
    """Of two series per seed, each with mean 0; None if one of them never changes."""
    norm = np.sqrt(sum(float(x @ x) for x, _ in pairs) * sum(float(y @ y) for _, y in pairs))
    if norm < 1e-9:
        return None
    # Every circular shift of every seed once; a permutation is then one shift chosen per seed.
    shifted = [np.array([np.roll(x, by) @ y for by in range(len(x))]) for x, y in pairs]
    generator = np.random.default_rng(0)
    chance = sum(sums[generator.integers(len(sums), size=PERMUTATIONS)] for sums in shifted) / norm
    rho = sum(float(sums[0]) for sums in shifted) / norm
    as_large = int((np.abs(chance) >= abs(rho) - 1e-12).sum())
    return Correlation(rho=rho, p=(1 + as_large) / (1 + PERMUTATIONS))


# Contexts


class Rise(NamedTuple):
    """The context whose squared TD error rose most."""

    context: int
    change: float
    share: float
    """of the summed rises of all contexts"""


class Shift(NamedTuple):
    """A context that states left, or to which nearly all went."""

    context: int
    usual: float
    now: float


class Conflict(NamedTuple):
    """Two contexts and the cosine of their gradients."""

    contexts: tuple[int, int]
    cosine: float


def find_steepest_rise(seed: SeedMetrics, fall: Fall) -> Rise | None:
    """The context whose TD error the updates raised most while the return fell.

    The rise is 0 if no context's error rose. None if nothing was measured.
    """
    if "aei_contexts" not in seed.columns:
        return None
    changes = mean_finite(seed.columns["aei_contexts"][fall.falling], axis=0)
    if not np.isfinite(changes).any():
        return None
    rises = np.maximum(np.nan_to_num(changes), 0.0)
    worst = int(rises.argmax())
    return Rise(context=worst, change=float(rises[worst]), share=float(rises[worst] / max(rises.sum(), 1e-30)))


def find_shifts(evidence: FallEvidence) -> list[Shift]:
    """Contexts that emptied, or took over, while the return fell."""
    if evidence.seed.heads == 1 or evidence.past.sum() < PAST_NEEDED:
        return []
    occupancy = evidence.seed.columns["occupancy"]
    usual = np.median(occupancy[evidence.past], axis=0)
    now = mean_finite(occupancy[evidence.fall.falling], axis=0)
    shifted = ((now < 0.01) & (usual > 0.05)) | ((now > 0.9) & (usual < 0.75))
    return [Shift(context=int(i), usual=float(usual[i]), now=float(now[i])) for i in np.flatnonzero(shifted)]


def find_conflict(seed: SeedMetrics, periods: slice) -> Conflict | None:
    """The pair of contexts whose mean TD gradients have the lowest cosine, on average over these periods."""
    if "gradient_cosine" not in seed.columns:
        return None
    cosines = mean_finite(seed.columns["gradient_cosine"][periods], axis=0)
    pairs = [(i, j) for i, j in zip(*np.triu_indices(len(cosines), 1), strict=True) if np.isfinite(cosines[i, j])]
    if not pairs:
        return None
    i, j = min(pairs, key=lambda pair: cosines[pair])
    return Conflict(contexts=(int(i), int(j)), cosine=float(cosines[i, j]))
