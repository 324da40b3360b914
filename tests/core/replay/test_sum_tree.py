import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iqrl.core.replay.sum_tree import empty_tree, places_at, with_weights


def tree_of(weights):
    weights = np.float32(weights)
    return with_weights(empty_tree(len(weights)), jnp.arange(len(weights)), jnp.asarray(weights))


def weights_of(count):
    return st.lists(st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.0]), min_size=count, max_size=count)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([1, 16, 17, 300]).flatmap(weights_of), st.integers(0, 99))
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
