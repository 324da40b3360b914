"""The numbers of a set of curves, by hand."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from iqrl.errors import BadInput
from iqrl.results import summarise
from iqrl.statistics.curves import auc, deterioration, final, highest, smoothed
from iqrl.statistics.known import known_scores, mean_known
from iqrl.statistics.kolmogorov import ks, pooled_ks

NAN = np.nan
CURVES = arrays(float, st.tuples(st.integers(1, 4), st.integers(2, 30)), elements=st.floats(-100, 100, width=32))


def test_highest_is_the_maximum_of_the_mean_not_the_mean_of_maxima():
    assert highest([[1, 9, 2], [3, 1, 6]]) == 5.0


def test_highest_leaves_out_what_is_not_known():
    assert highest([[1, NAN, NAN], [3, 8, NAN]]) == 8.0
    assert np.isnan(highest([[NAN, NAN]]))


def test_deterioration_counts_from_the_second_point_and_divides_by_the_whole_range():
    assert deterioration([[10, 4, 6, 3, 5]]) == pytest.approx(3 / 7)  # not 7/7: the first point is no maximum
    assert deterioration([[0, 4, 2, 10, 5]]) == pytest.approx(5 / 10)
    assert deterioration([[0, 5, 1, 10, 9]]) == pytest.approx(4 / 10)  # not relative to the maximum of its time


def test_deterioration_is_of_the_mean_curve():
    assert deterioration([[0, 4, 0, 4], [0, 0, 4, 4]]) == 0.0


def test_deterioration_of_curves_with_little_to_say():
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


def test_smoothed_curves():
    assert smoothed(np.arange(8.0)[None], 4).tolist() == [[1.5, 5.5]]
    assert smoothed([[1, NAN, NAN, NAN, 4, 6]], 2)[0].tolist()[::2] == [1.0, 5.0]
    assert smoothed(np.zeros((5, 200)), 4).shape == (5, 50)


@given(CURVES)
@settings(deadline=None)
def test_smoothing_by_one_changes_nothing_and_keeps_the_area(curves):
    assert np.array_equal(smoothed(curves, 1), curves)
    assert auc(smoothed(curves, curves.shape[1]))[0] == pytest.approx(auc(curves)[0])


def test_final_and_auc_are_per_seed():
    curves = np.vstack([np.arange(20.0), np.zeros(20)])
    assert final(curves).tolist() == [18.5, 0.0]
    assert auc(curves).tolist() == [9.5, 0.0]
    assert final([[1, 2, 3]]).tolist() == [3.0]  # at least one point
    assert np.isnan(final([[1, NAN]])[0])
    assert auc([[1, NAN]])[0] == 1.0


@given(arrays(float, st.integers(1, 40), elements=st.floats(-50, 50) | st.just(NAN)))
@settings(deadline=None)
def test_the_same_numbers_as_in_a_result(curve):
    expected = summarise(curve)
    for name, mine in (("highest", highest([curve])), ("final", final([curve])[0]), ("auc", auc([curve])[0])):
        assert mine == pytest.approx(NAN if expected[name] is None else expected[name], nan_ok=True)


def test_means_of_what_is_known():
    values = np.array([[1.0, NAN], [3.0, NAN]])
    assert mean_known(values, axis=0)[0] == 2.0
    assert np.isnan(mean_known(values, axis=0)[1])
    assert float(mean_known(values)) == 2.0
    assert known_scores([1, NAN, 2]).tolist() == [1.0, 2.0]


def test_pooled_points_are_taken_as_independent():
    apart = [[0, 1, 2, 3, 4]], [[10, 11, 12, 13, 14]]
    assert pooled_ks(*apart) == pytest.approx(2 / 252)
    assert pooled_ks([[0, 1], [2, 3]], [[3, 2], [1, 0]]) == 1.0
    assert ks(range(5), range(10, 15)) == pytest.approx(2 / 252)
    assert pooled_ks(np.arange(250.0).reshape(5, 50), np.arange(250.0).reshape(5, 50) + 1000) < 1e-100


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: highest([1, 2, 3]), r"shape \[seeds, points\], got \(3,\)"),
        (lambda: auc(np.zeros((0, 4))), r"got \(0, 4\)"),
        (lambda: smoothed(np.zeros((2, 10)), 4), "10 points cannot be cut into groups of 4"),
        (lambda: smoothed(np.zeros((2, 10)), 0), "groups of 0"),
        (lambda: known_scores([[1.0]]), r"one number per seed, got an array of shape \(1, 1\)"),
        (lambda: ks([NAN], [1.0]), "at least one known number, got 1 of which none is known"),
        (lambda: ks([1.0], []), "others must hold at least one known number"),
    ],
)
def test_what_cannot_be_computed_is_said_in_a_sentence(call, words):
    with pytest.raises(BadInput, match=words):
        call()


def test_statistics_and_paper_do_not_load_jax():
    modules = ["statistics.aggregates", "statistics.profiles", "paper.page", "paper.curves"]  # and what these load
    imports = "; ".join(f"import iqrl.{name}" for name in modules)
    subprocess.run([sys.executable, "-c", f"{imports}; import sys; assert 'jax' not in sys.modules"], check=True)
