"""A tree of sums: draws in proportion to weights that change, in O(log N).

The leaves are the weights; every node is the sum of its sixteen children. One array per level, and every sum is made
anew from its children and never by adding differences, so that no rounding error is carried on.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

BRANCHES = 16

SumTree = tuple[jax.Array, ...]
"""levels from the leaves to the root [1]; each but the root is a whole number of families of sixteen"""


def empty_tree(capacity: int) -> SumTree:
    levels, size = [], capacity
    while size > 1 or not levels:
        families = -(-size // BRANCHES)
        levels.append(jnp.zeros(families * BRANCHES))
        size = families
    return (*levels, jnp.zeros(1))


def with_weights(tree: SumTree, places: jax.Array, weights: jax.Array) -> SumTree:
    """The tree with these weights [n] at these places [n]; of a place named twice, one of its weights stays."""
    leaves, *above = tree
    levels = [leaves.at[places].set(weights, mode="promise_in_bounds")]
    for level in above:
        places = places // BRANCHES
        sums = jnp.sum(_children(levels[-1], places), axis=1)
        levels.append(level.at[places].set(sums, mode="promise_in_bounds"))
    return tuple(levels)


def places_at(tree: SumTree, shares: jax.Array) -> jax.Array:
    """The places [n] that lie at these shares [n], in [0, 1), of the total; never one of weight 0."""
    *levels, root = tree
    rest, places = shares * root[0], jnp.zeros(shares.shape, jnp.int32)
    for level in reversed(levels):
        weights = _children(level, places)
        before = jnp.cumsum(weights, axis=1) - weights
        # The last child that begins at or before what is left, of those that have any weight.
        fits = (weights > 0) & (before <= rest[:, None])
        child = jnp.max(jnp.where(fits, jnp.arange(BRANCHES), 0), axis=1)
        rest = rest - jnp.take_along_axis(before, child[:, None], axis=1)[:, 0]
        places = places * BRANCHES + child
    return places


def _children(level: jax.Array, places: jax.Array) -> jax.Array:
    return level.reshape(-1, BRANCHES).at[places].get(mode="promise_in_bounds")
