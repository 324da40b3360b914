"""Action masks: which actions are legal in a state, True for each that is. An empty tuple stands where nothing is said
of it: every action is legal then, and the mask costs nothing.

The actions are the first axis of a mask; a batch may follow as the last one, as for Q values of one head.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Mask = Any
"""[A] or [A, B] of booleans, or an empty tuple"""

LOWEST = float(np.finfo(np.float32).min)
"""stands for the value of an illegal action; it is finite, so that a discount of 0 makes it 0"""


def says_nothing(mask: Mask) -> bool:
    return isinstance(mask, tuple)


def legal_values(q: jax.Array, mask: Mask) -> jax.Array:
    """Q values [A] or [A, B] of which only those of legal actions can be the maximum."""
    return q if says_nothing(mask) else jnp.where(mask, q, LOWEST)


def mean_over_legal(each: jax.Array, mask: Mask, axis: int | tuple[int, ...]) -> jax.Array:
    """The mean over heads, or actions, or both, of [k, A] or [k, A, B]; illegal actions do not count."""
    if says_nothing(mask):
        return jnp.mean(each, axis=axis)
    legal = jnp.broadcast_to(mask, each.shape)
    return jnp.sum(jnp.where(legal, each, 0.0), axis=axis) / jnp.maximum(jnp.sum(legal, axis=axis), 1)


def draw_action(uniform: jax.Array, actions: int, mask: Mask) -> jax.Array:
    """A legal action, each with the same chance, by a uniform number in [0, 1)."""
    if says_nothing(mask):
        return (uniform * actions).astype(jnp.int32)
    numbered = jnp.cumsum(mask)  # of a legal action: the number of legal ones up to it
    drawn = jnp.minimum((uniform * numbered[-1]).astype(jnp.int32), numbered[-1] - 1)
    return jnp.argmax(numbered > drawn).astype(jnp.int32)


# Bits in a row of float32

BITS = 24
"""that a float32 holds exactly"""


def count_words(actions: int) -> int:
    """How many numbers the bits of two masks take, that of a state and that of the next one."""
    return -(-2 * actions // BITS)


def pack_masks(of_s: jax.Array, of_next: jax.Array) -> jax.Array:
    """[words]: two masks [A] as bits."""
    bits = jnp.concatenate([of_s, of_next]).astype(jnp.int32)
    rows = jnp.pad(bits, (0, -bits.size % BITS)).reshape(-1, BITS)
    return jnp.sum(rows << jnp.arange(BITS), axis=1).astype(jnp.float32)


def unpack_masks(words: jax.Array, actions: int) -> tuple[jax.Array, jax.Array]:
    """The inverse, for [words] or a batch [words, B]."""
    places = jnp.arange(BITS).reshape(-1, *[1] * (words.ndim - 1))
    bits = (words.astype(jnp.int32)[:, None] >> places) & 1
    legal = bits.reshape(-1, *words.shape[1:]) > 0
    return legal[:actions], legal[actions : 2 * actions]
