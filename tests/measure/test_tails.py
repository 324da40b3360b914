import numpy as np
import pytest

from iqrl.measure.tails import upper_tail_mean


def test_by_hand():
    # Of 0, 1, …, 20 the 0.9 percentile is 18, and 18, 19, 20 are not below it.
    assert upper_tail_mean(np.arange(21.0)) == 19.0
    assert upper_tail_mean([5.0, 1.0, 3.0], share=0.5) == 4.0
    assert upper_tail_mean([2.0, 2.0, 2.0]) == 2.0


def test_what_is_not_a_number_is_left_out():
    assert upper_tail_mean([np.nan, 1.0, np.inf]) == 1.0
    assert np.isnan(upper_tail_mean([np.nan]))
    assert np.isnan(upper_tail_mean([]))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_never_below_the_mean(share):
    values = np.random.default_rng(0).normal(size=50)
    assert values.mean() <= upper_tail_mean(values, share) + 1e-12 <= values.max() + 1e-9
