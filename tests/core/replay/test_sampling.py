import jax.numpy as jnp
import numpy as np

from iqrl.core.replay.sampling import one_copy, prioritised, uniform, whole


def test_priorities_and_weights_by_hand():
    """Losses 4, 1 and 0.25 with exponent 0.5 are priorities 2, 1 and 0.5, out of 3.5; weights are p^-0.5 over the
    largest of the batch."""
    sampler = prioritised(batch_size=7, exponent=0.5, correction=0.5)(4)
    state = sampler.init()
    for slot in range(3):
        state = sampler.add(state, jnp.int32(slot), jnp.bool_(True))
    state = sampler.update_priorities(state, jnp.arange(3), jnp.array([4.0, 1.0, 0.25]))
    slots, weights = sampler.draw(state, 0, jnp.int32(3), jnp.full(7, 0.5))
    np.testing.assert_array_equal(slots, [0, 0, 0, 0, 1, 1, 2])
    expected = np.array([2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.5]) ** -0.5
    np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-5)


def test_a_new_transition_has_the_highest_priority_there_ever_was():
    sampler = prioritised(2, 0.5, 0.5)(4)
    state = sampler.add(sampler.init(), jnp.int32(0), jnp.bool_(True))
    assert float(state.tree[0][0]) == 1.0
    state = sampler.update_priorities(state, jnp.array([0]), jnp.array([9.0]))
    state = sampler.update_priorities(state, jnp.array([0]), jnp.array([0.04]))
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


def test_a_buffer_of_one_is_drawn_once_and_a_larger_one_as_before():
    for sampling in (uniform(9), prioritised(9, 0.5, 0.5)):
        one = one_copy(sampling)(1)
        assert one.num_uniforms == 1
        assert one.draw(one.init(), 0, jnp.int32(1), jnp.zeros(1)) == (None, None)
        assert one_copy(sampling)(4).num_uniforms == 9
    assert whole(7).draw((), 0, jnp.int32(7), jnp.zeros(1)) == (None, None)
