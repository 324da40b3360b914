import jax
import jax.numpy as jnp
import numpy as np

from iqrl.parts import teacher
from iqrl.parts.networks import multi_head_mlp

SIZE, HEADS, ACTIONS = 3, 2, 4


def test_remembered_answers_as_recomputed():
    network = multi_head_mlp(SIZE, (16,), "tanh", HEADS, ACTIONS)
    old, new = network.init(jax.random.key(0)), network.init(jax.random.key(1))
    memory, fresh = teacher.remembered(network, SIZE, HEADS, ACTIONS), teacher.recomputed(network, SIZE)
    pairs = jax.random.normal(jax.random.key(2), (10, 2, SIZE))
    filler = jnp.zeros((10, 5))
    plain = jnp.concatenate([pairs.reshape(10, -1), filler], axis=1)
    rows = jnp.concatenate([plain, jax.vmap(lambda pair: memory.note(old, pair))(pairs)], axis=1)
    assert rows.shape[1] - plain.shape[1] == memory.width
    for target, stored in ((old, rows), (new, memory.renew(new, rows))):
        remembered, recomputed = memory.recall(target, stored.T), fresh.recall(target, plain.T)
        for a, b in zip(remembered, recomputed, strict=True):
            assert a.shape == (HEADS, ACTIONS, 10)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert np.abs(np.asarray(memory.recall(new, rows.T)[0] - fresh.recall(new, plain.T)[0])).max() > 0.1


def test_small_buffers_remember_and_large_ones_recompute():
    network = multi_head_mlp(SIZE, (16,), "tanh", HEADS, ACTIONS)
    width = lambda capacity, period: teacher.cheaper(network, SIZE, HEADS, ACTIONS, capacity, 32, period).width
    assert width(1, 1000) > 0
    assert width(100, 1000) > 0
    assert width(50_000, 1000) == 0
    assert width(1000, 10) == 0
