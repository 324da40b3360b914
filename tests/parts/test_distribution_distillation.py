"""Distillation between distributions of the return, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK

from iqrl.methods import build_agent
from iqrl.parts import schedules
from iqrl.parts.distillation import BETWEEN_DISTRIBUTIONS, distillation
from iqrl.parts.losses import Sample
from iqrl.parts.networks import Output
from iqrl.parts.regularisers import Moment
from iqrl.parts.replay import Transition
from iqrl.settings import resolve
from iqrl.tasks import make_task


def logits_of(probabilities):
    return jnp.log(jnp.array(probabilities, jnp.float32)) + 3.0  # a constant changes nothing


# [k = 3, A = 2, Z = 2]
ONLINE = [[[0.5, 0.5], [0.9, 0.1]], [[0.2, 0.8], [0.5, 0.5]], [[0.6, 0.4], [0.25, 0.75]]]
TEACHER = [[[0.1, 0.9], [0.3, 0.7]], [[0.2, 0.8], [0.4, 0.6]], [[0.6, 0.4], [0.75, 0.25]]]


def moment(online, teacher, context=0, action=1):
    step = Transition(
        jnp.zeros(1), jnp.int32(action), 0.0, 0.9, jnp.zeros(1), jnp.int32(context), jnp.int32(0), False, True
    )
    q = jnp.zeros((3, 2))
    outputs = [Output(q, logits, jnp.zeros(1)) for logits in (online, teacher)]
    return Moment(Sample(step, outputs[0], outputs[0], outputs[1], outputs[1]), None, None, (), jnp.zeros(0))


def entropy(teacher, online):
    return -sum(p * np.log(q) for p, q in zip(teacher, online, strict=True))


@pytest.mark.parametrize("actions", ["taken", "all"])
def test_cross_entropy_of_the_other_heads(actions):
    term = distillation(schedules.constant(1.0), actions, "sum", distance=BETWEEN_DISTRIBUTIONS)
    loss = float(term.loss(moment(logits_of(ONLINE), logits_of(TEACHER))))
    of_head = lambda k: np.mean([entropy(TEACHER[k][a], ONLINE[k][a]) for a in ([1] if actions == "taken" else [0, 1])])
    assert loss == pytest.approx(of_head(1) + of_head(2), rel=1e-5)


def test_the_teacher_gives_probabilities_and_not_logits():
    """Twice the teacher's logits are other probabilities; logits taken for labels would only double the loss."""
    term = distillation(schedules.constant(1.0), "taken", "sum", distance=BETWEEN_DISTRIBUTIONS)
    once, twice = (float(term.loss(moment(logits_of(ONLINE), factor * logits_of(TEACHER)))) for factor in (1.0, 2.0))
    squares = [[p**2 / sum(x**2 for x in pair) for p in pair] for pair in (TEACHER[1][1], TEACHER[2][1])]
    assert twice == pytest.approx(entropy(squares[0], ONLINE[1][1]) + entropy(squares[1], ONLINE[2][1]), rel=1e-5)
    assert twice != pytest.approx(2 * once, rel=0.05)


def test_the_gradient_is_zero_at_the_teacher_and_in_the_head_in_use():
    term = distillation(schedules.constant(1.0), "taken", "sum", distance=BETWEEN_DISTRIBUTIONS)
    gradient = lambda online: jax.grad(lambda x: term.loss(moment(x, logits_of(TEACHER), context=2)))(online)
    np.testing.assert_allclose(gradient(logits_of(TEACHER)), 0.0, atol=1e-6)
    moved = np.asarray(gradient(logits_of(ONLINE)))
    assert (moved[2] == 0).all()
    assert (moved[0, 1] != 0).all()
    assert (moved[:, 0] == 0).all()


def test_a_batch_may_follow():
    term = distillation(schedules.constant(1.0), "taken", "sum", distance=BETWEEN_DISTRIBUTIONS)
    one = moment(logits_of(ONLINE), logits_of(TEACHER))
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], axis=-1), one)
    np.testing.assert_allclose(term.loss(many), [float(term.loss(one))] * 2, rtol=1e-6)


@pytest.mark.parametrize("method", ["rainbow-iq", "rainbow-iq-re", "rainbow-iq-te"])
def test_heads_of_rainbow_are_held_by_their_distributions(method):
    run = resolve(WALK, method, hidden=(8,), distill_actions="taken", distill_heads="sum")
    agent = build_agent(run, make_task(run))
    found = agent.regularisers[0].loss(moment(logits_of(ONLINE), logits_of(TEACHER)))
    of_head = lambda k: entropy(TEACHER[k][1], ONLINE[k][1])
    assert float(found) == pytest.approx(of_head(1) + of_head(2), rel=1e-5)
