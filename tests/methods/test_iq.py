"""IQ: distillation by hand, between values and between distributions, and how contexts are found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK
from records import loss_inputs, output, step

from iqrl.core import schedules
from iqrl.core.networks import Output
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.iq import BETWEEN_DISTRIBUTIONS, distillation
from iqrl.methods.registry import build_agent

ONE = schedules.constant(1.0)

# Between values: three heads of two actions

ONLINE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
TARGET = [[1.0, 1.0], [3.0, 3.5], [5.0, 9.0]]


def sample(online, context=0):
    """Action 1 in this context; nothing else of the step matters."""
    return loss_inputs(step(a_tm1=1, context_tm1=context), output(online), target_tm1=output(TARGET))


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
    assert float(distillation(ONE, actions, heads).loss(sample(ONLINE))) == pytest.approx(expected, abs=1e-6)


def test_distillation_of_the_head_in_use_by_hand():
    # heads 0, 1 and 2, action 1: errors 1, 0.5 and -3: Huber 0.5, 0.125 and 2.5
    for heads, expected in (("sum", 3.125), ("mean", 3.125 / 3)):
        term = distillation(ONE, "taken", heads, own_head=True)
        assert float(term.loss(sample(ONLINE))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("actions", ["taken", "all"])
def test_distillation_leaves_the_head_in_use_alone_and_is_at_rest_after_a_sync(actions):
    term = distillation(ONE, actions, "sum")
    for context in range(3):
        gradient = jax.grad(lambda q, context=context: term.loss(sample(q, context)))
        moved = np.asarray(gradient(jnp.add(jnp.array(TARGET), 0.7)))
        assert (moved[context] == 0).all()
        assert (np.delete(moved, context, axis=0)[:, 1] != 0).all()
        assert (np.asarray(gradient(jnp.array(TARGET))) == 0).all()


# Between distributions: three heads, two actions, two atoms

P_ONLINE = [[[0.5, 0.5], [0.9, 0.1]], [[0.2, 0.8], [0.5, 0.5]], [[0.6, 0.4], [0.25, 0.75]]]
P_TARGET = [[[0.1, 0.9], [0.3, 0.7]], [[0.2, 0.8], [0.4, 0.6]], [[0.6, 0.4], [0.75, 0.25]]]


def logits_of(probabilities):
    return jnp.log(jnp.array(probabilities, jnp.float32)) + 3.0  # a constant changes nothing


def distributions(online, target, context=0):
    as_output = lambda logits: Output(q=jnp.zeros((3, 2)), values=logits, features=jnp.zeros(1))
    return loss_inputs(step(a_tm1=1, context_tm1=context), as_output(online), target_tm1=as_output(target))


def entropy(target, online):
    return -sum(p * np.log(q) for p, q in zip(target, online, strict=True))


def of_head(k, actions=(1,)):
    return np.mean([entropy(P_TARGET[k][a], P_ONLINE[k][a]) for a in actions])


@pytest.mark.parametrize(("actions", "counted"), [("taken", (1,)), ("all", (0, 1))])
def test_cross_entropy_of_the_other_heads(actions, counted):
    term = distillation(ONE, actions, "sum", distance=BETWEEN_DISTRIBUTIONS)
    loss = float(term.loss(distributions(logits_of(P_ONLINE), logits_of(P_TARGET))))
    assert loss == pytest.approx(of_head(1, counted) + of_head(2, counted), rel=1e-5)


def test_the_target_gives_probabilities_and_not_logits():
    """Twice the target's logits are other probabilities; logits taken for labels would only double the loss."""
    term = distillation(ONE, "taken", "sum", distance=BETWEEN_DISTRIBUTIONS)
    once, twice = (
        float(term.loss(distributions(logits_of(P_ONLINE), factor * logits_of(P_TARGET)))) for factor in (1.0, 2.0)
    )
    squares = [[p**2 / sum(x**2 for x in pair) for p in pair] for pair in (P_TARGET[1][1], P_TARGET[2][1])]
    assert twice == pytest.approx(entropy(squares[0], P_ONLINE[1][1]) + entropy(squares[1], P_ONLINE[2][1]), rel=1e-5)
    assert twice != pytest.approx(2 * once, rel=0.05)


def test_the_gradient_is_zero_at_the_target_and_in_the_head_in_use():
    term = distillation(ONE, "taken", "sum", distance=BETWEEN_DISTRIBUTIONS)
    gradient = jax.grad(lambda online: term.loss(distributions(online, logits_of(P_TARGET), context=2)))
    np.testing.assert_allclose(gradient(logits_of(P_TARGET)), 0.0, atol=1e-6)
    moved = np.asarray(gradient(logits_of(P_ONLINE)))
    assert (moved[2] == 0).all()
    assert (moved[0, 1] != 0).all()
    assert (moved[:, 0] == 0).all()


@pytest.mark.parametrize("one", [sample(ONLINE), distributions(logits_of(P_ONLINE), logits_of(P_TARGET))])
def test_a_batch_may_follow(one):
    distance = {} if one.online_tm1.values.ndim == 2 else {"distance": BETWEEN_DISTRIBUTIONS}
    term = distillation(ONE, "taken", "sum", **distance)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], axis=-1), one)
    np.testing.assert_allclose(term.loss(many), [float(term.loss(one))] * 2, rtol=1e-6)


@pytest.mark.parametrize("method", ["rainbow-iq-re", "rainbow-iq-te"])
def test_heads_of_rainbow_are_held_by_their_distributions(method):
    run = resolve(WALK, method, hidden=(8,), distill_actions="taken", distill_heads="sum")
    agent = build_agent(run, make_task(run))
    found = agent.regularisers[0].loss(distributions(logits_of(P_ONLINE), logits_of(P_TARGET)))
    assert float(found) == pytest.approx(of_head(1) + of_head(2), rel=1e-5)


# How contexts are found


@pytest.mark.parametrize("scaling", ["task", "running"])
def test_contexts_are_found_in_the_states_of_a_random_policy(scaling):
    """On CartPole there are three, by the pushes so far; the pole falls away from the cart's motion."""
    run = resolve("CartPole-v0", "iq", contexts="auto", context_scaling=scaling)
    assert (run.contexts, run.context_init, len(run.centroids)) == (3, "given", 12)
    velocities = np.reshape(run.centroids, (3, 4))[:, [1, 3]]
    order = np.argsort(velocities[:, 0])
    np.testing.assert_array_equal(np.sign(velocities[order[[0, 2]]]), [[-1, 1], [1, -1]])
    np.testing.assert_allclose(velocities[order[1]], 0.0, atol=0.1)
    assert run == resolve("CartPole-v0", "iq", contexts="auto", context_scaling=scaling)
    state = build_agent(run, make_task(run)).init(jax.random.key(0))
    np.testing.assert_array_equal(state.contexts.live, np.float32(run.centroids).reshape(3, 4))


def test_contexts_found_can_start_by_kmeans():
    run = resolve("CartPole-v0", "iq", contexts="auto", context_init="kmeans")
    assert (run.contexts, run.context_init, run.centroids) == (3, "kmeans", ())
