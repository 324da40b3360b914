"""One side against another over matching cells of a study, by four measures at once.

A side is a filter of runs, such as method = iq. Both sides are matched by task and buffer size, but for what a filter
fixes: IQ with N = 1 against DQN with N = 50,000 is matched by task. The sides may be of two studies. Differences of
returns are shares of the tasks' ranges; of interference, which has no range, shares of what the other side has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.experiments.report.arrangement import gather_studies
from iqrl.experiments.report.cells import SCALES
from iqrl.experiments.report.interference_tables import is_measured_whole, logarithms, summarise_interference
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.statistics.curves import auc, fall, fates, final, highest, mean_finite, steps_and_returns
from iqrl.statistics.highest import highest_difference, highest_test
from iqrl.statistics.intervals import Interval, difference_interval
from iqrl.statistics.significance import mean_difference_tests, probability_of_improvement

RESAMPLES = 2000
EARLY_SHARE = 5
"""early is the first fifth of a run"""


class MeasuredCurves(NamedTuple):
    """A run and its returns [seeds, periods]."""

    variant: str
    config: Mapping[str, Any]
    returns: np.ndarray
    interference: Mapping[str, np.ndarray] = {}
    """each measure of INTERFERENCE [seeds]; empty if it was not measured"""


def early(curves: np.ndarray) -> np.ndarray:
    """[seeds]: the mean of the first fifth of the periods."""
    return mean_finite(curves[:, : max(curves.shape[1] // EARLY_SHARE, 1)], axis=1)


PER_SEED = {"final": final, "auc": auc, "fall": fall, "early": early}
INTERFERENCE = {"negative": "negative_interference", "relative": "relative_interference"}
LESS_IS_BETTER = ("fall", *INTERFERENCE)
MEASURES = ("highest", "final", "auc", "fall")
"""by which every contrast is measured, but for one that is about interference; a claim may be about `early` too"""


class Effect(NamedTuple):
    """By one measure. Positive is more for the first side."""

    share: Interval
    """difference as a share of the tasks' ranges, averaged over cells; of interference, as one of the other side"""
    wins: Interval | None
    """how likely a run of the first side is the better one; the highest point of a mean curve has none"""
    p: float
    adjusted: float
    """p corrected for all tests of the page"""


class Contrast(NamedTuple):
    own: str
    other: str
    cells: int
    seeds: tuple[int, int]
    """the fewest of a cell, on either side"""
    fates: tuple[Counter[str], Counter[str]]
    """how many seeds of all cells held, collapsed or never learned, on either side"""
    effects: dict[str, Effect]
    apart: tuple[int, int] = (0, 0)
    """in how many cells the 95% interval favours the first side, and in how many the second: by final return, or by
    interference where that is all there is; not corrected"""
    key: str = ""
    """which runs these are; several claims may be about the same"""


class MeasuredStudy(NamedTuple):
    results: StudyResults
    runs: list[MeasuredCurves]


def measure_study(study: StudyResults) -> MeasuredStudy:
    """The runs of a study with their curves; those that differ in their seeds only are one."""
    (study,) = gather_studies([study])
    by_run = study.curves.partition_by("run", as_dict=True)
    return MeasuredStudy(study, [_measured_curves(run, by_run[(run.id,)]) for run in study.runs])


def _measured_curves(run: RunRecord, rows: pl.DataFrame) -> MeasuredCurves:
    return MeasuredCurves(run.variant, run.config, steps_and_returns(rows)[1], _interference(rows))


def _interference(rows: pl.DataFrame) -> dict[str, np.ndarray]:
    if not is_measured_whole(rows):
        return {}
    seeds = summarise_interference(rows)
    return {name: np.array([seed[column] for seed in seeds], float) for name, column in INTERFERENCE.items()}


def select(runs: Sequence[MeasuredCurves], side: Mapping[str, Any]) -> list[MeasuredCurves]:
    """Those that have all values of a filter; a list allows each of its values."""
    return [run for run in runs if all(_matches(_value(run, name), wanted) for name, wanted in side.items())]


def _value(run: MeasuredCurves, name: str) -> Any:
    return run.variant if name == "variant" else run.config.get(name)


def _matches(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


def side_name(side: Mapping[str, Any]) -> str:
    """Its method, or its variant where it has no other name.

    >>> side_name({"method": "dqn", "buffer_size": 50000}), side_name({"method": "iq", "contexts": 3})
    ('dqn, N=50,000', 'iq, k=3')
    >>> side_name({"variant": "live centroids"})
    'live centroids'
    """
    names = {"buffer_size": "N", "contexts": "k"}
    parts = [side[key] for key in ("method", "variant") if key in side][:1]
    return ", ".join(parts + [f"{names[key]}={side[key]:,}" for key in names if isinstance(side.get(key), int)])


def match(
    runs: Sequence[MeasuredCurves], own: Mapping[str, Any], other: Mapping[str, Any], others: Sequence[MeasuredCurves]
) -> list[tuple[MeasuredCurves, MeasuredCurves]]:
    """Both sides of each cell that has both, on tasks with a known range."""
    keys = [key for key in ("task", "buffer_size") if not (key in own or key in other)]
    place = lambda run: tuple(run.config[key] for key in keys)
    rivals = {place(run): run for run in select(others, other)}
    pairs = [(run, rivals[place(run)]) for run in select(runs, own) if place(run) in rivals]
    return [pair for pair in pairs if pair[0].config["task"] in SCALES]


def on_scale(pairs: Sequence[tuple[MeasuredCurves, MeasuredCurves]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns as shares of the task's range."""
    return [tuple(run.returns / SCALES[run.config["task"]].range for run in pair) for pair in pairs]


def contrast(
    runs: Sequence[MeasuredCurves],
    own: Mapping[str, Any],
    other: Mapping[str, Any],
    measures: Sequence[str],
    others: Sequence[MeasuredCurves] | None = None,
) -> Contrast | None:
    """None where no cell has both sides. `others` are the runs of the second side, if they are not among the first."""
    pairs = match(runs, own, other, runs if others is None else others)
    if not pairs:
        return None
    seeds = tuple(min(len(pair[side].returns) for pair in pairs) for side in (0, 1))
    of_returns = () if measures and set(measures) <= set(INTERFERENCE) else MEASURES
    effects = _effects(list(dict.fromkeys([*of_returns, *measures])), pairs)
    both = (_fates([run for run, _ in pairs]), _fates([run for _, run in pairs]))
    apart = _cells_apart("final" if of_returns else measures[0], pairs)
    return Contrast(side_name(own), side_name(other), len(pairs), (seeds[0], seeds[1]), both, effects, apart)


def _fates(runs: Sequence[MeasuredCurves]) -> Counter[str]:
    scales = [SCALES[run.config["task"]] for run in runs]
    seen = [fates(run.returns, scale.random, scale.best) for run, scale in zip(runs, scales, strict=True)]
    return Counter(fate for seeds in seen for fate in seeds if fate)


def _effects(measures: Sequence[str], pairs: Sequence[tuple[MeasuredCurves, MeasuredCurves]]) -> dict[str, Effect]:
    """By the highest point, and by each measure of a seed; their tests share the random splits."""
    curves, effects = on_scale(pairs), {}
    if "highest" in measures:
        p = highest_test(curves)
        effects["highest"] = Effect(share=highest_difference(curves), wins=None, p=p, adjusted=p)
    sides = {name: _scores(name, pairs) for name in measures if name != "highest"}
    tests = mean_difference_tests(list(sides.values()))
    for (name, (own, other)), test in zip(sides.items(), tests, strict=True):
        wins = probability_of_improvement(own, other, resamples=RESAMPLES)
        share = difference_interval(own, other, resamples=RESAMPLES)
        if name in LESS_IS_BETTER:
            share = Interval(-share.value, -share.high, -share.low)
        if name in INTERFERENCE:
            share = Interval(*np.expm1(share).tolist())
        effects[name] = Effect(share=share, wins=wins, p=test.p, adjusted=test.p)
    return effects


def _cells_apart(measure: str, pairs: Sequence[tuple[MeasuredCurves, MeasuredCurves]]) -> tuple[int, int]:
    found = [
        difference_interval([own], [other], resamples=RESAMPLES)
        for own, other in zip(*_scores(measure, pairs), strict=True)
    ]
    return sum(one.low > 0 for one in found), sum(one.high < 0 for one in found)


def _scores(
    measure: str, pairs: Sequence[tuple[MeasuredCurves, MeasuredCurves]]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A number per seed of both sides in each cell; more is better.

    Returns are shares of the range. Sizes of interference differ by orders of magnitude, so their logarithms are taken.
    """
    if measure in INTERFERENCE:
        own, others = logarithms(*[[pair[side].interference[measure] for pair in pairs] for side in (0, 1)])
    else:
        own, others = ([PER_SEED[measure](pair[side]) for pair in on_scale(pairs)] for side in (0, 1))
    sign = -1 if measure in LESS_IS_BETTER else 1
    return [sign * x for x in own], [sign * x for x in others]


def highest_on_scale(run: MeasuredCurves) -> float:
    """0 is the worst return of the task, 1 a good one."""
    scale = SCALES[run.config["task"]]
    return (highest(run.returns) - scale.worst) / scale.range
