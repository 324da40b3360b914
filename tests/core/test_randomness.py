import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.core import randomness
from iqrl.core.agent import ActUniforms, LearnUniforms
from iqrl.core.randomness import count, hand_out, key_of


def test_numbers_are_handed_out_in_the_order_of_the_structure():
    one = LearnUniforms(sample=3, online_noise=0, target_noise=2, regularisers=(1, 4))
    needs = {"act": ActUniforms(explore=1, action=1, noise=2), "learn": (one, one), "reset": 0}
    assert count(needs) == 4 + 2 * 10
    cut = hand_out(needs, np.arange(24))
    assert jax.tree.structure(cut) == jax.tree.structure(needs)
    np.testing.assert_array_equal(cut["act"].noise, [2, 3])
    np.testing.assert_array_equal(cut["learn"][0].sample, [4, 5, 6])
    np.testing.assert_array_equal(cut["learn"][0].target_noise, [7, 8])
    np.testing.assert_array_equal(cut["learn"][1].regularisers[1], [20, 21, 22, 23])
    np.testing.assert_array_equal(np.concatenate(jax.tree.leaves(cut)), np.arange(24))
    assert cut["reset"].shape == cut["learn"][0].online_noise.shape == (0,)


def test_a_part_that_needs_none_does_not_move_the_others():
    with_none = hand_out((2, 0, 3), np.arange(5))
    without = hand_out((2, 3), np.arange(5))
    np.testing.assert_array_equal(with_none[0], without[0])
    np.testing.assert_array_equal(with_none[2], without[1])


def test_it_is_the_same_compiled():
    needs = ActUniforms(explore=1, action=1, noise=3)
    plain, compiled = (
        f(jnp.arange(5.0)) for f in (lambda u: hand_out(needs, u), jax.jit(lambda u: hand_out(needs, u)))
    )
    for x, y in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("source", [randomness.START, randomness.WARM_START, randomness.FIRST_BLOCK, 10**9])
def test_seeds_and_sources_have_streams_of_their_own(source):
    draw = lambda seed, source: np.asarray(jax.random.uniform(key_of(jnp.uint32(seed), source), (4,)))
    np.testing.assert_array_equal(draw(3, source), draw(3, source))
    others = [draw(4, source), draw(3, source + 1), draw(source, 3), draw(3, np.uint32(randomness.MEASURING + source))]
    assert not any(np.isin(other, draw(3, source)).any() for other in others)
