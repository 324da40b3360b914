"""The context divisions that IQ's clustering is compared with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import context_inputs

from iqrl.methods.iq_divisions import Cells, initial_states, random_cells, score_bins

LOW, HIGH = (-1.0, 0.0), (1.0, 10.0)
WEIGHTS = jnp.array([0.25, 0.01])
"""one over the square of each range"""


def at(obs=(0.0, 0.0), first=(0.0, 0.0), score=0.0):
    return context_inputs(jnp.array(obs), jnp.array(first), score)


def test_random_cells_are_drawn_in_range_and_never_move():
    part = random_cells(64, LOW, HIGH, WEIGHTS)
    state = part.init(jax.random.key(0))
    centres = np.asarray(state.centres)
    assert centres.shape == (64, 2)
    assert (centres >= LOW).all()
    assert (centres <= HIGH).all()
    assert np.ptp(centres, axis=0) == pytest.approx(np.subtract(HIGH, LOW), rel=0.15)
    assert not np.array_equal(centres, part.init(jax.random.key(1)).centres)
    for after in (part.update(state, at((0.3, 4.0))), part.start(state, jax.random.key(2)), part.sync(state)):
        np.testing.assert_array_equal(after.centres, centres)
    assert not part.has_target


def test_random_cells_assign_the_nearest_centre_by_hand():
    part, state = random_cells(3, LOW, HIGH, WEIGHTS), Cells(jnp.array([[-1.0, 5.0], [1.0, 0.0], [1.0, 10.0]]))
    # to (0, 4), in shares of each range: (½, 0.1), (½, 0.4), (½, 0.6)
    obs = [(0.0, 4.0), (1.0, 4.0), (1.0, 6.0), (-1.0, 10.0)]
    assert [int(part.assign(state, at(o, first=(1.0, 0.0)))) for o in obs] == [0, 1, 2, 0]
    assert part.count == 3


BLOBS = np.array([[-0.8, 1.0], [0.8, 9.0], [0.8, 1.0]])


@pytest.fixture(scope="module")
def from_blobs():
    """First states near three points, which of them and how near by two uniform numbers."""

    def first_states(uniforms):
        which = (uniforms[:, 0] * 3).astype(jnp.int32)
        return jnp.asarray(BLOBS, jnp.float32)[which] + 0.1 * (uniforms[:, 1:] - 0.5)

    part = initial_states(3, first_states, (600, 2), WEIGHTS)
    return part, jax.jit(part.init)(jax.random.key(0))


def test_initial_states_are_clustered(from_blobs):
    part, state = from_blobs
    centres = np.asarray(state.centres)
    np.testing.assert_allclose(centres[np.argsort(centres @ [1, 0.1])], BLOBS[np.argsort(BLOBS @ [1, 0.1])], atol=0.02)
    assert {int(part.assign(state, at(first=blob))) for blob in BLOBS.tolist()} == {0, 1, 2}


def test_an_episode_keeps_the_context_of_its_first_state(from_blobs):
    part, state = from_blobs
    for first in BLOBS.tolist():
        nearest = int(np.argmin(np.linalg.norm(np.asarray(state.centres) - first, axis=1)))
        assert [int(part.assign(state, at(obs, first))) for obs in BLOBS.tolist()] == [nearest] * 3
    after = part.sync(part.update(state, at(BLOBS[0].tolist(), BLOBS[1].tolist())))
    np.testing.assert_array_equal(after.centres, state.centres)
    assert part.of_state is None  # a state by itself does not say its context


def assigned(part, state, scores):
    return [int(part.assign(state, at(score=score))) for score in scores]


def test_bins_of_given_scores_by_hand():
    # three bins of [-10, 20] begin at -10, 0 and 10
    part = score_bins(3, -10.0, 20.0)
    state = part.init(jax.random.key(0))
    scores = [-99, -10, -0.1, 0, 9.9, 10, 20, 99]
    assert assigned(part, state, scores) == [0, 0, 0, 1, 1, 2, 2, 2]
    for score in (-99.0, 99.0):
        state = part.sync(part.update(state, at(score=score)))
    assert assigned(part, state, scores) == [0, 0, 0, 1, 1, 2, 2, 2]


def test_bins_follow_every_score_before_learning_starts():
    """What is stored then keeps its labels, so they must not be those of bins that have no width yet."""
    part = score_bins(3, None, None)
    state = part.init(jax.random.key(0))
    for score in (1.0, 30.0):
        state = part.collect(part.update(state, at(score=score)), at(score=score), 0)
    assert assigned(part, state, [0.0, 9.0, 11.0, 29.0]) == [0, 0, 1, 2]


@pytest.mark.parametrize("renew", [lambda part, state: part.sync(state), lambda part, s: part.start(s, None)])
def test_bins_follow_the_scores_seen_but_only_at_a_sync(renew):
    part = score_bins(3, None, None)
    state = renew(part, part.update(part.init(jax.random.key(0)), at(score=30.0)))
    # 0, with which every episode begins, to 30
    scores = [-2.0, 0.0, 9.0, 11.0, 29.0]
    assert assigned(part, state, scores) == [0, 0, 0, 1, 2]
    for score in (-15.0, 12.0, 75.0):
        state = part.update(state, at(score=score))
    assert assigned(part, state, scores) == [0, 0, 0, 1, 2]
    # three bins of [-15, 75] begin at -15, 15 and 45
    assert assigned(part, renew(part, state), [*scores, 16.0, 44.0, 46.0]) == [0, 0, 0, 0, 1, 1, 1, 2]
    assert part.has_target


def test_one_end_may_be_given():
    part = score_bins(2, None, 10.0)
    state = part.sync(part.update(part.update(part.init(jax.random.key(0)), at(score=-30.0)), at(score=50.0)))
    # [-30, 10]: the other end stays where it was put
    assert assigned(part, state, [-29.0, -11.0, -9.0, 50.0]) == [0, 0, 1, 1]


def test_before_any_score_is_known_there_is_no_division_by_zero():
    part = score_bins(3, None, None)
    with jax.debug_nans(True):
        assert assigned(part, part.init(jax.random.key(0)), [-1.0, 0.0, 1.0]) == [0, 0, 2]
