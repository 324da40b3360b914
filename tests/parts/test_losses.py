"""Hand-computed losses, and where gradients flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.parts import losses, schedules
from iqrl.parts.distillation import distillation
from iqrl.parts.losses import Sample, huber, pick, squared
from iqrl.parts.networks import Output
from iqrl.parts.regularisers import Moment
from iqrl.parts.replay import Transition

q_learning, double_q_learning = losses.q_learning(), losses.q_learning(losses.double_value)


def sample(online, online_next, target, target_next, *, action=1, reward=0.5, discount=0.9, contexts=(0, 1)):
    step = Transition(
        jnp.zeros(1), jnp.int32(action), jnp.float32(reward), jnp.float32(discount), jnp.zeros(1),
        jnp.int32(contexts[0]), jnp.int32(contexts[1]), jnp.bool_(False), jnp.bool_(True),
    )  # fmt: skip
    return Sample(step, *[output(q) for q in (online, online_next, target, target_next)])


def output(q):
    q = jnp.array(q, jnp.float32)
    return Output(q, q, jnp.zeros(1))


def moment(samples):
    return Moment(samples, None, None, (), jnp.zeros(0))


ONLINE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
ONLINE_NEXT = [[9.0, 0.0], [7.0, 1.0], [0.0, 9.0]]
TARGET = [[1.0, 1.0], [3.0, 3.5], [5.0, 9.0]]
TARGET_NEXT = [[8.0, 8.0], [2.0, 3.0], [8.0, 8.0]]


def test_huber():
    np.testing.assert_allclose(huber(jnp.array([0.0, 0.5, -1.0, 3.0])), [0.0, 0.125, 0.5, 2.5])


def test_pick_is_indexing():
    rows = jnp.arange(12.0).reshape(4, 3)
    for i in range(4):
        np.testing.assert_array_equal(pick(rows, jnp.int32(i)), rows[i])


def test_q_learning_by_hand():
    # y = 0.5 + 0.9 · max(2, 3) = 3.2 through head ω(s') = 1; Q(s, a=1, ω(s)=0) = 2; δ = -1.2; Huber 0.7
    assert float(q_learning(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT))) == pytest.approx(0.7, abs=1e-6)


def test_double_q_learning_by_hand():
    # θ prefers action 0 in head 1 of s' (7 > 1), θ⁻ values it 2: y = 0.5 + 0.9 · 2 = 2.3; δ = -0.3; Huber 0.045
    assert float(double_q_learning(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT))) == pytest.approx(0.045, abs=1e-6)


def test_squared_error_by_hand():
    # δ = -1.2 as above; half its square
    loss = losses.q_learning(error=squared)
    assert float(loss(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT))) == pytest.approx(0.72, abs=1e-6)


def test_nothing_follows_a_terminal_step():
    # y = 0.5; δ = 1.5; Huber 1.0
    assert float(q_learning(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT, discount=0.0))) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("actions", "heads", "expected"),
    [
        # heads 1 and 2, action 1: errors 0.5 and -3: Huber 0.125 and 2.5
        ("taken", "sum", 2.625),
        ("taken", "mean", 2.625 / 2),
        # all actions: head 1 errors 0, 0.5; head 2 errors 0, -3; the mean over actions, then the sum over heads
        ("all", "sum", 0.125 / 2 + 2.5 / 2),
        ("all", "mean", (0.125 / 2 + 2.5 / 2) / 2),
    ],
)
def test_distillation_by_hand(actions, heads, expected):
    term = distillation(schedules.constant(1.0), actions, heads)
    loss = term.loss(moment(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT)))
    assert float(loss) == pytest.approx(expected, abs=1e-6)


def test_distillation_of_the_head_in_use_by_hand():
    # heads 0, 1 and 2, action 1: errors 1, 0.5 and -3: Huber 0.5, 0.125 and 2.5
    samples = moment(sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT))
    for heads, expected in (("sum", 3.125), ("mean", 3.125 / 3)):
        term = distillation(schedules.constant(1.0), "taken", heads, own_head=True)
        assert float(term.loss(samples)) == pytest.approx(expected, abs=1e-6)


def gradient_of(loss, online, **options):
    def of(q):
        full = sample(ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT, **options)
        return loss(full._replace(online_tm1=output(q)))

    return np.array(jax.grad(of)(jnp.array(online, jnp.float32)))


@pytest.mark.parametrize("actions", ["taken", "all"])
def test_distillation_leaves_the_head_in_use_alone(actions):
    term = distillation(schedules.constant(1.0), actions, "sum")
    for context in range(3):
        gradient = gradient_of(lambda s: term.loss(moment(s)), np.add(TARGET, 0.7), contexts=(context, 0))
        assert (gradient[context] == 0).all()
        assert (np.delete(gradient, context, axis=0)[:, 1] != 0).all()


@pytest.mark.parametrize("actions", ["taken", "all"])
def test_distillation_gradient_is_zero_right_after_a_sync(actions):
    term = distillation(schedules.constant(1.0), actions, "sum")
    assert (gradient_of(lambda s: term.loss(moment(s)), TARGET) == 0).all()


def test_td_gradient_touches_only_the_head_and_action_in_use():
    gradient = gradient_of(q_learning, ONLINE)
    assert gradient[0, 1] != 0
    gradient[0, 1] = 0
    assert (gradient == 0).all()


def test_epsilon_falls_linearly_and_lambda_rises():
    epsilon = schedules.linear(1.0, 0.02, 100)
    np.testing.assert_allclose([epsilon(t) for t in (0, 50, 100, 500)], [1.0, 0.51, 0.02, 0.02], rtol=1e-6)
    weight = schedules.one_minus(epsilon, 0.5)
    np.testing.assert_allclose([weight(t) for t in (0, 50, 100)], [0.0, 0.245, 0.49], atol=1e-6)
    assert float(schedules.constant(0.3)(7)) == pytest.approx(0.3)
