"""Intervals, aggregates and tests: by hand, against SciPy, and whether they keep what they promise."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iqrl.errors import BadInput
from iqrl.statistics.aggregates import interquartile_mean, iqm, normalised, optimality_gap
from iqrl.statistics.bootstrap import mean_interval, resampled, stratified_interval
from iqrl.statistics.improvement import probability_of_improvement
from iqrl.statistics.kolmogorov import pooled_ks
from iqrl.statistics.multiple import holm
from iqrl.statistics.permutation import permutation_test, stratified_permutation_test
from iqrl.statistics.profiles import performance_profile

NAN = np.nan
SCORES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=7)
FEW = SCORES.map(lambda scores: scores[:5])
TASKS = st.lists(SCORES, min_size=1, max_size=4)


# Intervals


def test_the_interval_of_a_mean_by_counting():
    """Of two seeds at 0 and 1, resampled means are 0, ½, ½, 1: the middle 40% is all ½, the middle 60% is not."""
    assert mean_interval([0, 1], level=0.4) == (0.5, 0.5, 0.5)
    assert mean_interval([0, 1], level=0.6) == (0.5, 0.0, 1.0)


def test_intervals_of_seeds_that_agree_have_no_width():
    assert mean_interval([3, 3, 3]) == (3, 3, 3)
    assert mean_interval([3]) == (3, 3, 3)
    assert mean_interval([3, NAN, 3]) == (3, 3, 3)


@given(SCORES)
@settings(max_examples=30, deadline=None)
def test_an_interval_holds_its_value_and_stays_among_the_seeds(scores):
    value, low, high = mean_interval(scores, resamples=500)
    assert value == pytest.approx(np.mean(scores))
    assert min(scores) - 1e-9 <= low <= high <= max(scores) + 1e-9
    assert mean_interval(scores, resamples=500) == (value, low, high)


def test_seeds_give_the_same_numbers_each_time_and_others_give_others():
    scores = np.random.default_rng(0).normal(size=9)
    assert mean_interval(scores, seed=1) == mean_interval(scores, seed=1)
    assert mean_interval(scores, seed=1) != mean_interval(scores, seed=2)


def test_agreement_with_scipys_bootstrap():
    scores = np.random.default_rng(3).exponential(size=12)
    theirs = stats.bootstrap((scores,), np.mean, method="percentile", n_resamples=10_000, rng=0).confidence_interval
    mine = mean_interval(scores)
    assert mine[1:] == pytest.approx(theirs, rel=0.03)


def test_runs_are_resampled_within_their_task():
    """Were runs drawn across tasks, the mean of tasks at 0 and at 10 would vary."""
    assert stratified_interval(lambda scores: scores.mean(axis=-1), [[0, 0, 0], [10, 10]]) == (4, 4, 4)
    assert resampled(np.arange(4.0), 7, np.random.default_rng(0)).shape == (7, 4)


def coverage(n, pairs=600):
    """How often the nominal 95% interval of n normal seeds holds the true mean."""
    generator = np.random.default_rng(n)
    intervals = [mean_interval(generator.normal(size=n), resamples=1000, seed=i) for i in range(pairs)]
    return np.mean([low <= 0 <= high for _, low, high in intervals])


def test_coverage_of_twenty_seeds_is_near_its_promise():
    assert 0.89 <= coverage(20) <= 0.97


def test_coverage_of_five_seeds_is_not():
    assert 0.77 <= coverage(5) <= 0.89


# Aggregates


def test_the_interquartile_mean_by_hand():
    assert iqm(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == 3.5  # of 1 … 6 without the ends: 2, 3, 4, 5
    assert iqm(np.array([1.0, 2, 9])) == 4.0  # ⌊3/4⌋ = 0 are cut
    assert interquartile_mean([[7, 7], [7, 7, 7]]) == (7, 7, 7)
    assert interquartile_mean([[0, 1], [2, NAN, 3]]).value == 1.5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40))
@settings(deadline=None)
def test_agreement_with_scipys_trimmed_mean(scores):
    assert iqm(np.array(scores)) == pytest.approx(stats.trim_mean(scores, 0.25), abs=1e-9)


def test_the_optimality_gap_by_hand():
    assert optimality_gap([[0.5, 2.0], [1.0, 0.0]]).value == pytest.approx(1 - 2.5 / 4)
    assert optimality_gap([[3.0, 3.0]], target=2.0) == (0, 0, 0)


def test_normalised_scores():
    assert normalised([-21, 0, 21], -21, 21).tolist() == [0, 0.5, 1]


# Probability of improvement


def test_the_probability_of_improvement_by_hand():
    assert probability_of_improvement([[1, 3]], [[2, 3]]).value == pytest.approx((0 + 0 + 1 + 0.5) / 4)
    assert probability_of_improvement([[1, 3], [5]], [[2, 3], [1]]).value == pytest.approx((1.5 / 4 + 1) / 2)
    assert probability_of_improvement([[5, 6]], [[1, NAN, 2]]) == (1, 1, 1)


def test_the_interval_of_improvement_by_counting():
    """x = 0 or 2 against y = 1: the two draws of x give wins 0, ½, ½, 1."""
    assert probability_of_improvement([[0, 2]], [[1]], level=0.4) == (0.5, 0.5, 0.5)
    assert probability_of_improvement([[0, 2]], [[1]], level=0.6) == (0.5, 0.0, 1.0)


@given(TASKS, st.data())
@settings(max_examples=40, deadline=None)
def test_both_directions_add_up_and_scipy_agrees(tasks, data):
    others = [data.draw(SCORES) for _ in tasks]
    there, back = (
        probability_of_improvement(*sides, resamples=10).value for sides in ((tasks, others), (others, tasks))
    )
    assert there + back == pytest.approx(1)
    shares = [stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(tasks, others, strict=True)]
    assert there == pytest.approx(np.mean(shares))
    assert probability_of_improvement(tasks, tasks, resamples=10).value == pytest.approx(0.5)


# Permutation tests


def test_the_smallest_p_of_five_against_five():
    test = permutation_test([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert test == (2 / 252, 5.0, 252, True)


def test_a_permutation_test_by_hand():
    """Sums of two of 0, 1, 2, 5: 1, 2, 5, 3, 6, 7, whose distances from 4 are 3, 2, 1, 1, 2, 3."""
    assert permutation_test([0, 2], [1, 5]).p == 4 / 6
    assert permutation_test([0, 1], [2, 5]).p == 2 / 6
    assert permutation_test([0, 5], [1, 2]).p == 1.0


@given(SCORES)
@settings(deadline=None)
def test_identical_samples_have_p_one(scores):
    assert permutation_test(scores, scores).p == 1


@given(FEW, FEW, st.floats(0.1, 10), st.floats(-1000, 1000))
@settings(max_examples=40, deadline=None)
def test_p_is_exact_and_no_unit_changes_it(x, y, scale, shift):
    together = [Fraction(value) for value in (*x, *y)]
    mean = sum(together) / len(together)
    true = abs(sum(together[: len(x)]) - len(x) * mean)
    sums = [abs(sum(split) - len(x) * mean) for split in combinations(together, len(x))]
    expected = sum(value >= true for value in sums) / len(sums)
    assert permutation_test(x, y).p == pytest.approx(expected)
    assert permutation_test(np.array(y) * scale + shift, np.array(x) * scale + shift).p == pytest.approx(expected)


def test_agreement_with_scipys_permutation_test():
    generator = np.random.default_rng(5)
    difference = lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis)
    for n, m in ((5, 5), (3, 6), (6, 5)):
        x, y = generator.normal(size=n), generator.normal(0.7, 1, size=m)
        theirs = stats.permutation_test((x, y), difference, vectorized=True, n_resamples=np.inf)
        assert permutation_test(x, y).p == pytest.approx(theirs.pvalue)


def test_many_seeds_are_tested_by_random_splits():
    generator = np.random.default_rng(6)
    x, y = generator.normal(size=15), generator.normal(0.8, 1, size=15)
    assert math.comb(30, 15) > 200_000
    test = permutation_test(x, y)
    assert (test.exact, test.splits) == (False, 100_000)
    assert test == permutation_test(x, y)
    theirs = stats.permutation_test(
        (x, y), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), vectorized=True, n_resamples=50_000, rng=0
    )
    assert test.p == pytest.approx(theirs.pvalue, abs=0.01)


def test_a_random_p_is_never_zero():
    assert permutation_test(np.arange(15.0), np.arange(15.0) + 100).p == pytest.approx(1 / 100_001)
    assert permutation_test(np.arange(10.0), np.arange(10.0)).exact


def test_the_exact_test_keeps_its_level():
    """1000 pairs of one algorithm's seeds: at most 5% false alarms, and noise (three standard errors)."""
    generator = np.random.default_rng(7)
    alarms = np.mean([permutation_test(*generator.exponential(size=(2, 5))).p <= 0.05 for _ in range(1000)])
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert alarms > 0.02  # 12 of 252 splits are below: it is not merely silent


def test_the_stratified_test_by_counting():
    """Two tasks of one seed a side: four ways to deal them out, in two of which one side wins both."""
    test = stratified_permutation_test([[2], [2]], [[1], [1]])
    assert test.p == pytest.approx(2 / 4, abs=0.01)
    assert test.difference == 0.5
    assert stratified_permutation_test([[2], [1]], [[1], [2]]).p == 1
    six = stratified_permutation_test([[2]] * 6, [[1]] * 6)
    assert six.p == pytest.approx(2 / 64, abs=0.003)


def test_the_stratified_test_of_one_task_is_mann_whitneys():
    generator = np.random.default_rng(8)
    x, y = generator.normal(size=5), generator.normal(1, 1, size=6)
    theirs = stats.mannwhitneyu(x, y, method="exact")
    mine = stratified_permutation_test([x], [y])
    assert mine.p == pytest.approx(theirs.pvalue, abs=0.01)
    assert mine.difference == pytest.approx(theirs.statistic / 30 - 0.5)
    assert mine.difference == pytest.approx(probability_of_improvement([x], [y]).value - 0.5)


def test_the_stratified_test_keeps_its_level_across_unlike_tasks():
    generator = np.random.default_rng(9)
    scales = np.array([1, 50, 3000])[:, None]
    draw = lambda: list(generator.normal(scales, scales, (3, 5)))
    alarms = np.mean([stratified_permutation_test(draw(), draw()).p <= 0.05 for _ in range(200)])
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def wandering_curves(generator, points=50):
    """Five runs of one algorithm: each settles at a level of its own, and wanders about it."""
    steps = np.cumsum(generator.normal(size=(5, points)), axis=1)
    return generator.normal(0, 5, (5, 1)) + steps


def test_pooled_points_give_false_alarms_by_the_dozen():
    """The paper's way of testing, on 100 pairs of one algorithm's runs: 1% promised, most of them given."""
    generator = np.random.default_rng(10)
    pairs = [(wandering_curves(generator), wandering_curves(generator)) for _ in range(100)]
    pooled = np.mean([pooled_ks(*pair) < 0.01 for pair in pairs])
    exact = np.mean([permutation_test(*(curves.mean(axis=1) for curves in pair)).p < 0.01 for pair in pairs])
    assert pooled > 0.5
    assert exact <= 0.05


# Profiles and many tests


def test_a_performance_profile_by_hand():
    profile = performance_profile([[0.0, 1.0], [2.0, 3.0]], [-1, 0, 1.5, 3])
    assert profile.share.tolist() == [1.0, 0.75, 0.5, 0.0]  # above, not at
    assert profile.low.tolist()[0] == profile.high.tolist()[0] == 1.0
    assert profile.low.tolist()[2] == profile.high.tolist()[2] == 0.5  # one task is all above, the other all below
    assert (profile.low[1], profile.high[1]) == (0.5, 1.0)


@given(TASKS)
@settings(max_examples=20, deadline=None)
def test_profiles_fall_and_lie_in_their_bands(tasks):
    profile = performance_profile(tasks, np.linspace(-21, 21, 9), resamples=200)
    assert (np.diff(profile.share) <= 0).all()
    assert profile.share[0] == 1
    assert profile.share[-1] == 0
    assert (profile.low <= profile.high).all()


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([0.2]).tolist() == [0.2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_interval([]), "at least one known number"),
        (lambda: mean_interval([1, 2], level=95), "between 0 and 1, such as 0.95, got 95"),
        (lambda: mean_interval([1, 2], resamples=0), "at least 1, got 0"),
        (lambda: interquartile_mean([]), "at least one task"),
        (lambda: interquartile_mean([[1], [NAN]]), "scores of task 1 must hold at least one known number"),
        (lambda: normalised([1], 2, 2), "low must be less than high, got 2 and 2"),
        (lambda: probability_of_improvement([[1]], [[1], [2]]), "the same tasks, got 1 and 2"),
        (lambda: stratified_permutation_test([[1]], [[1], [2]]), "the same tasks, got 1 and 2"),
        (lambda: performance_profile([[1]], []), "thresholds must be a list of at least one number"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_bad_requests_are_answered_in_a_sentence(call, words):
    with pytest.raises(BadInput, match=words):
        call()
