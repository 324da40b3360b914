"""How often the paper's test finds a difference between runs of one and the same method."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from iqrl.paper.settings import RUNS, SMOOTHING, Setting
from iqrl.statistics.curves import smoothed
from iqrl.statistics.kolmogorov import pooled_ks


class FalseAlarms(NamedTuple):
    tests: int
    at_one_percent: int
    """where one in a hundred is to be expected"""

    @property
    def share(self) -> float:
        return self.at_one_percent / self.tests


def false_alarms(runs: Mapping[Setting, np.ndarray]) -> FalseAlarms:
    """Two runs of a setting against its other three, every way there is, by the pooled test on drawn points.

    Settings in which a run is there twice or never scored are left out: their runs are alike for other reasons.
    """
    p_values = [
        pooled_ks(drawn[list(two)], np.delete(drawn, two, axis=0))
        for curves in runs.values()
        if len(np.unique(curves, axis=0)) == RUNS and curves.any(axis=1).all()
        for drawn in [smoothed(curves, SMOOTHING)]
        for two in combinations(range(RUNS), 2)
    ]
    return FalseAlarms(len(p_values), sum(p < 0.01 for p in p_values))
