"""MeDQN's consolidation by hand (Lan et al. 2023)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import loss_inputs, output, step

from iqrl.core.schedules import constant, linear
from iqrl.make_run import resolve
from iqrl.methods.medqn import Box, distance, follow_box, on_replayed_states, on_uniform_states, weight_of

ONLINE, TARGET = [[1.0, 2.0], [3.0, 4.0]], [[0.0, 2.0], [1.0, 5.0]]
"""two heads of two actions; the differences are 1, 0, 2 and -1: the mean square is 6 / 4"""


def test_distance_by_hand():
    assert float(distance(output(ONLINE), output(TARGET))) == 1.5
    # a batch of two is the last axis; in the second all four differ by 3
    online, target = np.stack([ONLINE, ONLINE], axis=-1), np.stack([TARGET, np.add(ONLINE, 3)], axis=-1)
    np.testing.assert_allclose(distance(output(online), output(target)), [1.5, 9.0])


def test_replayed_states_are_those_of_the_batch():
    elsewhere = output([[70.0, 80.0], [90.0, 99.0]])
    term = on_replayed_states(linear(0.01, 4.0, 100))
    assert float(term.loss(loss_inputs(step(), output(ONLINE), elsewhere, output(TARGET), elsewhere))) == 1.5
    assert term.num_uniforms == 0
    np.testing.assert_allclose([term.weight(t) for t in (0, 50, 100)], [0.01, 2.005, 4.0], rtol=1e-6)


STATES = [[-1.0, 0.0, 1.0], [1.0, 2.0, 9.0]]
"""low + u (high - low): in [-1, 1] by u = 0, 0.5, 1, in [0, 10] by u = 0.1, 0.2, 0.9"""


def uniform_loss(theta, target_theta, asked):
    def network(scale):
        def q(states):
            asked.append(states)
            return output(scale * jnp.stack([states.sum(axis=0), states[1]])[None])  # one head, two actions

        return q

    inputs = loss_inputs(
        online=network(theta),
        target=network(target_theta),
        preprocessor=Box(low=jnp.array([-1.0, 0.0]), high=jnp.array([1.0, 10.0])),
        uniforms=jnp.array([0.0, 0.5, 1.0, 0.1, 0.2, 0.9]),
    )
    return on_uniform_states(constant(1.0), size=2, count=3).loss(inputs)


def test_states_of_images_are_whole_numbers_up_to_the_highest():
    states = []
    network = lambda asked: states.append(asked) or output(jnp.zeros((1, 1, 3)))
    inputs = loss_inputs(
        online=network,
        target=network,
        preprocessor=Box(low=jnp.array([0.0]), high=jnp.array([3.0])),
        uniforms=jnp.array([0.0, 0.49, 0.9999]),
    )
    on_uniform_states(constant(1.0), size=1, count=3, pixels=True).loss(inputs)
    np.testing.assert_array_equal(states[0], [[0, 1, 3]])


def test_uniform_states_fill_the_box():
    asked = []
    loss = uniform_loss(3.0, 1.0, asked)
    assert len(asked) == 2
    for states in asked:
        np.testing.assert_allclose(states, STATES, atol=1e-6)
    # Q differs by 2 (s1 + s2, s2): 2 (0, 1), 2 (2, 2), 2 (10, 9)
    np.testing.assert_allclose(loss, [2, 16, 2 * (100 + 81)], rtol=1e-6)
    assert on_uniform_states(constant(1.0), size=2, count=3).num_uniforms == 6


def test_only_the_online_network_has_a_gradient():
    total = lambda theta, target_theta: jnp.sum(uniform_loss(theta, target_theta, []))
    # the loss is (θ - θ')² / 2 · (1 + 8 + 181): its derivative at 3 and 1 is 2 · 190
    assert jax.grad(total, argnums=(0, 1))(3.0, 1.0) == (pytest.approx(380), 0)
    whole = lambda online, target: distance(output(online), output(target))
    online, target = jax.grad(whole, argnums=(0, 1))(jnp.array(ONLINE), jnp.array(TARGET))
    np.testing.assert_allclose(online, np.subtract(ONLINE, TARGET) / 2)
    assert (target == 0).all()


def test_box_is_the_smallest_around_both_ends_of_every_step():
    part = follow_box(2)
    box = part.init(jax.random.key(0))
    stream = [([0.0, 5.0], [1.0, 4.0]), ([1.0, 4.0], [-2.0, 4.5]), ([3.0, 4.2], [0.5, 9.0]), ([0.0, 4.4], [0.1, 4.3])]
    boxes = [([0, 4], [1, 5]), ([-2, 4], [1, 5]), ([-2, 4], [3, 9]), ([-2, 4], [3, 9])]
    for (before, after), (low, high) in zip(stream, boxes, strict=True):
        given = step(before, after)
        box, passed_on = part.update(box, given)
        assert passed_on is given
        np.testing.assert_array_equal(box.low, low)
        np.testing.assert_array_equal(box.high, high)
    np.testing.assert_array_equal(part.encode(box, jnp.array([7.0, 8.0])), [7, 8])


@pytest.mark.parametrize(("growth", "expected"), [(None, 0.505), (0, 1.0), (100, 1.0), (1000, 0.505)])
def test_the_weight_grows_over_the_run_unless_it_is_said(growth, expected):
    """Half way through 1000 steps; from 0.01 to 1. A growth of 0 is none: the whole weight at once."""
    given = {} if growth is None else {"consolidation_growth": growth}
    weight = weight_of(resolve("CartPole-v0", "medqn-r", steps=1000, **given))
    assert float(weight(500)) == pytest.approx(expected)
