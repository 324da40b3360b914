"""What methods are composed of: parts by the settings that ask for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK

from iqrl.composition import convolutions
from iqrl.methods import build_agent
from iqrl.parts.contexts import Situation
from iqrl.parts.encoders import convolved, picture
from iqrl.parts.sum_tree import empty_tree, with_weights
from iqrl.settings import resolve
from iqrl.tasks import make_task
from iqrl.training.compiled import Driver


def agent_of(method, task=WALK, **settings):
    run = resolve(task, method, **settings)
    return build_agent(run, make_task(run))


def test_priorities_count_in_an_update_and_are_renewed_by_it():
    """Priorities 1 to 8; each sample counts p^-0.4 over the largest of the batch, and its priority becomes loss^0.6."""
    settings = {"sampling": "prioritised", "priority_exponent": 0.6, "priority_correction": 0.4}
    agent = agent_of("dqn", "CartPole-v0", buffer_size=8, batch_size=4, **settings)
    state = agent.init(jax.random.key(0))
    rows = jax.random.normal(jax.random.key(1), state.replay.rows.shape).at[:, 11:13].set(0.0)
    sampler = state.replay.sampler._replace(tree=with_weights(empty_tree(8), jnp.arange(8), jnp.arange(1.0, 9.0)))
    state = state._replace(replay=state.replay._replace(rows=rows, sampler=sampler))
    t, uniforms = jnp.int32(7), jnp.array([0.1, 0.5, 0.3, 0.9])
    batch = agent.replay.sample(state.replay, t, uniforms)
    joint, (_, _, each) = agent._joint_loss(state.params, state, batch, t, jnp.zeros(0))
    counts = (np.asarray(batch.slots) + 1.0) ** -0.4
    assert len(set(counts)) > 2
    assert float(joint) == pytest.approx(np.mean(counts / counts.max() * np.asarray(each)), rel=1e-5)
    after, _ = agent.learn(state, t, uniforms)
    np.testing.assert_allclose(after.replay.sampler.tree[0][batch.slots], np.asarray(each) ** 0.6, rtol=1e-4)


def test_noise_is_in_what_is_done_and_of_the_target_another():
    agent = agent_of("dqn", "CartPole-v0", noisy=True, epsilon_start=0.0, epsilon_final=0.0, buffer_size=50)
    assert agent.teacher.width == 0, "what a noisy target said is not what it would say again"
    state = agent.init(jax.random.key(0))
    now = Situation(jnp.zeros(4), jnp.zeros(4), jnp.float32(0))
    noise = jax.random.uniform(jax.random.key(1), (40, agent.act_draws))
    assert {int(agent.act(state, now, jnp.int32(0), row).action) for row in noise} == {0, 1}
    batch = agent.replay.sample(state.replay, jnp.int32(49), jnp.linspace(0, 0.99, 32))
    samples = agent._moment(state.params, state, batch, noise.ravel()[: 2 * agent.network.draws]).samples
    assert np.abs(samples.online_t.q - samples.target_t.q).max() > 0.01


@pytest.mark.parametrize("method", ["rainbow", "stream-c51"])
def test_distributions_are_on_the_atoms_asked_for(method):
    """Seven atoms from -2 to 4: a network of zeros finds them all as likely, and values everything 1."""
    agent = agent_of(method, "CartPole-v0", value_low=-2.0, value_high=4.0, atoms=7)
    state = agent.init(jax.random.key(0))
    assert state.params["heads"]["b"].size == 2 * 7
    nothing = state._replace(params=jax.tree.map(jnp.zeros_like, state.params))
    now = Situation(jnp.ones(4), jnp.ones(4), jnp.float32(0))
    np.testing.assert_allclose(agent.values(nothing, now)[0], [1.0, 1.0], rtol=1e-6)


def test_on_images_returns_have_as_many_steps_as_asked():
    film = agent_of("rainbow", buffer_size=40, n_step=3, hidden=(8,)).replay.init()
    assert film.row.size == 40 + 2


@pytest.mark.parametrize(("method", "moves"), [("iq-re", False), ("iq-te", True)])
def test_codes_move_with_the_network_only_where_they_are_its_own(method, moves):
    agent = agent_of(method, hidden=(8,), learning_starts=70, activation="relu")
    state = agent.init(jax.random.key(0))
    obs = jax.random.randint(jax.random.key(1), (50,), 0, 2).astype(jnp.uint8)
    code = lambda state: agent.encoded(state, Situation(obs, obs, jnp.float32(0))).code
    doubled = state._replace(params=jax.tree.map(lambda leaf: 2 * leaf, state.params))
    np.testing.assert_allclose(code(doubled), (2 if moves else 1) * code(state), rtol=1e-5)
    assert np.abs(code(state)).max() > 0
    assert state.contexts.division.early.shape[0] == 70, "contexts begin where K-means has them"


def test_the_code_is_that_of_what_is_seen():
    run = resolve(WALK, "iq-re", hidden=(8,), learning_starts=30, steps=60, period=60, buffer_size=40, seeds=2)
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task))
    advance, state = jax.jit(driver.advance), driver.init()
    for stop in (7, 20, 45, 60):
        state, _ = advance(state, stop)
        for i in range(2):
            agent, env = jax.tree.map(lambda leaf, i=i: leaf[i], (state.agent, state.env))
            expected = driver.agent.encoded(agent, env.situation._replace(code=())).code
            np.testing.assert_allclose(env.code, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_convolutions_have_the_activation_and_normalisation_of_the_run(layer_norm):
    run = resolve(WALK, "dqn", activation="tanh", layer_norm=layer_norm)
    task = make_task(run)
    encoder = convolutions(run, task)
    params = encoder.init(jax.random.key(0))
    obs = jax.random.randint(jax.random.key(1), (50,), 0, 2).astype(jnp.uint8)
    sums = np.asarray(convolved(picture(obs, task.image), params[0]["w"], 3, 1))
    centred = (sums - sums.mean()) / np.sqrt(sums.var() + 1e-5)
    np.testing.assert_allclose(encoder.apply(params, obs), np.tanh(centred if layer_norm else sums).ravel(), atol=1e-5)


def test_codes_of_iq_te_are_what_the_networks_own_convolutions_say():
    agent = agent_of("iq-te", hidden=(8,), learning_starts=70, activation="tanh", layer_norm=True)
    state = agent.init(jax.random.key(0))
    obs = jax.random.randint(jax.random.key(1), (50,), 0, 2).astype(jnp.uint8)
    code = agent.encoded(state, Situation(obs, obs, jnp.float32(0))).code
    np.testing.assert_allclose(code, agent.network.trunk(state.params, obs), rtol=1e-6)
