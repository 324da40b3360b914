"""Tile coding by hand (Ghiassian et al. 2020)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.methods.tcnn import bin_jointly, tile_coding


def code(part, *obs):
    """The binary code; what is given is the list of its ones."""
    ones = np.asarray(part.encode((), jnp.array(obs, jnp.float32)))
    assert part.binary
    assert len(set(ones)) == len(ones)
    seen = np.zeros(part.inputs)
    seen[ones] = 1
    return seen


@pytest.mark.parametrize(
    ("value", "first"),
    [(-5.0, 0), (-1.0, 0), (-0.51, 0), (-0.5, 1), (0.49, 2), (0.5, 3), (0.99, 3), (1.0, 3), (7.0, 3)],
)
def test_one_tiling_by_hand(value, first):
    """Four bins of [-1, 1], which begin at -1, -0.5, 0 and 0.5; a second variable in [0, 10] beside it."""
    part = tile_coding((-1.0, 0.0), (1.0, 10.0), bins=4, tilings=1, most=512)
    np.testing.assert_array_equal(code(part, value, 2.5), [*np.eye(4)[first], *np.eye(4)[1]])
    np.testing.assert_array_equal(code(part, 0.0, 5 + 5 * value), [*np.eye(4)[2], *np.eye(4)[first]])


@pytest.mark.parametrize(
    ("share", "tiles"),
    [
        # the first tiling cuts each variable at 1/2, the second, half a tile further, at 1/4
        ((0.1, 0.6), ((0, 1), (0, 1))),
        ((0.2, 0.3), ((0, 0), (0, 1))),
        ((0.3, 0.3), ((0, 0), (1, 1))),
        ((0.6, 0.2), ((1, 0), (1, 0))),
        ((1.0, 0.0), ((1, 0), (1, 0))),
        ((9.0, -9.0), ((1, 0), (1, 0))),
    ],
)
def test_two_tilings_by_hand(share, tiles):
    part = tile_coding((-1.0, 0.0), (1.0, 10.0), bins=2, tilings=2, most=512)
    expected = [np.eye(4)[x + 2 * y] for x, y in tiles]
    np.testing.assert_array_equal(code(part, 2 * share[0] - 1, 10 * share[1]).reshape(2, 4), expected)


def test_eight_tilings_are_displaced_by_odd_eighths():
    """Tiling t is displaced by t · (1, 3) eighths of a tile, and what leaves the range stays in the last tile."""
    part = tile_coding((0.0, 0.0), (1.0, 1.0), bins=4, tilings=8, most=512)
    for share in np.random.default_rng(0).uniform(size=(50, 2)):
        displaced = [np.floor(share * 4 + np.array([t % 8, 3 * t % 8]) / 8).clip(max=3) for t in range(8)]
        expected = [np.eye(16)[int(x + 4 * y)] for x, y in displaced]
        np.testing.assert_array_equal(code(part, *share).reshape(8, 16), expected)


@pytest.mark.parametrize(
    ("size", "bins", "tilings", "most", "inputs"),
    [
        (2, 20, 1, 512, 40),  # MountainCar, each variable by itself
        (4, 32, 1, 64, 128),  # a limit is for hashing only
        (2, 4, 8, 512, 128),  # MountainCar, 8 tilings of 4 x 4
        (4, 4, 8, 512, 512),  # Acrobot, 8 tilings of 4⁴ = 256, hashed to 512
        (2, 4, 8, 100, 96),  # 12 to each tiling
        (3, 2, 4, 32, 32),  # fits exactly
        (3, 2, 4, 2, 4),  # one to each at least
    ],
)
def test_number_of_inputs(size, bins, tilings, most, inputs):
    part = tile_coding([0.0] * size, [1.0] * size, bins, tilings, most)
    assert part.inputs == inputs
    for share in np.random.default_rng(1).uniform(size=(20, size)):
        seen = code(part, *share)
        assert seen.shape == (inputs,)
        np.testing.assert_array_equal(seen.reshape(size if tilings == 1 else tilings, -1).sum(axis=1), 1)


def test_every_tile_that_fits_has_an_input_of_its_own():
    centres = (np.array(list(itertools.product(range(3), repeat=3))) + 0.5) / 3
    first_tiling = [int(bin_jointly(jnp.asarray(c, jnp.float32), 3, 2, 27)[0]) for c in centres]
    assert sorted(first_tiling) == list(range(27))


@pytest.fixture(scope="module")
def hashed():
    """8 tilings of 4⁴ tiles in 512 inputs, on many states [n, 4]."""
    part = tile_coding([0.0] * 4, [1.0] * 4, bins=4, tilings=8, most=512)
    ones = jax.jit(jax.vmap(lambda obs: part.encode((), obs)))
    return lambda shares: np.eye(512)[np.asarray(ones(jnp.asarray(shares, jnp.float32)))].sum(axis=1)


def test_hashing_spreads_and_is_the_same_every_time(hashed):
    shares = np.random.default_rng(0).uniform(size=(2000, 4))
    seen = hashed(shares)
    np.testing.assert_array_equal(seen, hashed(shares))
    np.testing.assert_array_equal(seen.reshape(2000, 8, 64).sum(axis=2), 1)
    assert (seen.sum(axis=0) > 0).mean() > 0.75
    assert seen.sum(axis=0).max() < 5 * seen.sum(axis=0).mean()


def test_nearby_states_share_more_tiles_than_far_ones(hashed):
    random = np.random.default_rng(1)
    shares = random.uniform(0.1, 0.9, size=(500, 4))
    seen, near, far = (hashed(x) for x in (shares, shares + 0.01, random.permutation(shares)))
    shared = lambda other: (seen * other).sum(axis=1).mean()
    # Each variable crosses an edge of a tile, 0.25 wide, once in 25 steps of 0.01: about 8 · (1 - 4 / 25) stay.
    assert shared(near) == pytest.approx(8 * (1 - 4 / 25), abs=0.5)
    assert shared(far) < 1


@pytest.mark.parametrize(("tile_range", "bins"), [("task", [15, 12, 14, 11]), ("unit", [19, 19, 11, 19])])
def test_ranges_are_the_tasks_or_one_for_all(tile_range, bins):
    """CartPole's ranges are ±2.4, ±5, ±π/12 and ±2π, in 20 bins."""
    run = resolve("CartPole-v0", "tcnn", tile_range=tile_range)
    preprocessor = build_agent(run, make_task(run)).preprocessor
    ones = np.asarray(preprocessor.encode((), jnp.array([1.2, 1.1, 0.11, 0.95])))
    np.testing.assert_array_equal(ones - 20 * np.arange(4), bins)
