import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.parts import teacher
from iqrl.parts.networks import multi_head_mlp

SIZE, HEADS, ACTIONS = 3, 2, 4


@pytest.mark.parametrize("options", [{}, {"dueling": True}, {"support": jnp.linspace(-1.0, 1.0, 5)}])
def test_remembered_answers_as_recomputed(options):
    network = multi_head_mlp(SIZE, (16,), "tanh", HEADS, ACTIONS, **options)
    encode = lambda obs: 2 * obs
    old, new = network.init(jax.random.key(0)), network.init(jax.random.key(1))
    memory, fresh = teacher.remembered(network, encode, SIZE, HEADS, ACTIONS), teacher.recomputed(network)
    pairs = jax.random.normal(jax.random.key(2), (10, 2, SIZE))
    seen = encode(pairs[:, 0].T), encode(pairs[:, 1].T)
    filler = jnp.zeros((10, 5))
    plain = jnp.concatenate([pairs.reshape(10, -1), filler], axis=1)
    rows = jnp.concatenate([plain, jax.vmap(lambda pair: memory.note(old, encode(pair)))(pairs)], axis=1)
    assert rows.shape[1] - plain.shape[1] == memory.width
    for target, stored in ((old, rows), (new, memory.renew(new, rows))):
        remembered, recomputed = memory.recall((), target, seen, stored.T), fresh.recall((), target, seen, plain.T)
        for a, b in zip(remembered, recomputed, strict=True):
            assert a.q.shape == (HEADS, ACTIONS, 10)
            np.testing.assert_allclose(a.q, b.q, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-6)
    stale, renewed = memory.recall((), new, seen, rows.T)[0].q, fresh.recall((), new, seen, plain.T)[0].q
    assert np.abs(np.asarray(stale - renewed)).max() > 0.05


def test_without_a_target_the_network_answers_and_has_no_gradient():
    network = multi_head_mlp(SIZE, (16,), "tanh", HEADS, ACTIONS)
    params, states = network.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (SIZE, 5))
    itself = teacher.the_network_itself(network)
    assert not itself.lags
    said = itself.recall(params, (), (states, 2 * states), jnp.zeros((1, 5)))
    np.testing.assert_allclose(said[1].q[..., 0], network.apply(params, 2 * states[:, 0]).q, rtol=1e-5)
    total = lambda params: jnp.sum(itself.recall(params, (), (states, states), jnp.zeros((1, 5)))[0].q)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(jax.grad(total)(params)))


def test_small_buffers_remember_and_large_ones_recompute():
    assert teacher.renewing_is_cheaper(1, 32, 1000)
    assert teacher.renewing_is_cheaper(100, 32, 1000)
    assert not teacher.renewing_is_cheaper(50_000, 32, 1000)
    assert not teacher.renewing_is_cheaper(1000, 32, 10)
