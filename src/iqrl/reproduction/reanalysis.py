"""The whole re-analysis of the paper's Atari results.

Beside the tables: the comparison of encoders, what is wrong with the published curves, and what the paper's text
claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from iqrl.reproduction.authors_curves import AuthorsCurves, find_equal_runs
from iqrl.reproduction.printed import (
    BASELINES,
    ENCODER_BUFFER,
    ENCODER_GAMES,
    FAMILIES,
    SMOOTHING,
    Setting,
    printed_deterioration,
    text_claims,
)
from iqrl.reproduction.tables import (
    Comparison,
    FalseAlarms,
    OverallComparison,
    RecomputedNumber,
    Runs,
    Scores,
    average_over_games,
    compare_over_games,
    compare_srnn_over_games,
    compare_with_baselines,
    count_false_alarms,
    recompute_averages,
    recompute_deterioration,
    recompute_highest,
    score_runs,
)
from iqrl.statistics.curves import auc, deterioration, final, highest, smooth
from iqrl.statistics.intervals import Interval, mean_interval
from iqrl.statistics.significance import Permutation, permutation_test, pooled_ks, probability_of_improvement

# The random encoder (RE) against the encoder that is trained with the agent (TE)


class EncoderScores(NamedTuple):
    highest: float
    final: Interval
    auc: Interval
    deterioration: float
    """of the mean curve, as in the paper's table of it"""


class EncoderComparison(NamedTuple):
    game: str
    family: str
    random: EncoderScores
    trained: EncoderScores
    pooled_p: float
    """the paper's way of testing: pooled points of the drawn curves"""
    permutation: Permutation
    improvement: Interval
    same_runs: int
    """how many RE runs are runs of the main comparison with N = 10,000"""


def compare_encoders(curves: AuthorsCurves) -> list[EncoderComparison]:
    return [_compare_encoders(curves, game, family) for game in ENCODER_GAMES for family in FAMILIES]


def _compare_encoders(curves: AuthorsCurves, game: str, family: str) -> EncoderComparison:
    setting = Setting(game, ENCODER_BUFFER, f"{family}+IQ-RE")
    random, trained = curves.encoders[setting], curves.encoders[setting._replace(method=f"{family}+IQ-TE")]
    return EncoderComparison(
        game=game,
        family=family,
        random=_score_encoder(random),
        trained=_score_encoder(trained),
        pooled_p=pooled_ks(smooth(random, SMOOTHING), smooth(trained, SMOOTHING)),
        permutation=permutation_test(auc(random), auc(trained)),
        improvement=probability_of_improvement([auc(random)], [auc(trained)]),
        same_runs=sum(any(np.array_equal(run, other) for other in curves.runs[setting]) for run in random),
    )


def _score_encoder(curves: np.ndarray) -> EncoderScores:
    drawn = smooth(curves, SMOOTHING)
    return EncoderScores(
        highest=highest(drawn),
        final=mean_interval(final(curves)),
        auc=mean_interval(auc(curves)),
        deterioration=deterioration(drawn),
    )


# What is wrong with the published curves: runs saved twice, and what changes without the copies


class Copy(NamedTuple):
    """Two runs, numbered from 1, with the same curve."""

    setting: Setting
    runs: tuple[int, int]
    replaced: int | None
    """the run that logged another curve; None if neither did"""


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
    overall: list[OverallComparison]
    """the comparisons over all games, with the logged curves in place of the copies"""


def find_defects(curves: AuthorsCurves, tests: list[Comparison]) -> Defects:
    repaired = replace_copies(curves)
    affected = [setting for setting in curves.runs if any(setting == other for other, _ in curves.logged)]
    retested = zip(tests, compare_with_baselines(repaired), strict=True)
    zero_runs = {setting: int((~runs.any(axis=1)).sum()) for setting, runs in curves.runs.items()}
    return Defects(
        copies=_find_copies(curves),
        zero_runs={setting: count for setting, count in zero_runs.items() if count},
        elsewhere=_find_shared_curves(curves.runs),
        changes=[change for setting in affected for change in _list_changes(curves.runs, repaired, setting)],
        tests=[ChangedTest(before, after) for before, after in retested if set(affected) & set(before.pair.settings)],
        overall=compare_over_games(repaired),
    )


def replace_copies(curves: AuthorsCurves) -> dict[Setting, np.ndarray]:
    """The runs, with the logged curve in place of each copy."""
    runs = {setting: array.copy() for setting, array in curves.runs.items()}
    for (setting, run), curve in curves.logged.items():
        runs[setting][run - 1] = curve
    return runs


def _find_copies(curves: AuthorsCurves) -> list[Copy]:
    replaced = lambda setting, pair: next((run for run in pair if (setting, run) in curves.logged), None)
    return [
        Copy(setting=setting, runs=pair, replaced=replaced(setting, pair))
        for setting, runs in curves.runs.items()
        for pair in find_equal_runs(runs)
    ]


def _find_shared_curves(runs: Runs) -> list[tuple[Setting, Setting]]:
    owner: dict[bytes, Setting] = {}
    shared = []
    for setting, array in runs.items():
        for curve in array[array.any(axis=1)]:
            first = owner.setdefault(curve.tobytes(), setting)
            if first != setting:
                shared.append((first, setting))
    return shared


def _list_changes(before: Runs, after: Runs, setting: Setting) -> list[Change]:
    numbers: dict[str, Callable[[np.ndarray], float]] = {
        "highest": lambda curves: highest(smooth(curves, SMOOTHING)),
        "deterioration": lambda curves: deterioration(smooth(curves, SMOOTHING)),
        "final": lambda curves: float(final(curves).mean()),
        "AUC": lambda curves: float(auc(curves).mean()),
    }
    return [
        Change(setting=setting, what=what, before=number(before[setting]), after=number(after[setting]))
        for what, number in numbers.items()
    ]


# What the paper's text claims in numbers


class Claim(NamedTuple):
    what: str
    family: str
    text: str
    """in the text"""
    tables: str
    """by the printed tables"""
    curves: str
    """by the published curves, counted in the paper's way"""
    exact: str
    """by the exact test at 5%, if it is about a test"""


def check_claims(
    highest: list[RecomputedNumber], deterioration: list[RecomputedNumber], tests: list[Comparison]
) -> list[Claim]:
    return [
        *[_check_better_than_both(tests, family) for family in FAMILIES],
        *[_check_lower_highest(highest, family) for family in FAMILIES],
        *[_check_average_gap(deterioration, family, part) for part in BASELINES for family in FAMILIES],
    ]


def _check_better_than_both(tests: list[Comparison], family: str) -> Claim:
    own = [test for test in tests if test.pair.family == family]
    return Claim(
        what="settings in which IQ-RE is significantly better than both baselines",
        family=family,
        text=text_claims()["atari_significantly_better_than_both_baselines"][family],
        tables=_count_both(own, lambda test: test.printed.significant and not test.printed.worse),
        curves=_count_both(own, lambda test: test.pooled_p < 0.01 and test.better),
        exact=_count_both(own, lambda test: test.permutation.p < 0.05 and test.better),
    )


def _count_both(tests: list[Comparison], holds: Callable[[Comparison], bool]) -> str:
    """In how many games × capacities a condition holds against both baselines."""
    verdicts: dict[tuple[str, int], bool] = {}
    for test in tests:
        place = test.pair.game, test.pair.buffer_size
        verdicts[place] = verdicts.get(place, True) and holds(test)
    return f"{sum(verdicts.values())} of {len(verdicts)}"


def _check_lower_highest(numbers: list[RecomputedNumber], family: str) -> Claim:
    return Claim(
        what="settings in which IQ-RE's highest return is below a baseline's",
        family=family,
        text=text_claims()["atari_IQ-RE_max_score_lower_than_a_baseline"][family],
        tables=_count_lower({one.setting: one.printed.value for one in numbers}, family),
        curves=_count_lower({one.setting: one.computed for one in numbers}, family),
        exact="",
    )


def _count_lower(returns: dict[Setting, float], family: str) -> str:
    own = [setting for setting in returns if setting.method == f"{family}+IQ-RE"]
    baselines = lambda setting: [returns[setting._replace(method=family + part)] for part in BASELINES]
    return f"{sum(returns[setting] < max(baselines(setting)) for setting in own)} of {len(own)}"


def _check_average_gap(numbers: list[RecomputedNumber], family: str, part: str) -> Claim:
    size, baseline, method = 10_000, family + part, f"{family}+IQ-RE"
    in_text = text_claims()["deterioration_average_gap_N=10000"]["vs SRNN" if part else "vs base"][family]
    printed = _printed_average(baseline, size) - _printed_average(method, size)
    computed = average_over_games(numbers, baseline, size) - average_over_games(numbers, method, size)
    return Claim(
        what=f"average deterioration at N=10,000, {baseline} minus IQ-RE",
        family=family,
        text=f"{in_text:.3f}",
        tables=f"{printed:.3f}",
        curves=f"{computed:.3f}",
        exact="",
    )


def _printed_average(method: str, buffer_size: int) -> float:
    printed = printed_deterioration(Setting("Average", buffer_size, method))
    assert printed is not None
    return printed.value


# All of it


@dataclass(frozen=True)
class Reanalysis:
    highest: list[RecomputedNumber]
    deterioration: list[RecomputedNumber]
    averages: list[RecomputedNumber]
    scores: list[Scores]
    tests: list[Comparison]
    overall: list[OverallComparison]
    srnn: list[OverallComparison]
    """SRNN against the method that it stands on"""
    false_alarms: FalseAlarms
    defects: Defects
    encoders: list[EncoderComparison]
    claims: list[Claim]


def reanalyse(curves: AuthorsCurves) -> Reanalysis:
    highest, deterioration = recompute_highest(curves.runs), recompute_deterioration(curves.runs)
    tests = compare_with_baselines(curves.runs)
    return Reanalysis(
        highest=highest,
        deterioration=deterioration,
        averages=recompute_averages(deterioration),
        scores=score_runs(curves.runs),
        tests=tests,
        overall=compare_over_games(curves.runs),
        srnn=compare_srnn_over_games(curves.runs),
        false_alarms=count_false_alarms(curves.runs),
        defects=find_defects(curves, tests),
        encoders=compare_encoders(curves),
        claims=check_claims(highest, deterioration, tests),
    )


PROPERTIES = ("matches", "printed_from", "share")
"""properties of records that are given beside their fields"""


def to_plain_data(found: Reanalysis) -> dict[str, Any]:
    """For JSON: records become dictionaries."""
    return {field.name: _to_plain(getattr(found, field.name)) for field in fields(found)}


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _to_plain(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        properties = {name: getattr(value, name) for name in PROPERTIES if hasattr(value, name)}
        return {name: _to_plain(part) for name, part in value._asdict().items()} | properties
    return [_to_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
