"""Bootstrap intervals, aggregates and profiles: by hand, against SciPy, and how often an interval is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iqrl.errors import BadInput
from iqrl.statistics.intervals import (
    difference_interval,
    interquartile_mean,
    iqm,
    mean_interval,
    normalise,
    performance_profile,
    resample,
    stratified_interval,
)

NAN = np.nan
SCORES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=7)
TASKS = st.lists(SCORES, min_size=1, max_size=4)


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
    assert resample(np.arange(4.0), 7, np.random.default_rng(0)).shape == (7, 4)


def coverage(n, pairs=600):
    """How often the nominal 95% interval of n normal seeds holds the true mean."""
    generator = np.random.default_rng(n)
    intervals = [mean_interval(generator.normal(size=n), resamples=1000, seed=i) for i in range(pairs)]
    return np.mean([low <= 0 <= high for _, low, high in intervals])


def test_coverage_of_twenty_seeds_is_near_its_promise():
    assert 0.89 <= coverage(20) <= 0.97


def test_coverage_of_five_seeds_is_not():
    assert 0.77 <= coverage(5) <= 0.89


def test_the_interquartile_mean_by_hand():
    assert iqm(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == 3.5  # of 1 … 6 without the ends: 2, 3, 4, 5
    assert iqm(np.array([1.0, 2, 9])) == 4.0  # ⌊3/4⌋ = 0 are cut
    assert interquartile_mean([[7, 7], [7, 7, 7]]) == (7, 7, 7)
    assert interquartile_mean([[0, 1], [2, NAN, 3]]).value == 1.5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40))
@settings(deadline=None)
def test_agreement_with_scipys_trimmed_mean(scores):
    assert iqm(np.array(scores)) == pytest.approx(stats.trim_mean(scores, 0.25), abs=1e-9)


def test_normalised_scores():
    assert normalise([-21, 0, 21], -21, 21).tolist() == [0, 0.5, 1]


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "at least one finite number"),
        (lambda: mean_interval([1, 2], level=95), "between 0 and 1, such as 0.95, got 95"),
        (lambda: mean_interval([1, 2], resamples=0), "at least 1, got 0"),
        (lambda: interquartile_mean([]), "at least one task"),
        (lambda: interquartile_mean([[1], [NAN]]), "scores of task 1 must hold at least one finite number"),
        (lambda: normalise([1], 2, 2), "low must be less than high, got 2 and 2"),
        (lambda: performance_profile([[1]], []), "thresholds must be a list of at least one number"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(BadInput, match=message):
        call()


def test_the_difference_of_means_over_tasks_by_hand():
    """Two tasks: 2 - 1 and 10 - 7."""
    found = difference_interval([[1.0, 3.0], [10.0, 10.0]], [[1.0, 1.0], [6.0, 8.0]])
    assert found.value == pytest.approx((1 + 3) / 2)
    # The first side of task one is 1, 2 or 3 on average; the second of task two is 6, 7 or 8.
    assert found[1:] == pytest.approx(((0 + 2) / 2, (2 + 4) / 2))
    assert difference_interval([[5.0, 5.0]], [[2.0, 2.0]]).has_no_width
    assert not found.has_no_width


def test_the_interval_of_a_difference_holds_the_true_one_about_as_often_as_it_says():
    draw = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        x, y = draw.normal(1.0, 2.0, 20), draw.normal(0.0, 1.0, 20)
        found = difference_interval([x], [y], resamples=500)
        held += found.low <= 1.0 <= found.high
    assert 0.89 <= held / 300 <= 0.98
