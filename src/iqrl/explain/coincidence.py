"""Whether interference is high where the return falls, over all periods of a run.

A period's negative interference is *raised* if it lies further than 3 spreads above its median in the last 20 periods
of that seed. Raised periods are counted where the return fell and elsewhere, since what is often raised is raised in
falls too; the p-value is that of circular shifts within seeds, as in `association`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.explain.association import correlate
from iqrl.explain.falls import Course
from iqrl.explain.movements import MOVED, comparable, compare, last_settled
from iqrl.explain.seeds import SeedMetrics

MEASURE = "negative_interference"


class Coincidence(NamedTuple):
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
        p = f"p = {self.p:.3f}" if self.p >= 0.001 else "p < 0.001"
        return (
            f"negative interference was raised in {self.raised_falling} of {self.falling} periods in which the return "
            f"fell, and in {self.raised_elsewhere} of {self.elsewhere} others, {p}"
        )


def coincide(told: Sequence[tuple[SeedMetrics, Course]]) -> Coincidence | None:
    """None if there is no fall, or nothing to compare it with."""
    if not all(MEASURE in seed.columns for seed, _ in told):
        return None
    pairs = [_flags(seed, course) for seed, course in told]
    falling = [flags for flags in pairs if len(flags[0])]
    if not falling or not sum(fell.sum() for _, fell in falling):
        return None
    raised, fell = (np.concatenate(flags) for flags in zip(*falling, strict=True))
    # Between seeds, shares are left as they are: one that falls often and has much interference is a sign too.
    found = correlate([(x - raised.mean(), y - fell.mean()) for x, y in falling])
    p = found.p if found else 1.0
    return Coincidence(int(fell.sum()), int((raised & fell).sum()), int((~fell).sum()), int((raised & ~fell).sum()), p)


def _flags(seed: SeedMetrics, course: Course) -> tuple[np.ndarray, np.ndarray]:
    """Of each period that can be compared: whether interference was raised, whether the return fell."""
    values = seed.columns[MEASURE]
    fell = np.zeros(len(values), bool)
    for fall in course.falls:
        fell[fall.falling] = True
    raised, usable = np.zeros(len(values), bool), np.zeros(len(values), bool)
    for now in np.flatnonzero(seed.settled & np.isfinite(values)):
        past = values[last_settled(seed, int(now))]
        usable[now] = comparable(past)
        raised[now] = usable[now] and compare(past, float(values[now]))[2] > MOVED
    return raised[usable], fell[usable]
