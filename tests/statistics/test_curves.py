"""The numbers that sum up a set of curves, by hand."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from iqrl.errors import BadInput
from iqrl.statistics.curves import (
    auc,
    deterioration,
    final,
    finite_scores,
    highest,
    mean_curve,
    mean_finite,
    smooth,
    steps_and_returns,
    steps_and_values,
    summarise,
    upper_tail_mean,
)

NAN = np.nan
CURVES = arrays(float, st.tuples(st.integers(1, 4), st.integers(2, 30)), elements=st.floats(-100, 100, width=32))


# Metrics as arrays


def test_metrics_become_a_row_per_seed_whatever_the_order_of_their_rows():
    metrics = pl.DataFrame({"seed": [4, 3, 4, 3], "step": [20, 10, 10, 20], "return": [4.0, 1.0, 3.0, 2.0]})
    steps, returns = steps_and_returns(metrics)
    assert steps.tolist() == [10, 20]
    assert returns.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_that_a_seed_does_not_have_are_nan():
    metrics = pl.DataFrame({"seed": [0, 0, 1], "step": [10, 20, 10], "return": [1.0, None, NAN]})
    np.testing.assert_array_equal(steps_and_returns(metrics)[1], [[1.0, NAN], [NAN, NAN]])


def test_one_head_of_a_metric_with_several():
    metrics = pl.DataFrame({"seed": [0, 0], "step": [10, 20], "occupancy": [[0.25, 0.75], [0.5]]})
    np.testing.assert_array_equal(steps_and_values(metrics, "occupancy", head=1)[1], [[0.75, NAN]])


# Numbers


def test_highest_is_the_maximum_of_the_mean_not_the_mean_of_maxima():
    assert highest([[1, 9, 2], [3, 1, 6]]) == 5.0


def test_highest_leaves_out_what_is_not_finite():
    assert highest([[1, NAN, NAN], [3, 8, NAN]]) == 8.0
    assert np.isnan(highest([[NAN, NAN]]))


def test_deterioration_counts_from_the_second_point_and_divides_by_the_whole_range():
    assert deterioration([[10, 4, 6, 3, 5]]) == pytest.approx(3 / 7)  # not 7/7: the first point is no maximum
    assert deterioration([[0, 4, 2, 10, 5]]) == pytest.approx(5 / 10)
    assert deterioration([[0, 5, 1, 10, 9]]) == pytest.approx(4 / 10)  # not relative to the maximum of its time


def test_deterioration_is_of_the_mean_curve():
    assert deterioration([[0, 4, 0, 4], [0, 0, 4, 4]]) == 0.0


def test_deterioration_of_flat_short_and_incomplete_curves():
    assert deterioration([[3, 3, 3]]) == 0.0
    assert np.isnan(deterioration([[3]]))
    assert deterioration([[0, NAN, 4, 1]]) == pytest.approx(3 / 4)


@given(CURVES)
@settings(deadline=None)
def test_deterioration_is_a_share_that_no_scale_changes(curves):
    share = deterioration(curves)
    assert 0 <= share <= 1
    if np.ptp(curves.mean(axis=0)) > 0.01:
        assert deterioration(3 * curves + 7) == pytest.approx(share, abs=1e-6)


def test_final_and_auc_are_per_seed():
    curves = np.vstack([np.arange(20.0), np.zeros(20)])
    assert final(curves).tolist() == [18.5, 0.0]
    assert auc(curves).tolist() == [9.5, 0.0]
    assert final([[1, 2, 3]]).tolist() == [3.0]  # at least one point
    assert np.isnan(final([[1, NAN]])[0])
    assert auc([[1, NAN]])[0] == 1.0


def test_the_summary_of_one_curve():
    assert summarise(np.arange(20.0)) == {"highest": 19.0, "final": 18.5, "auc": 9.5, "fall": 0.5}
    assert summarise([1.0, 3.0, NAN]) == {"highest": 3.0, "final": None, "auc": 2.0, "fall": None}
    assert summarise([NAN]) == {"highest": None, "final": None, "auc": None, "fall": None}


def test_means_leave_out_what_is_not_finite():
    values = np.array([[1.0, NAN], [3.0, NAN]])
    np.testing.assert_array_equal(mean_finite(values, axis=0), [2.0, NAN])
    assert float(mean_finite(values)) == 2.0
    np.testing.assert_array_equal(mean_curve(np.array([[1.0, NAN], [3.0, 4.0]])), [2.0, 4.0])
    assert finite_scores([1, NAN, 2]).tolist() == [1.0, 2.0]


# Smoothing


def test_smooth_curves():
    assert smooth(np.arange(8.0)[None], 4).tolist() == [[1.5, 5.5]]
    np.testing.assert_array_equal(smooth([[1, NAN, NAN, NAN, 4, 6]], 2), [[1.0, NAN, 5.0]])
    assert smooth(np.zeros((5, 200)), 4).shape == (5, 50)


@given(CURVES)
@settings(deadline=None)
def test_smoothing_by_one_changes_nothing_and_keeps_the_area(curves):
    assert np.array_equal(smooth(curves, 1), curves)
    assert auc(smooth(curves, curves.shape[1]))[0] == pytest.approx(auc(curves)[0])


# The upper tail


def test_the_upper_tail_by_hand():
    # Of 0, 1, …, 20 the 0.9 percentile is 18, and 18, 19, 20 are not below it.
    assert upper_tail_mean(np.arange(21.0)) == 19.0
    assert upper_tail_mean([5.0, 1.0, 3.0], share=0.5) == 4.0
    assert upper_tail_mean([2.0, 2.0, 2.0]) == 2.0


def test_the_upper_tail_leaves_out_what_is_not_finite():
    assert upper_tail_mean([NAN, 1.0, np.inf]) == 1.0
    assert np.isnan(upper_tail_mean([NAN]))
    assert np.isnan(upper_tail_mean([]))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_the_upper_tail_is_never_below_the_mean(share):
    values = np.random.default_rng(0).normal(size=50)
    assert values.mean() <= upper_tail_mean(values, share) + 1e-12 <= values.max() + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: highest([1, 2, 3]), r"shape \[seeds, periods\], got \(3,\)"),
        (lambda: auc(np.zeros((0, 4))), r"got \(0, 4\)"),
        (lambda: smooth(np.zeros((2, 10)), 4), "10 periods cannot be cut into groups of 4"),
        (lambda: smooth(np.zeros((2, 10)), 0), "groups of 0"),
        (lambda: finite_scores([[1.0]]), r"one number per seed, got an array of shape \(1, 1\)"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(BadInput, match=message):
        call()


def test_statistics_know_nothing_of_the_rest():
    """`significance` imports the other two."""
    script = "import sys, iqrl.statistics.significance; print(*(name for name in sys.modules if name[:4] == 'iqrl'))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms == {"errors", "other_names", "statistics"}
