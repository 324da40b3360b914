"""Permutation tests, probability of improvement, corrections: by hand, against SciPy, and their error rates."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iqrl.errors import BadInput
from iqrl.statistics.significance import (
    holm,
    ks,
    mean_difference_tests,
    permutation_test,
    pooled_ks,
    probability_of_improvement,
    stratified_permutation_test,
)

NAN = np.nan
SCORES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=7)
FEW = SCORES.map(lambda scores: scores[:5])
TASKS = st.lists(SCORES, min_size=1, max_size=4)


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


# Probability of improvement


def test_the_probability_of_improvement_by_hand():
    assert probability_of_improvement([[1, 3]], [[2, 3]]).value == pytest.approx((0 + 0 + 1 + 0.5) / 4)
    assert probability_of_improvement([[1, 3], [5]], [[2, 3], [1]]).value == pytest.approx((1.5 / 4 + 1) / 2)
    # All pairs won: two of them share no run, and a probability of √.025 wins both one time in forty.
    assert probability_of_improvement([[5, 6]], [[1, NAN, 2]]) == pytest.approx((1, 0.025**0.5, 1))
    assert probability_of_improvement([[1, 2]], [[5, 6]]) == pytest.approx((0, 0, 1 - 0.025**0.5))


# The mean difference


def mean_test(own, others):
    (test,) = mean_difference_tests([(own, others)])
    return test


def test_the_mean_difference_by_counting():
    """Of 252 splits of ten numbers the two extreme ones are as far apart, however they are divided by their errors."""
    test = mean_test([[6, 7, 8, 9, 10]], [[1, 2, 3, 4, 5]])
    assert (test.p, test.difference) == (pytest.approx(2 / 252, abs=0.001), 5.0)
    # Two tasks, each with two of six splits: four of the 36 pairs are as far apart on average.
    both = mean_test([[3, 4], [13, 14]], [[1, 2], [11, 12]])
    assert both.p == pytest.approx(2 / 36, abs=0.003), "both tasks must go one way"
    assert both.difference == 2.0


def test_without_any_spread_a_difference_is_counted_and_equality_is_not():
    assert mean_test([[2.0, 2.0]], [[1.0, 1.0]]).p == pytest.approx(2 / 6, abs=0.01)
    assert mean_test([[2.0, 2.0]], [[2.0, 2.0]]).p == 1.0
    assert mean_test([[200.0] * 5, [3.0, 4.0]], [[200.0] * 5, [1.0, 2.0]]).p == pytest.approx(2 / 6, abs=0.01)


def test_gains_and_losses_of_tasks_cancel_and_the_test_is_of_what_is_left():
    """One side wins the first task by 30 and loses the second by 1: by wins a draw, by the mean it is ahead."""
    own, others = [np.arange(10.0) + 30, np.arange(10.0) / 100], [np.arange(10.0), np.arange(10.0) / 100 + 1]
    assert stratified_permutation_test(own, others).p == 1.0
    assert mean_test(own, others).p < 0.001


def test_sides_that_differ_in_their_spread_alone_are_seldom_called_different():
    generator = np.random.default_rng(11)
    alarms = np.mean([
        mean_test([generator.normal(0, 1, 8)], [generator.normal(0, 0.05, 16)]).p <= 0.05 for _ in range(150)
    ])  # fmt: skip
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_several_tests_at_once_are_the_same_tests():
    one = ([[1.0, 2.0, 5.0], [1.0, 3.0]], [[2.0, 3.0, 4.0], [0.0, 7.0]])
    other = ([[9.0, 8.0, 7.0, 6.0]], [[1.0, 2.0, 3.0, 4.0]])
    third = ([[1.0, 8.0, 2.0], [4.0, 3.0]], [[2.0, 3.0, 9.0], [0.0, 1.0]])
    assert mean_difference_tests([one, other, third]) == [mean_test(*it) for it in (one, other, third)]
    assert mean_difference_tests([]) == []


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


# Many tests at once


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([0.2]).tolist() == [0.2]


# Kolmogorov–Smirnov tests


def test_pooled_points_are_taken_as_independent():
    apart = [[0, 1, 2, 3, 4]], [[10, 11, 12, 13, 14]]
    assert pooled_ks(*apart) == pytest.approx(2 / 252)
    assert pooled_ks([[0, 1], [2, 3]], [[3, 2], [1, 0]]) == 1.0
    assert ks(range(5), range(10, 15)) == pytest.approx(2 / 252)
    assert pooled_ks(np.arange(250.0).reshape(5, 50), np.arange(250.0).reshape(5, 50) + 1000) < 1e-100


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: probability_of_improvement([[1]], [[1], [2]]), "the same tasks, got 1 and 2"),
        (lambda: stratified_permutation_test([[1]], [[1], [2]]), "the same tasks, got 1 and 2"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
        (lambda: ks([NAN], [1.0]), "at least one finite number, got 1 of which none is finite"),
        (lambda: ks([1.0], []), "others must hold at least one finite number"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(BadInput, match=message):
        call()
