import numpy as np
import pytest

from iqrl.core.contexts.density import _peaks, density_centroids

CENTRES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.5], [1, 1, -1], [-1, 0.5, 1]])


def blobs(k, count=3000, noise=0.0, seed=0):
    """k blobs, each larger and wider than the one before, and a share of uniform noise."""
    rng = np.random.default_rng(seed)
    sizes = (count * (1 - noise) * np.arange(1, k + 1) / sum(range(1, k + 1))).astype(int)
    widths = 0.05 + 0.02 * np.arange(k)
    parts = [rng.normal(c, w, (n, 3)) for c, w, n in zip(CENTRES[:k], widths, sizes, strict=True)]
    return np.concatenate([*parts, rng.uniform(-2, 2, (count - sum(sizes), 3))])


def assert_same_points(found, expected, atol):
    """In whatever order."""
    distances = np.linalg.norm(found[:, None] - expected, axis=-1)
    assert len(found) == len(expected)
    assert sorted(distances.argmin(axis=1)) == list(range(len(expected)))
    assert distances.min(axis=1).max() < atol


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [500, 3000])
def test_finds_separate_blobs_and_their_means(k, count):
    assert_same_points(density_centroids(blobs(k, count), np.ones(3)), CENTRES[:k], atol=0.06)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_noise_does_not_become_a_context(k):
    """It belongs to the contexts, as it will in training, and pulls at the mean of the smallest."""
    assert_same_points(density_centroids(blobs(k, noise=0.05), np.ones(3)), CENTRES[:k], atol=0.2)


def test_a_far_clump_too_small_for_a_context_is_left_out():
    clump = np.random.default_rng(1).normal(20.0, 0.01, (90, 3))
    found = density_centroids(np.concatenate([blobs(2), clump]), np.ones(3))
    assert_same_points(found, CENTRES[:2], atol=0.03)


@pytest.mark.parametrize("shape", ["normal", "uniform", "heavy tails", "ring"])
def test_states_without_a_valley_are_one_context(shape):
    """Also where the density is flat, and chance alone makes peaks."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 3000)
    states = {
        "normal": rng.normal(size=(3000, 4)),
        "uniform": rng.uniform(size=(3000, 2)),
        "heavy tails": rng.standard_t(2, size=(3000, 3)),
        "ring": np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(3000, 2)),
    }[shape]
    assert density_centroids(states, np.ones(states.shape[1])).shape == (1, states.shape[1])


def test_largest_first_and_no_more_than_asked():
    found = density_centroids(blobs(5), np.ones(3))
    np.testing.assert_allclose(found, CENTRES[::-1], atol=0.05)
    np.testing.assert_array_equal(density_centroids(blobs(5), np.ones(3), largest=2), found[:2])


def test_deterministic_and_leaves_its_input_alone():
    states = blobs(3)
    before = states.copy()
    first, second = (density_centroids(states, np.ones(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(states, before)


def test_weights_decide_which_valley_counts():
    """Two blobs apart in the first variable: seen if it counts, hidden by the width of the second if it does not."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(3000, 2)) * [0.1, 1.0] + np.where(np.arange(3000) % 2, 1.0, 0.0)[:, None] * [1.0, 0.0]
    assert len(density_centroids(states, np.array([1.0, 1.0]))) == 2
    assert len(density_centroids(states, np.array([0.01**2, 1.0]))) == 1


def test_centroids_are_in_the_tasks_units():
    units = np.array([1000.0, 1.0, 0.001])
    found = density_centroids(blobs(3) * units + 7, 1 / units**2)
    np.testing.assert_allclose((found - 7) / units, density_centroids(blobs(3), np.ones(3)), atol=1e-6)


def test_states_that_coincide():
    """A task of few states: each is a context of its own."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert_same_points(density_centroids(np.tile(corners, (500, 1)), np.ones(2)), corners, atol=1e-12)
    np.testing.assert_array_equal(density_centroids(np.full((500, 2), 3.0), np.ones(2)), [[3.0, 3.0]])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_states_is_one_context(count):
    states = np.arange(2.0 * count).reshape(count, 2)
    np.testing.assert_allclose(density_centroids(states, np.ones(2)), [states.mean(axis=0)])


@pytest.mark.parametrize(
    ("smallest", "depth", "expected"),
    [
        (2, 1.5, [1, 1, 1, 1, 4, 4, 7, 7, 7, 7]),
        (2, 2.2, [1, 1, 1, 1, 1, 1, 7, 7, 7, 7]),  # the valley before the middle peak is 2 deep
        (3, 1.5, [1, 1, 1, 1, 1, 1, 7, 7, 7, 7]),  # the middle peak has 2 states above it
        (2, 9.0, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_peaks_on_a_line_by_hand(smallest, depth, expected):
    heights = np.array([0.0, 5.0, 4.0, 1.0, 3.0, 2.9, 0.5, 4.1, 3.5, 0.2])
    places = np.arange(10)
    neighbours = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, 9)], axis=1)
    np.testing.assert_array_equal(_peaks(neighbours, heights, smallest, depth), expected)
