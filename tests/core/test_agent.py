"""Algorithm 1: what each of its lines does to the agent's state."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import act_uniforms, assert_same, context_inputs, learn_uniforms, leaves, step, without_cache

from iqrl.core.losses import Regulariser
from iqrl.core.replay.ring import ring_replay
from iqrl.core.replay.sampling import uniform
from iqrl.core.replay.sum_tree import empty_tree, with_weights
from iqrl.core.schedules import constant
from iqrl.core.types import Choice, Experience
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent

ACTION, LABELS = 2 * 4, slice(2 * 4 + 3, 2 * 4 + 5)
"""where a packed row of CartPole has its action and its contexts"""


def agent_of(task="CartPole-v0", method="iq", **settings):
    run = resolve(task, method, **{"learning_starts": 200, "target_period": 100} | settings)
    return build_agent(run, make_task(run))


def with_random_rows(state, context=0.0):
    """A buffer full of steps in one context, all with action 0."""
    rows = jax.random.normal(jax.random.key(1), state.replay.rows.shape)
    rows = rows.at[:, LABELS].set(context).at[:, ACTION].set(0.0)
    return state._replace(replay=state.replay._replace(rows=rows))


# Line 3: act


def test_acting_uses_the_head_of_the_states_context():
    agent = agent_of(epsilon_start=0.0, epsilon_final=0.0)
    state = agent.init(jax.random.key(0))
    # Each head prefers another action than the next; the greedy action shows which head was read.
    bias = jnp.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    state.params["heads"]["b"] = bias

    @jax.jit
    @jax.vmap
    def choose(obs):
        now = context_inputs(obs)
        choice = agent.act(state, now, jnp.int32(0), act_uniforms(agent, 0.5))
        return choice, agent.contexts.assign(state.contexts, now), agent.policy(state, now)

    choice, contexts, greedy = choose(jax.random.normal(jax.random.key(1), (20, 4)))
    np.testing.assert_array_equal(choice.context, contexts)
    np.testing.assert_array_equal(choice.action, np.argmax(np.asarray(bias)[contexts], axis=1))
    np.testing.assert_array_equal(choice.action, greedy)
    assert np.asarray(choice.greedy).all()
    assert len(set(np.asarray(contexts).tolist())) > 1


def test_random_actions_cover_all_actions_at_rate_epsilon():
    agent = agent_of("Acrobot-v1", epsilon_start=0.5, epsilon_final=0.5)
    state, now = agent.init(jax.random.key(0)), context_inputs(jnp.ones(6))
    uniforms = jax.random.uniform(jax.random.key(1), (6000, 2))
    act = jax.vmap(lambda row: agent.act(state, now, jnp.int32(0), act_uniforms(agent, row)).action)
    actions = jax.jit(act)(uniforms)
    shares = np.sort(np.bincount(np.asarray(actions), minlength=3) / 6000)
    np.testing.assert_allclose(shares, [0.5 / 3, 0.5 / 3, 0.5 + 0.5 / 3], atol=0.02)


def test_noise_is_in_what_is_done_and_the_target_has_its_own():
    agent = agent_of(method="dqn", noisy=True, epsilon_start=0.0, epsilon_final=0.0, buffer_size=50)
    state, now = agent.init(jax.random.key(0)), context_inputs(jnp.zeros(4))
    noise = jax.random.uniform(jax.random.key(1), (40, 2 + agent.network.num_uniforms))
    act = jax.vmap(lambda row: agent.act(state, now, jnp.int32(0), act_uniforms(agent, row)).action)
    assert set(np.asarray(jax.jit(act)(noise)).tolist()) == {0, 1}
    random = learn_uniforms(agent)

    @jax.jit
    def both_networks():
        batch = agent.replay.sample(state.replay, jnp.int32(49), random.sample)
        inputs = agent.loss_inputs(state.params, state, batch, random)
        return inputs.online_t.q, inputs.target_t.q

    assert np.abs(np.subtract(*both_networks())).max() > 0.01


# Lines 4 to 6: observe


def test_a_step_is_stored_with_the_labels_of_the_target_centroids_and_moves_the_live_ones():
    agent = agent_of(contexts=2, buffer_size=3)
    state = agent.init(jax.random.key(0))
    target = jnp.array([[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    state = state._replace(contexts=state.contexts._replace(target=target, live=target[::-1], counts=jnp.ones(2)))
    before, after = context_inputs(jnp.full(4, 0.2)), context_inputs(jnp.full(4, 0.9))
    choice = Choice(action=jnp.int32(1), context=jnp.int32(0), greedy=jnp.bool_(False))
    experience = Experience(
        before=before, choice=choice, reward=jnp.float32(3.0), discount=jnp.float32(0.5), after=after,
        done=jnp.bool_(True),
    )  # fmt: skip
    observed, transition = agent.observe(state, experience, jnp.int32(4))
    assert_same(
        transition, step([0.2] * 4, [0.9] * 4, a_tm1=1, r_t=3.0, discount_t=0.5, context_t=1, done=True, greedy=False)
    )
    batch = agent.replay.sample(observed.replay, jnp.int32(4), jnp.full(agent.replay.num_uniforms, 0.5))
    np.testing.assert_allclose(batch.transitions.obs_t[:, 0], after.obs)
    # The nearest live centroid, which is the second, has counted one state: it moves halfway.
    np.testing.assert_allclose(observed.contexts.live, [[1.0] * 4, [0.1] * 4], atol=1e-6)
    np.testing.assert_array_equal(observed.contexts.target, target)
    np.testing.assert_array_equal(observed.contexts.early, state.contexts.early)
    collected, _ = agent.observe(state, experience, jnp.int32(4), warm_up=True)
    np.testing.assert_allclose(collected.contexts.early[4], before.obs)


def test_labels_of_the_warm_start_replace_those_before_it(small_run, final_state):
    """Every stored transition carries the label that the target centroids give it, when learning starts."""
    run = small_run(steps=200, period=200, buffer_size=300)
    state, _ = final_state(run)
    agent = build_agent(run, make_task(run))
    rows = np.asarray(state.agent.replay.rows[0])[:200]
    division = jax.tree.map(lambda leaf: leaf[0], state.agent.contexts)
    labels = jax.jit(jax.vmap(lambda obs: agent.contexts.assign(division, context_inputs(obs))))(rows[:, :4])
    np.testing.assert_array_equal(rows[:, LABELS.start], labels)
    assert len(set(np.asarray(labels).tolist())) == 3


# Line 7: learn


def test_lambda_moves_with_epsilon_inside_the_compiled_program():
    """The gradient that the compiled update takes grows with the step as λ does."""
    agent = without_cache(agent_of(buffer_size=50, epsilon_decay=1000, steps=2000))
    state = with_random_rows(agent.init(jax.random.key(0)))
    # The target is moved away, and all samples are of head 0: only distillation acts on the other heads.
    state = state._replace(target=state.target._replace(params=jax.tree.map(lambda leaf: leaf + 0.3, state.params)))
    learn, random = jax.jit(agent.learn), learn_uniforms(agent)

    def momentum_of_other_heads(t):
        return np.asarray(learn(state, jnp.int32(t), random)[0].optimiser[1][0].mu["heads"]["b"])[1:, 0]

    at_start, halfway, after = (momentum_of_other_heads(t) for t in (0, 500, 2000))
    epsilon = lambda t: float(agent.epsilon(jnp.int32(t)))
    np.testing.assert_array_equal(at_start, 0.0)
    np.testing.assert_allclose(halfway / after, (1 - epsilon(500)) / (1 - epsilon(2000)), rtol=1e-4)
    assert np.abs(after).min() > 1e-4


def test_a_buffer_of_one_learns_as_a_batch_of_copies():
    """The mean gradient over 32 copies of the one transition is the gradient of one."""
    one = without_cache(agent_of(buffer_size=1))
    copies = dataclasses.replace(one, replay=ring_replay(1, 4, uniform(32)))
    state = with_random_rows(one.init(jax.random.key(0)), context=1.0)
    (after_one, of_one), (after_copies, of_copies) = (
        jax.jit(agent.learn)(state, jnp.int32(5), learn_uniforms(agent)) for agent in (one, copies)
    )
    np.testing.assert_allclose(of_one["value_loss"], of_copies["value_loss"], rtol=1e-4)
    for x, y in zip(leaves(after_one.params), leaves(after_copies.params), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-5)


def test_priorities_count_in_an_update_and_are_renewed_by_it():
    """Priorities 1 to 8; each sample counts p^-0.4 over the largest of the batch, and its priority becomes loss^0.6."""
    settings = {"sampling": "prioritised", "priority_exponent": 0.6, "priority_correction": 0.4}
    agent = without_cache(agent_of(method="dqn", buffer_size=8, batch_size=4, **settings))
    state = with_random_rows(agent.init(jax.random.key(0)))
    sampler = state.replay.sampler._replace(tree=with_weights(empty_tree(8), jnp.arange(8), jnp.arange(1.0, 9.0)))
    state = state._replace(replay=state.replay._replace(sampler=sampler))
    t, random = jnp.int32(7), learn_uniforms(agent, [0.1, 0.5, 0.3, 0.9])

    @jax.jit
    def loss():
        batch = agent.replay.sample(state.replay, t, random.sample)
        return batch, agent.loss(state.params, state, batch, t, random)

    batch, (total, (_, _, each)) = loss()
    counts = (np.asarray(batch.slots) + 1.0) ** -0.4
    assert len(set(counts)) > 2
    assert float(total) == pytest.approx(np.mean(counts / counts.max() * np.asarray(each)), rel=1e-5)
    after, _ = jax.jit(agent.learn)(state, t, random)
    np.testing.assert_allclose(after.replay.sampler.tree[0][batch.slots], np.asarray(each) ** 0.6, rtol=1e-4)


def test_the_loss_is_a_sum_over_weights_and_terms():
    """A term of one number per sample, one of one number for the batch; each gets its own random numbers."""
    per_sample = Regulariser("each", constant(2.0), lambda inputs: inputs.uniforms * jnp.arange(32.0), num_uniforms=32)
    of_batch = Regulariser("whole", constant(0.5), lambda inputs: inputs.uniforms[0], num_uniforms=1)
    agent = dataclasses.replace(agent_of(method="dqn"), regularisers=(per_sample, of_batch))
    state, random = with_random_rows(agent.init(jax.random.key(0))), learn_uniforms(agent)
    batch = agent.replay.sample(state.replay, jnp.int32(99), random.sample)
    total, (metrics, _, each) = jax.jit(agent.loss)(state.params, state, batch, jnp.int32(99), random)
    first, second = random.regularisers
    expected = np.mean(each) + 2.0 * np.mean(first * np.arange(32.0)) + 0.5 * second[0]
    assert float(total) == pytest.approx(float(expected), rel=1e-5)
    assert metrics.keys() == {"value_loss", "max_q", "each_loss", "whole_loss"} == set(agent.update_metrics)
    assert float(metrics["whole_loss"]) == float(second[0])


def test_regularisers_that_cannot_be_are_refused():
    two = (Regulariser("same", constant(1.0), lambda inputs: jnp.float32(0)),) * 2
    with pytest.raises(BadInput, match="must have different names; these are same, same"):
        dataclasses.replace(agent_of(), regularisers=two)
    square = (Regulariser("square", constant(1.0), lambda inputs: jnp.zeros((32, 32))),)
    agent = dataclasses.replace(agent_of(), regularisers=square)
    with pytest.raises(BadInput, match=r"regulariser square gives shape \(32, 32\)"):
        jax.eval_shape(lambda: agent.learn(agent.init(jax.random.key(0)), jnp.int32(99), learn_uniforms(agent)))


@pytest.mark.parametrize("has_target", [True, False])
def test_without_a_target_network_the_network_is_its_own_and_has_no_gradient_there(has_target):
    agent = without_cache(agent_of(method="dqn", **{} if has_target else {"target_period": 1}))
    assert (agent.has_target, agent.syncs) == (has_target, has_target)
    state = with_random_rows(agent.init(jax.random.key(0)))
    moved = jax.tree.map(lambda leaf: leaf + 0.1, state.params)
    random = learn_uniforms(agent)
    batch = agent.replay.sample(state.replay, jnp.int32(99), random.sample)
    inputs = agent.loss_inputs(moved, state, batch, random)
    source = state.params if has_target else moved
    np.testing.assert_allclose(
        inputs.target_t.q[..., 3], agent.network.apply(source, batch.transitions.obs_t[:, 3]).q, rtol=1e-5, atol=1e-6
    )
    total = lambda params: jnp.sum(agent.loss_inputs(params, state, batch, random).target_t.q)
    assert all((leaf == 0).all() for leaf in leaves(jax.grad(total)(moved)))


def test_the_batch_is_the_last_axis():
    agent = agent_of()
    state, states = agent.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (4, 5))
    found = agent.batch_outputs(state.q_function, states)
    assert found.q.shape == (3, 2, 5)
    for i in range(5):
        np.testing.assert_allclose(
            found.q[..., i], agent.network.apply(state.params, states[:, i]).q, rtol=1e-5, atol=1e-6
        )


def test_several_gradient_steps_are_as_many_updates():
    agent = agent_of(gradient_steps=3)
    state, random = with_random_rows(agent.init(jax.random.key(0))), learn_uniforms(agent)
    state, t = agent.sync(state), jnp.int32(99)
    together, metrics = jax.jit(agent.learn)(state, t, random)
    one_by_one, losses = state, []
    for one in random:
        one_by_one, reported = jax.jit(agent.update)(one_by_one, t, one)
        losses.append(float(reported["value_loss"]))
    for x, y in zip(leaves(together.params), leaves(one_by_one.params), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(np.mean(losses), rel=1e-4)
    assert len({np.asarray(one.sample).tobytes() for one in random}) == 3


# Line 8: sync


def test_sync_copies_network_and_centroids():
    agent = agent_of()
    state = agent.init(jax.random.key(0))
    moved = state._replace(
        params=jax.tree.map(lambda leaf: leaf + 1, state.params),
        contexts=state.contexts._replace(live=state.contexts.live + 1),
    )
    synced = agent.sync(moved)
    assert_same(synced.target.params, moved.params)
    np.testing.assert_array_equal(synced.contexts.target, moved.contexts.live)


def test_what_is_reported_is_what_holds_at_the_last_step():
    agent = agent_of(epsilon_decay=100, epsilon_final=0.0, distill_weight=2.0)
    assert agent.report(51) == pytest.approx({"epsilon": 0.5, "distillation_weight": 1.0})
    choice = Choice(action=jnp.int32(0), context=jnp.int32(2), greedy=jnp.bool_(True))
    np.testing.assert_array_equal(agent.step_report(choice)["occupancy"], [False, False, True])
    assert agent.step_metrics == {"occupancy": (3,)}
