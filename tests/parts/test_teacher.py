import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.parts import teacher
from iqrl.parts.networks import multi_head_network
from iqrl.parts.perception import plain
from iqrl.parts.replay import Batch, Transition
from iqrl.parts.teacher import QFunction

SIZE, HEADS, ACTIONS = 3, 2, 4


@pytest.mark.parametrize("options", [{}, {"dueling": True}, {"support": jnp.linspace(-1.0, 1.0, 5)}])
def test_remembered_answers_as_recomputed(options):
    network = multi_head_network(SIZE, (16,), "tanh", HEADS, ACTIONS, **options)
    answer = teacher.answers(network, plain(SIZE)._replace(encode=lambda factor, obs: factor * obs))
    # The target is the network and how it saw: both move.
    old, new = (QFunction(network.init(jax.random.key(i)), jnp.float32(1 + i)) for i in range(2))
    memory, fresh = teacher.remembered(answer, network, HEADS, ACTIONS), teacher.recomputed(answer)
    states = jax.random.normal(jax.random.key(2), (2, 10, SIZE))

    def batch(noted_by):
        notes = jnp.stack([memory.note(noted_by, each).T for each in states])
        assert notes.shape == (2, memory.width, 10)
        return batch_of(*states)._replace(notes=notes)

    for target in (old, new):
        for a, b in zip(memory.recall((), target, batch(target)), fresh.recall((), target, batch(target)), strict=True):
            assert a.q.shape == (HEADS, ACTIONS, 10)
            np.testing.assert_allclose(a.q, b.q, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-6)
    stale, renewed = memory.recall((), new, batch(old))[0].q, fresh.recall((), new, batch(old))[0].q
    assert np.abs(np.asarray(stale - renewed)).max() > 0.05


def batch_of(states, next_states):
    """A batch of which only the states matter."""
    steps = Transition(states.T, 0, 0, 0, next_states.T, 0, 0, over=False, greedy=True)
    return Batch(steps, jnp.zeros((2, 0, len(states))), None, None)


def test_without_a_target_the_network_answers_and_has_no_gradient():
    network = multi_head_network(SIZE, (16,), "tanh", HEADS, ACTIONS)
    params, states = network.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (2, 5, SIZE))
    batch = batch_of(*states)
    itself = teacher.the_network_itself(teacher.answers(network, plain(SIZE)))
    assert not itself.lags
    said = itself.recall(QFunction(params, ()), (), batch)
    np.testing.assert_allclose(said[0].q[..., 0], network.apply(params, states[0, 0]).q, rtol=1e-5)
    np.testing.assert_allclose(said[1].q[..., 0], network.apply(params, states[1, 0]).q, rtol=1e-5)
    total = lambda params: jnp.sum(itself.recall(QFunction(params, ()), (), batch)[1].q)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(jax.grad(total)(params)))


def test_batch_is_the_last_axis():
    network = multi_head_network(SIZE, (8,), "relu", HEADS, ACTIONS)
    q, batch = QFunction(network.init(jax.random.key(0)), ()), jax.random.normal(jax.random.key(1), (SIZE, 5))
    out = teacher.on_batch(teacher.answers(network, plain(SIZE)))(q, batch)
    assert out.q.shape == (HEADS, ACTIONS, 5)
    for i in range(5):
        np.testing.assert_allclose(out.q[..., i], network.apply(q.params, batch[:, i]).q, rtol=1e-5, atol=1e-6)


def test_small_buffers_remember_and_large_ones_recompute():
    assert teacher.renewing_is_cheaper(1, 32, 1000)
    assert teacher.renewing_is_cheaper(100, 32, 1000)
    assert not teacher.renewing_is_cheaper(50_000, 32, 1000)
    assert not teacher.renewing_is_cheaper(1000, 32, 10)
