"""Few arrays instead of many: a call of a compiled program takes longer for every array that it is given or gives.

The small arrays of a tree become one array of 32-bit words. Large ones stay as they are, so that a program can write in
them. No number changes its bits.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LARGE = 16_384
"""bytes from which an array stays alone"""
WORDS = ("float32", "int32", "uint32")
"""taken as they are"""
BYTES = ("bool", "uint8")
"""a word for each"""


class Packing:
    """How trees of this form are packed: into the words of their small arrays, and their large arrays."""

    def __init__(self, like: Any):
        leaves, self._tree = jax.tree.flatten(like)
        self._shapes = [(tuple(leaf.shape), np.dtype(leaf.dtype)) for leaf in leaves]
        self._is_small = [_is_small(shape, kind) for shape, kind in self._shapes]
        sizes = [math.prod(shape) for shape, _ in self._small_shapes()]
        self._ends = np.cumsum(sizes).tolist()
        words: Any = jax.ShapeDtypeStruct((sum(sizes),), jnp.uint32)
        large = [jax.ShapeDtypeStruct(*it) for it, small in zip(self._shapes, self._is_small, strict=True) if not small]
        self.like = (words, *large)
        """shapes of the packed arrays"""
        self._words = np.zeros(sum(sizes), np.uint32)
        """filled again and again by `pack_on_host`, through views of the form of each small array"""
        as_kind = lambda kind: np.uint32 if kind.name in BYTES else kind
        self._views = [
            self._words[begin:end].view(as_kind(kind)).reshape(shape)
            for begin, end, (shape, kind) in zip([0, *self._ends], self._ends, self._small_shapes(), strict=False)
        ]

    def _small_shapes(self) -> list[tuple[tuple[int, ...], np.dtype]]:
        return [each for each, small in zip(self._shapes, self._is_small, strict=True) if small]

    def pack(self, tree: Any) -> tuple[Any, ...]:
        """Inside a program."""
        small, large = self._divide(tree)
        to_words = lambda leaf: leaf if leaf.dtype == jnp.uint32 else jax.lax.bitcast_convert_type(leaf, jnp.uint32)
        words = [leaf.astype(jnp.uint32) if leaf.dtype.name in BYTES else to_words(leaf) for leaf in small]
        return (jnp.concatenate([leaf.reshape(-1) for leaf in words]), *large)

    def unpack(self, packed: tuple[Any, ...]) -> Any:
        """Inside a program."""

        def of_words(words: jax.Array, kind: np.dtype) -> jax.Array:
            return words.astype(kind) if kind.name in BYTES else jax.lax.bitcast_convert_type(words, kind)

        return self._rebuild(packed, of_words)

    def pack_on_host(self, tree: Any) -> tuple[Any, ...]:
        """Of arrays of NumPy, or of those that a program gave."""
        small, large = self._divide(tree)
        for view, leaf in zip(self._views, small, strict=True):
            view[...] = leaf
        return (self._words.copy(), *large)

    def unpack_on_host(self, packed: tuple[Any, ...]) -> Any:
        """The small arrays are copies, and NumPy's; the large ones are as they were given."""
        words = np.array(packed[0])  # the program that gave it may write in it later
        of_words = lambda part, kind: part.astype(kind) if kind.name in BYTES else part.view(kind)
        return self._rebuild((words, *packed[1:]), of_words)

    def _divide(self, tree: Any) -> tuple[list[Any], list[Any]]:
        leaves, found = jax.tree.flatten(tree)
        assert found == self._tree, "a tree of another form"
        small = [leaf for leaf, is_small in zip(leaves, self._is_small, strict=True) if is_small]
        return small, [leaf for leaf, is_small in zip(leaves, self._is_small, strict=True) if not is_small]

    def _rebuild(self, packed: tuple[Any, ...], of_words: Any) -> Any:
        words, large, begin, ends = packed[0], iter(packed[1:]), 0, iter(self._ends)
        leaves = []
        for (shape, kind), small in zip(self._shapes, self._is_small, strict=True):
            if small:
                end = next(ends)
                leaves.append(of_words(words[begin:end], kind).reshape(shape))
                begin = end
            else:
                leaves.append(next(large))
        return jax.tree.unflatten(self._tree, leaves)


def _is_small(shape: tuple[int, ...], kind: np.dtype) -> bool:
    return kind.name in WORDS + BYTES and math.prod(shape) * kind.itemsize < LARGE
