"""The random encoder (RE) against the encoder trained with the agent (TE)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from iqrl.paper.curves import AuthorsCurves
from iqrl.paper.settings import ENCODER_BUFFER, ENCODER_GAMES, FAMILIES, SMOOTHING, Setting
from iqrl.statistics.bootstrap import Interval, mean_interval
from iqrl.statistics.curves import auc, final, highest, smoothed
from iqrl.statistics.improvement import probability_of_improvement
from iqrl.statistics.kolmogorov import pooled_ks
from iqrl.statistics.permutation import Permutation, permutation_test


class Side(NamedTuple):
    highest: float
    final: Interval
    auc: Interval


class EncoderComparison(NamedTuple):
    game: str
    family: str
    random: Side
    trained: Side
    pooled_p: float
    """as the paper tests: drawn points taken together"""
    permutation: Permutation
    improvement: Interval
    same_runs: int
    """how many RE runs are runs of the main comparison with N = 10,000"""


def compare_encoders(curves: AuthorsCurves) -> list[EncoderComparison]:
    return [_compare(curves, game, family) for game in ENCODER_GAMES for family in FAMILIES]


def _compare(curves: AuthorsCurves, game: str, family: str) -> EncoderComparison:
    random_setting = Setting(game, ENCODER_BUFFER, f"{family}+IQ-RE")
    random, trained = curves.encoders[random_setting], curves.encoders[Setting(game, ENCODER_BUFFER, f"{family}+IQ-TE")]
    main = curves.runs[random_setting]
    return EncoderComparison(
        game,
        family,
        _side(random),
        _side(trained),
        pooled_ks(smoothed(random, SMOOTHING), smoothed(trained, SMOOTHING)),
        permutation_test(auc(random), auc(trained)),
        probability_of_improvement([auc(random)], [auc(trained)]),
        sum(any(np.array_equal(run, other) for other in main) for run in random),
    )


def _side(curves: np.ndarray) -> Side:
    return Side(highest(smoothed(curves, SMOOTHING)), mean_interval(final(curves)), mean_interval(auc(curves)))
