import jax.numpy as jnp
import numpy as np
import pytest
from untrained_runs import linear, untrained

from iqrl.diagnostics.analysis.context_matrix import ContextMatrix, context_matrix, split_halves
from iqrl.errors import BadInput


def itself(obs):
    return obs


def nothing(obs):
    return jnp.ones_like(obs)


def test_contexts_without_a_common_feature_do_not_touch_each_other():
    """With a bias, x = 1 and x = -1 are (1, 1) and (-1, 1), which are orthogonal."""
    matrix = context_matrix(linear(itself), updates=400, contexts=2, settle=0, count=400)
    np.testing.assert_array_equal(matrix.counts.sum(axis=1), 400)
    assert not matrix.own
    # Q is 0 and the target is 1 or -1: the Huber loss is 1/2, and nothing of it is left in the end.
    np.testing.assert_allclose(matrix.loss_before, 0.5)
    np.testing.assert_allclose(matrix.change[:, [0, 1], [0, 1]], -1, atol=1e-3)
    np.testing.assert_array_equal(matrix.change[:, [0, 1], [1, 0]], 0)


def test_states_that_look_alike_interfere_as_much_as_can_be():
    """Learned for one as 1, the value of the other is off by 2: its loss goes from 1/2 to 3/2."""
    matrix = context_matrix(linear(nothing), updates=400, contexts=2, settle=0, count=400)
    np.testing.assert_allclose(matrix.mean_change, [[-1, 2], [2, -1]], atol=0.01)


def test_what_is_trained_on_is_not_measured():
    labels = np.array([0, 0, 1, 0, 1, 0, 0])
    learned, measured = split_halves(labels == np.arange(2)[:, None])
    np.testing.assert_array_equal(learned, [[1, 0, 0, 1, 0, 0, 1], [0, 0, 1, 0, 0, 0, 0]])
    np.testing.assert_array_equal(measured, [[0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0]])


def test_settling_comes_before_the_first_measurement():
    matrix = context_matrix(linear(itself), updates=1, contexts=2, settle=400, count=400)
    assert (matrix.loss_before < 1e-3).all()


def test_without_a_step_nothing_changes():
    matrix = context_matrix(untrained("iq", learning_rate=0.0), updates=5, settle=3, count=1000)
    assert matrix.own
    enough = matrix.counts >= 50
    expected = np.where(enough[:, :, None] & enough[:, None], 0.0, np.nan)
    np.testing.assert_array_equal(matrix.change, expected)


def test_contexts_with_too_few_transitions_are_left_out_and_named():
    """No score comes to the second third of 0 … 3000."""
    result = untrained("iq-game-score", score_low=0.0, score_high=3000.0)
    matrix = context_matrix(result, updates=5, settle=0, count=300)
    np.testing.assert_array_equal(matrix.counts, [[300, 0, 0]] * 2)
    assert np.isfinite(matrix.change[:, 0, 0]).all()
    assert np.isfinite(matrix.change).sum() == 2
    assert matrix.left_out == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert "context 2 of seed 1: 0 transitions, too few" in str(matrix)


@pytest.mark.parametrize("method", ["stream-q", "medqn-r"])
def test_methods_that_sample_in_other_ways(method):
    settings = {} if method == "stream-q" else {"sampling": "whole", "buffer_size": 8, "gradient_steps": 2}
    matrix = context_matrix(untrained(method, **settings), updates=50, settle=0, count=600)
    learned = matrix.change[:, range(3), range(3)]
    assert (learned[np.isfinite(learned)] < 0).all()
    assert np.isfinite(learned).any()


def test_the_mean_is_over_the_seeds_that_know():
    change = np.array([[[0.1, np.nan], [0.2, 0.3]], [[0.3, np.nan], [np.nan, 0.5]]])
    matrix = ContextMatrix(
        change=change,
        loss_before=np.ones((2, 2)),
        counts=np.array([[60, 40], [75, 25]]),
        numbers=np.zeros((2, 2), int),
        own=True,
    )
    np.testing.assert_allclose(matrix.mean_change, [[0.2, np.nan], [0.2, 0.4]])
    np.testing.assert_allclose(matrix.shares, [[0.6, 0.4], [0.75, 0.25]])
    assert str(matrix).splitlines()[1].split() == ["context", "0", "+20.0%", "too", "few"]


def test_what_cannot_be_is_refused():
    for wrong in ({"updates": 0}, {"contexts": 1}, {"settle": -1}):
        with pytest.raises(BadInput, match="it must be at least"):
            context_matrix(untrained("dqn"), **wrong)
