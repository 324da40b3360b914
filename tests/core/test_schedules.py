import numpy as np
import pytest

from iqrl.core import schedules


def test_epsilon_falls_linearly_and_lambda_rises():
    epsilon = schedules.linear(1.0, 0.02, 100)
    np.testing.assert_allclose([epsilon(t) for t in (0, 50, 100, 500)], [1.0, 0.51, 0.02, 0.02], rtol=1e-6)
    weight = schedules.one_minus(epsilon, 0.5)
    np.testing.assert_allclose([weight(t) for t in (0, 50, 100)], [0.0, 0.245, 0.49], atol=1e-6)
    assert float(schedules.constant(0.3)(7)) == pytest.approx(0.3)


def test_a_decay_may_begin_later():
    epsilon = schedules.linear(1.0, 0.0, 10, begin=20)
    np.testing.assert_allclose([epsilon(t) for t in (0, 20, 25, 30, 99)], [1.0, 1.0, 0.5, 0.0, 0.0], atol=1e-6)
