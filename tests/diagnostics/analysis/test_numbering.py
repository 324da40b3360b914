import jax.numpy as jnp
import numpy as np

from iqrl.core.replay.base import row_width
from iqrl.core.types import ContextInputs
from iqrl.diagnostics.analysis.context_matrix import cluster_states, match_contexts
from iqrl.diagnostics.analysis.experience import Experience
from iqrl.envs.classic.cartpole import cartpole


def experience(obs, contexts, score=None):
    """Of states [S, n, 1] with these labels [S, n]."""
    rows = np.zeros((*contexts.shape, row_width(1)), np.float32)
    rows[..., 5] = contexts
    score = np.zeros(contexts.shape) if score is None else score
    return Experience(rows, ContextInputs(obs, np.zeros_like(obs), score))


def test_contexts_in_the_same_place_get_the_same_number():
    places = np.array([[0, 0, 5, 9], [9, 5, 0, 5]], np.float32)[..., None]
    contexts = np.array([[0, 0, 1, 2], [0, 2, 1, 2]])
    labels, numbers = match_contexts(experience(places, contexts), 3)
    np.testing.assert_array_equal(labels, [[0, 0, 1, 2], [2, 1, 0, 1]])
    np.testing.assert_array_equal(numbers, [[0, 1, 2], [1, 2, 0]])


def test_an_empty_context_takes_the_number_left_over():
    places = np.array([[0, 5, 9], [9, 0, 0]], np.float32)[..., None]
    labels, numbers = match_contexts(experience(places, np.array([[0, 1, 2], [0, 1, 1]])), 3)
    np.testing.assert_array_equal(labels, [[0, 1, 2], [2, 0, 0]])
    np.testing.assert_array_equal(numbers, [[0, 1, 2], [1, 2, 0]])


def test_contexts_may_differ_in_the_score_alone():
    score, contexts = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0, 1], [0, 1]])
    labels, _ = match_contexts(experience(np.ones((2, 2, 1), np.float32), contexts, score), 2)
    np.testing.assert_array_equal(labels, [[0, 1], [1, 0]])


def test_clusters_are_the_same_for_all_seeds_and_in_units_of_the_task():
    """The angle moves less than the position, and far more for its range."""
    states = np.zeros((2, 4, 4), np.float32)
    states[..., 0] = [[0.3, -0.3, 0.3, -0.3], [0.3, 0.3, -0.3, -0.3]]
    states[..., 2] = [[0.2, 0.2, -0.2, -0.2], [-0.2, 0.2, -0.2, 0.2]]
    labels, numbers = cluster_states(states, cartpole("CartPole-v0", 200, 0, 0), 2)
    high = int(labels[0, 0])
    np.testing.assert_array_equal(labels == high, states[..., 2] > 0)
    np.testing.assert_array_equal(numbers, [[0, 1], [0, 1]])
    assert jnp.issubdtype(labels.dtype, jnp.integer)
