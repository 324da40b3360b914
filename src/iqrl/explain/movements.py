"""What moved before a fall and during it, compared with the seed's own past.

The past of a fall is the last 20 periods of that seed before the last high one, after learning had
started and ε had finished decaying: not all of them, because much drifts as values grow. A measurement
moved if it lies further than 3 spreads from its median there, the spread being the median absolute
deviation, scaled to a standard deviation. What never varied in the past has no spread, and is not compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from iqrl.explain.falls import Fall
from iqrl.explain.seeds import SeedMetrics
from iqrl.results import mean_known

PAST, PAST_NEEDED = 20, 5
"""periods of the past that are compared with, at most and at least"""
MOVED = 3.0
SMALLEST_SPREAD = 0.01
"""of the median: less is no movement, however still the past was"""

INTERFERENCE = {
    "negative_interference": "negative interference",
    "aei": "mean AEI",
    "aei_largest": "largest AEI",
    "raised_share": "share of updates that raised the TD error",
    "update_interference": "update interference",
}
OTHERS = {
    "squared_td_error": "squared TD error",
    "value_loss": "value loss",
    "max_q": "max-Q on the batches",
    "held_out_max_q": "max-Q on held-out states",
    "action_gap": "action gap",
    "dormant_units": "share of dormant units",
    "centroid_movement": "largest movement of a centroid",
}
LABELS = INTERFERENCE | OTHERS


def last_settled(seed: SeedMetrics, before: int) -> np.ndarray:
    """[P]: the last settled periods before that one."""
    earlier = seed.settled & (np.arange(len(seed.steps)) < before)
    return earlier & (np.cumsum(earlier[::-1])[::-1] <= PAST)


class Movement(NamedTuple):
    label: str
    usual: float
    now: float
    spreads: float
    """how many usual spreads above (below, if negative) its median it lies"""


class Study(NamedTuple):
    """One fall and what went with it."""

    seed: SeedMetrics
    fall: Fall
    past: np.ndarray
    """[P]: which periods it is compared with"""
    compared: int
    """how many measurements had enough of a past"""
    before: list[Movement]
    """in the last period before the return fell, furthest first"""
    during: list[Movement]
    """in the mean of the periods in which it fell"""


def study(seed: SeedMetrics, fall: Fall) -> Study:
    past = last_settled(seed, fall.last_high)
    measured = measurements(seed)
    before = {label: float(values[fall.last_high]) for label, values in measured.items()}
    during = {label: float(mean_known(values[fall.falling])) for label, values in measured.items()}
    enough = {label: values[past] for label, values in measured.items() if comparable(values[past])}
    moved = lambda now: _moved(enough, now)
    return Study(seed, fall, past, len(enough), moved(before), moved(during))


def comparable(past: np.ndarray) -> bool:
    known = past[np.isfinite(past)]
    return len(known) >= PAST_NEEDED and bool(np.ptp(known) > 0)


def measurements(seed: SeedMetrics) -> dict[str, np.ndarray]:
    """What is one number per period, by the name it is shown with."""
    found = {}
    for name, values in seed.columns.items():
        if name in LABELS:
            found[LABELS[name]] = values.max(axis=1) if values.ndim == 2 else values
        elif name.endswith("_loss"):
            found[f"{name.removesuffix('_loss')} loss"] = values
    return found


def _moved(past: dict[str, np.ndarray], now: dict[str, float]) -> list[Movement]:
    compared = [Movement(label, *compare(past[label], now[label])) for label in past]
    return sorted((it for it in compared if abs(it.spreads) > MOVED), key=lambda it: -abs(it.spreads))


def compare(past: np.ndarray, now: float) -> tuple[float, float, float]:
    """The usual value, the one now, and how many spreads lie between them."""
    known = past[np.isfinite(past)]
    usual = float(np.median(known))
    distances = np.abs(known - usual)
    # Where most values are the same, the median distance is 0 and the mean one is not.
    spread = max(1.4826 * float(np.median(distances)), 1.2533 * float(np.mean(distances)))
    return usual, now, (now - usual) / max(spread, SMALLEST_SPREAD * abs(usual))


# Contexts


class Rise(NamedTuple):
    context: int
    change: float
    share: float
    """of the summed rises of all contexts"""


class Conflict(NamedTuple):
    contexts: tuple[int, int]
    cosine: float


class Shift(NamedTuple):
    """A context that states left, or nearly all went to."""

    context: int
    usual: float
    now: float


def steepest_rise(seed: SeedMetrics, fall: Fall) -> Rise | None:
    """The context whose TD error the updates raised most while the return fell: by 0 if they raised no context's, None
    if nothing was read."""
    if "aei_contexts" not in seed.columns:
        return None
    changes = mean_known(seed.columns["aei_contexts"][fall.falling], axis=0)
    if not np.isfinite(changes).any():
        return None
    rises = np.maximum(np.nan_to_num(changes), 0.0)
    worst = int(rises.argmax())
    return Rise(worst, float(rises[worst]), float(rises[worst] / max(rises.sum(), 1e-30)))


def shifts(found: Study) -> list[Shift]:
    if found.seed.heads == 1 or found.past.sum() < PAST_NEEDED:
        return []
    occupancy = found.seed.columns["occupancy"]
    usual, now = np.median(occupancy[found.past], axis=0), mean_known(occupancy[found.fall.falling], axis=0)
    emptied, took_over = (now < 0.01) & (usual > 0.05), (now > 0.9) & (usual < 0.75)
    return [Shift(int(i), float(usual[i]), float(now[i])) for i in np.flatnonzero(emptied | took_over)]


def strongest_conflict(seed: SeedMetrics, periods: slice) -> Conflict | None:
    """The pair of contexts whose mean TD gradients have the lowest cosine, on average over these periods."""
    if "gradient_cosine" not in seed.columns:
        return None
    cosines = mean_known(seed.columns["gradient_cosine"][periods], axis=0)
    pairs = [(i, j) for i, j in zip(*np.triu_indices(len(cosines), 1), strict=True) if np.isfinite(cosines[i, j])]
    if not pairs:
        return None
    i, j = min(pairs, key=lambda pair: cosines[pair])
    return Conflict((int(i), int(j)), float(cosines[i, j]))
