"""The dynamic self-organising map and its gates by hand (Rougier & Boniface 2011; Lo & Ghiassian 2019)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import assert_same, step

from iqrl.core.networks import multi_head_network
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.dsom import Map, grid_positions, move_map, self_organising_gates
from iqrl.methods.registry import build_agent

LOW, HIGH = (-1.0, 0.0), (1.0, 10.0)


def part(scaled, units=4):
    return self_organising_gates(LOW, HIGH, units, rate=0.25, elasticity=1.0, width=0.5, scaled=scaled)


def some_map(vectors, farthest=0.0):
    """One row of `vectors` per unit, as one reads them."""
    return Map(jnp.array(vectors, jnp.float32).T, jnp.float32(farthest))


@pytest.mark.parametrize(
    ("units", "rows"),
    [
        (4, [[0, 0], [0, 1], [1, 0], [1, 1]]),
        (9, [[0, 0], [0, 0.5], [0, 1], [0.5, 0], [0.5, 0.5], [0.5, 1], [1, 0], [1, 0.5], [1, 1]]),
    ],
)
def test_grid_is_square_with_a_diagonal_of_one(units, rows):
    grid = np.asarray(grid_positions(units)).T
    np.testing.assert_allclose(grid, np.array(rows) / np.sqrt(2), atol=1e-6)
    assert np.linalg.norm(grid[-1] - grid[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("farthest", "shares", "spread"),
    [
        # D = 0.64, 0.04, 1.44, 10.24; unit 1 wins; lattice distances² 0.5, 0, 1, 0.5; η² d_b² = (8 · 0.0625)² = 0.25
        (0.0, [0.25, 0.0625, 0.375, 1.0], np.exp([-2, 0, -4, -2])),
        # something was twice as far once: all shares are half of that, η² d_b² = 0.0625
        (40.96, [0.125, 0.03125, 0.1875, 0.5], np.exp([-8.0, 0, -16, -8])),
    ],
)
def test_move_by_hand(farthest, shares, spread):
    before = np.array([0.0, 1.0, 2.0, 4.0])
    after = move_map(some_map(before[:, None], farthest), jnp.array([0.8]), grid_positions(4), rate=0.5, elasticity=8.0)
    expected = before + 0.5 * np.array(shares) * spread * (0.8 - before)
    np.testing.assert_allclose(after.vectors[0], expected, atol=1e-6)
    assert float(after.farthest) == pytest.approx(max(farthest, 10.24))


def rougier(codebook, data, farthest, rate, elasticity):
    """DSOM.learn_data of rougier/dynamic-som; the codebook is [side, side, d]."""
    squared = ((codebook - data) ** 2).sum(axis=-1)
    winner = np.unravel_index(np.argmin(squared), squared.shape)
    farthest = max(squared.max(), farthest)
    d = np.sqrt(squared / farthest)
    x, y = np.indices(squared.shape) / (len(squared) - 1)
    lattice = ((x - x[winner]) ** 2 + (y - y[winner]) ** 2) / 2
    gauss = np.exp(-lattice / (elasticity * d[winner]) ** 2)
    return codebook - rate * (d * gauss)[..., None] * (codebook - data), farthest


@pytest.mark.parametrize(("side", "size"), [(2, 1), (2, 2), (3, 4)])
def test_moves_as_published_over_a_stream(side, size):
    random = np.random.default_rng(side + size)
    codebook, farthest = random.uniform(size=(side, side, size)), 0.0
    found, follow = some_map(codebook.reshape(-1, size)), jax.jit(move_map, static_argnums=(3, 4))
    for data in random.uniform(-0.5, 1.5, size=(40, size)):
        codebook, farthest = rougier(codebook, data, farthest, 0.25, 1.0)
        before = found
        found = follow(found, jnp.asarray(data, jnp.float32), grid_positions(side**2), 0.25, 1.0)
        np.testing.assert_allclose(found.vectors.T, codebook.reshape(-1, size), atol=1e-4)
        assert found.farthest >= before.farthest
    assert float(found.farthest) == pytest.approx(farthest, rel=1e-4)


@pytest.mark.parametrize("vectors", [[[0.5], [1.0], [2.0], [4.0]], [[0.5]] * 4])
def test_a_state_on_a_vector_moves_nothing(vectors):
    after = move_map(some_map(vectors), jnp.array([0.5]), grid_positions(4), 0.5, 1.0)
    np.testing.assert_array_equal(after.vectors.T, vectors)
    assert np.isfinite(after.farthest)


@pytest.mark.parametrize(
    ("scaled", "vectors", "distances"),
    [
        # the state (0, 5) is (0.5, 0.5) on the scale of the task
        (True, [[0.5, 0.5], [0.5, 0.25], [0.2, 0.1], [0.5, 1.5]], [0, 0.25, 0.5, 1]),
        (False, [[0.0, 5.0], [0.3, 5.4], [0.0, 4.0], [3.0, 1.0]], [0, 0.5, 1, 5]),
    ],
)
def test_state_is_followed_by_its_gates(scaled, vectors, distances):
    # Γ_i = exp(-‖s - w_i‖ / 0.5)
    seen = part(scaled).encode(some_map(vectors), jnp.array([0.0, 5.0]))
    np.testing.assert_allclose(seen, [0, 5, *np.exp(np.array(distances) / -0.5)], rtol=1e-5)
    assert (part(scaled).inputs, part(scaled).gates) == (2, 4)


@pytest.mark.parametrize(("scaled", "low", "high"), [(True, (0, 0), (1, 1)), (False, LOW, HIGH)])
def test_vectors_start_all_over_the_state_space(scaled, low, high):
    vectors = np.asarray(part(scaled, units=64).init(jax.random.key(0)).vectors)
    assert vectors.shape == (2, 64)
    assert (low <= vectors.T).all()
    assert (high >= vectors.T).all()
    assert np.ptp(vectors, axis=1) == pytest.approx(np.subtract(high, low), rel=0.15)


@pytest.mark.parametrize("scaled", [True, False])
def test_follows_the_state_just_left_and_nothing_else(scaled):
    vectors = np.random.default_rng(0).uniform(size=(4, 2))
    seen = np.array([0.75, 0.2]) if scaled else np.array([0.5, 2.0])
    expected = rougier(vectors.reshape(2, 2, 2), seen, 0.0, 0.25, 1.0)[0].reshape(4, 2)
    taken = step([0.5, 2.0], [-1.0, 9.0])
    for same in (taken, step([0.5, 2.0], [1.0, 1.0], a_tm1=1, r_t=-5.0)):
        state, passed_on = part(scaled).update(some_map(vectors), same)
        np.testing.assert_allclose(state.vectors.T, expected, atol=1e-5)
        assert passed_on is same


def test_gradient_of_a_hidden_unit_is_its_share_of_the_gate():
    """Q(s, a) = Σ_i v_ai Γ_i tanh(z_i): the weights into unit i have Γ_i times the gradient they would have.

    So a unit whose vector is far from the state is left alone, and the map itself has no gradient.
    """
    vectors = [[0.5, 0.5], [0.5, 0.25], [0.2, 0.1], [0.5, 8.5]]  # the last is 16 widths away
    network = multi_head_network(2, (4,), "tanh", 1, 3, gates=4)
    params, obs = network.init(jax.random.key(0)), jnp.array([0.0, 5.0])
    seen = part(True).encode(some_map(vectors), obs)
    gradient = jax.grad(lambda params: network.apply(params, seen).q[0, 1])(params)
    gates, v = np.exp([0, -0.5, -1, -16]), np.asarray(params["heads"]["w"])[0, 1]
    hidden = np.tanh(np.asarray(obs) @ np.asarray(params["trunk"][0]["w"]))
    own = gates * v * (1 - hidden**2)
    np.testing.assert_allclose(gradient["trunk"][0]["b"], own, rtol=1e-4)
    np.testing.assert_allclose(gradient["trunk"][0]["w"], np.outer(obs, own), rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(gradient["heads"]["w"][0, 1], gates * hidden, rtol=1e-4)
    assert abs(gradient["trunk"][0]["b"][3]) < 1e-6 < abs(gradient["trunk"][0]["b"][0])


@pytest.mark.parametrize("kind", ["synced", "live"])
def test_the_target_has_the_map_of_the_last_sync_or_the_live_one(kind):
    run = resolve("CartPole-v0", "dsom", dsom_target=kind)
    agent = build_agent(run, make_task(run))
    before = agent.init(jax.random.key(0))
    moved = before._replace(preprocessor=before.preprocessor._replace(vectors=before.preprocessor.vectors + 1))
    assert_same(agent.target_of(moved).preprocessor, (moved if kind == "live" else before).preprocessor)
    assert_same(agent.sync(moved).target.preprocessor, moved.preprocessor)
