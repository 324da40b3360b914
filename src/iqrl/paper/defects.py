"""What is wrong with the published curves: runs saved twice, and what changes without the copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from iqrl.paper.cells import Cell, deterioration_cells, highest_cells
from iqrl.paper.comparisons import Comparison, Overall, compare, overall
from iqrl.paper.curves import AuthorsCurves, equal_runs
from iqrl.paper.settings import Setting
from iqrl.statistics.curves import auc, final


class Copy(NamedTuple):
    """Two runs, counted from 1, with the same curve."""

    setting: Setting
    runs: tuple[int, int]
    replaced: int | None
    """the one whose own log tells of another curve; None if no log is known"""


class Change(NamedTuple):
    """A number before and after the logged curve takes the place of the copy."""

    setting: Setting
    what: str
    before: float
    after: float


class ChangedTest(NamedTuple):
    before: Comparison
    after: Comparison


class Defects(NamedTuple):
    copies: list[Copy]
    zero_runs: dict[Setting, int]
    """how many runs of a setting never scored"""
    elsewhere: list[tuple[Setting, Setting]]
    """settings that share a curve, which no two settings should"""
    changes: list[Change]
    tests: list[ChangedTest]
    """comparisons that a replaced run takes part in"""
    overall: list[Overall]
    """the comparisons over all games, with the logged curves in place of the copies"""


def defects(curves: AuthorsCurves, tests: list[Comparison]) -> Defects:
    repaired = repair(curves)
    touched = [setting for setting in curves.runs if any(setting == other for other, _ in curves.logged)]
    retested = [ChangedTest(*both) for both in zip(tests, compare(repaired), strict=True)]
    zero_runs = {setting: int((~runs.any(axis=1)).sum()) for setting, runs in curves.runs.items()}
    return Defects(
        _copies(curves),
        {setting: count for setting, count in zero_runs.items() if count},
        _shared(curves.runs),
        [change for setting in touched for change in _changes(curves.runs, repaired, setting)],
        [both for both in retested if set(touched) & set(both.before.pair.settings)],
        overall(repaired),
    )


def _copies(curves: AuthorsCurves) -> list[Copy]:
    return [
        Copy(setting, pair, next((run for run in pair if (setting, run) in curves.logged), None))
        for setting, runs in curves.runs.items()
        for pair in equal_runs(runs)
    ]


def repair(curves: AuthorsCurves) -> dict[Setting, np.ndarray]:
    """The runs, with the logged curve in place of each copy."""
    runs = {setting: array.copy() for setting, array in curves.runs.items()}
    for (setting, run), curve in curves.logged.items():
        runs[setting][run - 1] = curve
    return runs


def _changes(
    before: Mapping[Setting, np.ndarray], after: Mapping[Setting, np.ndarray], setting: Setting
) -> list[Change]:
    numbers = {
        "highest": lambda runs: _only(highest_cells({setting: runs})),
        "deterioration": lambda runs: _only(deterioration_cells({setting: runs})),
        "final": lambda runs: float(final(runs).mean()),
        "AUC": lambda runs: float(auc(runs).mean()),
    }
    return [Change(setting, what, of(before[setting]), of(after[setting])) for what, of in numbers.items()]


def _only(cells: list[Cell]) -> float:
    (cell,) = cells
    return cell.computed


def _shared(runs: Mapping[Setting, np.ndarray]) -> list[tuple[Setting, Setting]]:
    first: dict[bytes, Setting] = {}
    shared = []
    for setting, array in runs.items():
        for curve in array[array.any(axis=1)]:
            home = first.setdefault(curve.tobytes(), setting)
            if home != setting:
                shared.append((home, setting))
    return shared
