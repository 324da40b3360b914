"""Contexts in the space of embeddings: IQ-RE and IQ-TE."""

import jax
import jax.numpy as jnp
import numpy as np
from records import context_inputs

from iqrl.core.contexts import by_random_encoder, by_trained_encoder, single
from iqrl.core.contexts.sequential_kmeans import sequential_kmeans
from iqrl.core.encoders import Encoder
from iqrl.core.scaling import unscaled

DOUBLED = Encoder(lambda key: jnp.float32(2.0), lambda factor, obs: factor * obs[:1].astype(jnp.float32), 1)


def division(inner_warm_start=4):
    return by_random_encoder(sequential_kmeans(2, (0.0,), (1.0,), unscaled(1), inner_warm_start), DOUBLED)


def inputs(part, state, obs):
    return part.embed(state, None, context_inputs(jnp.asarray(obs, jnp.uint8)))


def test_embeddings_are_clustered_and_not_states():
    part = division()
    state = part.init(jax.random.key(0))
    for t, obs in enumerate([[0, 9], [1, 9], [100, 9], [101, 9]]):
        state = part.collect(state, inputs(part, state, obs), jnp.int32(t))
    state = part.start(state, jax.random.key(1))
    np.testing.assert_allclose(np.sort(np.asarray(part.centres(state)).ravel()), [1.0, 201.0])
    labels = [int(part.assign(state, inputs(part, state, obs))) for obs in ([2, 0], [99, 0], [40, 0], [60, 0])]
    assert labels[0] == labels[2] != labels[1] == labels[3]
    for obs, label in (([2, 0], labels[0]), ([60, 0], labels[1])):
        assert int(part.of_state(state, part.encode(state, None, jnp.asarray(obs, jnp.uint8)))) == label


def test_the_encoder_never_moves():
    part = division(0)
    state = part.init(jax.random.key(0))
    after = part.sync(part.update(state, inputs(part, state, [50, 0])))
    assert float(after.encoder) == float(state.encoder) == 2.0
    assert not np.array_equal(after.division.live, state.division.live)
    np.testing.assert_array_equal(after.division.target, after.division.live)


def test_features_are_those_of_the_network_as_it_is():
    part = by_trained_encoder(sequential_kmeans(2, (0.0,), (1.0,), unscaled(1)), lambda params, obs: params * obs[:1])
    state = part.init(jax.random.key(0))
    assert not jax.tree.leaves(state.encoder)
    np.testing.assert_allclose(part.encode(state, jnp.float32(3.0), jnp.array([2.0, 1.0])), [6.0])


def test_an_embedding_is_computed_once_and_only_where_it_is_used():
    part, given = division(), context_inputs(jnp.asarray([50, 0], jnp.uint8))
    state = part.init(jax.random.key(0))
    known = given._replace(embedding=jnp.array([7.0]))
    np.testing.assert_array_equal(part.embed(state, None, known).embedding, [7.0])
    np.testing.assert_array_equal(part.embed(state, None, given).embedding, [100.0])
    assert single().embed((), None, given) is given
