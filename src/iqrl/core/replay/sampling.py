"""Sampling: which of the stored transitions make a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.replay.sum_tree import SumTree, empty_tree, places_at, with_weights

SMALL = 1e-10
"""keeps a priority above 0"""


class Draw(NamedTuple):
    slots: jax.Array | None
    """[B]; None: every slot, in order"""
    weights: jax.Array | None
    """[B]: how much each counts; None: all the same"""


class Sampler(NamedTuple):
    init: Callable[[], Any]
    add: Callable[[Any, jax.Array, jax.Array], Any]
    """(state, slot, whether there is anything in it) -> state, after something was stored in the slot"""
    draw: Callable[[Any, jax.Array | int, jax.Array, jax.Array], Draw]
    """(state, first slot in use, number of slots in use from there round the ring, uniform numbers) -> slots"""
    update_priorities: Callable[[Any, jax.Array | None, jax.Array], Any]
    """(state, slots, their losses) -> state"""
    drop: Callable[[Any, jax.Array, jax.Array], Any]
    """(state, slot, whether what is in it shall no longer be drawn) -> state"""
    num_uniforms: int
    """uniform numbers that a draw consumes"""


Sampling = Callable[[int], Sampler]
"""a sampler for so many slots"""


def uniform(batch_size: int) -> Sampling:
    """Every transition alike, with replacement."""
    return lambda slots: _uniform(slots, batch_size)


def _uniform(slots: int, batch_size: int) -> Sampler:
    def draw(state: Any, first: jax.Array | int, used: jax.Array, uniforms: jax.Array) -> Draw:
        return Draw((first + jnp.minimum((uniforms * used).astype(jnp.int32), used - 1)) % slots, None)

    return whole(slots)._replace(draw=draw, num_uniforms=batch_size)


def whole(slots: int) -> Sampler:
    """All that is stored, each time; to be used once the buffer is full."""
    unchanged = lambda state, *rest: state
    # One number is drawn and not used: an array of none would need care everywhere.
    return Sampler(
        init=tuple,
        add=unchanged,
        draw=lambda *given: Draw(slots=None, weights=None),
        update_priorities=unchanged,
        drop=unchanged,
        num_uniforms=1,
    )


def one_copy(sampling: Sampling) -> Sampling:
    """The same, but a buffer of one transition gives it once.

    A batch drawn from one slot is copies of one row. The mean gradient over copies is the gradient of one, so the
    copies need not be computed.
    """
    return lambda slots: whole(1) if slots == 1 else sampling(slots)


class Priorities(NamedTuple):
    tree: SumTree
    highest: jax.Array
    """the highest priority there ever was: that of a transition never drawn"""


def prioritised(batch_size: int, exponent: float, correction: float) -> Sampling:
    """Stratified sampling in proportion to loss^exponent (Schaul et al. 2016, as in Dopamine).

    Importance weights are priority^-correction, scaled so that the largest of a batch is 1.
    """
    return lambda slots: _prioritised(slots, batch_size, exponent, correction)


def _prioritised(slots: int, batch_size: int, exponent: float, correction: float) -> Sampler:
    def init() -> Priorities:
        return Priorities(empty_tree(slots), jnp.float32(1))

    def add(state: Priorities, slot: jax.Array, there: jax.Array) -> Priorities:
        return _with_priority(state, slot, jnp.where(there, state.highest, 0.0))

    def drop(state: Priorities, slot: jax.Array, lost: jax.Array) -> Priorities:
        return _with_priority(state, slot, jnp.where(lost, 0.0, state.tree[0][slot]))

    def _with_priority(state: Priorities, slot: jax.Array, priority: jax.Array) -> Priorities:
        return state._replace(tree=with_weights(state.tree, slot[None], priority[None]))

    def draw(state: Priorities, first: jax.Array | int, used: jax.Array, uniforms: jax.Array) -> Draw:
        drawn = places_at(state.tree, (jnp.arange(batch_size) + uniforms) / batch_size)
        priorities = state.tree[0].at[drawn].get(mode="promise_in_bounds")
        weights = (priorities + SMALL) ** -correction
        return Draw(drawn, weights / jnp.max(weights))

    def update_priorities(state: Priorities, drawn: jax.Array | None, losses: jax.Array) -> Priorities:
        if drawn is None:
            return state
        priorities = (losses + SMALL) ** exponent
        highest = jnp.maximum(state.highest, jnp.max(priorities))
        return Priorities(with_weights(state.tree, drawn, priorities), highest)

    return Sampler(
        init=init, add=add, draw=draw, update_priorities=update_priorities, drop=drop, num_uniforms=batch_size
    )
