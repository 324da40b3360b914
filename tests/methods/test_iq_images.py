"""IQ-RE and IQ-TE: the embeddings that contexts are clusters of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK
from records import context_inputs

from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent


def embedding_of(agent, state):
    obs = jax.random.randint(jax.random.key(1), (50,), 0, 2).astype(jnp.uint8)
    return agent.embed(agent.encoder_of(state), context_inputs(obs)).embedding, obs


def agent_of(method, **settings):
    run = resolve(WALK, method, hidden=(8,), learning_starts=70, **settings)
    return build_agent(run, make_task(run))


@pytest.mark.parametrize(("method", "moves"), [("iq-re", False), ("iq-te", True)])
def test_embeddings_move_with_the_network_only_where_they_are_its_own(method, moves):
    agent = agent_of(method, activation="relu")
    state = agent.init(jax.random.key(0))
    doubled = state._replace(params=jax.tree.map(lambda leaf: 2 * leaf, state.params))
    before, after = embedding_of(agent, state)[0], embedding_of(agent, doubled)[0]
    np.testing.assert_allclose(after, (2 if moves else 1) * before, rtol=1e-5)
    assert np.abs(before).max() > 0
    assert state.contexts.division.early.shape[0] == 70, "contexts begin where K-means has them"


def test_embeddings_of_iq_te_are_those_of_the_networks_own_convolutions():
    agent = agent_of("iq-te", activation="tanh", layer_norm=True)
    state = agent.init(jax.random.key(0))
    embedding, obs = embedding_of(agent, state)
    np.testing.assert_allclose(embedding, agent.network.trunk(state.params, obs), rtol=1e-6)


def test_a_random_embedding_has_the_size_asked_for():
    agent = agent_of("iq-re", code_size=7)
    assert embedding_of(agent, agent.init(jax.random.key(0)))[0].shape == (7,)
