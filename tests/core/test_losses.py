"""Hand-computed losses, and where gradients flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import loss_inputs, output, step

from iqrl.core import losses
from iqrl.core.losses import huber, squared

q_learning, double_q_learning = losses.q_learning(), losses.q_learning(losses.double_value)

ONLINE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
ONLINE_NEXT = [[9.0, 0.0], [7.0, 1.0], [0.0, 9.0]]
TARGET = [[1.0, 1.0], [3.0, 3.5], [5.0, 9.0]]
TARGET_NEXT = [[8.0, 8.0], [2.0, 3.0], [8.0, 8.0]]


def sample(discount=0.9):
    """Action 1 in context 0, reward 0.5, then context 1; three heads of two actions."""
    return loss_inputs(
        step(a_tm1=1, r_t=0.5, discount_t=discount, context_tm1=0, context_t=1),
        *map(output, (ONLINE, ONLINE_NEXT, TARGET, TARGET_NEXT)),
    )


def test_huber():
    np.testing.assert_allclose(huber(jnp.array([0.0, 0.5, -1.0, 3.0])), [0.0, 0.125, 0.5, 2.5])


def test_q_learning_by_hand():
    # y = 0.5 + 0.9 · max(2, 3) = 3.2 through head ω(s') = 1; Q(s, a=1, ω(s)=0) = 2; δ = -1.2; Huber 0.7
    assert float(q_learning(sample())) == pytest.approx(0.7, abs=1e-6)


def test_double_q_learning_by_hand():
    # θ prefers action 0 in head 1 of s' (7 > 1), θ⁻ values it 2: y = 0.5 + 0.9 · 2 = 2.3; δ = -0.3; Huber 0.045
    assert float(double_q_learning(sample())) == pytest.approx(0.045, abs=1e-6)


def test_squared_error_by_hand():
    # δ = -1.2 as above; half its square
    loss = losses.q_learning(error=squared)
    assert float(loss(sample())) == pytest.approx(0.72, abs=1e-6)


def test_nothing_follows_a_terminal_step():
    # y = 0.5; δ = 1.5; Huber 1.0
    assert float(q_learning(sample(discount=0.0))) == pytest.approx(1.0)


def test_td_gradient_touches_only_the_head_and_action_in_use():
    loss = lambda q: q_learning(sample()._replace(online_tm1=output(q)))
    gradient = np.array(jax.grad(loss)(jnp.array(ONLINE)))
    assert gradient[0, 1] != 0
    gradient[0, 1] = 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("loss", [q_learning, double_q_learning])
def test_a_batch_may_follow_as_the_last_axis(loss):
    batch = jax.tree.map(lambda *each: jnp.stack(each, axis=-1), sample(), sample(discount=0.0))
    np.testing.assert_allclose(loss(batch), [loss(sample()), loss(sample(discount=0.0))], rtol=1e-6)
