import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import context_inputs

from iqrl.core import scaling
from iqrl.core.contexts.kmeans import kmeans
from iqrl.core.contexts.sequential_kmeans import sequential_kmeans

LOW, HIGH = (-1.0, -2.0), (1.0, 2.0)


def at(*obs):
    return context_inputs(jnp.array(obs, jnp.float32))


def division(k=3, warm_start=0, scale=None):
    return sequential_kmeans(k, LOW, HIGH, scale or scaling.fixed(LOW, HIGH), warm_start)


def test_centroids_start_at_random_in_the_state_space():
    part = division(k=50)
    live = np.asarray(part.init(jax.random.key(0)).live)
    assert (live >= LOW).all()
    assert (live <= HIGH).all()
    assert np.ptp(live, axis=0) == pytest.approx(np.subtract(HIGH, LOW), rel=0.15)
    assert len(np.unique(live[:, 0])) == 50


def test_centroid_is_the_running_mean_of_its_states():
    """Algorithm SKM: after any stream, c_i is the mean of the states that were assigned to i."""
    part = division()
    state = part.init(jax.random.key(1))
    states = jax.random.uniform(jax.random.key(2), (300, 2), minval=jnp.array(LOW), maxval=jnp.array(HIGH))
    members = {i: [] for i in range(3)}
    update = jax.jit(part.update)
    for s in states:
        before = np.asarray(state.counts)
        state = update(state, at(*s))
        members[int(np.argmax(np.asarray(state.counts) - before))].append(np.asarray(s))
    assert all(len(m) > 10 for m in members.values())
    for i, assigned in members.items():
        np.testing.assert_allclose(state.live[i], np.mean(assigned, axis=0), atol=1e-5)
        assert int(state.counts[i]) == len(assigned)


def test_only_the_nearest_moves_by_hand():
    part = division(k=2)
    state = part.init(jax.random.key(0))._replace(
        live=jnp.array([[0.0, 0.0], [1.0, 2.0]]), counts=jnp.array([3.0, 1.0])
    )
    moved = part.update(state, at(0.4, 0.8))
    np.testing.assert_allclose(moved.live, [[0.1, 0.2], [1.0, 2.0]], atol=1e-6)
    np.testing.assert_array_equal(moved.counts, [4, 1])


def test_assignment_waits_for_the_sync():
    part = division(k=2)
    state = part.init(jax.random.key(0))._replace(
        target=jnp.array([[0.0, 0.0], [1.0, 2.0]]), live=jnp.array([[1.0, 2.0], [0.0, 0.0]])
    )
    assert int(part.assign(state, at(0.1, 0.1))) == 0
    assert int(part.assign(part.sync(state), at(0.1, 0.1))) == 1


def test_live_centroids_assign_without_a_sync():
    part = sequential_kmeans(2, LOW, HIGH, scaling.fixed(LOW, HIGH), live=True)
    state = part.init(jax.random.key(0))._replace(
        target=jnp.array([[0.0, 0.0], [1.0, 2.0]]), live=jnp.array([[1.0, 2.0], [0.0, 0.0]])
    )
    assert int(part.assign(state, at(0.1, 0.1))) == 1
    assert not part.has_target


def test_scaling_decides_which_is_nearest():
    centroids, point = jnp.array([[0.0, 1.0], [0.9, 0.0]]), at(0.0, 0.0)
    unscaled, by_task = division(2, scale=scaling.unscaled(2)), division(2)
    for part, expected in ((unscaled, 1), (by_task, 0)):
        state = part.init(jax.random.key(0))._replace(target=centroids)
        assert int(part.assign(state, point)) == expected


def blobs(key, centres, each=100):
    noise = 0.05 * jax.random.normal(key, (len(centres), each, 2))
    return (jnp.array(centres)[:, None] + noise).reshape(-1, 2)


def test_kmeans_finds_separate_blobs():
    centres = [[-0.8, -1.5], [0.8, 1.5], [0.8, -1.5]]
    points = blobs(jax.random.key(0), centres)
    find = jax.jit(lambda key: kmeans(key, points, 3, jnp.ones(2)))
    for seed in range(10):
        centroids, counts = find(jax.random.key(seed))
        order = np.lexsort(np.asarray(centroids).T)
        np.testing.assert_allclose(
            np.asarray(centroids)[order], np.array(centres)[np.lexsort(np.array(centres).T)], atol=0.03
        )
        np.testing.assert_array_equal(counts, [100, 100, 100])


def test_warm_start_replaces_centroids_and_counts():
    part = division(k=2, warm_start=200)
    points = blobs(jax.random.key(0), [[-0.5, -1.0], [0.5, 1.0]])
    state = part.init(jax.random.key(3))

    def see(state, given):
        t, now = given[0], context_inputs(given[1])
        return part.collect(part.update(state, now), now, t), ()

    state, _ = jax.jit(lambda state: jax.lax.scan(see, state, (jnp.arange(200), points)))(state)
    state = part.start(state, jax.random.key(4))
    np.testing.assert_allclose(np.sort(state.live, axis=0), [[-0.5, -1.0], [0.5, 1.0]], atol=0.03)
    np.testing.assert_array_equal(state.counts, [100, 100])
    np.testing.assert_array_equal(state.live, state.target)


def test_given_centroids_are_where_it_starts():
    first = jnp.array([[0.5, 1.0], [-0.5, -1.0]])
    part = sequential_kmeans(2, LOW, HIGH, scaling.fixed(LOW, HIGH), given=first)
    state = part.start(part.init(jax.random.key(0)), jax.random.key(1))
    np.testing.assert_array_equal(state.target, first)
    # Each counts as one state: the first that comes moves it halfway.
    np.testing.assert_allclose(part.update(state, at(0.7, 1.4)).live, [[0.6, 1.2], [-0.5, -1.0]], atol=1e-6)
