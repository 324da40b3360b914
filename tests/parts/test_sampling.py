import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.parts.sampling import prioritised, uniform
from iqrl.parts.sum_tree import empty_tree, places_at, with_weights


def tree_of(weights):
    weights = np.float32(weights)
    return with_weights(empty_tree(len(weights)), jnp.arange(len(weights)), jnp.asarray(weights))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.0]), min_size=1, max_size=300), st.integers(0, 99))
def test_every_node_is_the_sum_of_its_children_and_no_empty_place_is_drawn(weights, seed):
    weights[seed % len(weights)] = 2.0
    tree = tree_of(weights)
    for below, above in itertools.pairwise(tree):
        np.testing.assert_allclose(np.asarray(below).reshape(-1, 16).sum(axis=1), above[: below.size // 16], rtol=1e-6)
    assert tree[-1].shape == (1,)
    edges = [0.0, np.nextafter(np.float32(1), np.float32(0))]
    shares = np.concatenate([np.random.default_rng(seed).random(50), edges])
    places = np.asarray(places_at(tree, jnp.float32(shares)))
    assert (np.float32(weights)[places] > 0).all()


def test_places_by_hand():
    tree = tree_of([1.0, 0.0, 2.0, 1.0])
    shares = jnp.array([0.0, 0.24, 0.25, 0.74, 0.76, 0.999])
    np.testing.assert_array_equal(places_at(tree, shares), [0, 0, 2, 2, 3, 3])


def test_the_very_end_is_the_last_place_that_has_weight():
    """(31 + u) / 32 rounds to 1 for the largest u below 1."""
    np.testing.assert_array_equal(places_at(tree_of([1.0, 0.0, 2.0, 1.0, 0.0]), jnp.array([1.0])), [3])


def test_proportions_in_a_tree_of_many_levels():
    weights = np.zeros(5000)
    weights[[3, 17, 4999]] = [1.0, 3.0, 6.0]
    shares = jax.random.uniform(jax.random.key(0), (20_000,))
    counts = np.bincount(np.asarray(places_at(tree_of(weights), shares)), minlength=5000)
    np.testing.assert_allclose(counts[[3, 17, 4999]] / 20_000, [0.1, 0.3, 0.6], atol=0.012)
    assert counts.sum() == counts[[3, 17, 4999]].sum()


def test_sums_stay_exact_after_many_changes():
    """A million changes of weights between a thousandth and a thousand leave the total what the leaves add up to."""
    generator = np.random.default_rng(0)
    places = jnp.asarray(generator.integers(0, 1000, (5000, 200)), jnp.int32)
    weights = jnp.asarray(10.0 ** generator.uniform(-3, 3, (5000, 200)), jnp.float32)
    change = lambda tree, both: (with_weights(tree, *both), None)
    tree, _ = jax.jit(lambda tree: jax.lax.scan(change, tree, (places, weights)))(empty_tree(1000))
    assert float(tree[-1][0]) == pytest.approx(float(np.sum(np.float64(tree[0]))), rel=1e-6)


def test_priorities_and_weights_by_hand():
    """Losses 4, 1 and 0.25 with exponent 0.5 are priorities 2, 1 and 0.5, out of 3.5; weights are p^-0.5 over the
    largest of the batch."""
    sampler = prioritised(batch_size=7, exponent=0.5, correction=0.5)(4)
    state = sampler.init()
    for slot in range(3):
        state = sampler.add(state, jnp.int32(slot), jnp.bool_(True))
    state = sampler.learned(state, jnp.arange(3), jnp.array([4.0, 1.0, 0.25]))
    slots, weights = sampler.draw(state, 0, jnp.int32(3), jnp.full(7, 0.5))
    np.testing.assert_array_equal(slots, [0, 0, 0, 0, 1, 1, 2])
    expected = np.array([2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.5]) ** -0.5
    np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-5)


def test_a_new_transition_has_the_highest_priority_there_ever_was():
    sampler = prioritised(2, 0.5, 0.5)(4)
    state = sampler.add(sampler.init(), jnp.int32(0), jnp.bool_(True))
    assert float(state.tree[0][0]) == 1.0
    state = sampler.learned(state, jnp.array([0]), jnp.array([9.0]))
    state = sampler.learned(state, jnp.array([0]), jnp.array([0.04]))
    state = sampler.add(state, jnp.int32(1), jnp.bool_(True))
    np.testing.assert_allclose(state.tree[0][:2], [0.2, 3.0], rtol=1e-5)


def test_what_is_not_there_yet_is_not_drawn():
    sampler = prioritised(8, 0.5, 0.5)(4)
    state = sampler.add(sampler.init(), jnp.int32(3), jnp.bool_(False))
    state = sampler.add(state, jnp.int32(0), jnp.bool_(True))
    assert set(np.asarray(sampler.draw(state, 0, jnp.int32(1), jnp.linspace(0, 0.99, 8)).slots)) == {0}


def test_what_is_dropped_is_not_drawn_again():
    sampler = prioritised(8, 0.5, 0.5)(4)
    state = sampler.init()
    for slot in range(3):
        state = sampler.add(state, jnp.int32(slot), jnp.bool_(True))
    state = sampler.drop(state, jnp.int32(1), jnp.bool_(True))
    state = sampler.drop(state, jnp.int32(2), jnp.bool_(False))
    assert set(np.asarray(sampler.draw(state, 0, jnp.int32(3), jnp.linspace(0, 0.99, 8)).slots)) == {0, 2}


def test_uniform_draws_go_round_the_ring():
    """Three slots in use from slot 3 on, of four: 3, 0 and 1."""
    slots = uniform(9)(4).draw((), jnp.int32(3), jnp.int32(3), jnp.linspace(0, 0.999, 9)).slots
    np.testing.assert_array_equal(slots, [3, 3, 3, 0, 0, 0, 1, 1, 1])
