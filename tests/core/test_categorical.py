"""C51 by hand (Bellemare, Dabney & Munos 2017)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import WALK
from records import loss_inputs, step

from iqrl.core.categorical import categorical, even_support, project
from iqrl.core.networks import Output, expectation
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent

SUPPORT = even_support(0.0, 2.0, 3)
"""0, 1 and 2"""


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([0, 1, 2], [0.5, 0.2, 0.3]),  # each on its own
        ([1, 1, 1], [0, 1, 0]),
        ([0.25, 1.5, 2], [0.375, 0.125 + 0.1, 0.1 + 0.3]),  # 0.5 is split 3 : 1, 0.2 is split 1 : 1
        ([-3, 1, 9], [0.5, 0.2, 0.3]),  # what is beyond an end is at that end
        ([9, -3, -0.1], [0.2 + 0.3, 0, 0.5]),
        ([1.75, 1.75, 1.75], [0, 0.25, 0.75]),  # nothing follows: all is at r
    ],
)
def test_projection_by_hand(points, expected):
    found = project(jnp.array(points, jnp.float32), jnp.array([0.5, 0.2, 0.3]), SUPPORT)
    np.testing.assert_allclose(found, expected, atol=1e-6)


numbers = lambda low, high: st.lists(st.floats(low, high, width=32), min_size=5, max_size=5)


@settings(deadline=None, max_examples=50)
@given(points=numbers(-20, 20), weights=numbers(0.125, 1))
def test_projection_keeps_the_mass_and_inside_the_support_the_mean(points, weights):
    support, probabilities = jnp.linspace(-10, 10, 5), np.array(weights) / sum(weights)
    found = np.asarray(project(jnp.array(points, jnp.float32), jnp.array(probabilities, jnp.float32), support))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert found @ np.asarray(support) == pytest.approx(np.clip(points, -10, 10) @ probabilities, abs=1e-4)


def output(probabilities):
    """Logits that are not normalised; a batch may be the last axis of [k, A, Z, …]."""
    p = np.asarray(probabilities)
    q = np.einsum("kaz...,z->ka...", p, np.arange(p.shape[2]))
    return Output(jnp.asarray(q, jnp.float32), jnp.asarray(np.log(p) + 3.0, jnp.float32), jnp.zeros(1))


def by_hand(reward=0.5, discount=0.5):
    anything = output([[[0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]])
    return loss_inputs(
        step(r_t=reward, discount_t=discount),
        online_tm1=output([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
        online_t=output([[[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]]),  # prefers action 0
        target_tm1=anything,
        target_t=output([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]]),  # means 0.75 and 1.25: prefers action 1
    )


AIMS = [
    # the points 0, 1, 2 go to 0.5, 1, 1.5; with the probabilities of action 1:
    # 0.25 (½, ½, 0) + 0.25 (0, 1, 0) + 0.5 (0, ½, ½)
    (False, {}, [0.125, 0.625, 0.25]),
    # with those of action 0: 0.5 (½, ½, 0) + 0.25 (0, 1, 0) + 0.25 (0, ½, ½)
    (True, {}, [0.25, 0.625, 0.125]),
    # nothing follows: r = 0.5
    (False, {"discount": 0.0}, [0.5, 0.5, 0]),
    (True, {"reward": 5.0}, [0, 0, 1]),
]


@pytest.mark.parametrize(("double", "options", "aim"), AIMS)
def test_cross_entropy_by_hand(double, options, aim):
    found = categorical(SUPPORT, double)(by_hand(**options))
    assert float(found) == pytest.approx(-np.dot(aim, np.log([0.2, 0.3, 0.5])), abs=1e-5)


@pytest.mark.parametrize(("double", "options", "aim"), AIMS)
def test_gradient_is_in_the_logits_of_the_action_taken_alone(double, options, aim):
    sample = by_hand(**options)

    def of(outputs):
        return categorical(SUPPORT, double)(loss_inputs(sample.transition, *outputs))

    online_tm1, *others = jax.grad(of)(tuple(sample[1:5]))
    # the gradient of the cross-entropy in its logits: p - aim
    np.testing.assert_allclose(online_tm1.values, [[np.subtract([0.2, 0.3, 0.5], aim), [0, 0, 0]]], atol=1e-6)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves((online_tm1.q, others)))


@pytest.mark.parametrize("double", [False, True])
def test_a_batch_is_one_by_one(double):
    """Two heads, three actions, four atoms, five samples; each by the equation, with an eye on its head."""
    random, support = np.random.default_rng(0), np.arange(4.0)
    p = random.dirichlet(np.ones(4), size=(4, 5, 2, 3))  # [network, B, k, A, Z]
    before, next_online, _, next_target = p
    a, c, c_next = random.integers(3, size=5), np.array([0, 1, 0, 1, 1]), np.array([1, 1, 0, 0, 1])
    r, d = random.normal(size=5), np.array([0.9, 0.0, 0.9, 0.5, 1.0])
    taken = lambda i: step(a_tm1=a[i], r_t=r[i], discount_t=d[i], context_tm1=c[i], context_t=c_next[i])
    sample = loss_inputs(taken(slice(None)), *[output(np.moveaxis(x, 0, -1)) for x in p])
    loss = categorical(jnp.asarray(support), double)
    expected = []
    for i in range(5):
        chooser = (next_online if double else next_target)[i, c_next[i]]
        following = next_target[i, c_next[i], np.argmax(chooser @ support)]
        aim = np.zeros(4)
        for z, mass in zip(support, following, strict=True):
            place = np.clip(r[i] + d[i] * z, 0, 3)
            low = min(int(place), 2)
            aim[[low, low + 1]] += mass * np.array([low + 1 - place, place - low])
        expected.append(-aim @ np.log(before[i, c[i], a[i]]))
        alone = loss_inputs(taken(i), *[output(x[i]) for x in p])
        assert float(loss(alone)) == pytest.approx(expected[i], rel=1e-4)
    np.testing.assert_allclose(loss(sample), expected, rtol=1e-4)


def test_expectation_by_hand():
    p = np.array([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [[0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3]]])
    means = np.array([[0.75, 1.25], [1.7, 1.0]])
    np.testing.assert_allclose(expectation(output(p).values, SUPPORT), means, rtol=1e-5)
    pair = np.stack([p, p[::-1]], axis=-1)
    np.testing.assert_allclose(
        expectation(output(pair).values, SUPPORT), np.stack([means, means[::-1]], axis=-1), rtol=1e-5
    )


def test_support_of_c51():
    support = np.asarray(even_support(-10.0, 10.0, 51))
    np.testing.assert_allclose(np.diff(support), 0.4, rtol=1e-4)
    assert (support[0], support[-1], support.size) == (-10, 10, 51)


@pytest.mark.parametrize(("double", "options", "aim"), AIMS)
def test_rainbow_chooses_as_the_setting_says(double, options, aim):
    run = resolve(WALK, "rainbow", hidden=(8,), double_q=double, value_low=0.0, value_high=2.0, atoms=3)
    agent = build_agent(run, make_task(run))
    found = float(agent.value_loss(by_hand(**options)))
    assert found == pytest.approx(-np.dot(aim, np.log([0.2, 0.3, 0.5])), abs=1e-5)
