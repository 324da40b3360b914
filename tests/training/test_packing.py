"""Trees of arrays in few arrays, and back: no bit changes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.training.packing import LARGE, Packing


class Tree(NamedTuple):
    number: Any
    flags: Any
    image: Any
    weights: Any
    large: Any
    nothing: Any = ()


def tree(xp=np):
    """Words that are no numbers, and a whole number that is no float32."""
    patterns = np.array([0x7FC00001, 0xFF800001, 0x80000000, 1], np.uint32).view(np.float32)
    return Tree(
        number=xp.int32(2**31 - 1),
        flags=xp.asarray(np.array([True, False, True])),
        image=xp.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
        weights={"w": xp.asarray(patterns.reshape(2, 2)), "none": xp.zeros((2, 0), np.float32), "seed": xp.uint32(7)},
        large=xp.arange(LARGE // 4, dtype=np.float32),
    )


def assert_same_bits(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert x.tobytes() == y.tobytes()


def test_there_and_back_inside_a_program_and_outside():
    packing = Packing(tree())
    packed = packing.pack_on_host(tree())
    assert len(packed) == 2, "all words, and what is large"
    assert [(each.shape, each.dtype) for each in packed] == [(each.shape, each.dtype) for each in packing.like]
    assert_same_bits(packing.unpack_on_host(packed), tree())
    assert_same_bits(jax.jit(packing.unpack)(packed), tree())
    inside = jax.jit(lambda: packing.pack(tree(jnp)))()
    assert_same_bits(inside, packed)
    assert_same_bits(jax.jit(lambda given: packing.pack(packing.unpack(given)))(packed), packed)


def test_what_was_packed_stays_when_more_is_packed():
    packing = Packing(tree())
    first = packing.pack_on_host(tree())
    packing.pack_on_host(tree()._replace(number=np.int32(3)))
    assert packing.unpack_on_host(first).number == 2**31 - 1


def test_a_copy_outlives_the_program_that_writes_in_the_original():
    packing = Packing(tree())
    held = tuple(map(jnp.array, packing.pack_on_host(tree())))
    whole = packing.unpack_on_host(held)
    assert not np.shares_memory(np.asarray(held[0]), whole.number)
    add = jax.jit(lambda packed: (packed[0] + 1, packed[1]), donate_argnums=0)
    jax.block_until_ready(add(held))
    assert whole.number == 2**31 - 1


def test_a_tree_of_another_form_is_refused():
    with pytest.raises(AssertionError, match="another form"):
        Packing(tree()).pack_on_host(tree()._replace(nothing=np.float32(0)))
