"""Random numbers: a key for each seed and purpose, and uniform numbers handed out by name.

Each part declares how many uniform numbers it needs per step, as a structure of counts. The driver draws a block of
numbers for many steps at once, and `hand_out` cuts the row of a step into the same structure.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

START, WARM_START, FIRST_BLOCK = 0, 1, 2
"""a seed's sources of randomness: its first state, the warm start of its contexts, then a block after the other"""
MEASURING = 2**31
"""the first source that is for measurements only, so that measuring does not change what the agent draws"""


def key_of(seed: jax.Array, source: jax.Array | int) -> jax.Array:
    """The key of a seed's source of randomness.

    Threefry takes any pair of words as its key, so a pair of numbers is one without hashing them first.
    """
    return jax.random.wrap_key_data(jnp.stack([jnp.uint32(source), jnp.uint32(seed)]))


def count(needs: Any) -> int:
    """How many numbers a structure of counts asks for.

    >>> count({"explore": 1, "noise": (2, 3)})
    6
    """
    return sum(jax.tree.leaves(needs))


def hand_out(needs: Any, uniforms: jax.Array | np.ndarray) -> Any:
    """The numbers [count(needs)] cut into the structure of `needs`, in its order.

    >>> hand_out({"explore": 1, "noise": 2}, np.array([0.1, 0.2, 0.3]))
    {'explore': array([0.1]), 'noise': array([0.2, 0.3])}
    """
    sizes, structure = jax.tree.flatten(needs)
    ends = itertools.accumulate(sizes)
    return jax.tree.unflatten(structure, [uniforms[end - size : end] for end, size in zip(ends, sizes, strict=True)])
