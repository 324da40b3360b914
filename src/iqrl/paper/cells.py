"""The two tables with one number per setting, computed again: highest return and maximum deterioration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from iqrl.paper.printed import Printed, printed_deterioration, printed_highest
from iqrl.paper.settings import BUFFER_SIZES, GAMES, METHODS, SMOOTHING, Setting
from iqrl.statistics.bootstrap import Interval, mean_interval
from iqrl.statistics.curves import auc, deterioration, final, highest, smoothed


class Cell(NamedTuple):
    setting: Setting
    printed: Printed
    computed: float

    @property
    def matches(self) -> bool:
        return self.printed.agrees(self.computed)


class Scores(NamedTuple):
    """What the paper does not report: means over runs with 95% intervals."""

    setting: Setting
    final: Interval
    auc: Interval


def highest_cells(runs: Mapping[Setting, np.ndarray]) -> list[Cell]:
    """The paper takes the maximum of the curve it draws: means of four iterations."""
    return _cells(runs, printed_highest, highest)


def deterioration_cells(runs: Mapping[Setting, np.ndarray]) -> list[Cell]:
    return _cells(runs, printed_deterioration, deterioration)


def average_cells(cells: list[Cell]) -> list[Cell]:
    """The last row of the table of deterioration: the mean over the games."""
    return [
        Cell(Setting("Average", size, method), printed, average(cells, method, size))
        for size in BUFFER_SIZES
        for method in METHODS
        if (printed := printed_deterioration("Average", method, size))
    ]


def average(cells: list[Cell], method: str, buffer_size: int) -> float:
    chosen = [cell.computed for cell in cells if cell.setting[1:] == (buffer_size, method)]
    assert len(chosen) == len(GAMES)
    return float(np.mean(chosen))


def scores(runs: Mapping[Setting, np.ndarray]) -> list[Scores]:
    return [
        Scores(setting, mean_interval(final(curves)), mean_interval(auc(curves))) for setting, curves in runs.items()
    ]


def _cells(
    runs: Mapping[Setting, np.ndarray],
    printed_of: Callable[[str, str, int], Printed | None],
    number: Callable[[np.ndarray], float],
) -> list[Cell]:
    return [
        Cell(setting, printed, number(smoothed(curves, SMOOTHING)))
        for setting, curves in runs.items()
        if (printed := printed_of(setting.game, setting.method, setting.buffer_size))
    ]
